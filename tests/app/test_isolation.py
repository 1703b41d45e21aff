"""If rollout itself fails on one node, only that node is refused, and the other nodes continue.

The failures are injected: no content is known that causes one. ``tests/hostile/`` looks for such content.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rollout.adapters.agent_program import agent_program
from rollout.app.isolation import attempt, keep_nothing, run_verification
from rollout.app.plan import build_plan
from rollout.app.ports import Target
from rollout.app.proofs import prove
from rollout.app.reading import read_receipts, snapshot_fleet
from rollout.core.model.inventory import Inventory
from rollout.core.model.plan import Plan, Standing
from rollout.core.model.proof import Proven
from rollout.core.model.report import Outcome
from rollout.core.model.snapshot import Snapshot, Unread
from rollout.core.plans import plan_codec
from rollout.core.run.events import Answered, Trigger
from rollout.core.run.state import Verb
from rollout.errors import InputError, Problem
from rollout.features.explain.asking import explain_on_node
from rollout.gates.agent_checks import query as agent_checks
from rollout.kubelet.agent import agent_answer, agent_call
from rollout.kubelet.changes import changes, splice
from rollout.kubelet.explained.explanation import explain
from rollout.kubelet.node import fitness, managers, sources
from rollout.kubelet.node import managers as managers_of_files
from rollout.kubelet.restarts import consequences
from tests.app.agents import Agents, access_to, answer, well
from tests.app.test_node_worker import Outside, ask, worker
from tests.app.test_reading import Wall
from tests.app.verified import verify_fleet
from tests.kubelet.nodes import CONFIG_TEXT, IMAGE_PULLS, POLICY, fleet, inventory, kubeadm, listing

POISON = "s3cret"
POISONED = CONFIG_TEXT.replace("cluster.local", f"{POISON}.local")


class Kept:
    """Keeps traces in memory."""

    def __init__(self) -> None:
        self.traces: dict[str, str] = {}

    def __call__(self, node: str, trace: str) -> str:
        self.traces[node] = trace
        return "The trace is in FILE"


def poison(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, error: type[BaseException] = ValueError) -> None:
    """From now on the function fails on everything that contains the poison."""
    whole = getattr(module, name)

    def fails(*words: Any, **more: Any) -> Any:
        if POISON in repr((words, more)):
            raise error(POISON)
        return whole(*words, **more)

    monkeypatch.setattr(module, name, fails)


def poisoned_fleet() -> tuple[Inventory, str, dict[str, Snapshot]]:
    known = inventory(4, per_rack=1)
    first, *others = known.nodes
    return known, first, {first: kubeadm(first, config=POISONED)} | {name: kubeadm(name) for name in others}


def planned(known: Inventory, nodes: dict[str, Snapshot], keep: Callable[[str, str], str]) -> Plan:
    wanted = dict.fromkeys(known.nodes, IMAGE_PULLS)
    return build_plan(known, POLICY, fleet(known, nodes), wanted, tuple(known.nodes), "", trace=keep)


PLACES = {
    "its fitness": (fitness, "refusal"),
    "finding its files": (sources, "find"),
    "its file's new text": (splice, "splice"),
    "its proposal": (changes, "proposal"),
    "the version that it is treated as": (fitness, "remarks"),
    "other tools that configure it": (managers, "remarks"),
    "the side effects of its change": (consequences, "of_node"),
    "what undoes it": (managers_of_files, "undone"),
    "the load on its registry": (consequences, "rate_of"),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_fleet_with_one_failing_node_is_planned(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """The others are planned as without it. It is refused with the place of the failure, without its file's content."""
    known, poisoned, nodes = poisoned_fleet()
    kept = Kept()
    whole = planned(known, nodes, kept)
    poison(monkeypatch, *PLACES[place])
    made = planned(known, nodes, kept)
    (left,) = made.left
    assert (left.name, left.standing, left.reference) == (poisoned, Standing.REFUSED, "planning-failed")
    assert "ValueError in test_isolation.py" in left.reason
    assert left.reason.endswith("The trace is in FILE")
    assert POISON not in left.reason
    assert POISON in kept.traces[poisoned]
    change_of = {group.name: group.change for group in made.groups}
    change_without = {group.name: group.change for group in whole.groups}
    assert {name: change_of[node.group] for name, node in made.nodes.items()} == {
        name: change_without[node.group] for name, node in whole.nodes.items() if name != poisoned
    }
    assert plan_codec.decode(plan_codec.encode(made), "p") == made


def test_a_skipped_node_that_also_fails_keeps_its_first_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known, poisoned, nodes = poisoned_fleet()
    labelled = dict(known.nodes)
    labelled[poisoned] = replace(labelled[poisoned], labels={"node-role.kubernetes.io/control-plane": ""})
    poison(monkeypatch, consequences, "rate_now")
    kept = Kept()
    made = planned(replace(known, nodes=labelled), nodes, kept)
    assert [(left.name, left.standing, left.reference) for left in made.left] == [
        (poisoned, Standing.SKIPPED, "control-plane")
    ]
    assert POISON in kept.traces[poisoned]


@pytest.mark.parametrize("error", [MemoryError, RecursionError, OverflowError, AssertionError])
@pytest.mark.parametrize("place", ["finding its files", "the load on its registry"])
def test_no_error_that_a_text_can_cause_ends_the_plan(
    monkeypatch: pytest.MonkeyPatch, place: str, error: type[BaseException]
) -> None:
    """A text causes an error of memory with one number: "0-9999999999" as a list of CPUs."""
    known, poisoned, nodes = poisoned_fleet()
    poison(monkeypatch, *PLACES[place], error)
    made = planned(known, nodes, Kept())
    assert [(left.name, left.reference) for left in made.left] == [(poisoned, "planning-failed")]
    assert f"({error.__name__} in test_isolation.py" in made.left[0].reason
    assert len(made.nodes) == len(known.nodes) - 1


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt, SystemExit])
def test_errors_of_this_machine_and_exits_pass(monkeypatch: pytest.MonkeyPatch, error: type[BaseException]) -> None:
    known, _, nodes = poisoned_fleet()
    poison(monkeypatch, sources, "find", error)
    with pytest.raises(error):
        planned(known, nodes, Kept())


def test_a_template_that_fails_on_one_node_refuses_that_node() -> None:
    known = inventory(3, per_rack=1)
    first, *others = known.nodes
    text = f"{{% for name, value in fields.items() %}}\n{{{{ name }}}}: {{{{ value | yaml }}}}\n{{% endfor %}}\n# {{{{ 1 / (node.name != '{first}') }}}}\n"
    policy = replace(POLICY, templates=replace(POLICY.templates, kubelet_config=text, kubelet_config_name="t.j2"))
    nodes = fleet(known, {name: kubeadm(name) for name in known.nodes})
    made = build_plan(known, policy, nodes, dict.fromkeys(known.nodes, IMAGE_PULLS), tuple(known.nodes), "")
    assert [(left.name, left.standing, left.reference, left.reason) for left in made.left] == [
        (first, Standing.REFUSED, "template-failed", "t.j2:4: division by zero")
    ]
    assert list(made.nodes) == others


def test_a_mistake_in_a_persons_input_is_an_error_of_the_whole_command() -> None:
    def wrong() -> str:
        raise InputError((Problem("template-failed", "a template"),))

    with pytest.raises(InputError):
        attempt("n1", wrong, lambda why: why)


# --------------------------------------------------------------------------------------------------- readings

SAID = ("say " + POISON, *well())
NODES = ("n1", "n2")


def answering(verb: str) -> Agents:
    return Agents({("n1", verb): answer(verb, *SAID)})


@pytest.mark.parametrize("error", [ValueError, MemoryError, RecursionError])
def test_an_answer_that_rollout_fails_on_affects_only_its_node(
    monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    """For the readings of a plan, a run, an emergency and a verification."""
    poison(monkeypatch, agent_answer, "read", error)
    kept = Kept()
    nodes = snapshot_fleet(listing(*NODES), access_to(*NODES), answering("snapshot"), Wall(), kept).nodes
    assert isinstance(nodes["n2"], Snapshot)
    unread = nodes["n1"]
    assert isinstance(unread, Unread)
    assert (unread.reference, POISON in unread.message) == ("reading-failed", False)
    assert unread.message.endswith("The trace is in FILE")
    reports = read_receipts(access_to(*NODES), answering("status"), keep=kept)
    assert [(report.outcome, report.reference) for report in reports.values()] == [
        (Outcome.LOST, "reading-failed"),
        (Outcome.DONE, ""),
    ]
    drifts, away = verify_fleet(access_to(*NODES), answering("verify"), {}, kept)
    assert (list(drifts), [entry.reference for entry in away]) == (["n2"], ["reading-failed"])
    first, second = prove(access_to(*NODES), answering("verify"), dict.fromkeys(NODES, "r1-1"), {}, kept)
    assert first.proven is Proven.UNKNOWN
    assert "reading-failed" in first.evidence[0]
    assert "reading-failed" not in str(second)
    assert POISON in kept.traces["n1"]


@pytest.mark.parametrize("error", [ValueError, MemoryError])
def test_in_a_run_such_an_answer_is_an_event(monkeypatch: pytest.MonkeyPatch, error: type[BaseException]) -> None:
    poison(monkeypatch, agent_answer, "read", error)
    outside = Outside([answer("status", *SAID)])
    event = worker(outside)(ask(Verb.READ))
    assert isinstance(event, Answered)
    assert (event.trigger, event.reference) == (Trigger.LOST, "reading-failed")


def test_gates_that_fail_on_a_measurement_are_unknown_and_never_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    poison(monkeypatch, agent_checks, "_healthz")
    said = answer("status", *well(healthz=f"healthz {POISON}"))
    outside = Outside([said])
    event = worker(outside)(ask(Verb.MEASURE))
    assert isinstance(event, Answered)
    assert (event.trigger, event.reference) == (Trigger.GATES_UNKNOWN, "reading-failed")


def test_a_failed_explanation_names_the_place_and_the_trace_file(monkeypatch: pytest.MonkeyPatch) -> None:
    known, poisoned, nodes = poisoned_fleet()
    poison(monkeypatch, sources, "find")
    with pytest.raises(InputError) as error:
        explain_on_node(known.nodes[poisoned], fleet(known, nodes), explain("maxPods"), Kept())
    assert error.value.reference == "explaining-failed"
    assert str(error.value).endswith("The trace is in FILE [explaining-failed]")
    assert POISON not in str(error.value)


def test_the_connection_ends_after_an_answer_that_cannot_be_read() -> None:
    """What printed something else into it may do so again."""
    nodes = Agents({("n1", "status"): answer("status", "token of another kind")})
    reports = read_receipts(access_to(*NODES), nodes)
    assert [(report.outcome, report.reference) for report in reports.values()] == [
        (Outcome.LOST, "bad-answer"),
        (Outcome.DONE, ""),
    ]
    assert nodes.released == ["n1"]


def test_the_connection_ends_after_a_verification_that_cannot_be_read() -> None:
    nodes = Agents({("n1", "verify"): answer("verify", "token of another kind")})
    command = agent_call.verify(agent_program(), unit="kubelet.service", sudo=False, deadline=30.0)
    read = run_verification(nodes, Target("n1", "10.0.0.1"), command, keep_nothing)
    assert isinstance(read, Unread)
    assert (read.reference, nodes.released) == ("bad-answer", ["n1"])


def test_the_connection_ends_after_a_snapshot_that_cannot_be_read() -> None:
    nodes = Agents({("n1", "snapshot"): answer("snapshot", "token of another kind")})
    snapshot_fleet(listing(*NODES), access_to(*NODES), nodes, Wall(), goes_on=True)
    assert nodes.released == ["n1"]
