"""What a node should have by its own receipts, what it has, and how the two differ.

The node compares nothing: it reports both, and ``drifts`` judges. Nothing here uses the journal. A node without receipts
expects nothing; the caller must distinguish it from a node without drift (``receipts``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import StrEnum

from rollout.core.model.frozen import dataclass
from rollout.core.model.snapshot import FileState, Measurement, Receipt, ReceiptState, Stale, Token
from rollout.core.model.transactions import UNDER_WAY, Expected, NodeTransaction, expected_by_receipts, in_force

HINTS = frozenset({"replaced-after-start"})
"""References that are only hints: an inode changes for many reasons, some of them harmless."""

KUBEADM_CONFIG = "/var/lib/kubelet/config.yaml"
"""The file that ``kubeadm upgrade node`` rewrites from the ConfigMap."""

KUBEADM_UPGRADED = "kubeadm-upgraded"
"""The fact with the time of kubeadm's last rewrite, in seconds since the epoch, and the place of its backup."""


@dataclass(frozen=True, slots=True)
class Binary:
    """The kubelet's program (``SIZE-MTIME`` or ``unknown``) when ``tx`` was applied, and now."""

    tx: str
    before: str
    now: str

    @property
    def replaced(self) -> bool:
        return "unknown" not in (self.before, self.now) and self.before != self.now


@dataclass(frozen=True, slots=True)
class Verification:
    """One node's answer to ``verify``. ``age`` is the running kubelet's, in seconds; ``None``: not known."""

    node: str
    machine_id: str
    token: Token
    receipts: tuple[Receipt, ...]
    transactions: tuple[NodeTransaction, ...]  # those that changed files, the newest first
    files: Mapping[str, FileState]
    measurement: Measurement
    stale: tuple[Stale, ...] = ()
    binary: Binary | None = None
    age: int | None = None
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def expected(self) -> tuple[Expected, ...]:
        return expected_by_receipts(self.transactions)


class ChangeStanding(StrEnum):
    """Whether a change of rollout is in force on a node, by its own receipts."""

    CHANGED = "changed"
    REVERTED = "reverted"
    NEVER = "never"


def change_standing(found: Verification) -> ChangeStanding:
    if not found.receipts:
        return ChangeStanding.NEVER
    with_files = {each.tx for each in found.transactions}
    changed = in_force(found.transactions) or any(
        receipt.state in UNDER_WAY or (receipt.state is ReceiptState.CONFIRMED and receipt.tx not in with_files)
        for receipt in found.receipts
    )
    return ChangeStanding.CHANGED if changed else ChangeStanding.REVERTED


@dataclass(frozen=True, slots=True)
class NodeCheck:
    """What a verification found on a node that was read.

    ``not_checked``: paths that rollout changed, where the receipt of the last change is gone. ``removed``: the node has
    removed old receipts, so files that only these name were not checked either.
    """

    drifts: tuple[Drift, ...]
    standing: ChangeStanding
    not_checked: tuple[str, ...] = ()
    removed: bool = False


@dataclass(frozen=True, slots=True)
class Drift:
    """One difference: a stable ``reference``, where (``place`` is a path, or ``kubelet``), and the evidence."""

    reference: str
    place: str
    evidence: str


def drifts(found: Verification) -> tuple[Drift, ...]:
    """Every difference, files first; empty when the node matches its receipts (or has none)."""
    files = [drift for expected in found.expected for drift in _file(expected, found.files.get(expected.path))]
    return (*files, *_binary(found.binary), *map(_stale, found.stale))


@dataclass(frozen=True, slots=True)
class Undone:
    """A confirmed change as recorded in the journal: when its run began (seconds since the epoch), and path → the digest
    that it replaced.
    """

    run: str
    at: float
    replaced: Mapping[str, str]


def by_kubeadm(found: Iterable[Drift], verified: Verification, known: Undone) -> tuple[Drift, ...]:
    """The same differences, with kubeadm named where it rewrote the kubelet's file after the change."""
    seconds, _, kept = verified.facts.get(KUBEADM_UPGRADED, "").partition(" ")
    if not seconds.isdecimal() or int(seconds) <= known.at:
        return tuple(found)
    state = verified.files.get(KUBEADM_CONFIG)
    again = state is not None and state.digest == known.replaced.get(KUBEADM_CONFIG)
    return tuple(_named(drift, known, kept, again=again) for drift in found)


def _named(drift: Drift, known: Undone, kept: str, *, again: bool) -> Drift:
    if (drift.reference, drift.place) != ("content-differs", KUBEADM_CONFIG):
        return drift
    back = ", as it was before the run" if again else ""
    text = f"other bytes{back} ({drift.evidence}); {kept} is newer than run {known.run}: `kubeadm upgrade` keeps such a copy when it writes the file anew"
    return Drift("kubeadm-rewrote", drift.place, text)


def _file(expected: Expected, state: FileState | None) -> list[Drift]:
    path = expected.path
    if expected.state in UNDER_WAY:
        return [Drift("under-way", path, f"transaction {expected.tx} is {expected.state.value}")]
    if state is None or (state.kind == "regular" and not state.digest):
        return [Drift("file-unread", path, "it could not be read")]
    if not expected.digest:
        appeared = Drift("file-appeared", path, f"{state.kind}; {_by(expected)} left none")
        return [] if state.kind == "absent" else [appeared]
    if state.kind == "absent":
        return [Drift("file-gone", path, f"{_by(expected)} left {expected.digest[:12]}")]
    if state.kind != "regular":
        return [Drift("file-not-regular", path, f"it is {state.kind} now")]
    return _details(expected, state)


def _details(expected: Expected, state: FileState) -> list[Drift]:
    found = []
    if state.digest != expected.digest:
        text = f"{state.digest[:12]}, {_by(expected)} left {expected.digest[:12]}"
        found.append(Drift("content-differs", expected.path, text))
    if expected.mode and state.mode != expected.mode:
        found.append(Drift("mode-differs", expected.path, f"{state.mode}, {_by(expected)} left {expected.mode}"))
    if expected.owner and state.owner != expected.owner:
        found.append(Drift("owner-differs", expected.path, f"{state.owner}, {_by(expected)} left {expected.owner}"))
    return found


def _by(expected: Expected) -> str:
    return f"transaction {expected.tx} ({expected.state.value})"


def _binary(binary: Binary | None) -> tuple[Drift, ...]:
    if binary is None or not binary.replaced:
        return ()
    return (Drift("kubelet-replaced", "kubelet", f"{binary.before} when {binary.tx} was applied, {binary.now} now"),)


def _stale(stale: Stale) -> Drift:
    if stale.edited:
        text = f"modified {stale.seconds} s after {stale.unit} started, which may have read other bytes and reads these at a restart"
        return Drift("edited-after-start", stale.path, text)
    text = f"renamed, linked or given other rights {stale.seconds} s after {stale.unit} started"
    return Drift("replaced-after-start", stale.path, text)
