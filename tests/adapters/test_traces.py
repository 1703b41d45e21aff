"""The file of traces: one for a command, each trace once, readable by its owner only.

A failure to write it stops nothing.
"""

from __future__ import annotations

from pathlib import Path

from rollout.adapters.private_files import FILE, LONGEST, MOST, Traces


def test_identical_failures_are_kept_once_and_a_new_command_starts_a_new_file(tmp_path: Path) -> None:
    file = tmp_path / "state" / FILE
    traces = Traces(file.parent)
    said = {traces.keep("n1", "one\n"), traces.keep("n2", "one\n"), traces.keep("n3", "other\n")}
    assert said == {f"The trace is in {file}, readable by you alone"}
    assert file.read_text() == "n1\none\n\nn3\nother\n"
    assert file.stat().st_mode & 0o777 == 0o600
    Traces(file.parent).keep("n4", "third\n")
    assert file.read_text() == "n4\nthird\n"


def test_no_node_fills_the_disk(tmp_path: Path) -> None:
    traces = Traces(tmp_path)
    for number in range(2 * MOST):
        traces.keep("n", f"{number} " + "x" * 2 * LONGEST)
    assert (tmp_path / FILE).stat().st_size < (MOST + 1) * (LONGEST + 100)


def test_a_trace_that_cannot_be_saved_is_reported_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / FILE).symlink_to("/dev/null")
    said = Traces(tmp_path).keep("n1", "one\n")
    assert said.startswith("The trace could not be saved: ")
    assert FILE in said
