"""Owned settings as notes of a journal, and what people read of them."""

from __future__ import annotations

from rollout.core.presentation.owned_text import (
    ComparedNodes,
    compared_note,
    ended_note,
    owned_lines,
    owned_note,
    owned_noted,
)

OWNED = (1000.0, owned_note("r1", "maxPods: 64"))
COMPARED = (2000.0, compared_note(38, "n[1-2]", "n9"))


def test_a_cluster_without_notes_owns_nothing() -> None:
    assert owned_noted([(1.0, "frozen as f with token 3: why")]) is None
    assert list(owned_lines("rno", None)) == []


def test_ownership_ends() -> None:
    assert owned_noted([OWNED, COMPARED, (3000.0, ended_note("r1", ""))]) is None


def test_a_comparison_is_of_the_settings_that_were_owned_then() -> None:
    noted = owned_noted([OWNED, COMPARED])
    assert noted is not None
    assert noted.compared == ComparedNodes(2000.0, 38, "n[1-2]", "n9")
    later = owned_noted([OWNED, COMPARED, (3000.0, owned_note("r2", "maxPods: 65"))])
    assert later is not None
    assert (later.runs, later.compared) == (("r1", "r2"), None)


def test_a_comparison_that_did_not_see_the_nodes_of_the_api_server_tells_why() -> None:
    note = (2000.0, compared_note(38, "", "", "connection refused; tried twice [api-away]"))
    noted = owned_noted([OWNED, note])
    assert noted is not None
    assert noted.compared == ComparedNodes(2000.0, 38, "", "", "connection refused; tried twice [api-away]")
    lines = list(owned_lines("rno", noted))
    assert (
        "nodes that only the API server lists not compared: connection refused; tried twice [api-away]; as `rollout"
        in lines[0]
    )
    assert lines[1] == "      rollout verify --cluster rno"


def test_the_last_comparison_is_told_with_its_time() -> None:
    lines = list(owned_lines("rno", owned_noted([OWNED, COMPARED])))
    assert lines == [
        "  owned settings of rno (run r1): 38 nodes as wanted, 2 nodes without them: n[1-2], not compared: n9; as `rollout verify` found at 1970-01-01 00:33:20 UTC",
        "      rollout verify --cluster rno",
    ]
    (line,) = owned_lines("rno", owned_noted([OWNED]))
    assert "no comparison yet" in line
