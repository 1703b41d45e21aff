"""Tables of events as people paste them: rows without a header, a whole ``describe``; and pods from a file."""

from __future__ import annotations

import json

import pytest
import yaml

from rollout.features.diagnose.rules.facts import Kind
from tests.features.diagnose.rules.logs import NODE, diagnosis, lines
from tests.features.diagnose.rules.test_reading import KLOG, facts_of

WIDE = 'shop        2m10s (x3 over 1h5m)  Warning   Failed    pod/web-1   spec.containers{app}    kubelet, tess-node-0007   Failed to pull image "web:1": manifest unknown   65m   3   web-1.17'
ROWS = {
    "get events": 'shop   2m10s (x3 over 1h5m)   Warning   Failed   pod/web-1   Failed to pull image "web:1": manifest unknown',
    "of one namespace": '2m10s (x3 over 1h5m)   Warning   Failed   pod/web-1   Failed to pull image "web:1": manifest unknown',
    "wide": WIDE,
    "describe": '  Warning  Failed  2m10s (x3 over 1h5m)  kubelet, tess-node-0007  Failed to pull image "web:1": manifest unknown',
}


@pytest.mark.parametrize("form", ROWS)
def test_rows_without_their_header(form: str) -> None:
    """What `kubectl get events | grep Failed` leaves."""
    facts = facts_of(ROWS[form], KLOG)
    assert [(fact.kind, fact.at, fact["image"], fact.times) for fact in facts[:-1]] == [
        (Kind.PULL_FAILED, -3900.0, "web:1", 3), (Kind.PULL_FAILED, -130.0, "web:1", 3),
    ]  # fmt: skip
    assert facts[-1].kind is Kind.PULL_CUT


@pytest.mark.parametrize("node", ["n1", "tess-node-0007", "ip-10-0-0-1.eu-central-1.compute.internal"])
def test_a_row_that_does_not_begin_below_its_columns_is_read_by_its_blanks(node: str) -> None:
    """Who pastes a table replaces the names of nodes, and the cells behind them move."""
    header = "Type     Reason   Age                 From                     Message"
    row = f'Warning  Failed   7m51s (x4 over 9m)  kubelet, {node}  Failed to pull image "web:1": manifest unknown'
    facts = facts_of(header, row)
    assert {(fact.at, fact.node, fact["image"], fact["error"]) for fact in facts} == {
        (-540.0, node, "web:1", "manifest unknown"), (-471.0, node, "web:1", "manifest unknown"),
    }  # fmt: skip


@pytest.mark.parametrize(
    "line", ["Warning: the disk is full", "Normal operation resumed  after  5m  of  waiting", "  Warning  x"]
)
def test_a_line_that_begins_like_a_row_is_none(line: str) -> None:
    (reading,) = diagnosis(lines(line)).readings
    assert reading.unread.lines == 1


@pytest.mark.parametrize("row", ["5m  Normal  Pulling", "5m  Normal", "5m"])
def test_a_table_with_few_columns_shows_nothing(row: str) -> None:
    assert diagnosis(lines("LAST SEEN  TYPE    REASON", row)).findings == ()


def test_the_head_of_a_described_pod_is_read() -> None:
    head = (
        "Name:  web-1",
        "Namespace:  shop",
        "Node:  n1/10.0.0.1",
        "Containers:",
        "  app:",
        "    Image:  web:1",
        "Events:",
    )
    table = (
        "  Type  Reason   Age  From     Message",
        "  ----  ------   ---- ----     -------",
        '  Normal  Pulling  5m  kubelet  Pulling image "web:1"',
    )
    told = diagnosis(
        lines(*head, *table, "", *(line.replace("web-1", "web-2") for line in (*head, *table)), "Not of a log")
    )
    assert told.unread_lines == 1
    facts = facts_of(*head, *table, "", *(line.replace("web-1", "web-2") for line in (*head, *table)))
    assert [(fact["pod"], fact.node, fact.at) for fact in facts] == [
        ("shop/web-1", "n1", -300.0),
        ("shop/web-2", "n1", -300.0),
    ]


def test_pods_are_read_from_a_file_too() -> None:
    pod = {
        "kind": "Pod", "metadata": {"name": "web-1", "namespace": "shop", "creationTimestamp": "2026-11-20T09:00:00Z"},
        "spec": {"nodeName": NODE, "containers": [{"name": "app", "image": "web:1"}]},
        "status": {"containerStatuses": [{"name": "app", "state": {"waiting": {"reason": "ContainerCreating"}}}]},
    }  # fmt: skip
    bare = {key: value for key, value in pod.items() if key != "kind"}
    texts = (
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod]}), json.dumps({"kind": "PodList", "apiVersion": "v1", "items": [bare]}),
        yaml.safe_dump({"apiVersion": "v1", "items": [pod], "kind": "List"}),
    )  # fmt: skip
    for text in texts:
        facts = facts_of(*text.splitlines())
        assert [(fact.kind, fact.node, fact["pod"]) for fact in facts] == [
            (Kind.CREATED, NODE, "shop/web-1"), (Kind.WAITING, NODE, "shop/web-1"),
        ]  # fmt: skip


def test_a_file_of_another_encoding_is_named_so() -> None:
    """PowerShell writes what `kubectl` prints so."""
    (reading,) = diagnosis(KLOG.encode("utf-16")).readings
    assert reading.notes == ("it is UTF-16: iconv -f UTF-16 -t UTF-8",)


def test_a_page_of_words_that_quotes_an_error_is_a_lead() -> None:
    """All that the text of the third write-up has of its events."""
    told = diagnosis(lines("Our pods hang. The event is", "**Failed to pull image xxx,pull QPS exceed**"))
    (qps,) = told.findings
    assert (qps.id, qps.confidence, qps.proposal) == ("pull-qps-exceeded", "unknown", "")
    assert "blocked queue" in qps.cause
    assert "Pulling events" in qps.fetch_next
    assert told.unread_lines == 2
