"""Nodes through the workers of regions, with a scheduler in memory: what is lost, repeated, late or refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pytest

from rollout import __version__
from rollout.adapters.agent_program import agent_program
from rollout.app.ports import Target
from rollout.core.model.regions import RegionStanding, region_of_worker, region_of_zone
from rollout.core.model.report import RemoteAnswer, RemoteCommand
from rollout.core.run.events import AWAY
from rollout.errors import RemoteError
from rollout.features.regions.client import worker as remote
from rollout.features.regions.client.messages import (
    LOST,
    CallAnswer,
    Exchange,
    ExchangeReply,
    VerbCall,
    WorkerIdentity,
    decode_exchange,
    decode_identity,
    decode_names,
    decode_reply,
    encode_answer,
    encode_exchange,
    encode_identity,
    encode_reply,
)
from rollout.features.regions.client.nodes import RegionNodes
from rollout.features.regions.client.steady import steady
from rollout.features.regions.client.worker import RegionStation
from rollout.features.regions.client.workers import CallLostError, RegionWorkers, ServedZone, served_zones
from rollout.kubelet.agent import agent_call
from tests.app.agents import Agents

PROGRAM = agent_program()
STATUS = agent_call.status(PROGRAM, sudo=True, deadline=30.0)
CONFIRM = agent_call.confirm(PROGRAM, tx="t1", run="r1", counter=1, keep=3, sudo=True, deadline=30.0)
NODE = Target("n1", "10.0.0.1", "sre", 22, "eu-a", controller_ssh=True)


@dataclass
class Fabric:
    """A scheduler with workers in this process. ``lose``: workers with lost answers: their calls are carried out."""

    stations: dict[str, RegionStation] = field(default_factory=dict)  # by name
    identities: dict[str, WorkerIdentity] = field(default_factory=dict)  # by name, instead of the true one
    lose: set[str] = field(default_factory=set)
    is_away: bool = False
    calls: list[tuple[str, VerbCall]] = field(default_factory=list)
    travelled: list[bytes] = field(default_factory=list)

    def workers(self) -> Mapping[str, str]:
        return {} if self.is_away else {name: f"at-{name}" for name in self.stations}

    def call(self, function: Callable[..., bytes], worker: str, data: tuple[bytes, ...], seconds: float) -> bytes:
        name = worker.removeprefix("at-")
        if self.is_away:
            raise RemoteError("scheduler-away", "away")
        station = self.stations[name]
        if function is remote.identify:
            own = WorkerIdentity(
                station.process, __version__, decode_identity(remote.identify()).agent, station.clock()
            )
            return encode_identity(self.identities.get(name, own))
        if function is remote.release:
            station.release(decode_names(data[0]))
            return b""
        self.travelled.append(data[0])
        self.calls.extend((name, call) for call in decode_exchange(data[0]).calls)
        answer = station.exchange(data[0])
        if name in self.lose:
            raise CallLostError("CommClosedError")
        return answer

    def close(self) -> None: ...


@dataclass
class RegionFleet:
    """One fleet, seen by every worker and by this machine."""

    agents: Agents = field(default_factory=Agents)
    own: Agents = field(default_factory=Agents)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.fabric = Fabric({name: RegionStation(self.agents) for name in ("eu-1", "eu-2", "us-1")})
        self.nodes = RegionNodes(self.fabric, self.own, self.said.append)

    def carried(self) -> list[str]:
        """The workers of the calls so far."""
        return [name for name, _ in self.fabric.calls]


@pytest.fixture
def at() -> RegionFleet:
    return RegionFleet()


def test_a_nodes_zone_names_its_region() -> None:
    names = ("eu-1", "eu-west-2", "eu-1-12", "alone", "eu-west", "EU.west-3", "eu-²", "-1")
    found = [region_of_worker(name) for name in names]
    assert found == ["eu", "eu-west", "eu-1", "alone", "eu-west", "EU.west", "eu-²", "-1"]
    regions = {"eu", "eu-west", "us"}
    found = [region_of_zone(zone, regions) for zone in ("eu", "eu-west-1a", "eu-west", "eu-a", "europe", "", "us-1")]
    assert found == ["eu", "eu-west", "eu-west", "eu", "", "", "us"]


def test_what_travels_is_read_back_as_it_was() -> None:
    call = VerbCall("n", 12.5, NODE, "apply tx=1", b"file \xff\n", sudo=True, deadline=3.0, released=("n2",))
    exchange = Exchange("p", "c", 7, ("n0",), 12.5, (call, replace(call, nonce="m", released=())))
    assert decode_exchange(encode_exchange(exchange)) == exchange
    answer = RemoteAnswer(None, b"\xff\n", b"e", started=True, truncated=True, reference=LOST, message="m")
    answers = (CallAnswer("n", answer, 1.5), CallAnswer("m", replace(answer, status=3, stdout=b"text"), 0.0))
    assert decode_reply(encode_reply("p", 1.5, map(encode_answer, answers))) == ExchangeReply("p", 1.5, answers)
    assert decode_reply(encode_reply("p", 2.0, ())) == ExchangeReply("p", 2.0, ())


@pytest.mark.parametrize("data", [b"", b"[]", b'{"process": "p"}', b'{"process": "p", "answers": [1]}', b"\xff"])
def test_what_is_no_reply_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - its kinds have different texts
        decode_reply(data)


def test_every_verb_of_a_node_goes_to_one_worker_of_its_region(at: RegionFleet) -> None:
    names = [f"n{number}" for number in range(1, 33)]
    for name in (*names, *names):
        assert at.nodes.run(replace(NODE, name=name), STATUS).status == 0
    first, second = at.carried()[:32], at.carried()[32:]
    assert first == second
    assert set(first) == {"eu-1", "eu-2"}, "both workers of the region have nodes, and another region has none"
    assert all(PROGRAM[:200].encode() not in data for data in at.fabric.travelled), "no program travels"
    assert at.own.asked == []


def test_a_lost_call_is_lost_and_the_node_is_read_by_another_worker(at: RegionFleet) -> None:
    at.nodes.run(NODE, STATUS)
    (first,) = at.carried()
    at.fabric.lose.add(first)
    answer = at.nodes.run(NODE, CONFIRM)
    assert (answer.status, answer.started, answer.reference) == (None, True, LOST)
    assert at.nodes.run(NODE, STATUS).status == 0
    assert at.carried()[-1] in {"eu-1", "eu-2"} - {first}


def test_a_look_that_is_lost_with_its_worker_says_nothing_of_the_node(at: RegionFleet) -> None:
    """It changed nothing, so it is as if it had not been sent: an engine that is away charges no node."""
    at.nodes.run(NODE, STATUS)
    (first,) = at.carried()
    at.fabric.lose.add(first)
    answer = at.nodes.run(NODE, STATUS)
    assert (answer.status, answer.started, answer.reference) == (None, False, AWAY)
    assert first in answer.message
    assert at.nodes.run(NODE, STATUS).status == 0
    assert at.carried()[-1] != first


def test_a_region_without_a_worker_is_read_from_here_and_nothing_is_applied(at: RegionFleet) -> None:
    del at.fabric.stations["us-1"]
    node = replace(NODE, zone="us-b")
    assert at.nodes.run(node, STATUS).status == 0
    assert [name for name, _ in at.own.asked] == ["n1"]
    request = replace(STATUS.request, words="apply tx=t") if STATUS.request else None
    applied = at.nodes.run(node, replace(STATUS, request=request))
    assert (applied.started, applied.reference, len(at.own.asked)) == (False, AWAY, 1)
    assert len(at.said) == 1, "said once"


def test_a_region_without_a_worker_is_not_reached_unless_the_inventory_allows_it(at: RegionFleet) -> None:
    node = replace(NODE, zone="us-b", controller_ssh=False)
    at.nodes.run(node, STATUS)
    at.fabric.lose.add("us-1")
    assert at.nodes.run(node, CONFIRM).reference == LOST
    assert at.nodes.run(node, CONFIRM).reference == LOST, "the only worker of the region is tried again"
    del at.fabric.stations["us-1"]
    answer = at.nodes.run(node, STATUS)
    assert (answer.started, answer.reference, at.own.asked) == (False, AWAY, [])
    assert "`controllerSsh`" in answer.message


def test_a_zone_whose_own_region_lost_its_workers_is_not_handed_to_a_wider_region(at: RegionFleet) -> None:
    at.fabric.stations["eu-a-1"] = RegionStation(at.agents)
    at.nodes.run(NODE, STATUS)
    at.fabric.lose.add("eu-a-1")
    assert at.nodes.run(NODE, CONFIRM).reference == LOST
    del at.fabric.stations["eu-a-1"]
    assert at.nodes.run(replace(NODE, controller_ssh=False), STATUS).reference == AWAY
    assert set(at.carried()) == {"eu-a-1"}
    at.fabric.stations["eu-a-2"] = RegionStation(at.agents)
    at.nodes._workers.look_again()  # noqa: SLF001 - else the list of workers is a second old
    assert at.nodes.run(NODE, STATUS).status == 0


def test_a_zone_whose_own_region_has_a_worker_that_differs_is_not_served_by_a_wider_region(at: RegionFleet) -> None:
    at.fabric.stations["eu-a-1"] = RegionStation(at.agents)
    at.fabric.identities["eu-a-1"] = replace(decode_identity(remote.identify()), version="0.0.1")
    (served,) = served_zones(RegionWorkers(at.fabric).connected(), ["eu-a"])
    assert (served.region, served.workers) == ("eu-a", ())
    assert served.trouble.startswith("eu-a-1: it has rollout 0.0.1")
    assert at.nodes.run(replace(NODE, controller_ssh=False), STATUS).reference == AWAY


def test_a_scheduler_that_is_away_keeps_no_node_from_being_read(at: RegionFleet) -> None:
    at.nodes.run(NODE, STATUS)
    at.fabric.is_away = True
    assert at.nodes.run(NODE, STATUS).status == 0
    assert len(at.own.asked) == 1
    at.fabric.is_away = False
    assert at.nodes.run(NODE, STATUS).status == 0


def test_what_is_no_verb_of_the_agent_does_not_travel(at: RegionFleet) -> None:
    with pytest.raises(AssertionError):
        at.nodes.run(NODE, RemoteCommand("id", b"", 5.0))  # the agents in memory know only verbs
    assert at.carried() == []


STATUS_CALL = VerbCall("nonce", 0.0, NODE, "status", b"", sudo=True, deadline=30.0)


def exchanged(station: RegionStation, *calls: VerbCall, number: int = 1, received: tuple[str, ...] = ()) -> bytes:
    """What an exchange returns. It waits for an answer, and only if it brings a call."""
    seconds = 60.0 if calls else 0.0
    return station.exchange(encode_exchange(Exchange(station.process, "c", number, received, seconds, calls)))


def answers(data: bytes) -> dict[str, RemoteAnswer]:
    return {each.nonce: each.answer for each in decode_reply(data).answers}


def test_a_call_that_is_repeated_late_or_for_another_process_is_not_carried_out(at: RegionFleet) -> None:
    station = at.fabric.stations["eu-1"]
    call = replace(STATUS_CALL, expires=steady() + 60)
    first = exchanged(station, call)
    assert answers(first)["nonce"].status == 0
    assert answers(exchanged(station, call)) == answers(first), "a repeat of the exchange has the same answer"
    late = answers(exchanged(station, call, replace(call, nonce="late", expires=1.0), number=2, received=("nonce",)))
    assert {nonce: (answer.status, answer.started, answer.reference) for nonce, answer in late.items()} == {
        "late": (None, True, LOST)
    }
    other = Exchange("another", "c", 3, (), 60.0, (replace(call, nonce="restarted"),))
    assert decode_reply(station.exchange(encode_exchange(other))).answers == ()
    assert len(at.agents.asked) == 1


@pytest.mark.parametrize(
    ("words", "left", "is_carried"),
    [
        ("cleanup run=r counter=1", 15.0, True),
        ("cleanup run=r counter=1", 5.0, False),
        ("apply tx=t", 15.0, False),
        ("revert tx=t", 15.0, False),
    ],
)
def test_a_late_call_has_the_time_that_is_left_and_only_restarts_need_all_of_it(
    words: str, left: float, is_carried: bool
) -> None:
    """A busy machine loses no cleanup that its controller still waits for."""
    deadlines: list[float] = []

    class Recorded(Agents):
        def run(self, target: Target, command: RemoteCommand) -> RemoteAnswer:
            deadlines.append(command.deadline)
            return super().run(target, command)

    station = RegionStation(Recorded())
    call = replace(STATUS_CALL, expires=steady() + left, words=words, sudo=False)
    answer = answers(exchanged(station, call))["nonce"]
    assert (answer.reference != LOST) is is_carried
    assert all(10.0 < seconds <= left for seconds in deadlines)
    assert len(deadlines) == int(is_carried)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": "0.0.1"}, "it has rollout 0.0.1"),
        ({"agent": "0" * 64}, "it has another agent program (000000000000"),
        ({"trouble": "no ssh_config"}, "no ssh_config"),
    ],
)
def test_a_worker_that_differs_is_not_used_and_the_reason_is_named(
    at: RegionFleet, change: dict[str, object], said: str
) -> None:
    true = decode_identity(remote.identify())
    at.fabric.identities["us-1"] = replace(true, **change)  # type: ignore[arg-type]
    served = {each.zone: each for each in served_zones(RegionWorkers(at.fabric).connected(), ["eu-a", "us-a", "asia"])}
    assert served["eu-a"] == ServedZone("eu-a", "eu", ("eu-1", "eu-2"), "", "")
    assert said in served["us-a"].trouble
    assert served["asia"].trouble == "no worker is connected"


def test_released_nodes_travel_with_the_next_call(at: RegionFleet) -> None:
    at.nodes.run(NODE, STATUS)
    at.nodes.release(NODE)
    at.nodes.run(NODE, STATUS)
    assert at.fabric.calls[-1][1].released == ("n1",)
    assert "n1" in at.agents.released


def test_the_end_of_a_command_ends_its_connections_on_every_worker_of_the_region(at: RegionFleet) -> None:
    """Also those of a worker that lost a call of the node."""
    at.nodes.run(NODE, STATUS)
    (first,) = at.carried()
    at.fabric.lose.add(first)
    at.nodes.run(NODE, STATUS)
    at.nodes.run(NODE, STATUS)
    assert len(set(at.carried())) == 2
    at.nodes.close()
    assert at.agents.released == ["n1", "n1"]
    assert not any(station.targets for station in at.fabric.stations.values())


def test_the_connection_of_a_late_call_ends(at: RegionFleet) -> None:
    """The controller has given up the call, and reads the node through another worker."""
    station = at.fabric.stations["eu-1"]
    exchanged(station, replace(STATUS_CALL, expires=steady() + 60))
    exchanged(station, replace(STATUS_CALL, nonce="late", expires=1.0), number=2, received=("nonce",))
    assert (at.agents.released, len(at.agents.asked)) == (["n1"], 1)


def test_the_regions_have_their_workers_calls_connections_and_round_trips(at: RegionFleet) -> None:
    assert at.nodes.regions() == ()
    for name in ("n1", "n2"):
        at.nodes.run(replace(NODE, name=name), STATUS)
    eu, us = at.nodes.regions()
    assert (eu.region, eu.workers, eu.calls, eu.nodes) == ("eu", ("eu-1", "eu-2"), 0, 2)
    assert eu.round_trip_seconds is not None
    assert us == RegionStanding("us", ("us-1",), 0, 0)
    at.fabric.is_away = True
    at.nodes.run(NODE, STATUS)
