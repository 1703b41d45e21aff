"""Logs and events, in each form that `rollout diagnose` knows, through every reader and rule of it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rollout.features.diagnose.rules.diagnosis import diagnosed
from rollout.features.diagnose.rules.facts import Facts
from rollout.features.diagnose.rules.finding import ProposalTarget
from rollout.features.diagnose.rules.node_journals import journal_of, with_log
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


_KLOG = klog(0, '"Starting kubelet"')
_WRAPPED = (
    f"__CURSOR=s=1\n__REALTIME_TIMESTAMP=1763629200000000\n_HOSTNAME=k-1\n_PID=3033\nMESSAGE={_KLOG}\n\nMESSAGE\n\x05{chr(0) * 7}klog:\n\n",
    f"Fri 2026-11-20 09:00:00.000000 UTC [s=01;i=1]\n    _HOSTNAME=k-1\n    MESSAGE={_KLOG}\n",
    json.dumps({"events": [{"timestamp": 1763629200000, "message": _KLOG}, {"message": json.dumps({"MESSAGE": _KLOG})}]}, indent=1),
    json.dumps({"data": {"result": [{"stream": {"host": "k-1"}, "values": [["1763629200000000000", _KLOG]]}]}}),
    json.dumps({"tables": [{"columns": [{"name": "TimeGenerated"}, {"name": "Message"}], "rows": [["2026-11-20T09:00:00Z", _KLOG]]}]}, indent=1),
    lines(json.dumps({"log": f"{_KLOG}\n", "time": "2026-11-20T09:00:00Z"}), json.dumps({"log": "x", "kubernetes": {"pod_name": "a", "container_name": "b"}})),
    '@timestamp,@message\n2026-11-20 09:00:00.000,"E1120 09:00:00.000000    3033 kubelet.go:1] x"\n',
    lines(f"2026-11-20T09:00:00Z stderr F {_KLOG}", f"2026-11-20T09:00:00Z {{host=\"k-1\"}} {_KLOG}", f"<30>1 2026-11-20T09:00:00Z k-1 kubelet 3033 - - {_KLOG}"),
    lines(f"2026-11-20T09:00:00Z stream/k-1 {_KLOG}", f"10.0.0.1: {_KLOG}", f'[0] kube: [1763629200.1, {{"log"=>{json.dumps(_KLOG)}}}]', f"* {_KLOG}"),
    lines(f"xyz 20 09:00:00 k-1 kubelet[7]: {_KLOG}", f"xyz 21 09:00:00 k-1 k3s[7]: {logrus(0, 'kubelet exited: x', 'fatal')}"),
    lines(journal(klog(0, '"a" err="b"', "E"), 0), journal("kubelet.service: Main process exited, code=exited, status=1/FAILURE", 1, "systemd[1]")),
    lines("Log file created at: 2026/11/20 09:00:00", logrus(0, klog(0, '"command failed" err="x"', "E"), rest=" component=kubelet stream=stderr")),
    lines(journal("x", 9), journal(klog(5, '"SyncLoop DELETE" source="api" pods=["shop/web-1"]'), 5), journal('&Container{Name:a start failed in pod', 4), journal("x", 0)),
    lines('data: {"MESSAGE":[69,49],"__REALTIME_TIMESTAMP":"1763629200000000"}', '\x1e{"MESSAGE":null,"__REALTIME_TIMESTAMP":"1763629200000000"}'),
)  # fmt: skip


def _pieces(data: bytes) -> Iterator[bytes]:
    for line in data.splitlines(keepends=True):
        yield from (line[at : at + PIECE] for at in range(0, len(line), PIECE))


def _diagnosed(data: bytes) -> tuple[str, ...]:
    """What people see of a file, and of the same bytes as a node's journal and as a log file beside it."""
    facts = Facts()
    reading = FileReading("a.log")
    for fact in reading.of(_pieces(data), BEGIN):
        facts.add(fact)
    said = tuple(diagnosis_lines(diagnosed(facts, ProposalTarget("rno", None), [reading])))
    found = journal_of(NODE, data + b"\n-- journalctl ended 0\n", "", BEGIN)
    with_log(found, "/x.log", data + b"\n-- log ended 0 +0200\n", BEGIN, 0.0, BEGIN.timestamp())
    return *(line for line in said if len(line) <= LONGEST_LINE), *found.reading.notes


SEEDS = (
    lines(klog(0, '"Starting kubelet"'), journal(klog(1, "PLEG is not healthy: pleg was last seen active 3m0s ago; threshold is 3m0s"), 1)),
    lines(journal(logrus(0, 'PullImage "a/b:1" failed', "error", ' error="context canceled"'), 0, "containerd[9]")),
    event_list([event(0, "Killing", "Container app definition changed, will be restarted"), event(3, "BackOff", "Back-off")]),
    '{"ts":1763629200.1,"caller":"kubelet/kubelet.go:2449","msg":"SyncLoop","v":2,"pod":"shop/web-1"}\n',
    '{"MESSAGE":"E1120 09:00:00.000000    3033 kubelet.go:1] x","__REALTIME_TIMESTAMP":"1763629200000000","_COMM":"kubelet"}\n',
    '{"ts":1763629200.1,"caller":"images/image_manager.go:161","msg":"Pulling image without credentials","v":2,"image":"a/b:1"}\n',
    _TABLE, _YAML, *_WRAPPED,
)  # fmt: skip

TARGETS = (
    Target(
        "diagnosed-logs",
        _diagnosed,
        lambda: (*(text.encode() for text in SEEDS), *(shown.encode() for shown, _ in LOGS.values())),
        examples=60,
    ),
)
