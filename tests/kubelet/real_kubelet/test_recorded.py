"""rollout agrees with a real kubelet 1.20.2 on every configuration that was tried on one.

``make test-kubelet`` runs the real one again; its last results are in ``recorded.jsonl``.
"""

from __future__ import annotations

import pytest

from tests.kubelet.real_kubelet.agreement import disagreements
from tests.kubelet.real_kubelet.cases import Case
from tests.kubelet.real_kubelet.corners.all import CORNERS
from tests.kubelet.real_kubelet.recording import recorded
from tests.kubelet.real_kubelet.verdict import Verdict

RECORDED = recorded()


@pytest.mark.parametrize(("case", "verdict"), RECORDED, ids=[case.name for case, _ in RECORDED])
def test_rollout_agrees_with_the_recorded_kubelet(case: Case, verdict: Verdict) -> None:
    assert disagreements(case, verdict) == ()


def test_every_named_case_is_recorded() -> None:
    """Otherwise run ``RECORD=1 make test-kubelet``."""
    tried = {case for case, _ in RECORDED}
    assert [case.name for case in CORNERS if case not in tried] == []


def test_names_of_cases_are_unique() -> None:
    assert len({case.name for case, _ in RECORDED}) == len(RECORDED)
