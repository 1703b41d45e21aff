"""What is made from the table of the agent's protocol: ``python -m tests.agent.protocol`` writes it.

The agent's part ``protocol.sh``, and the diagram of a transaction in ``docs/agent.md``. The site has the reference as a page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import groupby

from rollout.kubelet.agent.deadlines import TIMES
from rollout.kubelet.agent.protocol import (
    ANSWERS,
    ARGUMENTS,
    BECOMES,
    FACTS,
    FAILED,
    FLAG,
    NAME,
    NUMBER,
    PAYLOADS,
    REFUSED,
    SAID,
    VERBS,
    VerbForm,
)
from tests.places import ROOT

PART = ROOT / "rollout/agent/protocol.sh"
EXPLANATION = ROOT / "docs/agent.md"
WRITES = "`python -m tests.agent.protocol` writes this"
_DIAGRAM = re.compile(r"(?s)(<!-- drawn: transaction -->\n\n)(.*?)(\n\n)")


def part() -> str:
    """The agent's side: the verbs, and their arguments as variables."""
    checked = {
        kind: [key for key, each in ARGUMENTS.items() if each.kind is kind and each.default] for kind in (NAME, NUMBER)
    }
    needs = [
        (words, [verb for verb, _ in found])
        for words, found in groupby(VERBS.items(), lambda each: each[1].needs)
        if words
    ]
    lines = [
        "# " + "-" * 90 + " the protocol",
        "",
        f"# {WRITES} part, from rollout/kubelet/agent/protocol.py.",
        "",
        "protocol_take_order() { # KEY=VALUE…: the arguments of `verb`, each in the variable of its name",
        f'  case $verb in {" | ".join(VERBS)}) ;; *) refuse bad-argument "no such verb" ;; esac',
        "  " + " ".join(f"{key}={each.default or _EMPTY}" for key, each in ARGUMENTS.items()),
        '  for word in "$@"; do',
        '    case $word in *[!A-Za-z0-9_./:@%+=,-]*) refuse bad-argument "a word outside the alphabet" ;; esac',
        "    value=${word#*=}",
        "    case $word in",
        *(f"      {key}=*) {key}=$value ;;" for key in ARGUMENTS),
        '      *) refuse bad-argument "$word" ;;',
        "    esac",
        "  done",
        "  if ! { "
        + " && ".join(
            f'{test} "${key}"' for test, kind in (("is_name", NAME), ("is_number", NUMBER)) for key in checked[kind]
        )
        + "; }; then",
        '    refuse bad-argument "unit, guard, keep or healthz"',
        "  fi",
        "  case $verb in",
        *(f"    {' | '.join(verbs)}) need {' '.join(words)} ;;" for words, verbs in needs),
        "  esac",
        "}",
    ]
    return "\n".join(lines) + "\n"


_EMPTY = "''"


def reference() -> str:
    """A page of the site: ``tests.docs.reference_pages``."""
    return "\n".join(_reference()) + "\n"


def _reference() -> Iterator[str]:
    yield "# The agent's protocol"
    yield ""
    yield "For developers: every request that the controller sends to the agent on a node, and every line that the agent answers. [The agent](agent.md) explains what it does. This page is made from `rollout/kubelet/agent/protocol.py`."
    yield ""
    yield "## Verbs"
    yield ""
    yield "Every verb ends with status 0 and its `end` line, refused or not; another status means that it was killed. Each may be repeated."
    yield ""
    yield from _table(
        ("verb", "arguments", "payload", "answer", "works", "does"),
        (
            (
                f"`{verb}`",
                _arguments(form),
                _words(form.payload),
                _words(form.answers),
                f"{TIMES[verb].works} s",
                form.meaning,
            )
            for verb, form in VERBS.items()
        ),
    )
    yield "All answers may have `refused` and `say`, and have `end`. `works`: the longest that the agent works."
    yield ""
    yield "## Arguments"
    yield ""
    yield from _table(
        ("argument", "default", "meaning"),
        (
            (f"`{key}={each.kind.shown}`", f"`{each.default}`" if each.default else "", each.meaning)
            for key, each in ARGUMENTS.items()
        ),
    )
    yield "## Payload lines"
    yield ""
    yield "Split at newlines and blanks. Every word matches `[A-Za-z0-9_./:@%+=,-]+`; BASE64 is `-` for no bytes."
    yield ""
    yield from _table(
        ("line", "meaning"), ((f"`{_plain(line.shown(word))}`", line.meaning) for word, line in PAYLOADS.items())
    )
    yield "## Answer lines"
    yield ""
    yield "One line for each event, of printable ASCII, at most 256 KiB. A line that is not in this table makes the whole answer `bad-answer`."
    yield ""
    yield from _table(
        ("line", "meaning"), ((f"`{_plain(line.shown(word))}`", line.meaning) for word, line in ANSWERS.items())
    )
    yield "## Facts"
    yield ""
    yield from _table(("fact", "text"), ((_words(tuple(keys.split(", "))), meaning) for keys, meaning in FACTS.items()))
    yield "## References"
    yield ""
    yield f"Of `refused`: {_words(REFUSED)}."
    yield ""
    yield f"Of `failed`: {'; '.join(f'`{word}`, {meaning}' for word, meaning in FAILED.items())}."
    yield ""
    yield f"Of `say`: {_words(SAID)}."
    yield ""
    yield "The controller reports `answer-cut-off` for an answer without its `end`. `explain` has the cause and the remedy of each reference."


def _arguments(form: VerbForm) -> str:
    def shown(key: str) -> str:
        return f"{key}=1" if ARGUMENTS[key].kind is FLAG else f"{key}="

    return " ".join((*(f"`{shown(key)}`" for key in form.needs), *(f"[`{shown(key)}`]" for key in form.takes)))


def _words(words: tuple[str, ...]) -> str:
    return " ".join(f"`{word}`" for word in words)


def _plain(text: str) -> str:
    """As a cell of a table has it."""
    return text.replace("|", "\\|")


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    for cells in (head, ("---",) * len(head), *rows):
        yield f"| {' | '.join(cells)} |"
    yield ""


def diagram() -> str:
    """The states of a receipt."""
    rows = [f"    {before or '[*]'} --> {after}: {by}" for before, after, by in BECOMES]
    return "\n".join(("```mermaid", "stateDiagram-v2", *rows, "    reverted --> [*]", "```"))


def explained(page: str) -> str:
    """The page with its diagram up to date."""
    return _DIAGRAM.sub(lambda found: f"{found[1]}{diagram()}{found[3]}", page)


def made() -> Mapping[str, str]:
    """Path → text of each file that is made, as it should be."""
    texts = {PART: part(), EXPLANATION: explained(EXPLANATION.read_text())}
    return {str(path.relative_to(ROOT)): text for path, text in texts.items()}


if __name__ == "__main__":
    for name, text in made().items():
        (ROOT / name).write_text(text)
