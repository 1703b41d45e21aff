"""``mustHaveData`` in playbooks and waves: what it means, and every mistake with its place."""

from __future__ import annotations

import pytest

from rollout.core.model.playbook import SoakData
from rollout.core.plans.planning import Candidate, waves
from rollout.errors import InputError
from tests.core.reading.test_playbook_file import BARE, load

GATED = f"{BARE}gates: {{node: [podsKept]}}\n"


def test_a_wave_has_its_own_or_that_of_the_playbook() -> None:
    text = "waves: [{canary: true, mustHaveData: {podStarts: 5, within: 1h}}, rest]\nmustHaveData: {podStarts: 200}\n"
    policy = load(GATED + text)
    made = waves([Candidate(f"n{n}", "r", "k") for n in range(3)], policy.waves, policy.soak, policy.data)
    assert [wave.data for wave in made] == [SoakData(5, 3600.0), SoakData(200, 1800.0)]
    assert load(GATED).data is None


def test_pulls_need_no_gate_of_the_api_server() -> None:
    assert load(f"{BARE}mustHaveData: {{pulls: 4}}\n").data == SoakData(0, 1800.0, 4)
    assert load(f"{GATED}mustHaveData: {{podStarts: 20, pulls: 4}}\n").data == SoakData(20, 1800.0, 4)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{GATED}mustHaveData: {{podStarts: 0}}\n", "`podStarts`"),
        (f"{GATED}mustHaveData: {{within: 5m}}\n", "`mustHaveData` must have podStarts, pulls or both"),
        (f"{GATED}mustHaveData: {{pulls: 0}}\n", "`pulls`"),
        (f"{GATED}mustHaveData: {{podStarts: 1, within: 2d}}\n", "`within`"),
        (f"{GATED}mustHaveData: {{pull: 1}}\n", "pulls"),
        (f"{BARE}mustHaveData: {{podStarts: 1}}\n", "so pod starts are unknown (add a node gate"),
        (f"{BARE}waves: [{{canary: true, mustHaveData: {{podStarts: 1}}}}, rest]\n", "[data-unknown]"),
    ],
)
def test_mistakes_are_reported(text: str, said: str) -> None:
    with pytest.raises(InputError) as raised:
        load(text)
    assert said in "\n".join(str(problem) for problem in raised.value.problems)
