"""No call overwrites a name that its caller still needs."""

from __future__ import annotations

import re

from rollout.adapters.agent_program import agent_program
from rollout.kubelet.agent.protocol import ARGUMENTS
from tests.agent.shared_names import looped_and_passed, shared_names, unnamed, unprefixed


def test_what_a_function_reads_after_a_call_is_its_own_or_the_result_of_that_call() -> None:
    assert unnamed(agent_program()) == frozenset()


STATE = {*ARGUMENTS, "verb", "tx", "until", "spoken", "undurable", "why", "now", "boot"}
"""What all parts share, as the rules in start.sh say: the order, and the state of the verb."""
NO_NAMES = {"_", "bs", "iflag", "no_proxy", "logtostderr", "upperdir", "proof"}
"""Arguments of dd, options of others, a variable of the environment, and a key of a receipt that nothing reads."""


def test_a_name_that_outlives_a_function_has_the_prefix_of_its_part() -> None:
    program = agent_program()
    keys = set(re.findall(r"(?m)^      ([a-z]+)=\*\) r_", program))
    assert unprefixed(program) - NO_NAMES - keys <= STATE
    assert unprefixed(
        "load() {\n  local a\n  a=1 b=2 c_d=3\n}\nother() {\n  local e\n  found\n}\nfound() {\n  e=1\n}\n"
    ) == {"b"}


OVERWRITTEN = """
load() { # TX
  why=$1
}
abandon() { load all; }
apply() {
  why="the rename failed"
  abandon
  echo "$why"
}
kept() {
  abandon
  why=mine
  echo "$why $(abandon)$why"
}
around() {
  for why in 1 2; do
    echo "$why"
    abandon
  done
  for each in 1 2; do
    echo "$why $each"
    load "$each"
  done
}
"""


def test_an_overwritten_name_is_found_through_a_call_of_a_call_and_around_a_loop() -> None:
    found = {(each.function, each.name, each.by) for each in shared_names(OVERWRITTEN)}
    assert found == {("apply", "why", "abandon"), ("around", "why", "abandon"), ("around", "why", "load")}


OWN = """
load() { # TX
  local why
  why=$1
}
apply() {
  why="the rename failed"
  load all
  echo "$why"
}
"""
NAMED = """
load() { # TX: why it failed, into `why`
  why=$1
}
"""


def test_a_local_name_and_a_result_that_a_comment_names_are_no_defects() -> None:
    assert shared_names(OWN) == frozenset()
    assert unnamed(OVERWRITTEN) == shared_names(OVERWRITTEN)
    apply = OWN[OWN.index("apply()") :]
    assert shared_names(NAMED + apply)
    assert unnamed(NAMED + apply) == frozenset()


def test_a_loop_takes_no_name_that_functions_pass_on() -> None:
    assert looped_and_passed(agent_program()) == frozenset()


def test_a_loop_over_the_name_of_a_reason_is_found() -> None:
    lays = "lay_receipts() {\n  for why in guard boot; do lay $why; done\n}\nstage() {\n  why=$(mkdir x 2>&1) && lay_receipts\n}\n"
    assert looped_and_passed(lays + "failed_step() {\n  echo ${why}\n}\n") == {("failed_step", "why")}
