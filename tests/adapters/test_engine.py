"""The local engine: a change of a node does not wait for reads of other nodes."""

from __future__ import annotations

import threading

import pytest

from rollout.adapters.engine import ThreadEngine
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
