"""What we say of a configuration is what a real kubelet 1.20.2 did with it: each case that was ever tried on one.

``make test-kubelet`` asks the real one again; what it said last is in ``recorded.jsonl``.
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
def test_we_say_what_the_kubelet_did(case: Case, verdict: Verdict) -> None:
    assert disagreements(case, verdict) == ()


def test_every_named_corner_was_tried() -> None:
    """If not: ``RECORD=1 make test-kubelet``."""
    tried = {case for case, _ in RECORDED}
    assert [case.name for case in CORNERS if case not in tried] == []


def test_no_two_cases_have_one_name() -> None:
    assert len({case.name for case, _ in RECORDED}) == len(RECORDED)
