"""The local engine: a change of a node does not wait for reads of other nodes."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from rollout.adapters.engine import GATHER, MANY, ThreadEngine
from rollout.core.run.commands import Ask, Command
from rollout.core.run.events import Answered, Event, Trigger
from rollout.core.run.state import Verb


def ask(verb: Verb) -> Ask:
    return Ask("n1", verb, 1, "r1-1", 1)


@pytest.mark.parametrize("verb", [Verb.APPLY, Verb.CONFIRM, Verb.REVERT])
def test_a_change_starts_although_every_read_hangs(verb: Verb) -> None:
    hang = threading.Event()

    def worker(command: Command) -> Event:
        assert isinstance(command, Ask)
        if command.verb is Verb.MEASURE:
            hang.wait()
        return Answered(0.0, command.node, command.serial, command.verb, Trigger.ARMED)

    engine = ThreadEngine(2)
    try:
        for _ in range(8):
            engine.submit(worker, ask(Verb.MEASURE))
        engine.submit(worker, ask(verb))
        (answer,) = engine.collect(120.0)
        assert isinstance(answer, Answered)
        assert answer.verb is verb
    finally:
        hang.set()
        engine.close()


def test_an_exception_of_a_worker_is_raised_by_collect() -> None:
    def worker(command: Command) -> Event:
        raise LookupError(str(command))

    engine = ThreadEngine(1)
    engine.submit(worker, ask(Verb.READ))
    with pytest.raises(LookupError):
        engine.collect(120.0)
    engine.close()


def test_answers_are_gathered_while_many_commands_are_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch is written durably and decided on: one answer at a time, that would cost more than the nodes do."""
    gathered: list[float] = []
    monkeypatch.setattr("rollout.adapters.engine.time.sleep", gathered.append)
    hang = threading.Event()

    def worker(command: Command) -> Event:
        assert isinstance(command, Ask)
        if command.serial > 1:
            hang.wait()
        return Answered(0.0, command.node, command.serial, command.verb, Trigger.ARMED)

    engine = ThreadEngine(MANY + 1)
    try:
        for at in range(MANY + 1):
            engine.submit(worker, replace(ask(Verb.READ), serial=1 + at))
        assert len(engine.collect(120.0)) == 1
        assert gathered == [GATHER]
        engine.submit(worker, ask(Verb.CONFIRM))
        engine.collect(120.0)
        hang.set()
        left = MANY
        while left:
            left -= len(engine.collect(120.0))
    finally:
        hang.set()
        engine.close()
    assert gathered == [GATHER, GATHER], "a few are not waited for"
