"""A run as a list of sentences in the order of events: its story without the log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from rollout.core.model.plan import Wave
from rollout.core.presentation.pages.story import Story, Wrong
from rollout.core.presentation.summary import WITH_OTHERS, rehearsed
from rollout.core.presentation.summary_text import counts_text
from rollout.core.run.state import Goal, NodeState, Phase
from rollout.core.text.message_folding import for_all, nameless
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable, seconds_text

MOST_KINDS = 40
"""At most this many kinds of failure get a sentence each."""


class MomentKind(StrEnum):
    GOOD = "good"
    BAD = "bad"
    HALT = "halt"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class StoryMoment:
    """``at`` is seconds since the run began."""

    at: float
    kind: MomentKind
    text: str


@dataclass(frozen=True, slots=True)
class Fallen:
    """Nodes with the same state, reference and message; ``first`` and ``last`` in the story's time."""

    state: NodeState
    reference: str
    message: str
    nodes: tuple[str, ...]
    first: float
    last: float


def fallen(story: Story) -> tuple[Fallen, ...]:
    """Nodes that failed, folded by message under one controller, in the order of the first.

    A node counts once for each kind of failure.
    """
    together: dict[tuple[int, NodeState, str, str], list[Wrong]] = {}
    for wrong in story.wrongs:
        message = nameless(wrong.message, wrong.node)
        together.setdefault((wrong.controller, wrong.state, wrong.reference, message), []).append(wrong)
    return tuple(
        Fallen(state, reference, for_all(message, names), names, found[0].at, found[-1].at)
        for (_, state, reference, message), found in together.items()
        for names in (tuple(dict.fromkeys(wrong.node for wrong in found)),)
    )


def moments(story: Story) -> tuple[StoryMoment, ...]:
    """Everything worth a sentence, in order."""
    all_moments = [*_falls(story), *_words(story), *_waves(story), *_phases(story)]
    ranked = sorted(enumerate(all_moments), key=lambda pair: (pair[1].at, pair[1].kind == MomentKind.HALT, pair[0]))
    return tuple(moment for _, moment in ranked)


def _phases(story: Story) -> Iterator[StoryMoment]:
    order, state = story.past.order, story.state
    yield StoryMoment(
        0.0,
        MomentKind.PLAIN,
        f"began: {counted(len(order.nodes), 'node')} to be claimed with token {story.past.counter}",
    )
    closings = [span for span in story.spans if span.kind == Phase.CLOSING]
    for span, names in zip(closings, story.not_left, strict=True):
        yield StoryMoment(
            span.began - story.began,
            MomentKind.BAD if names else MomentKind.PLAIN,
            _left_as_found(len(order.nodes), names),
        )
    for at, halt in story.halts:
        what = "halted" if state.order.goal is Goal.APPLY else "stopped"
        yield StoryMoment(at - story.began, MomentKind.HALT, f"{what}: {halt.message} [{halt.reference}]")
    if state.phase is Phase.ENDED:
        counts: dict[str, int] = {}
        for record in state.nodes.values():
            counts[str(record.state)] = counts.get(str(record.state), 0) + 1
        kind = MomentKind.GOOD if state.ending == "done" else MomentKind.PLAIN
        yield StoryMoment(story.ended - story.began, kind, f"ended: {counts_text(counts)}")


def _left_as_found(nodes: int, not_left: tuple[str, ...]) -> str:
    if not not_left:
        return "every node cleaned up"
    names = printable(fold(not_left), 120)
    return f"{nodes - len(not_left)} of {counted(nodes, 'node')} cleaned up; not cleaned up, or not known: {names}"


def _falls(story: Story) -> Iterator[StoryMoment]:
    for found in fallen(story)[:MOST_KINDS]:
        names = printable(fold(found.nodes), 120)
        why = found.message or ("with the run" if found.state is NodeState.REVERTED else "no message")
        reference = f" [{found.reference}]" if found.reference else ""
        lasted = f", the last {seconds_text(found.last - found.first)} later" if found.last - found.first >= 1 else ""
        number = f"{counted(len(found.nodes), 'node')} " if len(found.nodes) > 1 else ""
        kind = MomentKind.PLAIN if found.reference == WITH_OTHERS else MomentKind.BAD
        yield StoryMoment(found.first - story.began, kind, f"{number}{found.state}: {names}: {why}{reference}{lasted}")


def _words(story: Story) -> Iterator[StoryMoment]:
    for word in story.said:
        yield StoryMoment(word.at - story.began, MomentKind.PLAIN, word.text)


def _waves(story: Story) -> Iterator[StoryMoment]:
    for index, wave in enumerate(story.past.order.waves):
        yield from _wave(story, index, wave)


def _wave(story: Story, index: int, wave: Wave) -> Iterator[StoryMoment]:
    spans = [span for span in story.spans if span.wave == index]
    release = [span for span in spans if span.kind == Phase.RUNNING]
    if not release or story.past.order.goal is Goal.REVERT:
        return
    began, name = release[0].began - story.began, printable(wave.name, 60)
    yield StoryMoment(began, MomentKind.PLAIN, f"wave {name} begins: {counted(len(wave.nodes), 'node')}")
    soak = [span for span in spans if span.kind == Phase.SOAKING]
    if soak:
        took = seconds_text(soak[0].began - release[0].began)
        learnt = rehearsed(story.state) if index == 0 else None
        rehearsal = f"; {learnt}" if learnt else ""
        yield StoryMoment(
            soak[0].began - story.began, MomentKind.PLAIN, f"wave {name} applied in {took}, soaking{rehearsal}"
        )
    held = [span for span in spans if span.kind == "held"]
    if held:
        took = seconds_text(held[-1].ended - held[0].began)
        yield StoryMoment(held[0].began - story.began, MomentKind.PLAIN, f"held after wave {name} for {took}")
    if index < story.state.wave and spans:
        yield StoryMoment(spans[-1].ended - story.began, MomentKind.GOOD, f"wave {name} passed")
