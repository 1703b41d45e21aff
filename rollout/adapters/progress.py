"""Progress of a run: plain lines for people, NDJSON for programs. Only observes.

Prints one line for each wave, one for a halt, and one for the first node of each kind of failure. The summary at the
end has the rest.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TextIO

from rollout.core.presentation.event_documents import event_document
from rollout.core.presentation.summary import rehearsed, summarize
from rollout.core.presentation.summary_text import SummaryDocument, counts_text, summary_lines
from rollout.core.presentation.waiting import extended, waits_for
from rollout.core.run.events import Answered, Event, InterruptAsked, Resumed, Trigger
from rollout.core.run.state import Goal, NodeState, Phase, RunState
from rollout.core.text import documents
from rollout.core.text.terminal import counted, printable

_WRONG = frozenset({NodeState.FAILED, NodeState.REVERTED, NodeState.REFUSED, NodeState.UNREACHABLE})


class PlainProgress:
    """Prints lines on ``out`` while the run proceeds."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._wave_began = 0.0
        self._seen: set[tuple[str, str]] = set()
        self._slow: set[str] = set()
        self._rehearsed = False

    def on_event(self, event: Event, before: RunState, after: RunState) -> None:
        match event:
            case InterruptAsked():
                self._say("stopping: finishing nodes in flight first; interrupt again to stop at once")
            case Resumed():
                self._say(f"a new controller took over, token {after.counter}")
            case Answered(trigger=Trigger.DRAINING):
                self._extended(event.node, after)
            case Answered():
                self._node(event, before, after)
        self._rehearsal(after)
        if before.phase is not after.phase or before.wave != after.wave:
            self._phase(before, after)
        if (before.paused, before.closed) != (after.paused, after.closed) and after.halt is None:
            self._say(waits_for(after, after.now) if after.waits else "continues")

    def on_end(self, state: RunState) -> None:
        for line in summary_lines(summarize(state)):
            self._say(line)

    def _node(self, event: Answered, before: RunState, after: RunState) -> None:
        record = after.nodes[event.node]
        if record.state is before.nodes[event.node].state or record.state not in _WRONG:
            return
        if after.order.goal is Goal.REVERT and record.state is NodeState.REVERTED:
            return
        kind = (str(record.state), record.reference)
        if kind not in self._seen:
            self._seen.add(kind)
            why = printable(record.message, 200) or "reverted with the run"
            self._say(
                f"  {event.node} {record.state}: {why} [{record.reference}] (more of this kind are in the summary)"
            )

    def _extended(self, node: str, after: RunState) -> None:
        """Once for each node with pods that terminate more slowly than their time limit."""
        why = extended(after, node)
        if why and node not in self._slow:
            self._slow.add(node)
            self._say(f"  {node}: {printable(why, 400)}")

    def _rehearsal(self, after: RunState) -> None:
        """Once, when every node of the first wave was reverted."""
        if self._rehearsed or after.wave > 0 or not after.order.rehearsal:
            return
        found = rehearsed(after)
        if found is not None and found.done == found.nodes:
            self._rehearsed = True
            self._say(str(found))

    def _phase(self, before: RunState, after: RunState) -> None:
        order = after.order
        if before.phase is Phase.OPENING:
            self._wave_began = after.now
            self._say(
                f"claimed {counted(len(after.nodes), 'node')} of {order.cluster} as {order.run}, token {after.counter}"
            )
        if after.phase is Phase.SOAKING and before.phase is not Phase.SOAKING:
            wave = order.waves[after.wave]
            took = after.now - self._wave_began
            self._say(
                f"wave {wave.name} ({counted(len(wave.nodes), 'node')}): {self._counts(after, wave.nodes)} in {took:.0f} s; soaking {wave.soak:g} s"
            )
        if after.wave != before.wave and after.wave > 0:
            self._wave_began = after.now
            self._say(f"wave {order.waves[before.wave].name}: passed")
        if after.halt is not None and before.halt is None:
            self._say(f"halting: {printable(after.halt.message, 400)} [{after.halt.reference}]")
        if after.phase is Phase.HALTING and order.goal is Goal.REVERT:
            self._say(f"reverting {counted(len(after.nodes), 'node')}, {order.limits.pace:g} a second")
        if after.phase is Phase.CLOSING:
            self._say("cleaning up on every node")

    @staticmethod
    def _counts(state: RunState, names: tuple[str, ...]) -> str:
        counts: dict[str, int] = {}
        for name in names:
            counts[str(state.nodes[name].state)] = counts.get(str(state.nodes[name].state), 0) + 1
        return counts_text(counts)

    def _say(self, line: str) -> None:
        _print(line, self._out)


class JsonProgress:
    """One document per line: every journaled event, then the summary."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def on_event(self, event: Event, _before: RunState, after: RunState) -> None:
        self._say(event_document(event, after))

    def on_end(self, state: RunState) -> None:
        self._say(SummaryDocument(summarize(state)))

    def _say(self, document: object) -> None:
        _print(documents.line(document), self._out)


def _print(line: str, out: TextIO) -> None:
    """The reader may be gone: the run continues anyway, and the journal has everything."""
    with suppress(OSError, ValueError):
        print(line, file=out, flush=True)
