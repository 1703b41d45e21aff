"""Journals of runs in every state that an operator meets, each served by itself, for pictures of their pages."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from rollout.adapters.journal import SqlJournal
from rollout.app.ports import RunHeader
from rollout.app.rollbacks import rollback_order
from rollout.core.model.plan import Plan
from rollout.core.model.report import LastLog
from rollout.core.presentation.summary import run_summary
from rollout.core.run.commands import Ask
from rollout.core.run.events import Answered, PauseAsked, Trigger
from rollout.core.run.journal_codec import encode_event, encode_order
from rollout.core.run.state import Order, Phase
from tests.core.presentation import journals
from tests.core.presentation.journals import BUDGETS, Told
from tests.features.serve.serving import keep
from tests.kubelet.nodes import inventory
from tests.plays import Drive, leave_confirmed

RUN = "r20261120-160000-ab12"
BACK = "r20261120-170000-cd34"
LOG = LastLog(
    "code=exited, status=1/FAILURE",
    (
        "kubelet[7711]: I1120 16:12:08.114 7711 server.go:415] Version: v1.20.15",
        'kubelet[7711]: E1120 16:12:08.201 7711 server.go:294] "failed to parse kubelet flag" err="unknown flag: --image-pull-progress-deadline"',
    ),
)


class Logged(Told):
    """Its failed kubelets send their last log lines."""

    def said(self, ask: Ask, event: Answered) -> Answered:
        told = super().said(ask, event)
        return replace(told, log=LOG) if told.trigger is Trigger.REVERTED_UNHEALTHY else told


def _played(count: int, **changes: object) -> tuple[Plan, Logged]:
    plan = journals.plan_of(count)
    return plan, Logged(replace(journals.play_of(plan).order, **changes))  # type: ignore[arg-type]


def halted(folder: Path, count: int = 2000) -> None:
    plan, play = _played(count)
    play.sicken(*(node.name for node in plan.nodes.values() if node.rack == "rack04" and node.wave > 2))
    play.cut_off(next(name for name in reversed(plan.waves[3].nodes) if plan.nodes[name].rack == "rack02"))
    play.run()
    keep(folder, RUN, plan, play).close()


def running(folder: Path, count: int = 2000) -> SqlJournal:
    plan, play = _played(count)
    play.sicken(plan.waves[2].nodes[0])
    play.run(
        until=lambda state: state.wave == 4 and sum(r.state == "confirmed" for r in state.nodes.values()) > count / 2
    )
    return keep(folder, RUN, plan, play, len(play.journal))


def without_controller(folder: Path, count: int = 2000) -> None:
    journal = running(folder, count)
    journal.release("rno", RUN)
    journal.close()


def held(folder: Path, count: int = 240) -> SqlJournal:
    plan, play = _played(count)
    waves = (replace(plan.waves[0], hold=True), *plan.waves[1:])
    play = Logged(replace(play.order, waves=waves))
    play.run(until=lambda state: state.paused is not None)
    return keep(folder, RUN, replace(plan, waves=waves), play, len(play.journal))


def paused(folder: Path, count: int = 240) -> SqlJournal:
    plan, play = _played(count)
    play.run(until=lambda state: state.wave == 2)
    play.feed(PauseAsked(play.now, "ann@ops", "the network team asks", 1))
    return keep(folder, RUN, plan, play, len(play.journal))


def done(folder: Path, count: int = 240) -> None:
    keep(folder, RUN, *journals.done(count)).close()


def not_everywhere(folder: Path, count: int = 240) -> None:
    """One node fails, which no budget forbids."""
    plan, play = _played(count, budgets=(BUDGETS[0],))
    play.sicken(plan.waves[-1].nodes[0])
    play.run()
    keep(folder, RUN, plan, play).close()


def rolled_back(folder: Path, count: int = 240) -> None:
    """The run, and the rollback of all of it."""
    plan, play = journals.done(count)
    journal = keep(folder, RUN, plan, play)
    order = rollback_order(play.state, BACK, None, inventory(count), plan.limits, force=False)
    back = _rollback(order)
    journal.acquire(plan.cluster, BACK)
    header = RunHeader(
        BACK, plan.cluster, "revert", encode_order(order), 2, b"", back.began, "bob@ops", "pulls are slower"
    )
    journal.begin(header)
    journal.append(BACK, [encode_event(event) for event in back.journal], run_summary(back.state))
    journal.release(plan.cluster, BACK)
    journal.close()


def _rollback(order: Order) -> Drive:
    play = Told(order)
    leave_confirmed(play, order.nodes)
    play.run()
    assert play.state.phase is Phase.ENDED
    return play


STATES: dict[str, Callable[[Path], SqlJournal | None]] = {
    "halted": halted,
    "running": running,
    "no-controller": without_controller,
    "held": held,
    "paused": paused,
    "done": done,
    "not-everywhere": not_everywhere,
    "rolled-back": rolled_back,
}


def kept(folder: Path, name: str) -> SqlJournal | None:
    """The journal of a run in this state; of one at work it is open, because its lease ends with it."""
    with suppress(FileExistsError):
        folder.mkdir(parents=True)
    return STATES[name](folder)
