"""Approval of a plan by other people: what a project asks for, and the text that they sign."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from rollout.core.model.frozen import dataclass
from rollout.errors import Place

NAMESPACE = "plan-approval@rollout"
"""Of the SSH signature: one that was made for another purpose is no approval."""

USED = "approval-used"
"""Reference: the approvals of a plan carry no other run, or not this node, which another run has changed since."""


@dataclass(frozen=True, slots=True)
class ApprovalRule:
    """``count`` signatures by keys in the file ``signers``; of ``people`` (``()``: anybody in it); see ``place``.

    ``besides_applier``: the person that applies the plan does not count.
    """

    place: Place
    count: int
    signers: str
    people: tuple[str, ...] = ()
    besides_applier: bool = True


@dataclass(frozen=True, slots=True)
class Approval:
    """A signature that was found good: its ``person`` as in the file of signers, its key's fingerprint.

    ``signature``: as it is kept in a file and in the journal, see ``kept``.
    """

    person: str
    key: str
    signature: str


LONGEST = 90 * 86_400.0
"""Seconds for which an approval may be good at most."""

_END = "not after: "


def statement(cluster: str, digest: str, not_after: str) -> bytes:
    """What is signed: short, so that people can read it, and bound to the plan by its SHA-256 (64 hex digits).

    ``not_after``: see ``moment``; ``""``: an older version signed no end.
    """
    end = f"{_END}{not_after}\n" if not_after else ""
    return f"I approve this plan of rollout.\ncluster: {cluster}\nplan: {digest}\n{end}".encode()


def moment(at: float) -> str:
    """Epoch seconds as they stand in a statement: UTC, whole seconds."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"


def seconds_of(moment: str) -> float | None:
    """Epoch seconds of a moment; ``None``: it is none."""
    try:
        return datetime.strptime(moment, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def kept(not_after: str, armoured: str) -> str:
    """A signature with the end that it covers, as one text."""
    return f"{_END}{not_after}\n{armoured}"


def parts_of(kept: str) -> tuple[str, str]:
    """The end and the armoured signature. The end is ``""`` for a signature of an older version."""
    first, _, rest = kept.partition("\n")
    return (first.removeprefix(_END), rest) if first.startswith(_END) else ("", kept)


def is_by(person: str, logins: Collection[str]) -> bool:
    """Whether a person of a file of signers is the user with one of these login names: ``alice`` or ``alice@…``, in any case."""
    folded = {login.casefold() for login in logins}
    return not folded.isdisjoint((person.casefold(), person.casefold().partition("@")[0]))
