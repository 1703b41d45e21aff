"""What people read of known defects: in a plan, in a refusal, in ``rollout explain``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rollout.kubelet.defects.matching import DefectStanding, FoundDefect
from rollout.kubelet.defects.rows import Defect

REFERENCE = "known-defect"
KEPT_REFERENCE = "known-defects-kept"

Said = tuple[str, str]


def told(found: FoundDefect) -> str:
    """``containerd 2.1.4: every pull hangs; remedy: …; containerd#14158; `rollout explain ID```."""
    row = found.defect
    remedy = f"; remedy: {row.remedy}" if row.remedy else ""
    return f"{found.of}: {row.effect}{remedy}; {row.source}; `rollout explain {row.id}`"


def on_plan(found: Sequence[FoundDefect]) -> Iterator[Said]:
    """A line for each defect that the change triggers, and a few words for each other one."""
    for each in found:
        if each.standing is DefectStanding.TRIGGERED:
            yield REFERENCE, told(each)
        else:
            unread = f" ({', '.join(each.unread)} not known)" if each.unread else ""
            yield KEPT_REFERENCE, f"{each.defect.id} {_BECOMES[each.standing]}{unread}"


_BECOMES = {
    DefectStanding.KEPT: "stays",
    DefectStanding.POSSIBLE: "may apply",
    DefectStanding.ENDED: "no longer applies",
}


def refusal(stopping: Sequence[FoundDefect]) -> str:
    """Why a change is refused that would trigger these."""
    names = ", ".join(each.defect.id for each in stopping)
    return f"{'; '.join(told(each) for each in stopping)}. `accept: [{names}]` in the playbook allows it"


def row_line(row: Defect) -> str:
    """One line of ``rollout explain SETTING``."""
    return f"{row.component} {row.span}{f' {row.trigger}' if row.trigger else ''}: {row.effect} [{row.id}]"


def found_line(found: FoundDefect) -> str:
    """One line of ``rollout explain SETTING --node``."""
    row = found.defect
    unread = f" (may apply: {', '.join(found.unread)} not known)" if found.unread else ""
    when = f" {row.trigger}" if row.at or row.pods else ""
    return f"{found.of}{when}: {row.effect}{unread} [{row.id}]"


def about(rows: Sequence[Defect], names: frozenset[str]) -> tuple[Defect, ...]:
    """The rows with a condition on one of these settings: a field or a part of it, a flag, a gate, a key of a runtime."""
    return tuple(row for row in rows if any(_of(each.path, names) for each in row.when))


def _of(path: str, names: frozenset[str]) -> bool:
    plain = path.rpartition(":")[2]
    return any(plain == name or plain.startswith(f"{name}.") or name.startswith(f"{plain}.") for name in names)
