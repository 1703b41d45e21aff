"""How many programs a change starts on a node: each costs a node more than all of the shell's own work between two of them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.programs import FORKED, programs
from rollout.kubelet.agent import agent_call
from tests.agent.node import PATIENCE, PROGRAM, Node

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(shutil.which("strace") is None, reason="NOT TESTED: strace is missing (apt-get install strace)"),
]

MOST = 72
MOST_FORKS = 73
"""For three files, one of them new in a new folder, a reload and a restart: a conversation with apply, confirm and cleanup."""


def test_a_change_starts_few_programs(tmp_path: Path) -> None:
    found = dict(programs(tmp_path))
    assert found.pop(FORKED) <= MOST_FORKS, found
    assert found["sync"] == 6, "five of the change and its cleanup, and one that shows that it takes names"
    assert sum(found.values()) <= MOST, found


def test_a_confirm_reads_each_note_once_and_the_receipt_three_times(tmp_path: Path) -> None:
    """A shell reads a line by one system call a byte. The receipt is read by the checks, among all, and for the answer."""
    node = Node.make(tmp_path / "node", "dash")
    assert node.apply().healthy
    asked = agent_call.confirm(PROGRAM, tx="t1", run="run-1", counter=1, keep=3, sudo=False, deadline=60)
    trace = tmp_path / "trace"
    subprocess.run(
        ["strace", "-o", str(trace), "-f", "-e", "trace=openat", str(node.bin / "sh"), "-c", asked.line],
        input=asked.stdin, capture_output=True, env=node.env(), cwd="/", timeout=PATIENCE, check=True,
    )  # fmt: skip
    assert node.receipt()["state"] == "confirmed"
    read = Counter(re.findall(r'tx/t1/(file\.\d|receipt)", O_RDONLY\)', trace.read_text(errors="replace")))
    assert read == {"file.1": 1, "file.2": 1, "file.3": 1, "receipt": 3}


def test_no_long_text_is_cut_at_its_beginning() -> None:
    """That costs the square of its length, 12 ms of a node's CPU for 2,850 characters: its lines are walked, or its end is cut."""
    assert not re.findall(r"\$\{(?:u_blocks|rest|c_facts|stat|n_reads|f_notes|r_text|spoken|PAYLOAD)##?\*.*", PROGRAM)


SET_AGAIN = {
    "tx": {"receipt_here", "main"},
    "force": {"main", "verb_forget"},
    "unit": {"processes_choose_unit", "requested_revert_locked"},
    "healthz": {"requested_revert_locked"},
}
"""Words of an order that something else than the order sets, and where: the transaction at work, a receipt's own kubelet, and the unit that has it in it."""


def test_nothing_else_sets_what_an_order_says() -> None:
    """All names of a shell program are global: a helper that uses one of these as its own changes what was ordered."""
    words = set(re.findall(r"^ {6}(\w+)=\*\) \1=\$value", PROGRAM, re.MULTILINE))
    assert len(words) >= 16
    found: dict[str, set[str]] = {}
    for name, body in re.findall(r"^(\w+)\(\) \{(?: #[^\n]*)?\n(.*?)^\}", PROGRAM, re.MULTILINE | re.DOTALL):
        code = re.sub(r"""'[^'\n]*'|"[^"]*"|^ *\w+=\*\)""", "x", body, flags=re.MULTILINE)
        for word in re.findall(r"(?:^|[\s;({])(\w+)=|\bfor (\w+) in\b|\bread (?:-r )?([\w ]+)", code):
            for each in " ".join(word).split():
                found.setdefault(each, set()).add(name)
    assert {
        word: found[word] - {"protocol_take_order"} for word in words if found[word] != {"protocol_take_order"}
    } == SET_AGAIN
