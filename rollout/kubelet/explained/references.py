"""What the words in brackets at the end of messages mean, from ``references.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources

ANY = "NAME"
"""A key that ends with it stands for all references with its beginning, such as ``gate-NAME``."""

FORMER = {"containers-would-end": "containers-killed"}
"""References in older plans and journals → the one for the same thing."""


@dataclass(frozen=True, slots=True)
class ReferenceDocument:
    """``subject`` groups references. ``remedy`` is what to do next, with the command if there is one."""

    reference: str
    subject: str
    cause: str
    remedy: str


@cache
def references() -> dict[str, ReferenceDocument]:
    """All entries by their key, in the order of the file."""
    text = resources.files("rollout.kubelet.explained").joinpath("references.toml").read_text(encoding="utf-8")
    return {
        key: ReferenceDocument(key, subject, *entry)
        for subject, entries in tomllib.loads(text).items()
        for key, entry in entries.items()
    }


def about(reference: str) -> ReferenceDocument | None:
    """The entry of a reference: its own, or the one for all that begin alike."""
    known = references()
    reference = FORMER.get(reference, reference)
    if reference in known:
        return None if reference.endswith(ANY) else known[reference]
    families = (
        each for key, each in known.items() if key.endswith(ANY) and reference.startswith(key.removesuffix(ANY))
    )
    return next(families, None)


def where_to_read_more(of: Iterable[str]) -> tuple[str, ...]:
    """A command for each of the first three references of a message that have an entry."""
    known = [reference for reference in dict.fromkeys(of) if about(reference)]
    return tuple(f"rollout explain {reference}" for reference in known[:3])
