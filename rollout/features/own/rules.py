"""Which settings each node must have, and how a node that was read stands to them.

A run that has ended can be owned: what its plan wanted is then wanted of every node of its selection, also of nodes that join it
later. A later run that changed one of these settings replaces the value on the nodes of its own selection, unless it was reverted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from math import ceil

from rollout.core.model.conditions import Condition
from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Inventory
from rollout.core.model.live import LiveNode
from rollout.core.model.owned import ComparedNode, OwnedStanding
from rollout.core.model.plan import Plan, Standing, WantedSetting
from rollout.core.model.settings import Setting
from rollout.core.model.verification import ChangeStanding, NodeCheck
from rollout.core.text.documents import seconds_of
from rollout.core.text.nodesets import left_of
from rollout.core.text.terminal import seconds_text, wall
from rollout.core.text.wanted_settings import as_setting
from rollout.errors import Place

MACHINE_REPLACED = "machine-replaced"
"""The reference of a verification for a node with another machine-id than the one that a run confirmed."""


@dataclass(frozen=True, slots=True)
class CountingRun:
    """A run with settings that count. ``limit``: the selection of its plan. ``is_owned``: else it is a later run.

    ``within``: a run that did not finish counts on these nodes only (``None``: on its whole selection). ``reverted``: nodes
    where a rollback has reverted it.
    """

    run: str
    playbook: str
    limit: str
    wanted: tuple[WantedSetting, ...]
    is_owned: bool = True
    within: frozenset[str] | None = None
    reverted: frozenset[str] = frozenset()

    def nodes(self, inventory: Inventory) -> frozenset[str]:
        """The nodes of its selection now, or those where it counts."""
        chosen = frozenset(left_of(self.limit, inventory))
        if self.is_owned:
            return chosen
        return (chosen if self.within is None else chosen & self.within) - self.reverted


@dataclass(frozen=True, slots=True)
class OwnedOnNode:
    """What a node must have. ``playbooks``: those of all owned runs for it, that of the newest run first, each with its newest run."""

    playbooks: Mapping[str, str]
    settings: Mapping[str, Setting]


def owned_nodes(runs: Iterable[CountingRun], inventory: Inventory) -> Mapping[str, OwnedOnNode]:
    """Node of the inventory → what it must have; nodes without an owned setting are missing. ``runs``: the oldest first."""
    values: dict[str, dict[str, Setting]] = {}
    owners: dict[str, dict[str, CountingRun]] = {}
    for run in runs:
        nodes = run.nodes(inventory)
        for wanted in run.wanted:
            setting = as_setting(wanted, f"run {run.run}")
            for name in nodes & frozenset(left_of(wanted.selection, inventory)):
                if run.is_owned or wanted.name in values.get(name, {}):
                    values.setdefault(name, {})[wanted.name] = setting
                    owners.setdefault(name, {}).update({run.run: run} if run.is_owned else {})
    return {
        name: OwnedOnNode(_with_newest_run(reversed(owners[name].values())), values[name])
        for name in inventory.nodes
        if name in values
    }


def _with_newest_run(newest_first: Iterable[CountingRun]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for run in newest_first:
        found.setdefault(run.playbook, run.run)
    return found


def compared_nodes(
    plan: Plan, checks: Mapping[str, NodeCheck], changed: Mapping[str, str], joined: Mapping[str, str]
) -> Iterator[ComparedNode]:
    """The nodes of a plan for the owned settings: a node that it would change lacks one of them.

    ``checks``: what a verification found. ``changed``: node → the newest run of the journal with a change in force there.
    ``joined``: node → when its Node was made.
    """
    reasons = {
        group.name: "; ".join(dict.fromkeys(reason for file in group.change.files for reason in file.reasons))
        for group in plan.groups
    }
    for name, node in plan.nodes.items():
        yield _lacking(name, reasons[node.group], checks.get(name), changed, joined.get(name, ""))
    for left in plan.left:
        yield ComparedNode(
            left.name,
            _replaced(checks.get(left.name)) if left.standing is Standing.AS_WANTED else _PASSED_OVER[left.standing],
            reference="" if left.standing is Standing.AS_WANTED else left.reference,
            evidence="" if left.standing is Standing.AS_WANTED else left.reason,
            joined=joined.get(left.name, ""),
        )


_PASSED_OVER = {
    Standing.SKIPPED: OwnedStanding.LEFT_ALONE,
    Standing.REFUSED: OwnedStanding.NOT_COMPARED,
    Standing.UNREACHABLE: OwnedStanding.NOT_READABLE,
}


def _replaced(check: NodeCheck | None) -> OwnedStanding:
    is_replaced = check is not None and any(drift.reference == MACHINE_REPLACED for drift in check.drifts)
    return OwnedStanding.REPLACED if is_replaced else OwnedStanding.AS_WANTED


def without_replaced(checks: Mapping[str, NodeCheck], nodes: Iterable[ComparedNode]) -> Mapping[str, NodeCheck]:
    """A machine that replaced another one and has the owned settings is a new node: no receipt is missing there."""
    new = {each.name for each in nodes if each.standing is OwnedStanding.REPLACED and not each.lacks}
    return {
        name: replace(check, drifts=tuple(each for each in check.drifts if each.reference != MACHINE_REPLACED))
        if name in new
        else check
        for name, check in checks.items()
    }


def _lacking(name: str, reasons: str, check: NodeCheck | None, changed: Mapping[str, str], joined: str) -> ComparedNode:
    if check is None:
        why = "its receipts could not be read"
        return ComparedNode(
            name, OwnedStanding.NOT_READABLE, lacks=True, reference="receipts-unread", evidence=why, joined=joined
        )
    if _replaced(check) is OwnedStanding.REPLACED:
        return ComparedNode(name, OwnedStanding.REPLACED, lacks=True, evidence=reasons, joined=joined)
    if check.standing is ChangeStanding.NEVER and name not in changed:
        return ComparedNode(name, OwnedStanding.NEVER_CHANGED, lacks=True, evidence=reasons, joined=joined)
    if check.standing is ChangeStanding.REVERTED:
        return ComparedNode(
            name, OwnedStanding.DRIFTED, lacks=True, reference="change-reverted", evidence=reasons, joined=joined
        )
    drift = next(iter(check.drifts), None)
    by = (drift.reference, f"{drift.place}: {drift.evidence}") if drift is not None else ("another-value", reasons)
    return ComparedNode(name, OwnedStanding.DRIFTED, lacks=True, reference=by[0], evidence=by[1], joined=joined)


# What the playbook lets a timer do for nodes that joined.


class NewcomersThen(StrEnum):
    """From least to most."""

    REPORT = "report"
    PLAN = "plan"
    APPLY = "apply"


@dataclass(frozen=True, slots=True)
class NewcomerRule(Condition):
    """What `rollout newcomers` does by itself. A node is planned once its Node is Ready for ``ready_for_seconds``."""

    place: Place
    then: NewcomersThen
    ready_for_seconds: float

    key = "newcomers"

    def lines(self) -> Iterator[str]:
        yield f"nodes that join later: {self.then} by `rollout newcomers`, once Ready for {seconds_text(self.ready_for_seconds)}"


def newcomers_then(rules: Sequence[NewcomerRule]) -> tuple[NewcomersThen, float]:
    """What the rules of playbook and inventory allow together, and for how long a Node must be Ready."""
    order = list(NewcomersThen)
    then = min((each.then for each in rules), key=order.index, default=NewcomersThen.REPORT)
    return then, max((each.ready_for_seconds for each in rules), default=0.0)


def why_not_yet(node: LiveNode | None, ready_for: float, now: float) -> str:
    """Why a node that joined is not planned yet; ``""``: it is Ready for long enough. ``now``: seconds since the epoch."""
    if ready_for <= 0:
        return ""
    if node is None:
        return "the API server has no Node of this name"
    since = seconds_of(node.ready_since)
    if node.ready != "True":
        return "its Node is not Ready" if since is None else f"its Node is not Ready since {wall(since)}"
    if since is None:
        return "the API server does not report since when its Node is Ready"
    if now - since < ready_for:
        planned_from = wall(
            ceil((since + ready_for) / 60) * 60
        )  # by the minute: nodes that joined together are one line
        return f"its Node has been Ready for less than {seconds_text(ready_for)}; planned from {planned_from} on"
    return ""
