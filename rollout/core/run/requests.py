"""Requests of another terminal to a run, on the way from the journal to the machine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rollout.core.model.playbook import RevertScope
from rollout.core.run.events import AbortAsked, Asked, ContinueAsked, PauseAsked


class RequestWord(StrEnum):
    PAUSE = "pause"
    CONTINUE = "continue"
    ABORT = "abort"


@dataclass(frozen=True, slots=True)
class Request:
    """As recorded: ``number`` counts all requests of a journal, ``revert`` (abort) is a ``RevertScope`` or ``""``."""

    number: int
    word: str
    who: str
    reason: str
    revert: str = ""


def is_known(request: Request) -> bool:
    """Whether this version knows the word. An unknown word of a newer terminal is no reason to stop."""
    return request.word in set(RequestWord) and request.revert in {"", *RevertScope}


def asked(request: Request, at: float) -> Asked:
    """The event for a request. An unknown request raises ``ValueError``."""
    word = RequestWord(request.word)
    if word is RequestWord.PAUSE:
        return PauseAsked(at, request.who, request.reason, request.number)
    if word is RequestWord.CONTINUE:
        return ContinueAsked(at, request.who, request.reason, request.number)
    revert = RevertScope(request.revert) if request.revert else None
    return AbortAsked(at, request.who, request.reason, request.number, revert)
