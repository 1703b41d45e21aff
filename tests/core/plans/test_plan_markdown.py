"""A plan as Markdown: bounded, and no text of a node or a file breaks out of its code."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from rollout.core.model.plan import Plan
from rollout.core.plans import plan_codec
from rollout.core.plans.plan_markdown import LONGEST, code, fenced, plan_markdown
from tests.core.plans.test_plan_text import plan_of

HOSTILE = "a`b``c</code></details><script>x</script> @admins [x](http://evil) | $(y)"


def shown(plan: Plan, file: str = "x.plan.json") -> str:
    return plan_markdown(plan, plan_codec.digest(plan), file)


def outside_code(text: str) -> str:
    """What a reader of Markdown takes as markup: everything but fenced blocks, code spans and ``<code>``."""
    blocks = re.sub(r"(?ms)^(`{3,})\w*\n.*?^\1$", "", text)
    spans = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", blocks)
    return re.sub(r"<code>[^<]*</code>", "", spans)


def with_texts(plan: Plan, words: str, content: bytes) -> Plan:
    """``words`` in every name and reason, ``content`` in every new file."""
    groups = tuple(
        replace(
            group, label=words,
            change=replace(
                group.change, notes=(words,),
                files=tuple(
                    replace(
                        file, reasons=(words,), path=f"/etc/{words}", after=file.after + content,
                        before=None if file.before is None else file.before + content,
                    )
                    for file in group.change.files
                ),
            ),
        )
        for group in plan.groups
    )  # fmt: skip
    waves = tuple(replace(wave, name=words) for wave in plan.waves)
    return replace(plan, groups=groups, waves=waves, cluster=words, playbook=words)


def test_the_summary_is_first_and_each_group_can_be_opened() -> None:
    plan = plan_of(200)
    lines = shown(plan).splitlines()
    assert lines[0] == "### Plan for `rno`: 199 nodes to change"
    assert (
        lines[lines.index("| 199 | 0 | 0 | 0 | 1 |") - 2]
        == "| to change | as wanted | skipped | refused | unreachable |"
    )
    assert any(line.startswith("| `canary` | 5 | 2 min 50 s |") for line in lines)
    assert lines.index("#### Changes") > lines.index("**Warnings**")
    opened = [line for line in lines if line.startswith("<details><summary>")]
    assert opened[0].startswith("<details><summary><code>g1</code> <code>kubelet 1.20.15")
    assert len(opened) == lines.count("</details>")
    assert "+serializeImagePulls: false" in lines


def test_no_text_breaks_out_of_its_code() -> None:
    rude = b"\n```\n</details><img src=x>\n````\n# title @admins\n"
    text = shown(with_texts(plan_of(12), HOSTILE, rude))
    rest = outside_code(text)
    for bad in ("<script", "<img", "@admins", "](http", "# title", "$(y)"):
        assert bad not in rest, rest
    assert rest.count("<details>") == rest.count("</details>")
    assert "````" in text, "a fence longer than those inside it"


def test_a_bar_in_a_name_adds_no_column() -> None:
    (row,) = [line for line in shown(with_texts(plan_of(1), "a|b", b"")).splitlines() if line.startswith("| `a")]
    assert len(re.findall(r"(?<!\\)\|", row)) == 5


@pytest.mark.parametrize("lines", [120, 4000], ids=["many lines", "more lines than are shown"])
def test_it_is_never_too_long_and_says_what_was_cut(lines: int) -> None:
    plan = plan_of(12)
    added = b"".join(b"- %d %s\n" % (number, b"x" * 900) for number in range(lines))
    text = shown(with_texts(plan, "w" * 5000, added))
    assert len(text) <= LONGEST
    assert "**Cut**: the diffs of" in text
    assert "`rollout plan show x.plan.json` shows everything" in text


def test_groups_that_have_no_room_at_all_are_counted() -> None:
    plan = plan_of(12)
    change = replace(plan.groups[0].change, notes=tuple(f"{number} {'n' * 390}" for number in range(300)))
    groups = tuple(replace(group, change=replace(change, files=group.change.files)) for group in plan.groups)
    text = shown(replace(plan, groups=groups))
    assert len(text) <= LONGEST
    assert re.search(r"\*\*Cut\*\*: \d groups of changes left out", text)


@pytest.mark.parametrize(
    ("text", "span"), [("a", "`a`"), ("a`b", "``a`b``"), ("`a`", "`` `a` ``"), ("", "`-`"), ("a\nb", "`a b`")]
)
def test_a_code_span(text: str, span: str) -> None:
    assert code(text) == span


def test_a_fence_is_longer_than_any_line_of_backticks() -> None:
    assert list(fenced(["````", "x"], "diff")) == ["`````diff", "````", "x", "`````"]
