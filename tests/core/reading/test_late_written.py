"""``watchFor`` and ``onLateHarm`` in playbooks: what they mean, and every mistake with its place."""

from __future__ import annotations

import pytest

from rollout.core.model.playbook import LateWatch, OnLateHarm
from rollout.errors import InputError
from tests.core.reading.test_playbook_file import BARE, load

GATED = f"{BARE}gates: {{node: [nodeReady]}}\n"


def test_a_watch_tells_people_unless_the_playbook_says_more() -> None:
    assert load(f"{GATED}watchFor: 72h\n").late == LateWatch(259_200.0)
    assert load(f"{GATED}watchFor: 1h\nonLateHarm: rollback\n").late == LateWatch(3600.0, OnLateHarm.ROLLBACK)
    assert load(BARE).late is None
    assert load(f"{BARE}watchFor: 1h\n").late == LateWatch(3600.0), "with a kubeconfig there are gates by default"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{GATED}watchFor: 10s\n", "`watchFor` must be between 1m and 720h"),
        (
            f"{GATED}watchFor: 1h\nonLateHarm: revert\n",
            "p.yaml:5:13: `onLateHarm` must be notify or rollback, not `revert` [bad-choice]",
        ),
        (f"{GATED}onLateHarm: rollback\n", "`onLateHarm` needs `watchFor` (watchFor: 72h) [bad-late-harm]"),
        (
            f"{BARE}gates: {{without: [nodeReady, podsKept, devicesKept]}}\nwatchFor: 1h\n",
            "p.yaml:4:11: no gate can be measured after the run",
        ),
    ],
)
def test_mistakes_are_reported(text: str, said: str) -> None:
    with pytest.raises(InputError) as raised:
        load(text)
    assert said in "\n".join(str(problem) for problem in raised.value.problems)
