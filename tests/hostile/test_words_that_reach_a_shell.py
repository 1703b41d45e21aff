"""Exactly the intended words reach a node's shell, under dash and under busybox; a word that cannot is refused before."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rollout
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_call import Claim, Measure, NodeCommand
from rollout.kubelet.agent.agent_lines import answered
from rollout.kubelet.node import env_file, unit_file

SHELLS = [words for words in (("dash", "-c"), ("busybox", "sh", "-c")) if shutil.which(words[0])]
SERVING = (Path(rollout.__file__).parent / "agent" / "conversation.sh").read_text(encoding="utf-8")
PROGRAM = (
    "NL='\n'\n"
    'main() { printf %s "$spoken"; printf \'%s\\000\' "$@" "$PAYLOAD"; }; is_name() { :; }; is_number() { :; }; born() { :; }\n'
    + SERVING
)
HOSTILE = st.lists(
    st.sampled_from(
        [*"aZ0_.-@/:%+=,", *" \t\n\r'\"`$\\;|&<>(){}[]*?!#~^", "$(id)", "`id`", "\x00", "\x1b", "é", "\u202e"]
    ),
    min_size=1,
    max_size=12,
).map("".join)
FEW = settings(max_examples=40, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
MARKS = set(" \t\n\r'\"`$\\;|&<>(){}[]*?!#~^\x00\x1bé\u202e")


@pytest.mark.process
@pytest.mark.parametrize("shell", SHELLS, ids=lambda words: words[0])
@FEW
@given(name=HOSTILE, path=HOSTILE, line=HOSTILE)
def test_a_call_arrives_unchanged_or_is_not_made(shell: tuple[str, ...], name: str, path: str, line: str) -> None:
    measure = Measure("kubelet.service", 10248, (f"/etc/{path}",), (NodeCommand("g", 5, line),))
    try:
        call = agent_call.status(PROGRAM, tx=name, claim=Claim(3, name), measure=measure, sudo=False, deadline=5)
    except ValueError:
        return
    assert not MARKS & set(name + path), "words with special characters of a shell are refused"
    done = subprocess.run([*shell, call.line], input=call.stdin, capture_output=True, check=True, timeout=300)
    *words, payload, end = answered(done.stdout).decode().split("\0")
    assert (end, done.stderr) == ("", b"")
    assert words == [
        "status",
        f"tx={name}",
        "claim=1",
        f"run={name}",
        "counter=3",
        "measure=1",
        "unit=kubelet.service",
        "healthz=10248",
    ]
    encoded = base64.b64encode(line.encode()).decode()
    assert payload == f"path /etc/{path}\ncommand g 5 {encoded}\n"


@pytest.mark.process
@pytest.mark.parametrize("shell", SHELLS, ids=lambda words: words[0])
def test_a_call_that_was_changed_on_its_way_does_not_run(shell: tuple[str, ...]) -> None:
    call = agent_call.status(PROGRAM, tx="t", sudo=False, deadline=5)
    for bytes_sent in (call.stdin[:900], call.stdin.replace(b"printf", b"printg", 1), b""):
        done = subprocess.run([*shell, call.line], input=bytes_sent, capture_output=True, check=True, timeout=300)
        assert answered(done.stdout).startswith(
            b"refused torn-program the program arrived incomplete or changed; sh is /"
        )
    assert hashlib.sha256(PROGRAM.encode()).hexdigest() in call.line


@FEW
@given(value=HOSTILE, before=st.sampled_from(["", "A=b\n", "A=b", "A=b \\\n", "A='b\\\n'\n", "# x\n"]))
def test_a_value_in_an_environment_file_is_one_assignment_and_no_more(value: str, before: str) -> None:
    try:
        made = env_file.assign(before, "KUBELET_EXTRA_ARGS", value)
    except ValueError:
        assert re.search(r"[\n\r\0]", value) or before.startswith("#"), "only line ends cannot be written"
        return
    kept = env_file.values(before)
    assert env_file.values(made) == {**kept, "KUBELET_EXTRA_ARGS": value}


@FEW
@given(word=HOSTILE)
def test_a_word_on_a_units_command_line_is_that_word_and_no_other_line(word: str) -> None:
    try:
        quoted = unit_file.quote(word)
    except ValueError:
        return
    text = f"[Service]\nExecStart=/usr/bin/kubelet {quoted}\nRestart=always\n"
    lines = [(line.key, line.value) for line in unit_file.service_lines(text)]
    assert [key for key, _ in lines] == ["ExecStart", "Restart"]
    try:
        pieces = unit_file.expand(lines[0][1], "kubelet.service", {"id": "owned"}, {})
    except ValueError:
        return  # a change with a line that cannot be read back is refused
    assert [piece.text for piece in pieces] == ["/usr/bin/kubelet", word]
