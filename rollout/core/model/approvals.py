"""Approval of a plan by other people: what a project asks for, and the text that they sign."""

from __future__ import annotations

from collections.abc import Collection

from rollout.core.model.frozen import dataclass
from rollout.errors import Place

NAMESPACE = "plan-approval@rollout"
"""Of the SSH signature: one that was made for another purpose is no approval."""


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
    """A signature that was found good: its ``person`` as in the file of signers, its key's fingerprint, its armoured text."""

    person: str
    key: str
    signature: str


def statement(cluster: str, digest: str) -> bytes:
    """What is signed: short, so that people can read it, and bound to the plan by its SHA-256 (64 hex digits)."""
    return f"I approve this plan of rollout.\ncluster: {cluster}\nplan: {digest}\n".encode()


def is_by(person: str, logins: Collection[str]) -> bool:
    """Whether a person of a file of signers is the user with one of these login names: ``alice`` or ``alice@…``, in any case."""
    folded = {login.casefold() for login in logins}
    return not folded.isdisjoint((person.casefold(), person.casefold().partition("@")[0]))
