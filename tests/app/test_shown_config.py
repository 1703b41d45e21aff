"""The effective-config gate reads ``/configz`` if it may, and works without it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from rollout.app.backends import Backends
from rollout.app.node_gates import MOST_FAILURES, ShownConfig
from rollout.core.model.verdict import Verdict
from rollout.errors import AwayError, RemoteError
from tests.adapters.kubernetes.node_gates import CHANGE

PLANNED = replace(
    CHANGE,
    effective=(
        ("evictionHard", '{"memory.available":"1Gi"}'),
        ("readOnlyPort", "null"),
        ("runtimeRequestTimeout", '"2m0s"'),
        ("serializeImagePulls", "false"),
    ),
)
SHOWN: dict[str, Any] = {
    "evictionHard": {"memory.available": "1Gi", "nodefs.available": "10%"},
    "runtimeRequestTimeout": "2m0s",
    "serializeImagePulls": False,
}
FOUND = (Verdict.PASS, "command line and 1 file as planned")


class Api:
    """An API server that shows this configuration, or an error."""

    def __init__(self, answer: Mapping[str, Any] | RemoteError) -> None:
        self.answer = answer
        self.asked = 0

    def configz(self, node: str, timeout: float) -> Mapping[str, Any]:
        assert (node, timeout) == ("n1", 10.0)
        self.asked += 1
        if isinstance(self.answer, RemoteError):
            raise self.answer
        return self.answer


def shown(api: Api) -> ShownConfig:
    return ShownConfig(Backends(cluster=api))  # type: ignore[arg-type] # the rest of the port is not asked for


def test_configz_equals_the_plan() -> None:
    got = shown(Api(SHOWN)).judged("n1", PLANNED, 10.0, FOUND)
    assert got == (Verdict.PASS, "command line and 1 file as planned; configz shows 4 fields as planned")


@pytest.mark.parametrize(
    ("differs", "said"),
    [
        ({"serializeImagePulls": True}, "configz shows serializeImagePulls true, planned false"),
        ({"runtimeRequestTimeout": "3m0s"}, 'configz shows runtimeRequestTimeout "3m0s", planned "2m0s"'),
        ({"readOnlyPort": 10255}, "configz shows readOnlyPort 10255, planned null"),
        (
            {"evictionHard": {"nodefs.available": "10%"}},
            'configz shows evictionHard {"memory.available":null}, planned {"memory.available":"1Gi"}',
        ),
    ],
)
def test_configz_differs(differs: dict[str, Any], said: str) -> None:
    verdict, evidence = shown(Api({**SHOWN, **differs})).judged("n1", PLANNED, 10.0, FOUND)
    assert verdict is Verdict.FAIL
    assert evidence.endswith(said)


def test_empty_fields_are_not_compared() -> None:
    planned = replace(PLANNED, effective=(("serializeImagePulls", "false"), ("clusterDNS", "[]"), ("a", '"0s"')))
    assert shown(Api({})).judged("n1", planned, 10.0, FOUND)[0] is Verdict.PASS


@pytest.mark.parametrize(
    "found", [(Verdict.FAIL, "/f is absent"), (Verdict.UNKNOWN, "the kubelet's command line could not be read")]
)
def test_a_failed_gate_or_a_change_without_fields_needs_no_request(found: tuple[Verdict, str]) -> None:
    api = Api(SHOWN)
    assert shown(api).judged("n1", PLANNED, 10.0, found) == found
    assert shown(api).judged("n1", CHANGE, 10.0, FOUND) == FOUND
    assert api.asked == 0


@pytest.mark.parametrize("reference", ["unauthorized", "forbidden", "no-endpoint"])
def test_a_refused_request_is_not_repeated(reference: str) -> None:
    api = Api(RemoteError(reference, "nodes/proxy is forbidden"))
    asking = shown(api)
    for _ in range(3):
        got = asking.judged("n1", PLANNED, 10.0, FOUND)
        assert got == (Verdict.PASS, f"{FOUND[1]}; configz was not read: nodes/proxy is forbidden")
    assert api.asked == 1


def test_an_unreachable_api_server_is_soon_no_longer_asked() -> None:
    api = Api(AwayError("not-reached", "Connection refused"))
    asking = shown(api)
    assert {asking.judged("n1", PLANNED, 10.0, FOUND)[0] for _ in range(9)} == {Verdict.PASS}
    assert api.asked == MOST_FAILURES


def test_an_unreachable_kubelet_does_not_count_against_others() -> None:
    api = Api(AwayError("http-503", "dial tcp 10.0.0.1:10250: connection refused"))
    asking = shown(api)
    for _ in range(9):
        asking.judged("n1", PLANNED, 10.0, FOUND)
    assert api.asked == 9
