"""What another terminal asks of a run, on its way from the journal to the machine."""

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
    """As written down: ``number`` counts all requests of a journal, ``revert`` (abort) is a ``RevertScope`` or ``""``."""

    number: int
    word: str
    who: str
    reason: str
    revert: str = ""


def is_known(request: Request) -> bool:
    """Whether this version knows the word: one of a newer terminal is not a reason to stop."""
    return request.word in set(RequestWord) and request.revert in {"", *RevertScope}


def asked(request: Request, at: float) -> Asked:
    """The event a request becomes. One that is not known raises ``ValueError``."""
    word = RequestWord(request.word)
    if word is RequestWord.PAUSE:
        return PauseAsked(at, request.who, request.reason, request.number)
    if word is RequestWord.CONTINUE:
        return ContinueAsked(at, request.who, request.reason, request.number)
    revert = RevertScope(request.revert) if request.revert else None
    return AbortAsked(at, request.who, request.reason, request.number, revert)
