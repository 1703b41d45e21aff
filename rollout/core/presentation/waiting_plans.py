"""Plans in files that wait for people: for approvals, or with all of them to be applied."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator

from rollout.core.model.frozen import dataclass
from rollout.core.text.terminal import printable


@dataclass(frozen=True, slots=True)
class WaitingPlan:
    """A plan that needs approvals, and that no run of its cluster has followed. ``plan`` is its digest.

    ``missing``: why it may not be applied yet; ``()``: it may.
    """

    file: str
    cluster: str
    plan: str
    missing: tuple[str, ...]

    @property
    def command(self) -> str:
        file = shlex.quote(self.file)
        return f"rollout approve {file} --key FILE" if self.missing else f"rollout apply {file}"

    def __str__(self) -> str:
        why = "; ".join(self.missing) if self.missing else "it has every approval and may be applied"
        return printable(f"{self.file} on {self.cluster}: {why}", 400)


def waiting_plan_lines(plans: Collection[WaitingPlan]) -> Iterator[str]:
    for plan in plans:
        yield f"  waits for you: {plan}"
        yield f"      {'another person: ' if plan.missing else ''}{plan.command}"
