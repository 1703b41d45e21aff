"""Sequence files: what is read, and every mistake with its place."""

from __future__ import annotations

import pytest

from rollout.core.model.playbook import Share
from rollout.errors import InputError, Place
from rollout.features.sequence.rules import ClusterSequence, ClusterStage, StagedCluster
from rollout.features.sequence.written import load_sequence

TEXT = """\
name: image-pulls
budget: 3
stages:
  - name: canary
    clusters: {canary: canary.plan.json}
    soak: 30m
  - clusters:
      rno: rno.plan.json
      iad: iad.plan.json
"""


def test_a_sequence_is_read() -> None:
    assert load_sequence(TEXT, "s.yaml") == ClusterSequence(
        "image-pulls",
        (
            ClusterStage("canary", (StagedCluster("canary", "canary.plan.json", Place("s.yaml", 5, 24)),), 1800.0),
            ClusterStage(
                "2",
                (
                    StagedCluster("rno", "rno.plan.json", Place("s.yaml", 8, 12)),
                    StagedCluster("iad", "iad.plan.json", Place("s.yaml", 9, 12)),
                ),
                600.0,
            ),
        ),
        Share(count=3),
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("iad: iad", "canary: iad", "s.yaml:9:7: cluster canary is in two stages (a cluster has one plan)"),
        ("soak: 30m", "soak: 30", "s.yaml:6:11"),
        ("soak: 30m", "soek: 30m", "s.yaml:6:5: unknown key `soek` (did you mean `soak`?) [unknown-key]"),
        ("soak: 30m", "soak: 1000h", "s.yaml:6:11: `soak` must be between 0s and 720h"),
        ("budget: 3", "budget: 0", "s.yaml:2:9"),
        ("{canary: canary.plan.json}", "{}", "s.yaml:5:15: `clusters` must not be empty [empty-list]"),
        ("canary.plan.json}", "7}", "s.yaml:5:24: `canary` must be text, not a number [wrong-type]"),
        ("  - clusters:", "  - name: canary\n    clusters:", "s.yaml:7:11: two stages are called canary"),
        ("name: canary", "name: '2'", "s.yaml:7:5: two stages are called 2 (a stage without a name has its number)"),
    ],
)
def test_each_mistake_has_its_place(old: str, new: str, said: str) -> None:
    assert old in TEXT
    with pytest.raises(InputError) as raised:
        load_sequence(TEXT.replace(old, new), "s.yaml")
    assert [said] == [line[: len(said)] for line in str(raised.value).splitlines()]


@pytest.mark.parametrize("text", ["name: a\nstages: []\n", "name: a\n", "stages: 3\n", "[]\n", ""])
def test_what_is_no_sequence_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        load_sequence(text, "s.yaml")
