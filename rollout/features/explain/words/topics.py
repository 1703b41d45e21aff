"""What ``rollout explain`` knows: settings, known defects and references, each with what a search finds it by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from rollout.kubelet.defects.rows import Defect
from rollout.kubelet.explained.explanation import every_name, intent_words, words_of
from rollout.kubelet.explained.references import ReferenceDocument, references


class TopicKind(StrEnum):
    SETTING = "setting"
    DEFECT = "known defect"
    REFERENCE = "reference"


@dataclass(frozen=True, slots=True)
class Topic:
    """A name that ``rollout explain`` takes. ``line``: what it is; ``""``: the name says it."""

    name: str
    kind: TopicKind
    line: str


@dataclass(frozen=True, slots=True)
class TopicsDocument:
    """The names that ``rollout explain`` takes, or those that a search found."""

    topics: tuple[Topic, ...]


def all_topics(defects: Iterable[Defect]) -> Iterator[tuple[Topic, str]]:
    """Each with its whole text."""
    intents = intent_words()
    for name in every_name():
        words = intents[name].words if name in intents else words_of(name)
        yield Topic(name, TopicKind.SETTING, words.what), " ".join((words.what, *words.traps))
    for row in defects:
        yield Topic(row.id, TopicKind.DEFECT, row.effect), " ".join((row.component, row.effect, row.remedy))
    for entry in references().values():
        yield Topic(entry.reference, TopicKind.REFERENCE, entry.cause), f"{entry.cause} {entry.remedy}"


def topics_with(word: str, defects: Iterable[Defect]) -> tuple[Topic, ...]:
    """Those with ``word`` in their name or text, in any case; first those with it in their name. ``""``: all."""
    wanted = word.casefold()
    named, told = list[Topic](), list[Topic]()
    for topic, text in all_topics(defects):
        if wanted in topic.name.casefold():
            named.append(topic)
        elif wanted in text.casefold():
            told.append(topic)
    order = tuple(TopicKind)
    return tuple(sorted((*named, *told), key=lambda topic: order.index(topic.kind)))


def topic_lines(topics: Iterable[Topic]) -> Iterator[str]:
    """For people: by kind."""
    for kind, found in groupby(topics, key=lambda topic: topic.kind):
        each = tuple(found)
        yield f"{kind.value}s ({len(each)}):"
        yield from (f"  {topic.name}{f': {topic.line}' if topic.line else ''}" for topic in each)


def reference_lines(reference: str, entry: ReferenceDocument) -> tuple[str, ...]:
    """What ``rollout explain`` prints."""
    return f"[{reference}]  {entry.subject}", f"  cause: {entry.cause}", f"  remedy: {entry.remedy}"


def row_lines(row: Defect) -> Iterator[str]:
    """What ``rollout explain ID`` prints."""
    yield f"{row.id}  a known defect of {row.component} {row.span}"
    yield f"  effect: {row.effect}"
    if row.trigger:
        yield f"  applies: {row.trigger}"
    if row.stops is not None:
        yield f"  stops: {row.stops.value}; a change that triggers it is refused unless the playbook contains `accept: [{row.id}]`"
    if row.remedy:
        yield f"  remedy: {row.remedy}"
    yield f"  source: {row.source}{f', read {row.seen}' if row.seen else ''}"
