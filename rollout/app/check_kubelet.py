"""How a kubelet would read files, without any cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from rollout.core.model.frozen import dataclass
from rollout.core.text.terminal import printable
from rollout.errors import InputError, Problem, UsageError
from rollout.kubelet import versions
from rollout.kubelet.configuration.drop_ins import ENVIRONMENT
from rollout.kubelet.configuration.outcome import File, KubeletOutcome, MessageLevel, Sources
from rollout.kubelet.configuration.startup import is_known, outcome
from rollout.kubelet.node import arguments


class KubeletFiles(Protocol):
    """A kubelet's configuration on this machine. ``InputError``: it cannot be read."""

    def configuration_file(self, path: str) -> File: ...

    def drop_ins(self, folder: str) -> tuple[File, ...]:
        """The files that a kubelet would merge, in its order."""
        ...


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
        return (
            self.outcome is not None
            and self.outcome.starts
            and not any(message.level is MessageLevel.POLICY for message in self.outcome.messages)
        )


def assumed_kubelet(
    files: KubeletFiles, kubelet: str, config_dir: str, flags: str, environment: Mapping[str, str]
) -> AssumedKubelet:
    """The kubelet that the options describe. ``UsageError`` for an unknown version and for quotes that do not close.

    ``environment``: all of this process.
    """
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
    read = {ENVIRONMENT: environment[ENVIRONMENT]} if ENVIRONMENT in environment else {}
    return AssumedKubelet(version, files.drop_ins(config_dir) if config_dir else None, words, read)


def verdicts(files: KubeletFiles, paths: Iterable[str], kubelet: AssumedKubelet) -> Iterator[KubeletVerdict]:
    """One verdict per file, in the given order, each as it is read."""
    for path in paths:
        try:
            file = files.configuration_file(path)
        except InputError as error:
            yield KubeletVerdict(path, None, error.problems[0])
            continue
        yield KubeletVerdict(path, outcome(kubelet.version, kubelet.sources(file)))
