"""The agent's parts make one program."""

from __future__ import annotations

import re
from collections import Counter

from rollout.adapters.agent_program import LIST, agent_program, joined
from tests.places import ROOT

FOLDER = ROOT / "rollout/agent"
LISTED = [line.split()[0] for line in (FOLDER / LIST).read_text().splitlines()]


def test_every_part_is_listed_once() -> None:
    found = [path.name for path in FOLDER.iterdir() if path.is_file()]
    assert sorted(found) == sorted([*LISTED, LIST, "__init__.py"])


def test_the_program_is_the_parts_in_their_order() -> None:
    assert joined({LIST: "b.sh the first\na.sh  the second\n", "a.sh": "say a\n", "b.sh": "say b\n"}.__getitem__) == (
        "say b\n\nsay a\n"
    )
    assert agent_program() == joined(lambda name: (FOLDER / name).read_text())


def test_the_program_begins_with_its_shell_and_ends_with_the_call_of_main() -> None:
    """A program that is cut off anywhere calls nothing."""
    lines = agent_program().splitlines()
    assert lines[0] == "#!/bin/sh"
    assert [line for line in lines if re.search(r'\bmain "\$@"', line)] == [lines[-1]]


def test_no_function_is_defined_in_two_parts() -> None:
    defined = Counter(re.findall(r"^(\w+)\(\) \{", agent_program(), re.MULTILINE))
    assert [name for name, times in defined.items() if times > 1] == []


def test_a_part_is_at_most_400_lines_long() -> None:
    assert [name for name in LISTED if len((FOLDER / name).read_text().splitlines()) > 400] == []
