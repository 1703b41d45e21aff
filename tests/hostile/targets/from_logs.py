"""Logs and events, in each form that `rollout diagnose` knows, through every reader and rule of it."""

from __future__ import annotations

from collections.abc import Iterator

from rollout.features.diagnose.rules.diagnosis import diagnosed
from rollout.features.diagnose.rules.facts import Facts
from rollout.features.diagnose.rules.finding import ProposalTarget
from rollout.features.diagnose.rules.node_journals import journal_of
from rollout.features.diagnose.rules.reading import PIECE, FileReading
from rollout.features.diagnose.words.diagnosis_text import diagnosis_lines
from tests.features.diagnose.rules.logs import BEGIN, NODE, event, event_list, journal, klog, lines, logrus
from tests.features.diagnose.rules.test_each_finding import LOGS
from tests.hostile.property import LONGEST_LINE, Target

_TABLE = """\
LAST SEEN   TYPE      REASON    OBJECT       MESSAGE
3m (x4 over 9m)   Warning   Failed   pod/web-1   Failed to pull image "a/b:1": rpc error: code = NotFound desc = not found
Name:         web-1
Namespace:    shop
Node:         tess-node-0007/10.0.0.7
  Type     Reason   Age                From     Message
  Normal   Pulling  5m12s (x2 over 6m)  kubelet  Pulling image "a/b:1"
"""
_YAML = """\
apiVersion: v1
items:
- apiVersion: v1
  kind: Event
  reason: Killing
  message: Container app definition changed, will be restarted
  involvedObject: {kind: Pod, name: web-1, namespace: shop}
  lastTimestamp: "2026-11-20T09:00:00Z"
kind: List
"""


def _pieces(data: bytes) -> Iterator[bytes]:
    for line in data.splitlines(keepends=True):
        yield from (line[at : at + PIECE] for at in range(0, len(line), PIECE))


def _diagnosed(data: bytes) -> tuple[str, ...]:
    """What people see of a file, and of the same bytes as a node's journal."""
    facts = Facts()
    reading = FileReading("a.log")
    for fact in reading.of(_pieces(data), BEGIN):
        facts.add(fact)
    said = tuple(diagnosis_lines(diagnosed(facts, ProposalTarget("rno", None), [reading])))
    found = journal_of(NODE, data + b"\n-- journalctl ended 0\n", "", BEGIN)
    return *(line for line in said if len(line) <= LONGEST_LINE), *found.reading.notes


SEEDS = (
    lines(klog(0, '"Starting kubelet"'), journal(klog(1, "PLEG is not healthy: pleg was last seen active 3m0s ago; threshold is 3m0s"), 1)),
    lines(journal(logrus(0, 'PullImage "a/b:1" failed', "error", ' error="context canceled"'), 0, "containerd[9]")),
    event_list([event(0, "Killing", "Container app definition changed, will be restarted"), event(3, "BackOff", "Back-off")]),
    '{"ts":1763629200.1,"caller":"kubelet/kubelet.go:2449","msg":"SyncLoop","v":2,"pod":"shop/web-1"}\n',
    '{"MESSAGE":"E1120 09:00:00.000000    3033 kubelet.go:1] x","__REALTIME_TIMESTAMP":"1763629200000000","_COMM":"kubelet"}\n',
    '{"ts":1763629200.1,"caller":"images/image_manager.go:161","msg":"Pulling image without credentials","v":2,"image":"a/b:1"}\n',
    _TABLE, _YAML,
)  # fmt: skip

TARGETS = (
    Target(
        "diagnosed-logs",
        _diagnosed,
        lambda: (*(text.encode() for text in SEEDS), *(shown.encode() for shown, _ in LOGS.values())),
        examples=60,
    ),
)
