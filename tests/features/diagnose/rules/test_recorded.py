"""Journals of real kubelets 1.20.2 that show one thing each, recorded on the node of ``make incidents``."""

from __future__ import annotations

import gzip

import pytest

from rollout.features.diagnose.rules.finding import Confidence
from tests.features.diagnose.rules.logs import RECORDED, diagnosis


@pytest.mark.parametrize(
    ("file", "id_", "cause"),
    [
        (
            "crash-loop-1.20.2.log.gz", "kubelet-crash-loop",
            "the kubelet does not start: 8 attempts, each ended by: failed to create kubelet: open /dev/kmsg: no such file or directory.",
        ),
        ("dockershim-1.20.2.log.gz", "pull-progress-deadline", "the kubelet cancelled 1 pull after 1m0s without progress"),
    ],
)  # fmt: skip
def test_a_journal_has_the_one_finding_that_it_shows(file: str, id_: str, cause: str) -> None:
    told = diagnosis(gzip.decompress((RECORDED / file).read_bytes()))
    (finding,) = told.findings
    assert (finding.id, finding.confidence) == (id_, Confidence.CERTAIN)
    assert finding.cause.startswith(cause)
    assert finding.nodes == ("bed-node-1",)
    assert told.unread_lines == 0
