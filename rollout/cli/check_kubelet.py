"""``rollout check --kubelet-config``: how a kubelet would read files, without any cluster."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

import click

from rollout.adapters.kubelet_files import configuration_file, drop_ins
from rollout.cli.proposals import say
from rollout.core.text import documents
from rollout.core.text.terminal import counted, printable
from rollout.errors import InputError, Problem, UsageError
from rollout.kubelet import versions
from rollout.kubelet.configuration.drop_ins import ENVIRONMENT
from rollout.kubelet.configuration.outcome import File, KubeletOutcome, Message, MessageLevel, Sources
from rollout.kubelet.configuration.startup import is_known, outcome
from rollout.kubelet.node import arguments

_LONGEST_LINE = 1000


@dataclass(frozen=True, slots=True)
class AssumedKubelet:
    """The kubelet that every file is checked for, and its other sources.

    ``environment``: the one variable that a kubelet of 1.28 or 1.29 reads, if it is set here.
    """

    version: versions.Version
    drop_ins: tuple[File, ...] | None
    flags: tuple[str, ...]
    environment: Mapping[str, str]

    def sources(self, file: File) -> Sources:
        """All sources that this kubelet would start with."""
        return Sources(config=file, drop_ins=self.drop_ins, flags=self.flags, environment=self.environment)


@dataclass(frozen=True, slots=True)
class KubeletVerdict:
    """``outcome`` ``None``: the file could not be read, so there is no verdict; ``unread`` says why."""

    file: str
    outcome: KubeletOutcome | None
    unread: Problem | None = None

    @property
    def is_right(self) -> bool:
        """The kubelet starts, and the file has no mistake of a kind that kubelets accept."""
        found = self.outcome
        return (
            found is not None
            and found.starts
            and not any(message.level is MessageLevel.POLICY for message in found.messages)
        )


def asked(kubelet: str, config_dir: str, flags: str) -> AssumedKubelet:
    """The kubelet that the options describe. ``UsageError`` for an unknown version and for quotes that do not close."""
    if not kubelet:
        raise UsageError("no-kubelet", "--kubelet is missing: give the version of the kubelet", hint="--kubelet 1.31")
    version = versions.parse(kubelet)
    if version is None:
        raise UsageError(
            "bad-kubelet", f"{printable(kubelet)} is not a kubelet version", hint="such as 1.31 or v1.31.4"
        )
    if not is_known(version.minor):
        raise UsageError("unknown-kubelet", f"kubelets {version.short} are not known to this rollout")
    try:
        words = tuple(word.text for word in arguments.split(flags))
    except ValueError as error:
        raise UsageError("bad-flags", f"--flags: {error}") from None
    environment = {ENVIRONMENT: os.environ[ENVIRONMENT]} if ENVIRONMENT in os.environ else {}
    return AssumedKubelet(version, drop_ins(config_dir) if config_dir else None, words, environment)


def answers(paths: Iterable[str], asked_of: AssumedKubelet) -> Iterator[KubeletVerdict]:
    """One verdict per file, in the given order."""
    for path in paths:
        try:
            file = configuration_file(path)
        except InputError as error:
            yield KubeletVerdict(path, None, error.problems[0])
            continue
        yield KubeletVerdict(path, outcome(asked_of.version, asked_of.sources(file)))


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


class Start(StrEnum):
    """What the kubelet would do with the file."""

    STARTS = "starts"
    FAILS = "fails"


class VerdictLevel(StrEnum):
    """See ``MessageLevel``; ``error``: the file could not be read."""

    FATAL = "fatal"
    WARNING = "warning"
    POLICY = "policy"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class MessagePart:
    """``line`` and ``column`` are ``None`` where they are not known."""

    level: VerdictLevel
    reference: str
    text: str
    file: str
    line: int | None
    column: int | None


@dataclass(frozen=True, slots=True)
class KubeletCheckDocument:
    """How a kubelet would read one file. ``verdict`` ``None``: the file could not be read. ``ignored``: paths in it."""

    file: str
    verdict: Start | None
    ignored: tuple[str, ...]
    effective: Mapping[str, object]
    messages: tuple[MessagePart, ...]


def _document(answer: KubeletVerdict) -> KubeletCheckDocument:
    found = answer.outcome
    if found is None:
        return KubeletCheckDocument(answer.file, None, (), {}, tuple(_unread(answer)))
    return KubeletCheckDocument(
        file=answer.file,
        verdict=Start.STARTS if found.starts else Start.FAILS,
        ignored=found.ignored,
        effective=found.effective,
        messages=tuple(_message(message, answer.file) for message in found.messages),
    )


def _unread(answer: KubeletVerdict) -> Iterator[MessagePart]:
    """No verdict is invented for what could not be read."""
    if problem := answer.unread:
        yield MessagePart(VerdictLevel.ERROR, problem.reference, problem.message, answer.file, None, None)


def _message(message: Message, file: str) -> MessagePart:
    place = message.place
    return MessagePart(
        level=VerdictLevel(message.level.value),
        reference=message.reference,
        text=message.text,
        file=place.file if place else file,
        line=place.line if place else None,
        column=place.column if place else None,
    )


_SAID = {MessageLevel.FATAL: "fatal", MessageLevel.WARNING: "warning", MessageLevel.POLICY: "mistake"}


def _lines(answer: KubeletVerdict) -> Iterator[str]:
    found = answer.outcome
    if found is None:
        yield printable(str(answer.unread), _LONGEST_LINE)
        return
    yield f"{printable(answer.file, _LONGEST_LINE)}: {'starts' if found.starts else 'does not start'}"
    for message in found.messages:
        where = f"{message.place}: " if message.place else ""
        said = f"  {_SAID[message.level]}: {where}{message.text} [{message.reference}]"
        yield "  " + printable(said, _LONGEST_LINE)
