"""A function's name says in which part it is, and each call finds what it calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rollout.adapters.agent_program import LIST, RUNTIMES, agent_program, part
from rollout.kubelet.agent.protocol import VERBS
from rollout.kubelet.runtimes.known import DAEMONS
from tests.agent.commands import commands

WORDS = "words.sh"
"""What all parts say as they say the shell's own commands: its functions have no prefix."""
TRIGGERS = {"guard", "watch", "boot", "leave", "try"}
PACKAGES = {daemon.agent_part for daemon in DAEMONS if daemon.agent_part}
SYNTAX = {"if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac"}
BUILTINS = {
    "break", "command", "continue", "declare", "echo", "eval", "exec", "exit", "export", "kill", "local", "printf", "read", "return",
    "set", "shift", "trap", "true", "umask", "unset", "wait",
}  # fmt: skip
PROGRAMS = {
    "base64", "cat", "chcon", "chmod", "cp", "date", "dd", "flock", "grep", "ln", "logger", "ls", "mkdir", "mv", "readlink", "rm", "rmdir",
    "sed", "sha256sum", "sleep", "sort", "stat", "sync", "tail", "timeout", "tr",
}  # fmt: skip
"""Programs that are called by their name alone; others are arguments of ``bounded`` and its kind."""


def parts() -> Mapping[str, str]:
    return {name: part(name) for name in (line.split()[0] for line in part(LIST).splitlines())}


def defined(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"(?m)^([A-Za-z_0-9]+)\(\)", text))


def strangers(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(Part, function) where the name does not begin with the part's."""
    for name, text in texts.items():
        stems = {name.removesuffix(".sh")} | (PACKAGES if name == RUNTIMES else set())
        for function in defined(text):
            own = any(function == stem or function.startswith(f"{stem}_") for stem in stems)
            verb = function.startswith("verb_") and function.removeprefix("verb_") in {*VERBS, *TRIGGERS}
            if name == WORDS:
                own = not any(function.startswith(f"{other.removesuffix('.sh')}_") for other in texts)
            if not own and not verb:
                yield name, function


def missing(program: str) -> set[str]:
    """What is called and is neither a function, nor a word of the shell, nor a program of every node."""
    known = defined(program) | SYNTAX | BUILTINS | PROGRAMS
    return {each.name for each in commands(program)} - known


def test_a_function_begins_with_the_name_of_its_part() -> None:
    assert list(strangers(parts())) == []


def test_a_function_of_another_parts_prefix_is_found() -> None:
    texts = {
        "guard.sh": "guard_start() {\n}\nlock_take() {\n}\nverb_no() {\n}\n",
        "lock.sh": "",
        WORDS: "say() {\n}\nlock_say() {\n}\n",
    }
    assert set(strangers(texts)) == {("guard.sh", "lock_take"), ("guard.sh", "verb_no"), (WORDS, "lock_say")}


def test_every_call_finds_its_function() -> None:
    """A function that was removed left a call of it, and a boot that could not start a program then reported success."""
    assert missing(agent_program()) == set()


def test_every_function_is_called() -> None:
    program = agent_program()
    called = {each.name for each in commands(program)}
    assert {name for name in defined(program) - called if not name.startswith("verb_")} == {"conversation_serve"}


CALLS = """
alone() { give "$(take "$1")"; }
each file check || none
case $1 in left | right) turn ;; straight) ;; esac # no call
x=$(look) y=1 "$@"
if ! is_here; then say 'not a call' \\
  more; fi
"""


def test_a_call_is_found_wherever_a_command_may_stand() -> None:
    assert [each.name for each in commands(CALLS)] == [
        "give", "take", "each", "check", "none", "case", "turn", "look", "if", "is_here", "then", "say", "fi",
    ]  # fmt: skip
    assert missing("gone_for_good\n") == {"gone_for_good"}
