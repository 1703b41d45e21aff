"""The checks of a node after a run with any fault. Values in, findings out; ``test_findings.py`` makes each check fail.

A node is compared with itself: before all runs, and after an undisturbed run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

TOP = frozenset({"lock", "holder", "token", "touched", "tx", "voided"})
"""All files that may be in /var/lib/rollout."""

BESIDE = {"beside.1": {"beside.1", "new.1"}, "beside.2": {"beside.2", "new.2"}}
"""Additional files in a transaction's folder if a target is on another file system: the mark, and the test file."""


class Harm(StrEnum):
    LOST = "lost"  # neither old nor new, or another kubelet than these files'
    UNTRUE = "untrue"  # the journal, the receipt and the node do not match
    LIMIT = "limit"
    LEFT = "left"
    BROKEN = "broken"  # the run itself did not end as it should


@dataclass(frozen=True, slots=True)
class Finding:
    harm: Harm
    node: str
    text: str

    def __str__(self) -> str:
        return f"{self.harm}: {self.node}: {self.text}"


@dataclass(frozen=True, slots=True)
class Kubelet:
    """The kubelet as systemd runs it."""

    active: str
    words: tuple[str, ...]
    stale: bool  # systemd has not read the unit files that are there

    def __str__(self) -> str:
        return f"{self.active}, {' '.join(self.words)}" + (", unit files not read" if self.stale else "")


@dataclass(frozen=True, slots=True)
class Seen:
    """A node from outside. ``tree``: path → mode, owner and content of all its files except logs and our state."""

    node: str
    tree: Mapping[str, str]
    state: Mapping[str, frozenset[str]]  # folder of a transaction → its files; "" → the files outside of these folders
    receipts: tuple[Mapping[str, str], ...]  # oldest first
    mode: str  # of /var/lib/rollout
    token: tuple[str, ...]
    ours: tuple[str, ...]  # units, files in /run and processes of ours, a lock that is held
    kubelet: Kubelet


@dataclass(frozen=True, slots=True)
class Known:
    """The node with its old files, and with the new ones, after undisturbed runs."""

    old: Seen
    new: Seen
    targets: frozenset[str]  # the paths that the change exchanges


def findings(seen: Seen, known: Known, word: str) -> tuple[Finding, ...]:
    """All findings of a node; ``word`` is its state by the journal."""
    return tuple(
        Finding(harm, seen.node, text)
        for law in (_old_or_new, _as_the_journal_says, _kubelet, _receipts, _left)
        for harm, text in law(seen, known, word)
    )


Told = Iterator[tuple[Harm, str]]


def is_new(seen: Seen, known: Known) -> bool:
    """Whether the targets are exactly those of the new tree."""
    return all(seen.tree.get(path) == known.new.tree.get(path) for path in known.targets)


def _old_or_new(seen: Seen, known: Known, word: str) -> Told:
    """Whether all targets are old, or all new, with mode and owner."""
    versions = {path: _version(seen, known, path) for path in sorted(known.targets)}
    if set(versions.values()) not in ({"old"}, {"new"}):
        yield Harm.LOST, f"half done: {', '.join(f'{path} is {what}' for path, what in versions.items())}"


def _version(seen: Seen, known: Known, path: str) -> str:
    now = seen.tree.get(path)
    if now == known.old.tree.get(path):
        return "old"
    return "new" if now == known.new.tree.get(path) else f"neither ({now or 'absent'})"


def _as_the_journal_says(seen: Seen, known: Known, word: str) -> Told:
    new = is_new(seen, known)
    if new != (word == "confirmed"):
        yield Harm.UNTRUE, f"the journal says {word}, its files are {'new' if new else 'old'}"


def _kubelet(seen: Seen, known: Known, word: str) -> Told:
    wanted = (known.new if is_new(seen, known) else known.old).kubelet
    if seen.kubelet != wanted:
        yield Harm.LOST, f"its kubelet: {seen.kubelet}; with these files: {wanted}"


def _receipts(seen: Seen, known: Known, word: str) -> Told:
    states = [receipt["state"] for receipt in seen.receipts]
    for receipt in seen.receipts:
        if receipt["state"] not in ("confirmed", "reverted"):
            yield Harm.UNTRUE, f"{receipt['tx']} is {receipt['state']}"
    if (states[-1:] == ["confirmed"]) != (word == "confirmed"):
        yield Harm.UNTRUE, f"the journal says {word}, its newest receipt {(states or ['nothing'])[-1]}"


def _left(seen: Seen, known: Known, word: str) -> Told:
    """Law 8: no unit, process or file of ours; our state contains only what an undisturbed run leaves there."""
    expected = known.new.tree if is_new(seen, known) else known.old.tree
    for path in sorted((seen.tree.keys() | expected.keys()) - known.targets):
        if seen.tree.get(path) != expected.get(path):
            yield Harm.LEFT, f"{path}: {seen.tree.get(path, 'gone')}; was {expected.get(path, 'not there')}"
    for thing in seen.ours:
        yield Harm.LEFT, thing
    if seen.state and seen.mode != "700":
        yield Harm.LEFT, f"/var/lib/rollout has mode {seen.mode}"
    if seen.token[2:3] not in ((), ("ended",), LOST_TOKEN):
        yield Harm.LEFT, f"a claim: {' '.join(seen.token)}"
    yield from _in_state(seen, known)


LOST_TOKEN = ("lost",)
"""The disk did not take its end, which the run has reported. It keeps no other run out; what a late apply would meet stays."""


def _in_state(seen: Seen, known: Known) -> Told:
    top = TOP | {"void"} if seen.token[2:3] == LOST_TOKEN else TOP
    for name in sorted(seen.state.get("", frozenset()) - top):
        yield Harm.LEFT, f"/var/lib/rollout/{name}"
    usual = {
        receipt["state"]: _folder(known_as, receipt)
        for known_as in (known.old, known.new)
        for receipt in known_as.receipts
    }
    state_of = {receipt["tx"]: receipt["state"] for receipt in seen.receipts}
    for tx, names in sorted(seen.state.items()):
        if tx and tx not in state_of:
            yield Harm.LEFT, f"{tx} has no receipt: {' '.join(sorted(names))}"
        elif tx and (more := names - usual.get(state_of[tx], names) - _beside(names) - _places(names)):
            yield Harm.LEFT, f"{tx} ({state_of[tx]}) has {' '.join(sorted(more))}"


def _beside(names: frozenset[str]) -> set[str]:
    return {name for mark, tried in BESIDE.items() if mark in names for name in tried}


def _places(names: frozenset[str]) -> set[str]:
    """When a requested revert of a confirmed transaction was: in a name, since a revert needs no room."""
    return {name for name in names if name.startswith("place.")}


def _folder(seen: Seen, receipt: Mapping[str, str]) -> frozenset[str]:
    return seen.state[receipt["tx"]]


@dataclass(frozen=True, slots=True)
class Limits:
    """The playbook's limits; ``racks``: rack → its nodes."""

    racks: Mapping[str, frozenset[str]]
    per_rack: int
    in_flight: int


Transaction = tuple[str, str]
"""A node's name and its transaction in progress."""


def held_to_limits(under_way: Mapping[Transaction, str], unhealthy: frozenset[str]) -> frozenset[str]:
    """The nodes with transactions in progress (→ state) that the limits bind: an unhealthy node is reverted at once."""
    return frozenset(name for (name, _), state in under_way.items() if not (state == "reverting" and name in unhealthy))


def beyond(limits: Limits, away: frozenset[str]) -> str:
    """The limit that is exceeded if these nodes are armed or being reverted at one instant; empty: none."""
    if len(away) > limits.in_flight:
        return f"{len(away)} in flight, the limit is {limits.in_flight}: {' '.join(sorted(away))}"
    for rack, nodes in limits.racks.items():
        if len(away & nodes) > limits.per_rack:
            return (
                f"{len(away & nodes)} of rack {rack}, the limit is {limits.per_rack}: {' '.join(sorted(away & nodes))}"
            )
    return ""


def repeated(node: str, applied: Mapping[str, int]) -> tuple[Finding, ...]:
    """``applied``: transaction → how often its new files were put in place."""
    return tuple(
        Finding(Harm.UNTRUE, node, f"{tx} was applied {count} times") for tx, count in applied.items() if count > 1
    )


def fenced(code: int | None, said: str, before: Sequence[Seen], after: Sequence[Seen]) -> tuple[Finding, ...]:
    """A thawed controller must not exit with 0, must report the lost lease, and must not touch a node."""
    found = []
    if code == 0 or not re.search(r"\[(lease-lost|fenced|claimed|locked)\]|another controller has taken", said):
        found.append(Finding(Harm.BROKEN, "controller", f"thawed, it ended with {code}: {said[-300:]}"))
    found += [
        Finding(Harm.UNTRUE, now.node, "touched by a controller that had lost its lease")
        for then, now in zip(before, after, strict=True)
        if (then.receipts, then.token, then.tree) != (now.receipts, now.token, now.tree)
    ]
    return tuple(found)
