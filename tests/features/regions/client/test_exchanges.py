"""Calls and answers that travel together, with a worker in memory: a slow call, an answer that is lost, a worker that ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from rollout.app.ports import Target
from rollout.core.model.report import RemoteAnswer, RemoteCommand
from rollout.errors import RemoteError
from rollout.features.regions.client import mailbox
from rollout.features.regions.client.exchanges import LONGEST_PAUSE, WorkerExchanges
from rollout.features.regions.client.mailbox import Mailbox
from rollout.features.regions.client.messages import CallAnswer, VerbCall, decode_exchange, encode_reply
from rollout.features.regions.client.steady import steady
from rollout.features.regions.client.worker import RegionStation
from rollout.features.regions.client.workers import CallLostError, RegionWorker
from tests.app.agents import Agents

PATIENCE = 60.0


class Held(Agents):
    """Agents in memory. The nodes in ``held`` answer when their event is set."""

    def __init__(self, *held: str) -> None:
        super().__init__()
        self.held = {name: threading.Event() for name in held}

    def run(self, target: Target, command: RemoteCommand) -> RemoteAnswer:
        answer = super().run(target, command)
        if target.name in self.held:
            assert self.held[target.name].wait(PATIENCE)
        return answer


@dataclass
class Link:
    """A scheduler with one worker. ``strike`` gets each reply, and can raise or exchange it."""

    station: RegionStation
    strike: Callable[[bytes], bytes] = field(default=lambda reply: reply)
    exchanges: list[Sequence[str]] = field(default_factory=list)  # the nonces of each
    is_away: bool = False
    in_progress: int = 1

    def __post_init__(self) -> None:
        worker = RegionWorker("eu-1", "at-eu-1", self.station.process, "")
        self.to_worker = WorkerExchanges(self, worker, lambda: self.in_progress)

    def workers(self) -> dict[str, str]:
        return {"eu-1": "at-eu-1"}

    def call(self, function: object, worker: str, data: tuple[bytes, ...], seconds: float) -> bytes:
        if self.is_away:
            raise RemoteError("scheduler-away", "away")
        self.exchanges.append([call.nonce for call in decode_exchange(data[0]).calls])
        return self.strike(self.station.exchange(data[0]))

    def close(self) -> None: ...

    def answer(self, node: str, seconds: float = PATIENCE) -> CallAnswer:
        target = Target(node, "10.0.0.1", "sre", 22, "eu")
        return self.to_worker.answer(
            VerbCall(node, steady() + seconds, target, "status", b"", sudo=True, deadline=30.0)
        )


def test_a_lone_call_is_one_exchange() -> None:
    link = Link(RegionStation(Held()))
    assert [link.answer(name).answer.status for name in ("n1", "n2")] == [0, 0]
    assert link.exchanges == [["n1"], ["n2"]]


def test_a_node_that_does_not_answer_holds_up_no_other() -> None:
    nodes = Held("slow")
    link = Link(RegionStation(nodes))
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(link.answer, "slow")
        for number in range(20):
            assert link.answer(f"n{number}").answer.status == 0
        assert not slow.done()
        nodes.held["slow"].set()
        assert slow.result(PATIENCE).answer.status == 0
    assert len(nodes.asked) == 21


def test_calls_of_many_nodes_travel_together() -> None:
    names = [f"n{number}" for number in range(200)]
    link = Link(RegionStation(Held()), in_progress=len(names))
    with ThreadPoolExecutor(len(names)) as pool:
        assert {each.answer.status for each in pool.map(link.answer, names)} == {0}
    assert sorted(nonce for nonces in link.exchanges for nonce in nonces) == sorted(names)
    assert len(link.exchanges) < len(names)


@pytest.mark.parametrize(("in_progress", "pause"), [(1, 0.0), (11, 0.01), (1_000, LONGEST_PAUSE)])
def test_the_pause_between_exchanges_grows_with_the_calls_to_all_workers(in_progress: int, pause: float) -> None:
    link = Link(RegionStation(Held()), in_progress=in_progress)
    began = time.monotonic()
    for name in ("n1", "n2"):
        link.answer(name)
    assert time.monotonic() - began >= pause


def test_an_answer_that_is_lost_on_the_way_is_asked_for_again_and_nothing_is_carried_out_twice() -> None:
    nodes = Held("slow")
    link = Link(RegionStation(nodes))
    lost: Future[bytes] = Future()

    def lose(reply: bytes) -> bytes:
        link.strike = lambda later: later
        lost.set_result(reply)
        return encode_reply(link.station.process, 0.0, ())

    link.strike = lose
    assert link.answer("n1").answer.status == 0
    assert b"n1" in lost.result(PATIENCE)
    assert link.exchanges == [["n1"], []]
    assert len(nodes.asked) == 1


@pytest.mark.parametrize(
    ("reply", "said"),
    [(b"no reply", "cannot be read"), (encode_reply("another", 0.0, ()), "started again since the call was made")],
)
def test_a_reply_of_another_process_or_of_something_else_makes_all_calls_in_progress_lost(
    reply: bytes, said: str
) -> None:
    nodes = Held("slow")
    link = Link(RegionStation(nodes), strike=lambda _: reply)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(link.answer, "slow")
        with pytest.raises(CallLostError, match=said):
            link.answer("n1")
        with pytest.raises(CallLostError, match=said):
            slow.result(PATIENCE)
        nodes.held["slow"].set()


def test_an_exchange_that_fails_makes_its_calls_lost_and_the_next_call_is_carried_out() -> None:
    link = Link(RegionStation(Held()))

    def fail(_: bytes) -> bytes:
        raise CallLostError("CommClosedError")

    link.strike = fail
    with pytest.raises(CallLostError, match="CommClosedError"):
        link.answer("n1")
    link.strike = lambda reply: reply
    assert link.answer("n2").answer.status == 0


def test_a_call_that_was_not_submitted_is_not_lost() -> None:
    link = Link(RegionStation(Held()))
    link.is_away = True
    with pytest.raises(RemoteError):
        link.answer("n1")
    link.is_away = False
    assert link.answer("n2").answer.status == 0
    assert link.exchanges == [["n2"]]


def test_a_call_is_lost_at_its_deadline_and_its_late_answer_is_dropped() -> None:
    nodes = Held("slow")
    link = Link(RegionStation(nodes))
    with pytest.raises(CallLostError, match="no answer in time"):
        link.answer("slow", 0.0)
    assert link.answer("n1").answer.status == 0
    nodes.held["slow"].set()


def test_the_answers_of_an_exchange_are_bounded_and_the_others_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailbox, "MOST_BYTES", 10)
    box = Mailbox()
    for nonce, answer in (("a", b"x" * 20), ("b", b"y" * 4), ("c", b"z" * 4)):
        box.put(nonce, answer)
    assert box.take(1, (), PATIENCE) == [b"x" * 20], "one answer, however large"
    assert box.take(2, ("a",), PATIENCE) == [b"y" * 4, b"z" * 4]
    assert box.take(3, ("b", "c"), 0.0) == []


def test_a_newer_exchange_ends_the_wait_of_an_older_one() -> None:
    box = Mailbox()
    with ThreadPoolExecutor(1) as pool:
        older = pool.submit(box.take, 1, (), PATIENCE)
        newer = box.take(2, (), 0.0)
        assert (list(older.result(PATIENCE)), list(newer)) == ([], [])
    box.put("a", b"answer")
    assert box.take(1, (), 0.0) == (), "an exchange that arrives after a newer one gets nothing"
    assert box.take(2, (), 0.0) == [b"answer"]
