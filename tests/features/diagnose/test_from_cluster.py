"""A cluster's diagnosis through its ports: what is refused midway is named, and what was read counts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from rollout.app.isolation import keep_nothing
from rollout.app.node_access import NodeAccess
from rollout.app.ports import Target
from rollout.core.model.report import RemoteAnswer, RemoteCommand
from rollout.core.model.snapshot import Unread
from rollout.errors import RemoteError
from rollout.features.diagnose.asking.from_cluster import (
    FEW_NODES,
    FromApi,
    Symptoms,
    diagnose_cluster,
    read_api,
    read_journals,
)
from rollout.features.diagnose.rules.facts import Kind
from rollout.features.diagnose.rules.finding import Finding, ProposalTarget
from rollout.features.diagnose.rules.node_journals import journal_of
from rollout.features.diagnose.rules.pod_status import pod_facts
from tests.features.diagnose.rules.logs import BEGIN, NODE, event, pulls
from tests.features.diagnose.rules.test_hanging_pulls import waiting
from tests.kubelet.nodes import fleet, inventory, kubeadm

FORBIDDEN = RemoteError("forbidden", 'events is forbidden: User "u" cannot list resource "events"')


@dataclass
class State:
    """An API server with these events that refuses after the first ``until``; ``asked`` records its pods' requests."""

    every: list[Mapping[str, Any]] = field(default_factory=list)
    until: int | None = None
    asked: list[tuple[str, str]] = field(default_factory=list)
    nodes: list[Mapping[str, Any]] = field(default_factory=list)
    nodes_asked: tuple[str, ...] = ()

    def events(self, pod: str) -> Iterator[Mapping[str, Any]]:
        yield from self.every[: self.until]
        if self.until is not None:
            raise FORBIDDEN

    def pod_documents(self, node: str, pod: str) -> Iterator[Mapping[str, Any]]:
        self.asked.append((node, pod))
        yield from ()

    def node_documents(self, nodes: Collection[str]) -> Iterator[Mapping[str, Any]]:
        self.nodes_asked = tuple(nodes)
        yield from (document for document in self.nodes if document["metadata"]["name"] in nodes)


def failed(number: int, node: str = NODE) -> dict[str, Any]:
    return event(number, "Failed", 'Failed to pull image "web:1": pull QPS exceeded', f"web-{number}", node=node)


def test_a_refused_list_is_named_with_what_to_fetch() -> None:
    found = read_api(State(until=0), [NODE], "")
    (missing,) = found.not_read
    assert (missing.what, missing.why) == ("events of the API server", f"{FORBIDDEN.message} [forbidden]")
    assert missing.fetch_next.startswith("kubectl get events -A -o json")
    assert [reading.file for reading in found.readings] == ["pods of the API server", "nodes of the API server"]


def test_what_was_read_of_a_list_before_the_refusal_counts() -> None:
    found = read_api(State([failed(1), failed(2)], until=1), [NODE], "")
    assert [missing.what for missing in found.not_read] == ["the rest of the events of the API server"]
    assert (len(found.facts), found.readings[1].read) == (1, 1)


def not_ready(name: str) -> dict[str, Any]:
    condition = {
        "type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "container runtime is down",
        "lastHeartbeatTime": f"{BEGIN:%Y-%m-%dT%H:%M:%SZ}",
    }  # fmt: skip
    info = {"kubeletVersion": "v1.31.2", "containerRuntimeVersion": "containerd://1.7.20"}
    return {"metadata": {"name": name}, "status": {"conditions": [condition], "nodeInfo": info}}


def test_nodes_of_the_api_show_what_their_kubelets_say() -> None:
    state = State([failed(1)], nodes=[not_ready(NODE), not_ready("tess-node-0009")])
    found = read_api(state, [NODE], "")
    assert {fact.kind for fact in found.facts if fact.where.file == "nodes of the API server"} == {
        Kind.TROUBLE,
        Kind.VERSION,
    }
    assert {fact.node for fact in found.facts} == {NODE}
    symptoms = Symptoms(fleet(inventory(1), {}), (), found, BEGIN.timestamp())
    down = next(
        each for each in diagnose_cluster(symptoms, ProposalTarget("rno")).findings if each.id == "runtime-down"
    )
    assert down.nodes == (NODE,)


def test_of_one_pod_its_own_node_is_asked_for() -> None:
    state = State([failed(1), failed(2, "tess-node-0009")])
    read_api(state, [NODE], "shop/web-2")
    assert state.nodes_asked == ("tess-node-0009",)


def test_events_of_other_nodes_are_left_out_and_those_of_one_pod_are_not() -> None:
    state = State([failed(1), failed(2, "tess-node-0009")])
    assert {fact.node for fact in read_api(state, [NODE], "").facts} == {NODE}
    assert read_api(state, [NODE], "shop/web-2").nodes_of("shop/web-2") == {"tess-node-0009"}


def test_pods_of_a_few_nodes_are_listed_node_by_node_and_else_all_at_once() -> None:
    few, many, one = State(), State(), State()
    read_api(few, ["a", "b"], "")
    read_api(many, [f"n{number}" for number in range(FEW_NODES + 1)], "")
    read_api(one, ["a", "b"], "shop/web-1")
    assert (few.asked, many.asked, one.asked) == ([("a", ""), ("b", "")], [("", "")], [("", "shop/web-1")])


class Answers:
    """Nodes that answer in turn with these bytes, or not at all."""

    def __init__(self, *answers: RemoteAnswer) -> None:
        self._answers = list(answers)
        self.commands: list[RemoteCommand] = []

    def run(self, target: Target, command: RemoteCommand) -> RemoteAnswer:
        self.commands.append(command)
        return self._answers.pop(0)

    def release(self, target: Target) -> None: ...

    def close(self) -> None: ...


def access(*names: str) -> NodeAccess:
    return NodeAccess("", {name: Target(name, name) for name in names}, dict.fromkeys(names, True))


def test_a_journal_is_read_through_sudo_and_one_that_is_refused_is_named() -> None:
    refused = RemoteAnswer(
        None, b"", b"", started=False, reference="sudo-not-allowed", message="sudo does not allow it"
    )
    nodes = Answers(RemoteAnswer(0, b"\n-- journalctl ended 0\n", b"", started=True), refused)
    good, bad = read_journals(access("a", "b"), nodes, 60.0, keep_nothing)
    assert all(command.bare.startswith("sh -c ") for command in nodes.commands)
    assert (good.why, bad.why) == ("", "sudo does not allow it [sudo-not-allowed]")


def test_silent_nodes_are_folded_by_their_reason_and_nothing_read_is_known() -> None:
    known = inventory(3)
    silent = {name: Unread(name, "connection-refused", f"connection refused by {name}") for name in known.nodes}
    symptoms = Symptoms(fleet(known, silent), (), FromApi(), 0.0)
    (missing,) = diagnose_cluster(symptoms, ProposalTarget("rno")).not_read or ()
    assert (len(missing.nodes), missing.why) == (3, "connection refused by NODE [connection-refused]")
    assert symptoms.nothing
    assert not Symptoms(fleet(known, silent), (), read_api(State(), [], ""), 0.0).nothing


SLOW = "10.8.2.9:9083/ais/platform:1"
OTHER = 'time="2026-11-20T09:00:03Z" level=info msg="PullImage \\"web:1\\" returns image reference \\"sha256:0f\\""'
LAYER = 'kube_docker_client.go:345] "Pulling image" image="10.8.2.9:9083/ais/platform:1" progress="0f1e: Downloading [=>  ]"'


def running(runtime: str, *logged: str, now: float = 7200.0) -> Finding:
    """The queue on a node with this journal. Its agent lists one running pull, and pods wait behind it."""
    known = inventory(1)
    (name,) = known.nodes
    node = kubeadm(name, version="1.33.4" if runtime == "containerd" else "1.21.14", runtime=runtime)
    node = replace(node, measurement=replace(node.measurement, pulls=(SLOW, "web:1")))
    output = "".join(f"2026-11-20T{each.replace('NODE', name)}\n" for each in logged) + "\n-- journalctl ended 0\n"
    journal = journal_of(name, output.encode(), "", BEGIN + timedelta(days=1))
    images = [SLOW, *(f"r.example/web:{number}" for number in range(3))]
    pods = [waiting(f"web-{number}", image, 60.0 * number) for number, image in enumerate(images)]
    pods = [{**pod, "spec": {**pod["spec"], "nodeName": name}} for pod in pods]
    facts = tuple(fact for number, pod in enumerate(pods) for fact in pod_facts(pod, "pods", number))
    read = Symptoms(fleet(known, {name: node}), (journal,), FromApi(facts), BEGIN.timestamp() + now)
    (queue,) = [
        each for each in diagnose_cluster(read, ProposalTarget("rno")).findings if each.id == "serial-pull-queue"
    ]
    return queue


def test_a_pull_that_the_journal_does_not_show_began_before_it() -> None:
    """The journal shows another pull, and not the one in front: it may have begun three hours ago."""
    queue = running("containerd", f"09:00:03+0000 NODE containerd[7]: {OTHER}")
    assert queue.cause.startswith(
        f"3 pods wait in one queue behind the pull of {SLOW}, which the runtime received at least 1 h 59 min ago and has not ended."
    )
    (agent,) = [line.text for line in queue.evidence if line.file.endswith(":agent")]
    assert agent == (
        f"pull under way: {SLOW}, for at least 1 h 59 min: "
        "the journal from 2026-11-20T09:00:03Z on does not have its beginning"
    )


def test_dockershims_progress_lines_show_the_least_age_of_a_pull() -> None:
    """Only those of an unbroken series: an older pull of the same image had ended."""
    times = ("00:00", "30:00", "30:10", "30:20")
    done = f"09:00:03+0000 NODE dockerd[7]: {OTHER}"
    queue = running(
        "dockershim", done, *(f"09:{at}+0000 NODE kubelet[3]: I1120 09:{at}.000000 3 {LAYER}" for at in times)
    )
    assert f"behind the pull of {SLOW}, which the runtime received at least 1 h 30 min ago and" in queue.cause
    assert any("its progress is in the journal from 2026-11-20T09:30:00Z on" in line.text for line in queue.evidence)


def test_where_no_log_shows_the_age_of_a_pull_its_pod_does() -> None:
    """Lines of the kubelet alone do not show since when another unit's log would have it."""
    queue = running("containerd", f"09:00:03+0000 NODE kubelet[7]: {OTHER}")
    assert f"behind the pull of {SLOW}, which the runtime received, for which a pod has waited 2 h, and" in queue.cause
    assert any("its age is not known: the journal has no line of containerd" in line.text for line in queue.evidence)


def test_running_pulls_are_named_with_their_ages_where_no_one_is_in_front() -> None:
    begun = [f'time="2026-11-20T0{hour}:00:00Z" level=info msg="PullImage \\"db:{hour}\\""' for hour in (9, 10)]
    queue = running(
        "containerd",
        *(f"{at}:00:00+0000 NODE containerd[7]: {line}" for at, line in zip(("09", "10"), begun, strict=True)),
    )
    assert (queue.confidence, queue.proposal) == ("unknown", "")
    told = queue.cause.partition("The runtime received, with no end in the log: ")[2]
    assert told.startswith(f"{SLOW} at least 2 h ago, web:1 at least 2 h ago, db:9 2 h ago and 1 more.")


@pytest.mark.parametrize(
    ("words", "seconds", "confidence", "setting"),
    [
        ("", 66, "likely", "imagePullProgressDeadline=5m0s"),
        ("--image-pull-progress-deadline=10m", 606, "likely", "imagePullProgressDeadline=20m0s"),
        ("--image-pull-progress-deadline=10m", 66, "unknown", ""),
        ("", 90, "unknown", ""),
    ],
    ids=["the default", "a flag", "before its deadline", "long after its deadline"],
)
def test_a_cut_is_compared_with_the_deadline_in_force_on_its_node(
    words: str, seconds: int, confidence: str, setting: str
) -> None:
    """One cut alone fits a deletion too, unless it comes when the deadline of this dockershim ends."""
    known = inventory(1)
    (name,) = known.nodes
    node = kubeadm(name, words=words)
    cut = pulls("big:1", "web-1", 0, seconds, "rpc error: code = Unknown desc = context canceled")
    events: list[Mapping[str, Any]] = [{**each, "source": {"component": "kubelet", "host": name}} for each in cut]
    read = Symptoms(fleet(known, {name: node}), (), read_api(State(events), [name], ""), BEGIN.timestamp() + 7200)
    (deadline,) = [each for each in diagnose_cluster(read, ProposalTarget("rno")).findings if each.id != "not-in-force"]
    assert (deadline.id, deadline.confidence) == ("pull-progress-deadline", confidence)
    assert deadline.proposal.endswith(setting)
    assert any("--image-pull-progress-deadline" in line.text for line in deadline.evidence) == (confidence == "likely")


def cut(printed: str) -> Finding:
    """A pull that containerd cut, on a node with this version by its snapshot. Its journal has no start."""
    known = inventory(1)
    (name,) = known.nodes
    node = replace(
        kubeadm(name, version="1.33.4", runtime="containerd"), runtimes={"containerd": printed} if printed else {}
    )
    said = "cancel pulling image r.example/web:1 because of no progress in 5m0s"
    line = f'2026-11-20T09:00:00+0000 {name} containerd[7]: time="2026-11-20T09:00:00Z" level=error msg="{said}"\n'
    journal = journal_of(name, f"{line}\n-- journalctl ended 0\n".encode(), "", BEGIN + timedelta(days=1))
    read = Symptoms(fleet(known, {name: node}), (journal,), FromApi(()), BEGIN.timestamp() + 60)
    findings = diagnose_cluster(read, ProposalTarget("rno")).findings
    (found,) = [each for each in findings if each.id == "pull-progress-deadline"]
    return found


def test_the_version_of_a_runtime_is_that_of_the_snapshot() -> None:
    """A key that it lacks is not proposed, though the log shows no start."""
    finding = cut("containerd github.com/containerd/containerd v1.6.39 0")
    assert finding.proposal == ""
    assert "containerd 1.6.39 has no key for its deadline: an upgrade to 1.7.0 or later brings one." in finding.cause
    assert cut("containerd github.com/containerd/containerd v1.7.28 0").proposal.endswith(
        "imagePullProgressDeadline=10m0s"
    )
    assert cut("").proposal.endswith("imagePullProgressDeadline=10m0s"), "the line itself shows that it has the key"
