"""``nodesSteady``: the Nodes that a run has changed stay Ready, in each round of each wave until its end."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest

from rollout.app.asked_gate import AskedGate, WaveRun
from rollout.app.ports import Ran
from rollout.core.model.gates import Gate, GateScope
from rollout.core.model.inventory import Endpoints
from rollout.core.model.live import LiveNode
from rollout.core.model.playbook import ALL_CAUSES, Budget, Cause, Scope, Share
from rollout.core.model.verdict import Judged, Verdict
from rollout.core.run.commands import JudgeWave, OpenWave
from rollout.core.text import json_text
from rollout.errors import AwayError, RemoteError
from rollout.gates.api_checks.query import ApiCheck
from rollout.gates.steady_nodes.asking import connected
from rollout.gates.steady_nodes.query import MOST_KEPT, SteadyQuery, SteadyWatch, kept, read_back
from tests.adapters.kubernetes.node_gates import Watch, plan

NODE = LiveNode(
    "n1", "u", "", (), {}, unschedulable=False, taints=(), kubelet_version="", runtime="", os_image="", ready="True",
    ready_since="08:00",
)  # fmt: skip


class NoLocal:
    """This gate runs no command."""

    def run(self, command: tuple[str, ...], environment: Mapping[str, str], timeout: float) -> Ran:
        raise AssertionError(command)


NAMES = ("n1", "n2", "n3")


@dataclass
class Cluster:
    """What the API server shows of each node: since when it is Ready, or another status. An error is raised once."""

    shows: dict[str, str]
    fails: Sequence[RemoteError] = ()

    def nodes(self) -> tuple[LiveNode, ...]:
        if self.fails:
            first, *self.fails = self.fails
            raise first
        return tuple(
            replace(NODE, name=name, ready_since=said if ":" in said else "", ready="True" if ":" in said else said)
            for name, said in self.shows.items()
        )


class Rounds:
    """The gate in one process. The fleet's budget is ``most`` nodes."""

    def __init__(self, most: int = 1, **shows: str) -> None:
        self.cluster = Cluster({**dict.fromkeys(NAMES, "08:00"), **shows})
        self.clock, self.ask = Watch(), connected(self.cluster.nodes)
        budgets = (Budget(Scope.FLEET, ALL_CAUSES, Share(count=most)), Budget(Scope.WAVE, ALL_CAUSES, Share(count=1)))
        nodes = {name: replace(plan("n1").nodes["n1"], name=name) for name in NAMES}
        self.plan = replace(plan("n1"), budgets=budgets, nodes=nodes)

    @property
    def gate(self) -> AskedGate:
        """Made anew for each round, as a run does."""
        return self.ask(SteadyQuery(), 10.0, WaveRun("r1", self.plan, NoLocal(), self.clock, self.clock.wait))

    def now(self, wave: int = 0, *touched: str) -> Judged:
        return self.gate.now(JudgeWave(wave, "", touched or NAMES), None)


def test_nodes_that_stay_ready_pass() -> None:
    rounds = Rounds()
    assert [rounds.now() for _ in range(2)] == [(Verdict.PASS, "3 changed nodes were Ready at each reading")] * 2


def test_a_node_that_was_not_ready_twice_is_harm_also_in_between() -> None:
    rounds = Rounds()
    rounds.now()
    rounds.cluster.shows["n2"] = "12:01"
    verdict, said = rounds.now()
    once = "3 changed nodes were Ready at each reading, but for one time each: n2: Ready since 12:01, at the last reading since 08:00"
    assert (verdict, said) == (Verdict.PASS, once), "each fleet has a node that is not Ready once"
    assert rounds.now() == (Verdict.PASS, once)
    rounds.cluster.shows["n2"] = "12:02"
    assert rounds.now()[0] is Verdict.FAIL


def test_two_nodes_are_harm_within_the_budget_of_the_fleet() -> None:
    for most, verdict in ((2, Verdict.FAIL), (3, Verdict.PASS)):
        rounds = Rounds(most)
        rounds.now()
        rounds.cluster.shows |= {"n1": "False", "n3": "Unknown"}
        found = rounds.now()
        assert found == (
            verdict,
            "2 of 3 changed nodes were not always Ready: n1: Ready is False; n3: Ready is Unknown",
        )


def test_a_node_that_goes_and_comes_back_counts_once() -> None:
    rounds = Rounds()
    rounds.now()
    for said in ("False", "False", "12:05", "12:05"):
        rounds.cluster.shows["n1"] = said
        assert rounds.now()[0] is Verdict.PASS
    rounds.cluster.shows["n1"] = "False"
    assert rounds.now()[0] is Verdict.FAIL


def test_nodes_that_left_are_not_judged() -> None:
    """An autoscaler takes nodes away at any time, and the run sees by itself that they are gone."""
    rounds = Rounds()
    rounds.now()
    del rounds.cluster.shows["n2"]
    said = "2 changed nodes were Ready at each reading; not judged, no such Node: n2"
    assert rounds.now() == (Verdict.PASS, said)


def test_an_api_server_without_most_of_the_nodes_shows_nothing_of_them() -> None:
    """It is that of another cluster: its kubeconfig has another current context, for example since the run was resumed."""
    rounds = Rounds()
    rounds.now()
    del rounds.cluster.shows["n2"], rounds.cluster.shows["n3"]
    said = "the API server has 1 of the 3 changed nodes: it may be that of another cluster"
    assert rounds.now() == (Verdict.UNKNOWN, said)
    rounds.cluster.shows = {"other-1": "08:00"}
    assert rounds.now() == (Verdict.UNKNOWN, said.replace("has 1", "has 0"))


def test_a_reboot_each_is_no_flapping() -> None:
    rounds = Rounds()
    rounds.now()
    rounds.cluster.shows |= {"n1": "12:01", "n3": "12:02"}
    assert rounds.now()[0] is Verdict.PASS


def test_only_a_budget_for_unhealthy_nodes_counts() -> None:
    rounds = Rounds(3)
    strict = Budget(Scope.FLEET, frozenset({Cause.UNREACHABLE}), Share(count=1))
    rounds.plan = replace(rounds.plan, budgets=(strict, *rounds.plan.budgets))
    rounds.now()
    rounds.cluster.shows |= {"n1": "False", "n3": "False"}
    assert rounds.now()[0] is Verdict.PASS


def test_nodes_of_earlier_waves_are_looked_at_until_the_end() -> None:
    rounds = Rounds()
    assert rounds.gate.before(OpenWave(0, ("n1",))) is None, "nothing is changed yet"
    rounds.now(0, "n1")
    assert rounds.gate.before(OpenWave(1, ("n2",))) == (
        Verdict.PASS,
        "1 changed node was Ready at each reading",
        {"0": {"n1": {"ready_since": "08:00", "unsteady": 0, "said": "", "down": False}}},
    )
    rounds.cluster.shows["n1"] = "12:01"
    assert rounds.now(1, "n2")[0] is Verdict.PASS
    rounds.cluster.shows["n1"] = "12:02"
    assert rounds.now(1, "n2")[0] is Verdict.FAIL


def test_a_new_controller_goes_on_with_what_the_journal_has() -> None:
    first = Rounds()
    first.now(0, "n1")
    first.cluster.shows["n1"] = "12:01"
    assert first.now(0, "n1")[0] is Verdict.PASS, "once"
    opened = first.gate.before(OpenWave(1, ("n2",)))
    assert opened is not None
    journaled = json_text.parse(json.dumps(opened[2]))

    second = Rounds(n1="12:02")
    second.gate.remember(journaled)
    verdict, said = second.now(1, "n2")
    assert (verdict, "n1: Ready since 12:02, at the last reading since 12:01" in said) == (Verdict.FAIL, True)
    second.gate.remember({"0": {"n1": {"ready_since": "08:00", "unsteady": 0, "said": "", "down": False}}})
    assert second.now(1, "n2")[0] is Verdict.FAIL, "its own readings are newer"
    third = Rounds(n1="12:02")
    third.gate.remember({"0": "what no version of it writes"})
    assert third.now(1, "n2")[0] is Verdict.PASS


def test_of_many_nodes_those_that_were_not_ready_are_kept_first() -> None:
    well = {f"n{number}": SteadyWatch("08:00") for number in range(MOST_KEPT)}
    found = read_back(kept({0: well, 1: {"ill": SteadyWatch("", 1, "Ready is False", down=True)}}))
    assert found[1] == {"ill": SteadyWatch("", 1, "Ready is False", down=True)}
    assert len(found[0]) == MOST_KEPT - 1


def test_a_node_that_is_reverted_is_no_longer_looked_at() -> None:
    rounds = Rounds()
    rounds.now(0, "n1", "n2")
    rounds.cluster.shows["n2"] = "False"
    assert rounds.now(0, "n1") == (Verdict.PASS, "1 changed node was Ready at each reading")


def test_an_api_server_that_does_not_answer_is_no_pass() -> None:
    rounds = Rounds()
    rounds.cluster.fails = [AwayError("not-reached", "Connection refused")]
    assert rounds.now()[0] is Verdict.PASS, "it is asked again within the time"
    rounds.cluster.fails = [RemoteError("forbidden", "no")]
    with pytest.raises(RemoteError, match="no"):
        rounds.now()


def test_before_a_wave_an_api_server_that_does_not_answer_halts_nothing() -> None:
    """Nodes without a baseline wait for it, each for itself."""
    rounds = Rounds()
    rounds.plan = replace(rounds.plan, gates=(Gate(ApiCheck("podsKept"), GateScope.NODE, "pods"),))
    rounds.now(0, "n1")
    rounds.cluster.fails = [AwayError("not-reached", "Connection refused")]
    opened = rounds.gate.before(OpenWave(1, ("n2",)))
    assert opened is not None
    assert opened[0] is Verdict.PASS
    assert set(read_back(opened[2])[0]) == {"n1"}, "a new controller goes on with what was read before"


def test_before_a_wave_without_node_gates_at_the_api_server_its_answer_is_waited_for() -> None:
    rounds = Rounds()
    rounds.plan = replace(rounds.plan, gates=())
    rounds.now(0, "n1")
    rounds.cluster.fails = [AwayError("not-reached", "Connection refused")]
    opened = rounds.gate.before(OpenWave(1, ("n2",)))
    assert opened is not None
    assert opened[:2] == (Verdict.PASS, "1 changed node was Ready at each reading")
    rounds.cluster.fails = [RemoteError("forbidden", "no")]
    with pytest.raises(RemoteError, match="no"):
        rounds.gate.before(OpenWave(1, ("n2",)))


def test_a_new_controller_looks_at_nodes_that_no_baseline_has() -> None:
    """The one before died between the end of a wave and the beginning of the next one."""
    first = Rounds()
    first.now(0, "n1")
    opened = first.gate.before(OpenWave(1, ("n2",)))
    assert opened is not None
    changed = (("n1",), ("n2",), ("n3",))
    second = Rounds(n2="False")
    second.gate.remember(json_text.parse(json.dumps(opened[2])))
    said = "1 of 3 changed nodes was not always Ready: n2: Ready is False"
    assert second.gate.now(JudgeWave(2, "", ("n3",), changed=changed), None) == (Verdict.PASS, said)
    third = Rounds(n2="False")
    opened = third.gate.before(OpenWave(2, ("n3",), changed=changed))
    assert opened is not None
    assert set(read_back(opened[2])[1]) == {"n2"}


def test_it_needs_a_kubeconfig() -> None:
    assert SteadyQuery().lacks_back_end(Endpoints())
    assert not SteadyQuery().lacks_back_end(Endpoints("k"))
