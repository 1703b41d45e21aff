"""``newcomers`` as people write it: a word, or a map with the time that a Node must be Ready."""

from __future__ import annotations

import pytest

from rollout.app.load_playbook import load_policy
from rollout.core.model.conditions import of_kind
from rollout.errors import InputError, Place
from rollout.features.own.rules import NewcomerRule, NewcomersThen
from tests.app.test_load import TEMPLATES, FakeFiles


def rule(written: str) -> NewcomerRule:
    files = FakeFiles({"playbooks/p.yaml": f"name: p\nsettings: {{maxPods: 3}}\nnewcomers: {written}\n", **TEMPLATES})
    (found,) = of_kind(load_policy(files, "p").conditions, NewcomerRule)
    return found


@pytest.mark.parametrize("then", NewcomersThen)
def test_a_word_alone_is_what_is_done(then: NewcomersThen) -> None:
    place = Place("playbooks/p.yaml", 3, 12)
    assert rule(then.value) == NewcomerRule(place, then, 300.0)
    assert rule(f"{{then: {then.value}}}").ready_for_seconds == 300.0
    assert rule(f"{{then: {then.value}, readyFor: 10m}}").ready_for_seconds == 600.0


@pytest.mark.parametrize(
    "written", ["aply", "{then: aply}", "{readyFor: 5m}", "[apply]", "{then: apply, readyFor: 300h}", "3"]
)
def test_anything_else_is_a_mistake_at_its_place(written: str) -> None:
    with pytest.raises(InputError) as caught:
        rule(written)
    (problem,) = caught.value.problems
    assert problem.place is not None
    assert problem.place.line == 3
