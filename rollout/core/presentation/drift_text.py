"""What ``rollout verify`` prints: drift folded by kind and place, for people and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rollout.core.model.frozen import dataclass
from rollout.core.model.report import Outcome, Report
from rollout.core.model.snapshot import Unread
from rollout.core.model.verification import HINTS, ChangeStanding, Drift, NodeCheck
from rollout.core.presentation.owned_text import OwnedNodes
from rollout.core.text.message_folding import folded, for_all
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable


def has_drift(checks: Mapping[str, NodeCheck]) -> bool:
    """Whether any node has drifted. A hint alone means only that it may have."""
    return any(_drifted(check) for check in checks.values())


def _drifted(check: NodeCheck) -> bool:
    return any(drift.reference not in HINTS for drift in check.drifts)


def drift_lines(checks: Mapping[str, NodeCheck], unread: Sequence[Unread], *, owns: bool = False) -> Iterator[str]:
    """Differences folded, most nodes first; then the nodes that could not be read. ``owns``: nodes are also compared with owned settings."""
    together: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for name, check in checks.items():
        for drift in check.drifts:
            together.setdefault((drift.reference, drift.place), []).append((name, drift.evidence))
    for (reference, place), entries in sorted(together.items(), key=lambda item: -len(item[1])):
        word = "perhaps " if reference in HINTS else ""
        names = fold(name for name, _ in entries)
        yield f"{word}{reference} {printable(place)}: {counted(len(entries), 'node')}  {printable(names, 160)}"
        yield f"  {printable(entries[0][1], 500)}" + (f" (on {entries[0][0]})" if len(entries) > 1 else "")
        if reference == "kubeadm-rewrote":
            yield "  `rollout export kubeadm --cluster CLUSTER` prints a patch that stops kubeadm from doing this; then plan and apply again"
    for reason, names_ in folded({each.node: f"{each.message} [{each.reference}]" for each in unread}).items():
        message = printable(for_all(reason, names_), 300)
        yield f"not read: {counted(len(names_), 'node')}  {printable(fold(names_), 160)}: {message}"
    drifted = sum(map(_drifted, checks.values()))
    never = [name for name, check in checks.items() if check.standing is ChangeStanding.NEVER and not _drifted(check)]
    partly = sum(
        bool(check.not_checked) and check.standing is not ChangeStanding.NEVER and not _drifted(check)
        for check in checks.values()
    )
    well = len(checks) - drifted - len(never) - partly
    in_part = f", {partly} compared only in part" if partly else ""
    yield f"{counted(well, 'node')} as rollout left {'it' if well == 1 else 'them'}, {drifted} drifted{in_part}, {len(unread)} not read"
    standings = Counter(check.standing for check in checks.values())
    on, back = standings[ChangeStanding.CHANGED], standings[ChangeStanding.REVERTED]
    yield f"  with a change of rollout: {counted(on, 'node')}; with a reverted one: {counted(back, 'node')}"
    if never:
        yield f"  never changed by rollout, so no receipt to compare with: {counted(len(never), 'node')} {printable(fold(never), 160)}"
        if not owns:
            yield "    to compare them with the settings of a run: `rollout own RUN`"
    unchecked: dict[str, list[str]] = {}
    for name, check in checks.items():
        for path in check.not_checked:
            unchecked.setdefault(path, []).append(name)
    for path, having in sorted(unchecked.items()):
        yield f"  not checked {printable(path)}: {counted(len(having), 'node')} {printable(fold(having), 160)}: the receipt of its last change was removed"
    if removed := [name for name, check in checks.items() if check.removed]:
        yield f"  old receipts were removed (keep): {counted(len(removed), 'node')} {printable(fold(removed), 160)}; files that only these name were not checked"


@dataclass(frozen=True, slots=True)
class NotAsked:
    """A node that could not be read, and why."""

    node: str
    reference: str
    message: str


def not_done(reports: Mapping[str, Report]) -> tuple[NotAsked, ...]:
    """The nodes that did not do what they were asked to do."""
    return tuple(
        NotAsked(name, report.reference, printable(report.message, 300))
        for name, report in reports.items()
        if report.outcome is not Outcome.DONE
    )


def no_answer_lines(away: Sequence[NotAsked]) -> Iterator[str]:
    """Nodes of which nothing is known, so that no sentence about the others is read as one about them."""
    for why, names in folded({each.node: f"{each.message} [{each.reference}]" for each in away}).items():
        named = f"{counted(len(names), 'node')} {printable(fold(names), 160)}"
        yield f"nothing is known of {named}, which gave no answer: {printable(for_all(why, names), 300)}"


@dataclass(frozen=True, slots=True)
class DriftDocument:
    """What ``verify`` found. ``drifted``: node → its differences; ``as_wanted``: nodes without any.

    ``changed`` and ``reverted``: nodes with a change of rollout, and with changes that are all reverted. ``never_changed``:
    nodes without a receipt; nothing was compared there. ``not_checked``: node → paths that rollout changed, where the
    receipt of the last change is gone. ``receipts_removed``: nodes that removed old receipts; files that only these name were
    not checked. ``owned``: every live node against the settings that the cluster owns; ``None``: it owns none.
    """

    drifted: Mapping[str, tuple[Drift, ...]]
    as_wanted: tuple[str, ...]
    changed: tuple[str, ...]
    reverted: tuple[str, ...]
    never_changed: tuple[str, ...]
    not_asked: tuple[NotAsked, ...]
    not_checked: Mapping[str, tuple[str, ...]]
    receipts_removed: tuple[str, ...]
    owned: OwnedNodes | None


def drift_document(
    checks: Mapping[str, NodeCheck], unread: Sequence[Unread], owned: OwnedNodes | None = None
) -> DriftDocument:
    """The same for programs."""

    def standing(kind: ChangeStanding) -> tuple[str, ...]:
        return tuple(sorted(name for name, check in checks.items() if check.standing is kind))

    never = standing(ChangeStanding.NEVER)
    return DriftDocument(
        drifted={
            name: tuple(replace(drift, evidence=printable(drift.evidence, 500)) for drift in check.drifts)
            for name, check in checks.items()
            if check.drifts
        },
        as_wanted=tuple(sorted(name for name, check in checks.items() if not check.drifts and name not in never)),
        changed=standing(ChangeStanding.CHANGED),
        reverted=standing(ChangeStanding.REVERTED),
        never_changed=never,
        not_asked=tuple(NotAsked(each.node, each.reference, printable(each.message, 300)) for each in unread),
        not_checked={name: check.not_checked for name, check in checks.items() if check.not_checked},
        receipts_removed=tuple(sorted(name for name, check in checks.items() if check.removed)),
        owned=owned,
    )
