"""``rollout check --kubelet-config``: how a kubelet would read files, without any cluster."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

import click

from rollout.app.check_kubelet import KubeletVerdict
from rollout.cli.proposals import say
from rollout.core.text import documents
from rollout.core.text.terminal import counted, printable
from rollout.errors import InputError
from rollout.kubelet.configuration.outcome import Message, MessageLevel

_LONGEST_LINE = 1000


def tell(found: Iterable[KubeletVerdict], output: str) -> int:
    """Print each verdict as it comes. Returns the exit code."""
    told = wrong = 0
    for answer in found:
        told += 1
        wrong += not answer.is_right
        if output == "json":
            click.echo(documents.line(_document(answer)))
        else:
            say("\n".join(_lines(answer)))
    if output == "text" and told > 1:
        say(f"{counted(told, 'file')}, {wrong:,} with mistakes" if wrong else f"{counted(told, 'file')}, no mistakes")
    return InputError.exit_code if wrong else 0


_PROGRAM = re.compile(r"\s*(?:\S*/)?kubelet(?=\s|$)")
_VARIABLE = re.compile(r"\s*[A-Z][A-Z0-9_]*=(?P<quote>[\"']?)(?P<flags>.*)(?P=quote)\s*", re.DOTALL)
_CONTINUED = re.compile(r"\\\r?\n")


def flags_of(typed: str) -> str:
    """The flags in a line as units, environment files and ``ps`` have it: with the program, a variable, or line ends."""
    line = _CONTINUED.sub(" ", typed)
    assigned = _VARIABLE.fullmatch(line)
    return (
        _PROGRAM.sub("", assigned["flags"] if assigned else line, count=1) if assigned or _PROGRAM.match(line) else line
    )


class Start(StrEnum):
    """What the kubelet would do with the file."""

    STARTS = "starts"
    FAILS = "fails"


class VerdictLevel(StrEnum):
    """See ``MessageLevel``; ``error``: the file could not be read."""

    FATAL = "fatal"
    WARNING = "warning"
    POLICY = "policy"
    NOTE = "note"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class MessagePart:
    """``line`` and ``column`` are ``None`` where they are not known. ``hint``: the setting, or what to write instead."""

    level: VerdictLevel
    reference: str
    text: str
    file: str
    line: int | None
    column: int | None
    hint: str | None


@dataclass(frozen=True, slots=True)
class KubeletCheckDocument:
    """How a kubelet would read one file. ``verdict`` ``None``: the file could not be read. ``ignored``: paths in it."""

    file: str
    verdict: Start | None
    ignored: tuple[str, ...]
    effective: Mapping[str, object]
    messages: tuple[MessagePart, ...]


def _document(answer: KubeletVerdict) -> KubeletCheckDocument:
    outcome = answer.outcome
    if outcome is None:
        return KubeletCheckDocument(answer.file, None, (), {}, tuple(_unread(answer)))
    return KubeletCheckDocument(
        file=answer.file,
        verdict=Start.STARTS if outcome.starts else Start.FAILS,
        ignored=outcome.ignored,
        effective=outcome.effective,
        messages=tuple(_message(message, answer.file) for message in outcome.messages),
    )


def _unread(answer: KubeletVerdict) -> Iterator[MessagePart]:
    """No verdict is invented for what could not be read."""
    if problem := answer.unread:
        yield MessagePart(VerdictLevel.ERROR, problem.reference, problem.message, answer.file, None, None, None)


def _message(message: Message, file: str) -> MessagePart:
    place = message.place
    return MessagePart(
        level=VerdictLevel(message.level.value),
        reference=message.reference,
        text=message.text,
        file=place.file if place else file,
        line=place.line if place else None,
        column=place.column if place else None,
        hint=message.hint or None,
    )


_SAID = {
    MessageLevel.FATAL: "fatal",
    MessageLevel.WARNING: "warning",
    MessageLevel.POLICY: "mistake",
    MessageLevel.NOTE: "note",
}


def _lines(answer: KubeletVerdict) -> Iterator[str]:
    outcome = answer.outcome
    if outcome is None:
        yield printable(str(answer.unread), _LONGEST_LINE)
        return
    yield f"{printable(answer.file, _LONGEST_LINE)}: {'starts' if outcome.starts else 'does not start'}"
    for message in sorted(outcome.messages, key=lambda message: message.level is MessageLevel.NOTE):
        where = f"{message.place}: " if message.place else ""
        said = f"  {_SAID[message.level]}: {where}{message.text} [{message.reference}]"
        yield "  " + printable(said, _LONGEST_LINE)
        if message.hint:
            yield "    " + printable(message.hint, _LONGEST_LINE)
