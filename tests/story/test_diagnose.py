"""``diagnose --cluster`` on a lab: journals over SSH, pods and events from the API server, and what cannot be read."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from rollout.adapters.kubernetes.client import ApiClient
from rollout.adapters.kubernetes.kubeconfig import load_kubeconfig
from rollout.adapters.kubernetes.pods import leaving_pod
from rollout.features.drain.client import DrainingCluster
from rollout.lab import pulls
from tests.controllers import PATIENCE
from tests.story.conftest import Site, served

pytestmark = pytest.mark.process

NODES = "small-[001-003,061]"


@pytest.fixture
def few(tmp_path: Path) -> Iterator[Site]:
    with served(tmp_path, NODES) as site:
        yield site


def diagnose(site: Site, *words: str, limit: str = NODES) -> tuple[int, dict[str, Any]]:
    kubeconfig = ("--kubeconfig", str(site.lab / "kubeconfig"))
    done = site.rollout("diagnose", "--cluster", "small", "--limit", limit, "-o", "json", *kubeconfig, *words)
    return done.code, json.loads(done.out or "{}")


def test_a_healthy_cluster_has_no_finding_and_everything_is_read(few: Site) -> None:
    code, found = diagnose(few)
    assert (code, found["findings"], found["unreadLines"], found["notRead"]) == (0, [], 0, [])
    done = few.rollout("diagnose", "--cluster", "small", "--limit", NODES, "--kubeconfig", str(few.lab / "kubeconfig"))
    read = [
        line.removeprefix("read: ").rpartition(": ")[0] for line in done.out.splitlines() if line.startswith("read: ")
    ]
    assert read == [*(f"{each}s of the API server" for each in ("pod", "event", "node")), f"journals of {NODES}"]


def test_a_pod_that_waits_for_an_image_is_found_by_its_status_and_events(few: Site) -> None:
    few.fault("small-002", "pull-failing")  # strikes at the next start with another configuration
    config = few.node("small-002") / "var/lib/kubelet/config.yaml"
    config.write_text(f"{config.read_text()}eventBurst: 77\n")
    subprocess.run(
        ("ssh", "-F", str(few.lab / "ssh_config"), "small-002", "systemctl restart kubelet"),
        check=True,
        capture_output=True,
    )
    found = diagnose(few)[1]["findings"]
    (finding,) = found
    assert (finding["id"], finding["nodes"], finding["confidence"]) == ("image-pull-backoff", "small-002", "certain")
    assert "the registry has no such image or tag" in str(finding["cause"])


def test_the_journal_of_a_runtime_is_read(few: Site) -> None:
    """A pull under way is in it; one pull alone is no finding, and its line is read."""
    few.fault("small-061", pulls.PULLING)
    done = few.rollout("diagnose", "--cluster", "small", "--limit", "small-061")
    assert done.code == 0, done.all
    assert "not read: nodes, pods and events of the API server: the inventory has no kubeconfig" in done.out
    assert "read: journals of small-061: " in done.out
    assert pulls.IMAGE not in done.out


def test_an_api_server_that_forbids_is_named_and_the_rest_goes_on(few: Site) -> None:
    few.fault("api", "api-forbidden")
    code, found = diagnose(few)
    assert code == 0
    told = [(each["what"], str(each["why"]).partition(": ")[0]) for each in found["notRead"]]
    assert told == [
        ("pods of the API server", "pods is forbidden"),
        ("events of the API server", "events is forbidden"),
        ("nodes of the API server", "nodes is forbidden"),
    ]
    assert all("kubectl get" in str(each["fetchNext"]) for each in found["notRead"])


def test_nodes_that_do_not_answer_are_named(few: Site) -> None:
    few.fault("small-001", "refuse")
    code, found = diagnose(few)
    (missing,) = found["notRead"]
    assert (code, missing["what"], missing["nodes"]) == (0, "configuration and journal", "small-001")
    code, found = diagnose(few, "--kubeconfig", "no-such-file", limit="small-001")
    assert code == 2
    few.fault("api", "api-down")
    code, found = diagnose(few, limit="small-001")
    assert code == 4, "nothing could be read"
    assert [each["what"] for each in found["notRead"]] == [
        "configuration and journal", *(f"{each}s of the API server" for each in ("pod", "event", "node")),
    ]  # fmt: skip


# One pod.


def test_the_end_of_an_evicted_pod_is_a_timeline(few: Site) -> None:
    """Its preStop hook and its finalizer keep it, so the API server still has its deletion."""
    few.fault("small-003", "finalizer")
    drained(few, "web-small-003")
    code, found = diagnose(few, "--pod", "default/web-small-003")
    (timeline,) = found["timelines"]
    assert (code, timeline["pod"], timeline["node"]) == (0, "default/web-small-003", "small-003")
    (accepted, *_) = cast("list[dict[str, object]]", timeline["steps"])
    assert accepted["what"] == "the API accepts the deletion, grace period 30 s, finalizers: example.com/held"
    done = few.rollout(
        "diagnose", "--cluster", "small", "--kubeconfig", str(few.lab / "kubeconfig"), "--pod", "default/web-small-003"
    )
    assert "read: journals of small-003: " in done.out, "only its node is read"
    assert diagnose(few, "--pod", "default/no-such")[1]["timelines"] == []


def test_the_budget_of_a_pod_of_the_cluster_begins_with_its_nodes_kubelet(few: Site) -> None:
    words = ("diagnose", "pod", "--cluster", "small", "--kubeconfig", str(few.lab / "kubeconfig"))
    done = few.rollout(*words, "default/web-small-001")
    assert done.out.splitlines()[:2] == [
        "pod default/web-small-001: terminationGracePeriodSeconds 30",
        "  kubelet up to 1.21: at most 30 s",
    ]
    done = few.rollout(*words, "default/no-such")
    assert (done.code, "[no-such-pod" in done.err) == (2, True)


def drained(site: Site, pod: str) -> None:
    cluster = DrainingCluster(ApiClient(load_kubeconfig(str(site.lab / "kubeconfig"))))
    try:
        (leaving,) = map(leaving_pod, cluster.pod_documents("", f"default/{pod}"))
        cluster.evict(leaving, PATIENCE)
    finally:
        cluster.close()


# A run and its effect.


def test_a_run_is_applied_and_not_yet_proven(few: Site) -> None:
    planned = few.rollout("plan", "--cluster", "small", "--limit", NODES, "--out", "p.json")
    assert planned.code == 0, planned.all
    done = few.rollout("apply", "p.json", "--yes")
    assert done.code == 0, done.all
    run = few.rollout("status", "-o", "json").json()["run"]
    verified = few.rollout("diagnose", "--verify", run, "--kubeconfig", str(few.lab / "kubeconfig"))
    assert verified.code == 4, verified.all
    assert verified.out.splitlines()[0] == f"run {run} on small: confirmed on {NODES}"
    assert "serial-pull-queue (serializeImagePulls): applied, not yet proven" in verified.out
    assert "pull-progress-deadline (imagePullProgressDeadline): applied, not yet proven" in verified.out
    assert "more hours without it" in verified.out
    assert "is not known" not in verified.out, "/configz shows the value"
    unknown = few.rollout("diagnose", "--verify", run, "-o", "json").json()
    assert any("/configz needs a kubeconfig" in line for line in unknown["remedies"][0]["missing"])


def test_a_run_that_is_not_there_cannot_be_verified(few: Site) -> None:
    done = few.rollout("diagnose", "--verify", "r1")
    assert (done.code, "r1" in done.err) != (0, False)
    assert done.code in (2, 5)
