"""The agent's parts make one program."""

from __future__ import annotations

import re
from collections import Counter

from rollout.adapters.agent_program import LIST, RUNTIMES, agent_program, joined, part
from rollout.kubelet.runtimes.known import DAEMONS
from tests.places import ROOT

FOLDER = ROOT / "rollout/agent"
LISTED = [line.split()[0] for line in (FOLDER / LIST).read_text().splitlines()]


def test_every_part_is_listed_once() -> None:
    found = [path.name for path in FOLDER.iterdir() if path.is_file()]
    assert sorted([*found, RUNTIMES]) == sorted([*LISTED, LIST, "__init__.py"])


def test_the_program_is_the_parts_in_their_order() -> None:
    assert joined({LIST: "b.sh the first\na.sh  the second\n", "a.sh": "say a\n", "b.sh": "say b\n"}.__getitem__) == (
        "say b\n\nsay a\n"
    )
    assert agent_program() == joined(part)


def test_the_program_begins_with_its_shell_and_ends_with_the_call_of_main() -> None:
    """A program that is cut off anywhere calls nothing."""
    lines = agent_program().splitlines()
    assert lines[0] == "#!/bin/sh"
    assert [line for line in lines if re.search(r'\bmain "\$@"', line)] == [lines[-1]]


def test_no_function_is_defined_in_two_parts() -> None:
    defined = Counter(re.findall(r"^(\w+)\(\) \{", agent_program(), re.MULTILINE))
    assert [name for name, times in defined.items() if times > 1] == []


def test_the_part_of_runtimes_has_what_their_descriptions_name() -> None:
    """Every daemon's unit and program, and each ``agent.sh`` with a function that is called."""
    made = part(RUNTIMES)
    (units,) = re.findall(r"^RUNTIMES='(.*)'$", made, re.MULTILINE)
    assert units.split() == [daemon.unit for daemon in DAEMONS]
    assert re.findall(r"^  homes_version runtime-(\S+) (\S+) --version$", made, re.MULTILINE) == [
        (daemon.program, daemon.program) for daemon in DAEMONS
    ]
    own = {path.parent.name for path in (ROOT / "rollout/kubelet/runtimes").glob("*/agent.sh")}
    assert own == {daemon.agent_part for daemon in DAEMONS if daemon.agent_part}
    called = set(re.findall(r"^      (\w+_(?:note|layers))$", made, re.MULTILINE))
    assert called == set(re.findall(r"^((?:" + "|".join(own) + r")_(?:note|layers))\(\) \{", made, re.MULTILINE))
    assert called
    assert all(f"${{n_value:-{file.usual}}}" in made for daemon in DAEMONS for file in daemon.reads)


def test_the_other_parts_choose_by_no_unit_of_a_runtime_except_where_its_lines_are_read() -> None:
    named = {name for name in LISTED if name != RUNTIMES for daemon in DAEMONS if daemon.unit in part(name)}
    assert named == {"pulls.sh"}
