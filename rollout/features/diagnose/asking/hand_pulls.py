"""Pulls the images that an operator names, on nodes that are read first; the journal records the start and the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from rollout.app.node_access import only
from rollout.app.operator_commands import INTERRUPTED, CommandPorts, bounds_of, told_once
from rollout.app.planning import read_fleet
from rollout.app.ports import Note
from rollout.core.model.inventory import Inventory
from rollout.core.text.nodesets import fold, limited
from rollout.core.text.terminal import counted
from rollout.features.diagnose.asking.prepulls import (
    NotPulled,
    Pulled,
    PullOrder,
    few_of_each_kind,
    pull_on_all,
    ways_of,
)
from rollout.features.diagnose.rules.timed_pulls import PULL_WORDS, PullEnd, TimedPull


@dataclass(frozen=True, slots=True)
class HandPulls:
    """What to pull where.

    ``name``: of the command, for the journal. ``limit``: a nodeset, ``""``: all nodes. ``seconds``: for each pull.
    ``per_registry``: the most pulls at once. ``nodes_per_kind``: of each kubelet minor and runtime only so many nodes,
    ``None``: all. ``watched``: with the tool that shows progress, where there is one.
    """

    name: str
    images: tuple[str, ...]
    limit: str
    seconds: float
    per_registry: int
    nodes_per_kind: int | None = None
    watched: bool = False


@dataclass(frozen=True, slots=True)
class HandPullsEnd:
    """``tried``: at least one node could pull."""

    pulled: Pulled
    tried: bool
    interrupted: bool

    @property
    def exit_code(self) -> int:
        if self.interrupted:
            return INTERRUPTED
        return 0 if self.pulled.good and self.tried else 4

    @property
    def counts(self) -> str:
        """How many pulls ended in which way."""
        found = self.pulled
        ends = [(end, sum(pull.end is end for pull in found.pulls)) for end in PullEnd]
        parts = [f"{count} {PULL_WORDS[end]}" for end, count in ends if count]
        parts += [f"{len(found.unknown)} unknown"] if found.unknown else []
        parts += [f"{found.left} not started"] if found.left else []
        whole = len(found.pulls) + len(found.unknown) + found.left
        return f"{counted(whole, 'pull')}: {', '.join(parts) or 'none'}"


class PullObserver(Protocol):
    """Shows the operator what happens. Only ``confirm`` may raise."""

    def begins(self, what: str, pulls: int) -> None:
        """Which nodes will pull how many images, and how many pulls that makes."""
        ...

    def confirm(self, cluster: str, what: str) -> None:
        """``UsageError`` ``not-confirmed``, and nothing is pulled."""
        ...

    def warn(self, text: str) -> None: ...

    def heard(self, found: TimedPull | NotPulled) -> None:
        """Of each pull, as soon as it has ended."""
        ...

    def ended(self, end: HandPullsEnd) -> None:
        """Called before the end is recorded: it is shown also if the journal is away by then."""
        ...


def pull_by_hand(call: CommandPorts, observer: PullObserver, inventory: Inventory, wanted: HandPulls) -> HandPullsEnd:
    """Read the nodes, ask the operator, pull, and record. ``UsageError``: not confirmed, or no such nodes."""
    cluster = inventory.cluster
    fleet = read_fleet(call, inventory, limited(wanted.limit, inventory))
    ways, unread = ways_of(fleet)
    if wanted.nodes_per_kind is not None:
        ways = {name: ways[name] for name in few_of_each_kind(inventory, fleet, wanted.nodes_per_kind)}
    order = PullOrder(wanted.images, ways, wanted.seconds, wanted.watched)
    images, nodes = counted(len(wanted.images), "image"), f"{fold(list(ways))} ({counted(len(ways), 'node')})"
    observer.begins(f"{nodes} will pull {images}" if ways else "no node will pull", len(ways) * len(wanted.images))
    so_far = Pulled(unknown=[*unread])
    if ways:
        observer.confirm(cluster, f"{counted(len(ways), 'node')} of {cluster} will pull {images}")
    journal, name = call.journal(), f"{wanted.name} {call.new_run_id()}"

    def note(text: str) -> None:
        journal.note(cluster, Note(call.zones.wall_seconds(), call.who, f"{name}: {text}"))

    note(f"{images} on {nodes}: {', '.join(wanted.images)}{f'; reason: {call.reason}' if call.reason else ''}")
    interrupted = bool(ways) and _pull(call, observer, inventory, order, so_far, wanted.per_registry)
    end = HandPullsEnd(so_far, tried=bool(ways), interrupted=interrupted)
    observer.ended(end)
    note(f"ended: {end.counts}")
    return end


def _pull(
    call: CommandPorts, observer: PullObserver, inventory: Inventory, order: PullOrder, so_far: Pulled, at_once: int
) -> bool:
    """Whether Ctrl-C ended it early."""
    interrupts = call.interruption()
    interrupts.install()
    names = tuple(order.ways)
    access, nodes = call.access(inventory, names), call.command_nodes()
    try:
        pull_on_all(
            only(access, names), nodes, order, bounds_of(inventory, names, at_once), so_far,
            stopping=told_once(interrupts.asked, observer.warn), heard=observer.heard,
        )  # fmt: skip
    except KeyboardInterrupt:  # the second Ctrl-C
        return True
    nodes.close()
    return interrupts.asked()
