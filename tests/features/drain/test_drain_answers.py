"""Draining with an API server that is newer, busy or contended, or that sends invalid answers: the requests, and the
results.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rollout.adapters.kubernetes.client import ApiClient
from rollout.adapters.kubernetes.kubeconfig import load_kubeconfig
from rollout.adapters.kubernetes.objects import COUNTER, MARK
from rollout.core.model.pods import ContainerEnd, LeavingPod
from rollout.core.model.snapshot import MOST_ABOVE
from rollout.errors import AwayError, RemoteError
from rollout.features.drain import client
from rollout.features.drain.client import NEEDED, DrainingCluster
from rollout.features.drain.rules import Cordon, Eviction, EvictionAnswer
from tests.adapters.kubernetes.test_kubeconfig import config
from tests.adapters.web import Reply, Web, web

pytestmark = pytest.mark.process

RUN, TOKEN = "rno-1", 9
POD = LeavingPod("0123", "default/web")
SECONDS = 5.0
DISCOVERED = {"resources": [{"name": "pods/eviction", "group": "policy", "version": "v1", "kind": "Eviction"}]}


def said(status: int, document: Mapping[str, Any], **headers: str) -> Reply:
    return Reply(status, json.dumps(document).encode(), tuple(headers.items()))


def refused(status: int, message: str, **more: Any) -> Reply:
    return said(status, {"kind": "Status", "message": message, **more})


def node(*, cordoned: bool = False, mark: str | None = None, version: str = "7", token: str = str(TOKEN)) -> Reply:
    notes = {} if mark is None else {MARK: mark, COUNTER: token}
    meta = {"name": "n", "resourceVersion": version, "annotations": notes}
    return said(200, {"metadata": meta, "spec": {"unschedulable": True} if cordoned else {}})


def absent(kind: str, name: str) -> Reply:
    """As an API server writes it."""
    return refused(404, f'{kind} "{name}" not found', reason="NotFound", details={"name": name, "kind": kind})


NOT_ABOUT_IT_IDS, NOT_ABOUT_IT = zip(
    ("an ingress", Reply(404, b"default backend - 404")),
    ("an unknown path", Reply(404, b"404 page not found\n")),
    ("an unknown resource", refused(404, "the server could not find it", reason="NotFound", details={})),
    ("another name", absent("nodes", "another")),
    ("another kind", absent("services", "n")),
    ("no reason", refused(404, "gone", details={"name": "n", "kind": "nodes"})),
    strict=True,
)
CONFLICT = refused(409, 'Operation cannot be fulfilled on nodes "n": the object has been modified')


@dataclass
class Asked:
    """A cluster with a server that gives these answers in turn."""

    server: Web
    cluster: DrainingCluster

    def sent(self, method: str) -> list[Any]:
        return [json.loads(seen.body) for seen in self.server.seen if seen.method == method]


def asked(stack: ExitStack, folder: Path, *replies: Reply) -> Asked:
    server = stack.enter_context(web(*replies))
    cluster = DrainingCluster(ApiClient(load_kubeconfig(config(folder, {"token": "t"}, server.url))))
    stack.callback(cluster.close)
    return Asked(server, cluster)


# Cordons


def test_a_cordon_and_its_mark_are_one_compare_and_swap(stack: ExitStack, tmp_path: Path) -> None:
    found = asked(stack, tmp_path, node(version="41"), node(cordoned=True, mark=RUN))
    assert found.cluster.cordon("n", RUN, TOKEN, SECONDS) is Cordon.OURS
    assert found.sent("PATCH") == [
        {
            "metadata": {"resourceVersion": "41", "annotations": {MARK: RUN, COUNTER: str(TOKEN)}},
            "spec": {"unschedulable": True},
        }
    ]
    assert found.server.seen[-1].headers["content-type"] == "application/merge-patch+json"


def test_a_cordon_of_others_between_our_read_and_our_write_stays(stack: ExitStack, tmp_path: Path) -> None:
    found = asked(stack, tmp_path, node(), CONFLICT, node(cordoned=True))
    assert found.cluster.cordon("n", RUN, TOKEN, SECONDS) is Cordon.OTHERS
    assert len(found.sent("PATCH")) == 1


def test_a_node_that_a_kubelet_wrote_meanwhile_is_read_again(stack: ExitStack, tmp_path: Path) -> None:
    ours = node(cordoned=True, mark=RUN, version="8")
    found = asked(stack, tmp_path, node(cordoned=True, mark=RUN), CONFLICT, ours, node())
    assert found.cluster.uncordon("n", RUN, TOKEN, SECONDS) is Cordon.NONE
    assert [sent["metadata"]["resourceVersion"] for sent in found.sent("PATCH")] == ["7", "8"]


def test_a_node_that_is_written_all_the_time_is_given_up_after_some_tries(stack: ExitStack, tmp_path: Path) -> None:
    found = asked(stack, tmp_path, node())
    found.server.answer = lambda seen: node() if seen.method == "GET" else CONFLICT
    with pytest.raises(AwayError, match="kept changing") as error:
        found.cluster.cordon("n", RUN, TOKEN, SECONDS)
    assert error.value.reference == "conflict"
    assert len(found.sent("PATCH")) == client.TRIES


def test_a_node_that_is_deleted_while_its_cordon_is_lifted_has_no_cordon(stack: ExitStack, tmp_path: Path) -> None:
    found = asked(stack, tmp_path, node(cordoned=True, mark=RUN), absent("nodes", "n"))
    assert found.cluster.uncordon("n", RUN, TOKEN, SECONDS) is Cordon.NONE


@pytest.mark.parametrize("reply", NOT_ABOUT_IT, ids=NOT_ABOUT_IT_IDS)
def test_a_404_that_does_not_name_the_node_does_not_say_that_it_has_no_cordon(
    stack: ExitStack, tmp_path: Path, reply: Reply
) -> None:
    found = asked(stack, tmp_path, reply)
    with pytest.raises(AwayError) as error:
        found.cluster.uncordon("n", RUN, TOKEN, SECONDS)
    assert error.value.reference == "http-404"


@pytest.mark.parametrize("document", [{}, {"metadata": {"name": "another"}}, {"status": "ok"}])
def test_an_answer_that_is_another_object_does_not_say_that_the_node_has_no_cordon(
    stack: ExitStack, tmp_path: Path, document: dict[str, Any]
) -> None:
    found = asked(stack, tmp_path, said(200, document))
    with pytest.raises(RemoteError, match="is not the Node n"):
        found.cluster.uncordon("n", RUN, TOKEN, SECONDS)


def test_a_mark_without_a_cordon_is_removed(stack: ExitStack, tmp_path: Path) -> None:
    """An operator uncordoned the node by hand."""
    found = asked(stack, tmp_path, node(mark=RUN), node())
    assert found.cluster.uncordon("n", RUN, TOKEN, SECONDS) is Cordon.NONE
    assert found.sent("PATCH")[0]["metadata"]["annotations"] == {MARK: None, COUNTER: None}


def test_a_mark_without_a_cordon_counts_as_no_cordon_whatever_its_token(stack: ExitStack, tmp_path: Path) -> None:
    ours = node(cordoned=True, mark=RUN)
    found = asked(stack, tmp_path, node(mark=RUN, token=str(TOKEN + 1)), ours)
    assert found.cluster.cordon("n", RUN, TOKEN, SECONDS) is Cordon.OURS
    assert len(found.sent("PATCH")) == 1


@pytest.mark.parametrize("token", ["", "8", "x", "-3", "٣", "1e3", "9" * 400, str(TOKEN + MOST_ABOVE + 1)])
def test_an_older_or_impossible_token_does_not_keep_a_cordon_of_the_run(
    stack: ExitStack, tmp_path: Path, token: str
) -> None:
    found = asked(stack, tmp_path, node(cordoned=True, mark=RUN, token=token), node(cordoned=True, mark=RUN), node())
    assert found.cluster.cordon("n", RUN, TOKEN, SECONDS) is Cordon.OURS
    assert [sent["metadata"]["annotations"] for sent in found.sent("PATCH")] == [{MARK: RUN, COUNTER: str(TOKEN)}]
    again = asked(stack, tmp_path, node(cordoned=True, mark=RUN, token=token), node())
    assert again.cluster.uncordon("n", RUN, TOKEN, SECONDS) is Cordon.NONE


@pytest.mark.parametrize("does", ["cordon", "uncordon"])
def test_a_cordon_of_the_next_controller_between_our_read_and_our_write_stays(
    stack: ExitStack, tmp_path: Path, does: str
) -> None:
    newer = node(cordoned=True, mark=RUN, token=str(TOKEN + 1))
    found = asked(stack, tmp_path, node(cordoned=True, mark=RUN, token=str(TOKEN - 1)), CONFLICT, newer)
    assert getattr(found.cluster, does)("n", RUN, TOKEN, SECONDS) is Cordon.NEWER
    assert len(found.sent("PATCH")) == 1


def test_a_mark_with_control_characters_counts_as_another_runs(stack: ExitStack, tmp_path: Path) -> None:
    found = asked(stack, tmp_path, node(cordoned=True, mark="\x1b[2Jrno-1"))
    assert found.cluster.cordon("n", RUN, TOKEN, SECONDS) is Cordon.ANOTHER_RUN


def test_a_node_without_a_version_is_not_written(stack: ExitStack, tmp_path: Path) -> None:
    found = asked(stack, tmp_path, node(version=""))
    with pytest.raises(RemoteError, match="no resourceVersion"):
        found.cluster.cordon("n", RUN, TOKEN, SECONDS)
    assert found.sent("PATCH") == []


def test_a_hanging_server_costs_no_more_than_the_given_time(stack: ExitStack, tmp_path: Path) -> None:
    found = asked(stack, tmp_path, node(), Reply(hang=60))
    with pytest.raises(AwayError) as error:
        found.cluster.cordon("n", RUN, TOKEN, 0.3)
    assert error.value.reference == "deadline"


# Evictions


def evicted(stack: ExitStack, folder: Path, reply: Reply) -> EvictionAnswer:
    return asked(stack, folder, said(200, DISCOVERED), reply).cluster.evict(POD, SECONDS)


def test_exactly_this_pod_is_evicted_with_its_own_grace_period(stack: ExitStack, tmp_path: Path) -> None:
    found = asked(stack, tmp_path, said(200, DISCOVERED), said(201, {"status": "Success"}))
    for _ in range(2):
        assert found.cluster.evict(POD, SECONDS).eviction is Eviction.ACCEPTED
    assert found.sent("POST") == 2 * [
        {
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"namespace": "default", "name": "web"},
            "deleteOptions": {"preconditions": {"uid": "0123"}},
        }
    ]  # fmt: skip
    assert [seen.path for seen in found.server.seen if seen.method == "GET"] == ["/api/v1"], (
        "discovery is requested once"
    )


BUDGET = {"causes": [{"reason": "DisruptionBudget", "message": "The disruption budget web needs 2"}]}


@pytest.mark.parametrize(
    ("details", "headers", "seconds"),
    [
        (BUDGET, {"Retry-After": "7"}, 7.0),
        ({**BUDGET, "retryAfterSeconds": 10}, {}, 10.0),
        (BUDGET, {}, 0.0),
        (BUDGET, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, 0.0),
        (BUDGET, {"Retry-After": "99999999"}, 3600.0),
        ({**BUDGET, "retryAfterSeconds": -3}, {}, 0.0),
    ],
)
def test_the_delay_that_a_budget_requests(
    stack: ExitStack, tmp_path: Path, details: dict[str, Any], headers: dict[str, str], seconds: float
) -> None:
    answer = evicted(stack, tmp_path, said(429, {"message": "Cannot evict pod.", "details": details}, **headers))
    assert answer == EvictionAnswer(
        Eviction.BLOCKED, "Cannot evict pod. The disruption budget web needs 2", retry_after=seconds
    )


def test_a_busy_server_is_not_a_blocking_budget(stack: ExitStack, tmp_path: Path) -> None:
    with pytest.raises(AwayError) as error:
        evicted(stack, tmp_path, refused(429, "the server has received too many requests, please try again later"))
    assert error.value.reference == "http-429"


@pytest.mark.parametrize("status", [200, 201])
def test_an_answer_that_is_none_of_an_api_server_does_not_say_that_a_pod_is_evicted(
    stack: ExitStack, tmp_path: Path, status: int
) -> None:
    """A proxy in front of the server answers every request with its login page, and 200."""
    with pytest.raises(RemoteError, match=r"the answer is not JSON \[bad-answer\]"):
        evicted(stack, tmp_path, Reply(status, b"<html>Sign in</html>"))


@pytest.mark.parametrize("status", [403, 429])
def test_a_proxy_that_refuses_an_eviction_is_told_as_such_and_asked_again(
    stack: ExitStack, tmp_path: Path, status: int
) -> None:
    with pytest.raises(AwayError) as error:
        evicted(stack, tmp_path, Reply(status, b"<html>Blocked by policy</html>"))
    assert (error.value.reference, error.value.message) == (
        f"http-{status}",
        f"answered {status}: <html>Blocked by policy</html>",
    )


def test_an_eviction_in_a_namespace_that_is_being_deleted_is_retried(stack: ExitStack, tmp_path: Path) -> None:
    details = {"causes": [{"reason": "NamespaceTerminating", "message": "namespace ci-1 is being terminated"}]}
    answer = evicted(stack, tmp_path, said(403, {"message": "unable to create new content", "details": details}))
    assert answer.eviction is Eviction.BLOCKED
    assert evicted(stack, tmp_path, said(403, {"message": "may not"})).eviction is Eviction.REFUSED


def test_an_eviction_that_is_refused_although_the_right_was_granted_is_retried(
    stack: ExitStack, tmp_path: Path
) -> None:
    """The server restarts and has not loaded its roles yet, while other pods of the node are already evicted."""
    granted = [said(201, {"status": {"allowed": True}})] * len(NEEDED)
    found = asked(stack, tmp_path, *granted, said(200, DISCOVERED), said(403, {"message": "may not"}))
    assert found.cluster.missing_to_drain() == ()
    with pytest.raises(AwayError, match="may not"):
        found.cluster.evict(POD, SECONDS)


@pytest.mark.parametrize("message", ["the pod was changed meanwhile", "Precondition failed: UID"])
def test_another_conflict_is_retried(stack: ExitStack, tmp_path: Path, message: str) -> None:
    with pytest.raises(AwayError) as error:
        evicted(stack, tmp_path, refused(409, message))
    assert error.value.reference == "conflict"


def test_a_pod_that_the_server_does_not_have_is_gone(stack: ExitStack, tmp_path: Path) -> None:
    assert evicted(stack, tmp_path, absent("pods", "web")).eviction is Eviction.GONE


@pytest.mark.parametrize("reply", NOT_ABOUT_IT, ids=NOT_ABOUT_IT_IDS)
def test_a_404_that_does_not_name_the_pod_does_not_say_that_it_is_gone(
    stack: ExitStack, tmp_path: Path, reply: Reply
) -> None:
    with pytest.raises(AwayError):
        evicted(stack, tmp_path, reply)


def test_a_conflict_because_of_another_uid_means_that_the_pod_is_gone(stack: ExitStack, tmp_path: Path) -> None:
    """The pod was replaced between the server's read and its delete."""
    message = "Precondition failed: UID in precondition: 0123, UID in object meta: 4567"
    assert evicted(stack, tmp_path, refused(409, message)).eviction is Eviction.GONE


@pytest.mark.parametrize("status", [500, 503, 504])
def test_a_server_error_is_retried(stack: ExitStack, tmp_path: Path, status: int) -> None:
    with pytest.raises(AwayError):
        evicted(stack, tmp_path, refused(status, "etcdserver: leader changed"))


def test_a_server_without_evictions_is_reported(stack: ExitStack, tmp_path: Path) -> None:
    found = asked(stack, tmp_path, said(200, {"resources": [{"name": "pods"}]}))
    with pytest.raises(RemoteError, match="does not support evictions"):
        found.cluster.evict(POD, SECONDS)


# Pods


def listed(stack: ExitStack, folder: Path, **pod: Any) -> tuple[LeavingPod, ...]:
    meta = {"uid": "0123", "namespace": "default", "name": "web", **pod.pop("metadata", {})}
    spec = {"containers": [{"name": "app"}], **pod.pop("spec", {})}
    found = asked(stack, folder, said(200, {"items": [{"metadata": meta, "spec": spec, **pod}]}))
    return found.cluster.leaving("n", SECONDS)


def test_sidecars_and_hooks_that_sleep_are_distinguished(stack: ExitStack, tmp_path: Path) -> None:
    first = {"name": "first", "lifecycle": {"preStop": {"exec": {}}}}
    proxy = {"name": "proxy", "restartPolicy": "Always", "lifecycle": {"preStop": {"httpGet": {"port": 80}}}}
    app = {"name": "app", "lifecycle": {"preStop": {"sleep": {"seconds": 5}}, "postStart": {"exec": {}}}}
    (pod,) = listed(stack, tmp_path, spec={"containers": [app], "initContainers": [first, proxy]})
    assert pod.containers == (
        ContainerEnd("proxy", hook=True, sidecar=True),
        ContainerEnd("app", hook=True, hook_sleeps=5, sleep_action=True),
    )


def test_pods_come_from_the_store(stack: ExitStack, tmp_path: Path) -> None:
    found = asked(stack, tmp_path, said(200, {"items": []}))
    assert found.cluster.leaving("n", SECONDS) == ()
    assert found.server.seen[0].path == "/api/v1/pods?fieldSelector=spec.nodeName%3Dn", "no resourceVersion=0"


def test_a_partial_list_of_pods_does_not_say_that_the_node_is_drained(stack: ExitStack, tmp_path: Path) -> None:
    found = asked(stack, tmp_path, said(200, {"metadata": {"continue": "page 2"}, "items": []}))
    with pytest.raises(RemoteError, match="the list of the pods of n is incomplete"):
        found.cluster.leaving("n", SECONDS)


@pytest.mark.parametrize(
    "lie",
    [
        {"spec": {"terminationGracePeriodSeconds": "30"}},
        {"spec": {"terminationGracePeriodSeconds": True}},
        {"spec": {"terminationGracePeriodSeconds": 1.5}},
        {"metadata": {"deletionTimestamp": 5}},
        {"metadata": {"deletionTimestamp": "2026-11-20T12:00:00Z", "deletionGracePeriodSeconds": "x"}},
        {"metadata": {"uid": ""}},
        {"metadata": {"name": None}},
        {"metadata": {"finalizers": "x"}},
        {"metadata": {"ownerReferences": [1]}},
        {"spec": {"containers": [{"name": 1}]}},
        {"spec": {"containers": [{"name": "app", "lifecycle": {"preStop": {"sleep": {"seconds": "5"}}}}]}},
        {"spec": {"volumes": [3]}},
    ],
)
def test_an_invalid_pod_is_refused(stack: ExitStack, tmp_path: Path, lie: dict[str, Any]) -> None:
    with pytest.raises(RemoteError) as error:
        listed(stack, tmp_path, **lie)
    assert error.value.reference == "bad-answer"
