"""No call overwrites a name that its caller still needs."""

from __future__ import annotations

from rollout.adapters.agent_program import agent_program
from tests.agent.shared_names import looped_and_passed, shared_names

RESULTS = """
abandon: stopped
answers: health
apply_locked: why
check_node: files longest memory paths room
count_lenient: configured ignored lenient loaded
layers_containerd: data
flush: status
follow: image
freeze_locked: z_who z_why
measure_unit: health
note_containerd: hosts imports
note_folder: path
probe: health
read_journal: ignored
read_logs: ignored loaded
serve: result
show_units: unit_files
stage_all: news
take_back: undurable
tell_last_log: ended said
transactions: place
verb_apply: seen unwatched
verb_revert: unwatched
"""
"""Function: the names that a call is to set or change for it. Read the function before you add one."""


def test_what_a_function_reads_after_a_call_is_its_own_or_the_result_of_that_call() -> None:
    known = {(line.partition(":")[0], name) for line in RESULTS.split("\n") for name in line.partition(":")[2].split()}
    assert {(each.function, each.name) for each in shared_names(agent_program())} == known


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


PASSED = """
count_lenient: moment
follow_kubelet: moment
is_stale: moment path
lock: folder
read_journal: moment
read_kubelet_log: moment
show_unit: served
stage_file: folder
"""
"""Function: names that it gets from its caller or from a call, and that are a loop's elsewhere. Such a loop is never between."""


def test_a_loop_takes_no_name_that_functions_pass_on() -> None:
    known = {(line.partition(":")[0], name) for line in PASSED.split("\n") for name in line.partition(":")[2].split()}
    assert looped_and_passed(agent_program()) == known


def test_a_loop_over_the_name_of_a_reason_is_found() -> None:
    lays = "lay_receipts() {\n  for why in guard boot; do lay $why; done\n}\nstage() {\n  why=$(mkdir x 2>&1) && lay_receipts\n}\n"
    assert looped_and_passed(lays + "failed_step() {\n  echo ${why}\n}\n") == {("failed_step", "why")}
