"""The page's part on what was to change: each kind of node with its reasons and diffs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rollout.core.model.plan import FileChange, Plan
from rollout.core.plans.plan_text import Kind, kinds
from rollout.core.presentation.pages.markup import Html, lines, raw, tag
from rollout.core.text import diff
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable

MOST_KINDS = 12
LONGEST_NODESET = 400


def changes(plan: Plan) -> Html:
    """What was to change: the reasons at a glance, then each kind of node with its reasons and diffs."""
    found = kinds(plan)
    glance = tag("ul", [tag("li", f"{why}: {counted(count, 'node')}") for why, count in _reasons(found)[:MOST_KINDS]])
    shown = [_kind(plan, kind) for kind in found[:MOST_KINDS]]
    more = len(found) - MOST_KINDS
    rest = tag("p", f"and {counted(more, 'more kind')} of node, in the plan file", class_="dim") if more > 0 else ""
    return raw(glance, *shown, rest)


def _reasons(found: Sequence[Kind]) -> list[tuple[str, int]]:
    """Every reason with the number of nodes it holds for, the most first."""
    counts: Counter[str] = Counter()
    for kind in found:
        for why in dict.fromkeys(why for file in kind.first.change.files for why in file.reasons):
            counts[why] += len(kind.nodes)
    return counts.most_common()


def _kind(plan: Plan, kind: Kind) -> Html:
    change = kind.first.change
    units = ", ".join(change.units)
    return tag(
        "details",
        tag("summary", f"{kind.first.label}: {counted(len(kind.nodes), 'node')}"),
        tag("p", printable(fold(kind.nodes), LONGEST_NODESET), class_="dim"),
        [_file(plan, file) for file in change.files],
        tag("p", f"then restart {units} ({change.disruption.value})"),
        [tag("p", note, class_="dim") for note in change.notes],
    )


def _file(plan: Plan, file: FileChange) -> Html:
    before = plan.blobs[file.before] if file.before else None
    shown = [_diff_line(line) for line in diff.unified(before, plan.blobs[file.after], file.path)]
    reasons = tag("ul", [tag("li", reason) for reason in file.reasons])
    return raw(reasons, tag("pre", Html("\n".join(shown))))


def _diff_line(line: str) -> Html:
    kind = "add" if line.startswith("+") else "cut" if line.startswith("-") else None
    return tag("span", lines([line]), class_=kind) if kind else lines([line])
