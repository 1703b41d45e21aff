"""Every error that a user can see: one root, four families, a stable reference each.

A *reference* is a kebab-case word that never changes once released; users search for it. The family decides the exit
code; ``cli.main`` is the only place that turns an error into one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where in a file: ``line`` and ``column`` count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in an input: what, where, and what to do next."""

    reference: str
    message: str
    place: Place | None = None
    hint: str = ""

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{where}{self.message}{hint} [{self.reference}]"


class RolloutError(Exception):
    """The root. ``reference`` is kebab-case, ``hint`` says what to do next."""

    exit_code: ClassVar[int] = 70

    def __init__(self, reference: str, message: str, *, hint: str = "", node: str = "", stage: str = "") -> None:
        super().__init__(message)
        self.reference = reference
        self.message = message
        self.hint = hint
        self.node = node
        self.stage = stage

    def __str__(self) -> str:
        where = "".join(f"{word}: " for word in (self.node, self.stage) if word)
        hint = f" ({self.hint})" if self.hint else ""
        return f"{where}{self.message}{hint} [{self.reference}]"


class UsageError(RolloutError):
    """The command line is invalid or contradicts itself."""

    exit_code = 2


class InputError(RolloutError):
    """A file that a person wrote is wrong. Carries every mistake found, not only the first."""

    exit_code = 2

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        if not problems:
            raise ValueError("an InputError needs at least one problem")
        super().__init__(problems[0].reference, "\n".join(str(problem) for problem in problems))
        self.problems = problems

    def __str__(self) -> str:
        return self.message


class RemoteError(RolloutError):
    """A node or a back end was unreachable, or its answer is invalid. Usually becomes data, not an exit."""

    exit_code = 4


class StateError(RolloutError):
    """Locked, claimed by another run, or a journal that cannot be used."""

    exit_code = 5


class AwayError(RemoteError):
    """A back end did not answer this time; a retry may succeed."""


class SecondInterruptError(RolloutError):
    """The second Ctrl-C, with a run under way."""

    exit_code = 130

    def __init__(self) -> None:
        hint = "`rollout resume` continues; nodes without a confirm revert themselves"
        super().__init__("stopped", "stopped at once; nothing is lost", hint=hint)


def with_extra(name: str) -> str:
    """The hint of an error about packages that the plain install leaves out."""
    return f"install rollout again: `pipx install --force 'PATH[{name}]'`, where PATH is its checkout or wheel file"
