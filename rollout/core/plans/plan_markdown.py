"""A plan as Markdown for a pull request: the summary first, then a ``<details>`` for each group of changes.

Texts of nodes and files are only ever inside code, so that none of them is a tag, a mention or a link, or ends its fence.
The text has at most ``LONGEST`` characters, the most that a comment may have; what was left out is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape

from rollout.core.model.config_map import ConfigMapChange
from rollout.core.model.plan import Plan, Standing
from rollout.core.plans import estimate
from rollout.core.plans.change_text import ShownGroup, config_map_diff, diff_lines, folded, kinds, then_lines
from rollout.core.plans.plan_text import (
    left_lines,
    limit_lines,
    side_effect_lines,
    tail_lines,
    warning_lines,
    wave_halts,
)
from rollout.core.text.terminal import CONTROL, counted, printable, seconds_text, wall_of

LONGEST = 65_536
_ROOM = 600
"""Characters kept for what says that something was left out."""
_MOST_WAVES = 40
_LONGEST_SECTION = 6_000
_TICKS = re.compile(r"`+")


def plan_markdown(plan: Plan, digest: str, file: str = "") -> str:
    """``file``: the plan file, for the command that shows all of it."""
    summary = "\n".join((*_summary(plan, digest), *_waves(plan), *_warnings(plan)))
    rest = "\n".join(_rest(plan))
    found = kinds(plan)
    blocks: list[str] = []
    used = len(summary) + len(rest) + _ROOM + len("\n".join(_config_map(plan.config_map)) if plan.config_map else "")
    shown = whole = 0
    for kind in found:
        with_diffs = "\n".join(_group(kind, diffs=True))
        block = with_diffs if used + len(with_diffs) <= LONGEST else "\n".join(_group(kind, diffs=False))
        if used + len(block) + 1 > LONGEST:
            break
        blocks.append(block)
        used += len(block) + 1
        shown += 1
        whole += block == with_diffs
    blocks += ["\n".join(_config_map(plan.config_map))] if plan.config_map else []
    changes = ("", "#### Changes", "", *blocks, *_cut(len(found), shown, whole, file)) if found or blocks else ()
    return "\n".join((summary, *changes, rest)) + "\n"


def code(text: str) -> str:
    """A code span that contains ``text``, whatever is in it. Never empty."""
    inside = printable(text, 400) or "-"
    ticks = "`" * (_longest(inside) + 1)
    room = " " if inside[0] == "`" or inside[-1] == "`" else ""
    return f"{ticks}{room}{inside}{room}{ticks}"


def fenced(lines: Iterable[str], language: str = "") -> Iterator[str]:
    """A code block that no line of ``lines`` ends."""
    inside = [CONTROL.sub("", line).replace("\n", " ") for line in lines]
    fence = "`" * max(3, max(map(_longest, inside), default=0) + 1)
    yield f"{fence}{language}"
    yield from inside
    yield fence


def _longest(text: str) -> int:
    """The most backticks in a row."""
    return max(map(len, _TICKS.findall(text)), default=0)


def _cell(text: str) -> str:
    """A code span for a table, where a bar ends the cell even inside code."""
    return code(text).replace("|", "\\|")


def _summary(plan: Plan, digest: str) -> Iterator[str]:
    counts = {standing: sum(entry.standing is standing for entry in plan.left) for standing in Standing}
    yield f"### Plan for {code(plan.cluster)}: {counted(len(plan.nodes), 'node')} to change"
    yield ""
    limited = f", limit {code(plan.limit)}" if plan.limit else ""
    yield f"Playbook {code(plan.playbook)}, nodes read {code(wall_of(plan.taken))}{limited}. Digest: {code(digest)}"
    yield ""
    yield "| to change | as wanted | skipped | refused | unreachable |"
    yield "| --: | --: | --: | --: | --: |"
    numbers = (len(plan.nodes), *(counts[each] for each in (Standing.AS_WANTED, Standing.SKIPPED, Standing.REFUSED)))
    yield f"| {' | '.join(f'{number:,}' for number in numbers)} | {counts[Standing.UNREACHABLE]:,} |"
    yield ""
    yield from (f"* {code(line)}" for line in tail_lines(plan) if line)


def _waves(plan: Plan) -> Iterator[str]:
    if not plan.waves:
        return
    yield ""
    yield "| wave | nodes | about | halts at |"
    yield "| --- | --: | --- | --- |"
    for wave in plan.waves[:_MOST_WAVES]:
        about = seconds_text(round(estimate.of_wave(plan, wave)))
        hold = ", then holds" if wave.hold else ""
        halts = "; ".join(wave_halts(plan, wave)) or "no budget of its own"
        yield f"| {_cell(printable(wave.name, 60))} | {len(wave.nodes):,} | {about}{hold} | {halts} |"
    if len(plan.waves) > _MOST_WAVES:
        yield f"\n… {counted(len(plan.waves) - _MOST_WAVES, 'more wave')} not shown"


def _warnings(plan: Plan) -> Iterator[str]:
    lines = [line.strip() for line in warning_lines(plan)][2:]  # without its title
    if lines:
        yield ""
        yield "**Warnings**"
        yield ""
        yield from (f"* {code(line)}" for line in lines)


def _group(kind: ShownGroup, *, diffs: bool) -> Iterator[str]:
    """Our own words and code, inside ``<details>``: a blank line ends the markup of the summary."""
    first = kind.first
    yield f"<details><summary><code>{_html(first.name)}</code> <code>{_html(first.label)}</code>: {counted(len(kind.nodes), 'node')}</summary>"
    yield ""
    yield f"Nodes: {code(folded(kind.nodes))}"
    yield ""
    for file in first.change.files:
        yield from (f"* {code(reason)}" for reason in file.reasons)
        yield ""
        if diffs:
            yield from fenced(diff_lines(file), "diff")
        else:
            yield f"The diff of {code(file.path)} is left out: this text would be too long."
        yield ""
    yield from (f"* {code(line)}" for line in then_lines(first.change))
    yield ""
    yield "</details>"


def _config_map(change: ConfigMapChange) -> Iterator[str]:
    yield f"<details><summary><code>{_html(change.title)}</code>: for nodes that join later</summary>"
    yield ""
    yield "It is written after the last wave."
    yield ""
    yield from fenced(config_map_diff(change), "diff")
    yield ""
    yield "</details>"


def _html(text: str) -> str:
    return escape(printable(text, 200)) or "-"


def _cut(groups: int, shown: int, whole: int, file: str) -> Iterator[str]:
    if whole == groups:
        return
    command = code(f"rollout plan show {printable(file, 200)}") if file else code("rollout plan show FILE")
    left = [f"{counted(groups - shown, 'group')} of changes"] if groups > shown else []
    left += [f"the diffs of {counted(shown - whole, 'group')}"] if shown > whole else []
    yield ""
    yield f"**Cut**: {' and '.join(left)} left out, because a comment may have {LONGEST:,} characters. {command} shows everything."


def _rest(plan: Plan) -> Iterator[str]:
    """What matters less: in the same words as on a terminal."""
    for title, lines in (
        ("Side effects", side_effect_lines(plan)),
        ("Limits and gates", limit_lines(plan)),
        ("Left alone", left_lines(plan)),
    ):
        found = _bounded([line for line in lines if line][1:])  # without its title
        if found:
            yield ""
            yield f"<details><summary>{title}</summary>"
            yield ""
            yield from fenced(found)
            yield ""
            yield "</details>"


def _bounded(lines: list[str]) -> list[str]:
    used = 0
    for at, line in enumerate(lines):
        used += len(line) + 1
        if used > _LONGEST_SECTION:
            return [*lines[:at], f"… {counted(len(lines) - at, 'more line')} not shown"]
    return lines
