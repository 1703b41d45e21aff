"""The proof that a node is reverted: it is read again after its revert and judged by what was observed.

The proof does not use the rollback's own record. PROVEN: every file of the transaction has the bytes from before it, no newer
change is on them, the running kubelet has read them and is healthy. Nothing of ours is armed, and no run claims the node.
UNCHANGED: the node has no such transaction and nothing of ours is armed there. Its files have the bytes from before the change, or the run is known
to have changed none there: nothing was reverted. WRONG: one of these was found false. UNKNOWN: one of these could not be read, which proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType

from rollout.core.model.frozen import dataclass
from rollout.core.model.snapshot import NOT_ITS_OWN, NOT_OBSERVED, Measurement, ReceiptState, Unread
from rollout.core.model.transactions import UNDER_WAY, on_top_of
from rollout.core.model.verification import HINTS, Drift, Verification, drifts

BOOT_UNIT = "/etc/systemd/system/rollout-guard-boot.service"
"""The guard's file that survives a reboot; it exists as long as a guard does."""

NOTHING_PROMISED: Mapping[str, str] = MappingProxyType({})
"""Of a node that the run is known not to have changed."""

_UNREAD = frozenset({"file-unread"})
_NOT_ASKED = HINTS | {"kubelet-replaced"}
"""Differences that do not contradict a revert: a replaced program is an upgrade by others, not a file of ours."""
_WELL = frozenset({"ok", "off"})


class Proven(StrEnum):
    PROVEN = "proven"
    WRONG = "wrong"
    UNKNOWN = "unknown"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class NodeProof:
    """One node: the verdict, why it is not PROVEN, and path → the digest it has (``""``: absent, as it was before)."""

    node: str
    proven: Proven
    evidence: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()


def as_before(proofs: Iterable[NodeProof]) -> bool:
    """Whether every node is as it was before the change: reverted, or never changed."""
    return all(proof.proven in (Proven.PROVEN, Proven.UNCHANGED) for proof in proofs)


def proof_of(
    reading: Verification | Unread,
    transaction: str,
    left: tuple[str, ...] = (),
    promised: Mapping[str, str] | None = None,
) -> NodeProof:
    """Judge one reading. ``transaction`` is the one that was reverted, ``left`` what the cleanup could not remove.

    ``promised``: path → digest before the change (``""``: absent), by the plan of a run that changed the node; ``None``: not
    known. It counts if the node does not have the receipt.
    """
    if isinstance(reading, Unread):
        return NodeProof(
            reading.node, Proven.UNKNOWN, (f"could not be read again: {reading.message} [{reading.reference}]",)
        )
    differences = [drift for drift in drifts(reading) if drift.reference not in _NOT_ASKED]
    wrong = [
        *(f"{path}: {text}" for path, text in _told(differences, unread=False)),
        *_not_back(reading, transaction),
        *_guard(reading),
        *(f"left behind: {text}" for text in left),
    ]
    unknown = [f"{path}: {text}" for path, text in _told(differences, unread=True)]
    unknown += _perhaps_not_read(reading, transaction)
    for sure, text in (*_not_as_promised(reading, transaction, promised), *_kubelet(reading.measurement)):
        (wrong if sure else unknown).append(text)
    good = Proven.PROVEN if _has(reading, transaction) else Proven.UNCHANGED
    proven = Proven.WRONG if wrong else Proven.UNKNOWN if unknown else good
    return NodeProof(reading.node, proven, (*wrong, *unknown), _files(reading, promised or ()))


def _has(reading: Verification, transaction: str) -> bool:
    return any(receipt.tx == transaction for receipt in reading.receipts)


def _told(differences: list[Drift], *, unread: bool) -> Iterator[tuple[str, str]]:
    for drift in differences:
        if (drift.reference in _UNREAD) is unread:
            yield drift.place, f"{drift.evidence} [{drift.reference}]"


def _not_back(reading: Verification, transaction: str) -> Iterator[str]:
    """A transaction that is not reverted, or that was reverted before others changed its files."""
    for receipt in reading.receipts:
        if receipt.tx == transaction and receipt.state is not ReceiptState.REVERTED:
            yield f"transaction {transaction} is {receipt.state.value}"
    for newer in on_top_of(transaction, reading.transactions):
        yield f"the newer transaction {newer.tx} is on top of {transaction}: its files are not the old ones"


def _not_as_promised(
    reading: Verification, transaction: str, promised: Mapping[str, str] | None
) -> Iterator[tuple[bool, str]]:
    """Of a node without the receipt: its bytes, compared with those that the plan replaced; ``False``: not read."""
    if _has(reading, transaction):
        return
    if promised is None:
        yield False, f"it has no receipt of {transaction}, and its files from before the change are not known"
        return
    for path, digest in promised.items():
        state = reading.files.get(path)
        if state is None or (state.kind == "regular" and not state.digest):
            yield False, f"{path}: it could not be read, and the receipt of {transaction} is gone"
        elif digest != (state.digest if state.kind == "regular" else "" if state.kind == "absent" else state.kind):
            yield (
                True,
                (
                    f"{path}: {state.digest[:12] or state.kind}, before the change it was {digest[:12] or 'absent'}; "
                    f"the node has no receipt of {transaction}, so nothing was reverted"
                ),
            )


def _perhaps_not_read(reading: Verification, transaction: str) -> Iterator[str]:
    """Old bytes on the disk that the running process may not have read: only a start after the rename shows that it has."""
    paths = {file.path for changed in reading.transactions if changed.tx == transaction for file in changed.files}
    for stale in reading.stale:
        if stale.path in paths and not stale.edited:
            yield f"{stale.path}: renamed or linked {stale.seconds} s after {stale.unit} started, which may not have read it"


def _guard(reading: Verification) -> Iterator[str]:
    armed = [receipt.tx for receipt in reading.receipts if receipt.state in UNDER_WAY]
    if armed:
        yield f"still under way: {', '.join(armed)}"
    boot = reading.files.get(BOOT_UNIT)
    if boot is not None and boot.kind != "absent":
        yield f"a guard is left: {BOOT_UNIT}"
    if reading.token.live:
        yield f"run {reading.token.run} still claims it"


def _kubelet(measured: Measurement) -> Iterator[tuple[bool, str]]:
    """What is unhealthy about it; ``True``: found so, ``False``: it could not be read."""
    unit = measured.unit
    if unit is None:
        yield False, "systemd did not answer"
        return
    state = tuple(unit.properties.get(name, "") for name in ("ActiveState", "SubState"))
    if state != ("active", "running"):
        yield bool(state[0]), unit.standing
    if measured.process is None:
        yield False, "the kubelet's process could not be read"
    elif unit.kubelet_pid != str(measured.process.pid):
        yield True, "the kubelet's process was replaced while it was read"
    if measured.healthz is None:
        yield False, "the node has no program that can request healthz"
    elif measured.healthz in NOT_OBSERVED:
        yield False, f"healthz: {NOT_OBSERVED[measured.healthz]} [{NOT_ITS_OWN}]"
    elif measured.healthz not in _WELL:
        yield True, f"healthz: {measured.healthz}"


def _files(reading: Verification, promised: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """The current digest of each file that we ever changed."""
    paths = dict.fromkeys((*(expected.path for expected in reading.expected), *promised))
    states = ((path, reading.files.get(path)) for path in paths)
    return tuple((path, state.digest) for path, state in states if state is not None)
