"""``watch-late``: asks the gates of a run again after its end, and rolls it back if its playbook says so."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial

import click

from rollout.app.chosen_run import chosen_run
from rollout.app.following import late_findings, late_of, replay
from rollout.app.node_gates import NodeGates
from rollout.app.ports import Journal
from rollout.app.revert import passed_lines, revert_by_journal, since_by_nodes
from rollout.app.rollbacks import rollback_order
from rollout.app.wave_gates import WaveGates
from rollout.cli.options import echo_lines, reason_option, session_options
from rollout.cli.proposals import say
from rollout.cli.registry import Kinds, registered
from rollout.cli.terminal import Terminal, run_documents
from rollout.composition.operators import operator
from rollout.composition.wiring import Session, new_run_id
from rollout.core.model.playbook import OnLateHarm
from rollout.core.model.verdict import Verdict
from rollout.core.plans.required_back_ends import needs_of
from rollout.core.presentation.notices import Notice
from rollout.core.presentation.summary_text import late_lines
from rollout.core.run.late_watch import LateStatus, late_passed
from rollout.core.text import documents, durations
from rollout.core.text.documents import Inline
from rollout.core.text.terminal import printable
from rollout.errors import StateError, UsageError
from rollout.features.late_watch.asking import LateRound, LateWatcher, watched_run, watching
from rollout.features.late_watch.words import late_harm, late_unknown

LEAST, MOST = 10.0, 3600.0
"""Seconds between two rounds."""

HARM, NOT_PASSED = 3, 4
"""Exit codes."""


@dataclass(frozen=True, slots=True)
class LateWatchDocument:
    """What the watch of a run knows after a round."""

    run: str
    cluster: str
    late: Inline[LateStatus]


def late_documents() -> Kinds:
    """What a watch prints, and the rollback that may follow."""
    return (LateWatchDocument, *run_documents())


@registered(
    "Ask the gates of a run again after its end.", prints=late_documents, needs_output=False, goes_on_when_repeated=True
)
@click.command("watch-late")
@click.argument("run", required=False, default="")
@click.option("--once", is_flag=True, help="Measure once and exit, for a timer.")
@click.option("--every", default="5m", metavar="TIME", help="The time between two rounds (default: 5m).")
@reason_option
@session_options
def watch_late(session: Session, run: str, once: bool, every: str) -> int:  # noqa: FBT001 - click's flag
    """Measure the gates of a run again after its end, until the time `watchFor` of its playbook is over.

    Without RUN: the newest run. As many failures in a row as `passes` of the playbook are late harm: people are told, and
    with `onLateHarm: rollback` the run is rolled back.

    Example: `rollout watch-late --once`
    """
    seconds = _seconds(every)
    journal = session.past()
    name = chosen_run(session, journal, run)
    with watching(journal, name), _watcher(session, journal, name) as watcher:
        if once:
            return _acted(session, journal, watcher, watcher.round())
        return watcher.rounds(seconds, partial(_acted, session, journal, watcher), _say_away)


def ask_once(session: Session, journal: Journal, run: str) -> bool:
    """One round, and what follows from it; whether the gates pass. A process that watches the run has asked them."""
    try:
        with watching(journal, run), _watcher(session, journal, run) as watcher:
            _acted(session, journal, watcher, watcher.round())
    except StateError as error:
        if error.reference != "watched-already":
            raise
    return late_passed(late_findings(journal, replay(journal, run)))


@contextmanager
def _watcher(session: Session, journal: Journal, run: str) -> Iterator[LateWatcher]:
    state, plan, watch = watched_run(journal, run)
    inventory = session.inventory_or_remembered(state.order.cluster)
    clock = session.clock
    with session.back_ends(inventory, needs_of(plan)) as backends:
        lasting = replace(plan, gates=tuple(gate for gate in plan.gates if not gate.asks.compares_readings))
        waves = WaveGates(run, lasting, session.local, clock, backends, operator())
        nodes = NodeGates(plan, clock, backends)
        yield LateWatcher(journal, clock, run, plan, watch, waves, nodes, session.zones, time.sleep, operator())


def _say_away(error: StateError) -> None:
    say(f"{error}; trying again", err=True)


def _acted(session: Session, journal: Journal, watcher: LateWatcher, found: LateRound) -> int:
    """Tell people what is new, roll back if it must be, and print what is known; the exit code."""
    state = replay(journal, watcher.run)
    rolls_back = watcher.watch.then is OnLateHarm.ROLLBACK
    code = 0 if found.verdict in (Verdict.PASS, None) else NOT_PASSED
    if found.harm:
        code = HARM
        _tell(session, journal, watcher, late_harm(state, found.harm, rolls_back=rolls_back))
        if rolls_back:
            code = _rolled_back(session, journal, watcher) or HARM
        else:
            watcher.end(f"late harm; people were told: {found.harm}")
    elif found.changed and found.verdict is Verdict.UNKNOWN:
        _tell(session, journal, watcher, late_unknown(state, found.evidence))
    _print(session, journal, watcher.run)
    return code


def _tell(session: Session, journal: Journal, watcher: LateWatcher, notice: Notice) -> None:
    with session.notices(journal) as senders:
        for sender in senders:
            sender.tell(notice, replay(journal, watcher.run))


def _rolled_back(session: Session, journal: Journal, watcher: LateWatcher) -> int:
    """By the ordinary way of a rollback, within the limits of the run; the exit code."""
    watcher.heartbeat()
    source = replay(journal, watcher.run)
    inventory = session.inventory_or_remembered(source.order.cluster)
    chosen, terminal, code = frozenset(inventory.nodes), Terminal(session), 0
    with closing(session.nodes()) as nodes:
        since = since_by_nodes(session, journal, source, inventory, nodes, chosen)
        order = rollback_order(source, new_run_id(), None, inventory, watcher.plan.limits, since, force=False)
        terminal.tell(passed_lines(session, inventory, watcher.plan))
        if order.nodes:
            found = revert_by_journal(session, journal, source, order, inventory, chosen, since, nodes)
            code = terminal.result(found)
    watcher.end(f"late harm; run {order.run} rolled it back and ended with exit code {code}")
    return code


def _print(session: Session, journal: Journal, run: str) -> None:
    state = replay(journal, run)
    late = late_of(journal, state)
    if late is None:
        return
    if session.output == "json":
        click.echo(documents.line(LateWatchDocument(run, state.order.cluster, late)))
        return
    echo_lines((f"run {run} on {state.order.cluster}", *late_lines(late, run, session.zones.wall_seconds())))


def _seconds(text: str) -> float:
    try:
        found = durations.parse(text)
    except durations.DurationError as error:
        raise UsageError("bad-duration", f"--every {printable(text, 60)!r}: {error}") from None
    if not LEAST <= found <= MOST:
        raise UsageError("bad-duration", f"--every is between {LEAST:g}s and 1h, not {printable(text, 60)!r}")
    return found
