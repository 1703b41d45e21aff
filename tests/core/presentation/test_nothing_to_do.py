"""The output of an apply that begins no run: why, which runs applied it, and which nodes the plan left out."""

from __future__ import annotations

from dataclasses import replace

from rollout.core.model.plan import ExcludedNode, Standing
from rollout.core.plans import plan_codec
from rollout.core.presentation.nothing_to_do import (
    NothingToDo,
    Why,
    nothing_document,
    nothing_lines,
    nothing_to_change,
)
from tests.app.site import SMALL
from tests.documents import as_printed

EMPTY = replace(SMALL, nodes={}, groups=(), waves=())
SHORT = replace(EMPTY, left=(ExcludedNode("n9", "r1", Standing.REFUSED, "no-home", "no home"),))


def test_each_reason_has_its_text() -> None:
    assert list(nothing_lines(nothing_to_change(EMPTY, fresh=True))) == ["nothing to do"]
    refused, left = nothing_lines(nothing_to_change(SHORT, fresh=True))
    assert (refused, left) == ("no node can be changed", "not in the plan, refused (1) n9: no home [no-home]")
    (applied,) = nothing_lines(NothingToDo(SMALL, Why.ALREADY_APPLIED, ("r2", "r1")))
    assert applied == "nothing to do: already applied by runs r2, r1; every node has the plan's files"
    (unknown,) = nothing_lines(NothingToDo(SMALL, Why.ALREADY_APPLIED))
    assert "already applied by no run of this journal;" in unknown


def test_the_document_has_the_same_facts_and_exit_code_4_if_nodes_were_left_out() -> None:
    document = as_printed(nothing_document(nothing_to_change(SHORT, fresh=True)))
    left = {"what": "refused", "reason": "no home [no-home]", "nodes": "n9", "count": 1}
    assert document == {
        "apiVersion": "rollout/v1",
        "kind": "NothingToDo",
        "cluster": SHORT.cluster,
        "plan": plan_codec.digest(SHORT),
        "why": "none-can-be-changed",
        "runs": [],
        "leftOut": [left],
        "exitCode": 4,
        "readAt": "",
    }
    assert nothing_document(nothing_to_change(EMPTY, fresh=True)).exit_code == 0


def test_a_saved_plan_without_work_says_when_its_nodes_were_read() -> None:
    """A node that was changed since then is not noticed."""
    then = "2026-11-20T16:00:00Z"
    saved = nothing_to_change(replace(EMPTY, taken=then), fresh=False)
    assert list(nothing_lines(saved)) == [
        "nothing to do, as the nodes were at 2026-11-20 16:00:00 UTC; none was read now"
    ]
    assert as_printed(nothing_document(saved))["readAt"] == then
    line, _ = nothing_lines(nothing_to_change(replace(SHORT, taken=then), fresh=False))
    assert line == "no node can be changed, as the nodes were at 2026-11-20 16:00:00 UTC; none was read now"
