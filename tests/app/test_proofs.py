"""The proof of a rollback: every node is read again, and judged by what it reports, not by what was requested."""

from __future__ import annotations

import base64
from collections.abc import Mapping

import pytest

from rollout.app.ports import Target
from rollout.app.proofs import prove
from rollout.core.model.proof import BOOT_UNIT, NodeProof, Proven
from rollout.core.model.report import RemoteAnswer, RemoteCommand
from rollout.core.model.snapshot import digest
from tests.app.agents import CONFIG, NEW, SILENT, Agents, access_to, answer, holds, receipt, well

OLD = b"maxPods: 110\n"
BACK = (
    f"expected r1-1 reverted 1 2 {digest(OLD)} {digest(NEW)} 644 0:0 {CONFIG}",
    holds(OLD),
    f"file absent - - - - {BOOT_UNIT} -",
)
ELSEWHERE = "healthzPort: 10300\n"


def read_again(*lines: str, state: str = "reverted", **changes: str) -> RemoteAnswer:
    """The answer of a reverted node, with some lines of its kubelet replaced."""
    return answer("verify", receipt("r1-1", state), *(lines or BACK), *well(**changes))


def proof(nodes: Agents, left: tuple[str, ...] = ()) -> NodeProof:
    (found,) = prove(access_to("n1"), nodes, {"n1": "r1-1"}, {"n1": left} if left else {})
    assert set(nodes.released) == {"n1"}
    return found


def verdict(said: RemoteAnswer, left: tuple[str, ...] = ()) -> tuple[Proven, str]:
    found = proof(Agents({("n1", "verify"): said}), left)
    return found.proven, "; ".join(found.evidence)


def test_a_node_with_its_old_bytes_and_a_healthy_kubelet_is_proven() -> None:
    found = proof(Agents({("n1", "verify"): read_again()}))
    assert found == NodeProof("n1", Proven.PROVEN, (), ((CONFIG, digest(OLD)),))


def test_the_reading_counts_and_not_the_request() -> None:
    assert verdict(read_again(state="confirmed")) == (Proven.WRONG, "transaction r1-1 is confirmed")
    proven, evidence = verdict(read_again(BACK[0], holds(b"maxPods: 120\n")))
    assert (proven, "[content-differs]" in evidence) == (Proven.WRONG, True)
    proven, evidence = verdict(read_again(*BACK[:2], holds(b"[Unit]\n", BOOT_UNIT)))
    assert (proven, evidence) == (Proven.WRONG, f"a guard is left: {BOOT_UNIT}")


def test_leftovers_of_the_cleanup_are_reported() -> None:
    assert verdict(read_again(), ("a timer",)) == (Proven.WRONG, "left behind: a timer")


def test_a_node_that_cannot_be_read_again_is_not_proven() -> None:
    said = "could not be read again: no answer in 10 s [connect-timeout]"
    assert verdict(SILENT) == (Proven.UNKNOWN, said)


class Moved(Agents):
    """A node with a kubelet that serves healthz on another port than 10248."""

    def __init__(self, snapshot: RemoteAnswer, says_there: str = "healthz ok") -> None:
        super().__init__({("n1", "snapshot"): snapshot})
        self.says_there = says_there

    def run(self, target: Target, command: RemoteCommand) -> RemoteAnswer:
        here = not any(words["verb"] == "snapshot" for _, words in self.asked)
        self.says["n1", "verify"] = read_again(healthz="healthz refused" if here else self.says_there)
        return super().run(target, command)

    def ports(self) -> list[str]:
        return [words["healthz"] for _, words in self.asked if words["verb"] == "verify"]


def snapshot(config: str) -> RemoteAnswer:
    file = holds(config.encode())[:-1] + "+"
    return answer("snapshot", file, f"content {base64.b64encode(config.encode()).decode()}", *well())


@pytest.mark.parametrize(
    ("there", "proven"),
    [("healthz ok", Proven.PROVEN), ("healthz refused", Proven.WRONG), ("healthz 500", Proven.WRONG)],
)
def test_a_kubelet_with_healthz_on_another_port_is_asked_there(there: str, proven: Proven) -> None:
    nodes = Moved(snapshot(ELSEWHERE), there)
    assert proof(nodes).proven is proven
    assert nodes.ports() == ["10248", "10300"]


def test_a_kubelet_with_healthz_on_the_default_port_is_not_asked_again() -> None:
    nodes = Moved(snapshot("healthzPort: 10248\n"))
    found = proof(nodes)
    assert (found.proven, found.evidence) == (Proven.WRONG, ("healthz: refused",))
    assert nodes.ports() == ["10248"]


def test_with_an_unknown_port_healthz_is_unknown() -> None:
    found = proof(Moved(SILENT))
    assert (found.proven, found.evidence) == (Proven.UNKNOWN, ("the node has no program that can request healthz",))


def test_each_node_is_judged_by_itself() -> None:
    says: Mapping[tuple[str, str], RemoteAnswer] = {("n1", "verify"): SILENT, ("n2", "verify"): read_again()}
    found = prove(access_to("n1", "n2"), Agents(dict(says)), {"n1": "r1-1", "n2": "r1-1"}, {})
    assert [(each.node, each.proven) for each in found] == [("n1", Proven.UNKNOWN), ("n2", Proven.PROVEN)]
