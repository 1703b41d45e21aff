"""The proof that a node is reverted: it is read again after its revert and judged against its own receipts.

The proof does not use the rollback's own record. PROVEN: every file that a transaction of ours changed has the bytes that
its receipts record from before. The kubelet runs on them and is healthy. Nothing of ours is armed, and no run claims the
node. WRONG: one of these was found false. UNKNOWN: one of these could not be read, which proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from rollout.core.model.frozen import dataclass
from rollout.core.model.snapshot import Measurement, ReceiptState, Unread
from rollout.core.model.verification import HINTS, UNDER_WAY, Drift, Verification, drifts

BOOT_UNIT = "/etc/systemd/system/rollout-guard-boot.service"
"""The guard's file that survives a reboot; it exists as long as a guard does."""

_UNREAD = frozenset({"file-unread"})
_NOT_ASKED = HINTS | {"kubelet-replaced"}
"""Differences that do not contradict a revert: a replaced program is an upgrade by others, not a file of ours."""
_WELL = frozenset({"ok", "off"})


class Proven(StrEnum):
    PROVEN = "proven"
    WRONG = "wrong"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class NodeProof:
    """One node: the verdict, why it is not PROVEN, and path → the digest it has (``""``: absent, as it was before)."""

    node: str
    proven: Proven
    evidence: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()


def proof_of(found: Verification | Unread, transaction: str, left: tuple[str, ...] = ()) -> NodeProof:
    """Judge one reading. ``transaction`` is the one that was reverted, ``left`` what the cleanup could not remove."""
    if isinstance(found, Unread):
        return NodeProof(found.node, Proven.UNKNOWN, (f"could not be read again: {found.message} [{found.reference}]",))
    differences = [drift for drift in drifts(found) if drift.reference not in _NOT_ASKED]
    wrong = [
        *(f"{path}: {text}" for path, text in _told(differences, unread=False)),
        *_not_back(found, transaction),
        *_guard(found),
        *(f"left behind: {text}" for text in left),
    ]
    unknown = [f"{path}: {text}" for path, text in _told(differences, unread=True)]
    for sure, text in _kubelet(found.measurement):
        (wrong if sure else unknown).append(text)
    proven = Proven.WRONG if wrong else Proven.UNKNOWN if unknown else Proven.PROVEN
    return NodeProof(found.node, proven, (*wrong, *unknown), _files(found))


def _told(differences: list[Drift], *, unread: bool) -> Iterator[tuple[str, str]]:
    for drift in differences:
        if (drift.reference in _UNREAD) is unread:
            yield drift.place, f"{drift.evidence} [{drift.reference}]"


def _not_back(found: Verification, transaction: str) -> Iterator[str]:
    """A node without that transaction was never changed by it, and so counts as reverted."""
    for receipt in found.receipts:
        if receipt.tx == transaction and receipt.state is not ReceiptState.REVERTED:
            yield f"transaction {transaction} is {receipt.state.value}"


def _guard(found: Verification) -> Iterator[str]:
    armed = [receipt.tx for receipt in found.receipts if receipt.state in UNDER_WAY]
    if armed:
        yield f"still under way: {', '.join(armed)}"
    boot = found.files.get(BOOT_UNIT)
    if boot is not None and boot.kind != "absent":
        yield f"a guard is left: {BOOT_UNIT}"
    if found.token.live:
        yield f"run {found.token.run} still claims it"


def _kubelet(measured: Measurement) -> Iterator[tuple[bool, str]]:
    """What is unhealthy about it; ``True``: found so, ``False``: it could not be read."""
    unit = measured.unit
    if unit is None:
        yield False, "systemd did not answer"
        return
    state = tuple(unit.properties.get(name, "") for name in ("ActiveState", "SubState"))
    if state != ("active", "running"):
        yield bool(state[0]), f"{unit.name} is {state[0] or 'not told'} ({state[1] or '-'})"
    if measured.process is None:
        yield False, "the kubelet's process could not be read"
    elif unit.properties.get("MainPID") != str(measured.process.pid):
        yield True, "the kubelet's process was exchanged while it was read"
    if measured.healthz is None:
        yield False, "nothing on the node can ask healthz"
    elif measured.healthz not in _WELL:
        yield True, f"healthz: {measured.healthz}"


def _files(found: Verification) -> tuple[tuple[str, str], ...]:
    """The current digest of each file that we ever changed."""
    states = ((expected.path, found.files.get(expected.path)) for expected in found.expected)
    return tuple((path, state.digest) for path, state in states if state is not None)
