"""Pulls that an operator asks for: one image after the other, on many nodes at once, within the limits of a run.

Because one image is pulled at a time, the number of nodes in flight is also the number of pulls from its registry. A node
that has the image already pulls nothing, so a call that was interrupted is continued by the same call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rollout.app.node_access import NodeAccess, only
from rollout.app.operator_commands import Commanded, OperatorCommand, run_on_all
from rollout.app.ports import Nodes
from rollout.core.model.inventory import Inventory, Node
from rollout.core.model.report import CommandResult
from rollout.core.model.snapshot import FleetSnapshot, Snapshot, Unread
from rollout.core.run.at_once import AtOnce
from rollout.core.text.message_folding import for_all, nameless
from rollout.core.text.terminal import printable
from rollout.errors import InputError, Problem
from rollout.features.diagnose.rules.finding import ProposalTarget
from rollout.features.diagnose.rules.timed_pulls import (
    PullWay,
    ShownPull,
    TimedPull,
    conclusions,
    is_image,
    pull_command,
    timed_pull,
)
from rollout.kubelet import versions
from rollout.kubelet.intents import DEADLINE
from rollout.kubelet.node import sources
from rollout.kubelet.node.layout import LayoutError
from rollout.kubelet.runtimes import known

MARGIN = 30.0
"""Seconds beyond the pull's own, in which the node must have answered."""


@dataclass(frozen=True, slots=True)
class NotPulled:
    """A node on which nothing is known of a pull, and why. ``image``: ``""`` for all of them."""

    node: str
    image: str
    why: str


@dataclass(frozen=True, slots=True)
class PullOrder:
    """What to pull where. ``watched``: with the tool that shows progress, where there is one; ``seconds``: for each pull."""

    images: tuple[str, ...]
    ways: Mapping[str, PullWay]
    seconds: float
    watched: bool


@dataclass(slots=True)
class Pulled:
    """How far it is. ``left``: pulls that were not started."""

    pulls: list[TimedPull] = field(default_factory=list)
    unknown: list[NotPulled] = field(default_factory=list)
    left: int = 0

    def add(self, found: TimedPull | NotPulled) -> None:
        self.left -= 1
        if isinstance(found, TimedPull):
            self.pulls.append(found)
        else:
            self.unknown.append(found)

    @property
    def good(self) -> bool:
        return not self.unknown and not self.left and all(pull.there for pull in self.pulls)


@dataclass(frozen=True, slots=True)
class PullsDocument:
    """``not_started``: how many pulls; ``conclusions``: sentences for people, and the plan that is proposed."""

    pulls: tuple[ShownPull, ...]
    unknown: tuple[NotPulled, ...]
    not_started: int
    conclusions: tuple[str, ...]


def pulls_document(found: Pulled, target: ProposalTarget) -> PullsDocument:
    return PullsDocument(
        pulls=tuple(found.pulls),
        unknown=tuple(replace(each, why=printable(each.why, 300)) for each in found.unknown),
        not_started=found.left,
        conclusions=tuple(conclusions(found.pulls, target)),
    )


def checked_images(images: Sequence[str]) -> tuple[str, ...]:
    """Each once. ``InputError`` for what is not a plain reference; it is not repeated, because it may hold a password."""
    wrong = [number for number, image in enumerate(images, 1) if not is_image(image)]
    if wrong:
        raise InputError(
            tuple(
                Problem(
                    "bad-image", f"image {number} is not a reference such as registry.example/team/app:1",
                    hint="no scheme, no user and no password: the node's runtime has its own credentials",
                )
                for number in wrong
            )
        )  # fmt: skip
    return tuple(dict.fromkeys(images))


def ways_of(fleet: FleetSnapshot) -> tuple[dict[str, PullWay], tuple[NotPulled, ...]]:
    """How each node pulls, and the nodes that could not be read."""
    ways: dict[str, PullWay] = {}
    unread: list[NotPulled] = []
    for name, node in fleet.nodes.items():
        try:
            ways[name] = way_of(node)
        except LayoutError as error:
            unread.append(NotPulled(name, "", f"{error} [{error.reference}]"))
    return ways, tuple(unread)


def way_of(node: Snapshot | Unread) -> PullWay:
    """Raises ``LayoutError`` for a node that was not read, or that is not understood."""
    if isinstance(node, Unread):
        raise LayoutError(node.reference, node.message)
    version = versions.parse(node.kubelet_version)
    if version is None:
        raise LayoutError("kubelet-version-unknown", f"kubelet {node.kubelet_version or 'without a version'}")
    here = sources.find(node, version, Node(node.node, "", "", ""))
    runtime = known.runtime_of(here)
    of_runtime = known.describe(runtime).version(node.runtimes)
    refused = known.refusal(DEADLINE, runtime, of_runtime)
    why = refused[1] if refused and of_runtime is not None else ""  # the plan finds out what is not known here
    return PullWay(runtime, known.endpoint_of(here).removeprefix("unix://"), why)


def few_of_each_kind(inventory: Inventory, fleet: FleetSnapshot, most: int) -> tuple[str, ...]:
    """At most ``most`` nodes of each kubelet minor and runtime, from different racks where possible."""
    kinds: dict[tuple[object, ...], list[str]] = {}
    ways, _ = ways_of(fleet)
    for name in ways:
        node = fleet.nodes[name]
        version = versions.parse(node.kubelet_version) if isinstance(node, Snapshot) else None
        kinds.setdefault((version.minor if version else 0, ways[name].runtime), []).append(name)
    return tuple(name for names in kinds.values() for name in _spread(inventory, names)[:most])


def _spread(inventory: Inventory, names: Sequence[str]) -> list[str]:
    """The first node of each rack, then the second ones."""
    place: dict[str, int] = {}
    order: list[tuple[int, str]] = []
    for name in names:
        rack = inventory.nodes[name].rack
        place[rack] = place.get(rack, 0) + 1
        order.append((place[rack], name))
    return [name for _, name in sorted(order, key=lambda entry: entry[0])]


def pull_on_all(
    access: NodeAccess,
    nodes: Nodes,
    order: PullOrder,
    bounds: AtOnce,
    so_far: Pulled,
    *,
    stopping: Callable[[], bool],
    heard: Callable[[TimedPull | NotPulled], None],
) -> None:
    """``so_far`` is kept up to date also when an exception ends this; ``heard`` gets each result at once."""
    so_far.left = len(order.ways) * len(order.images)
    for image in order.images:
        commanded = Commanded(list(order.ways))

        def command(name: str, image: str = image) -> OperatorCommand:
            line = pull_command(image, order.ways[name], order.seconds, watched=order.watched)
            return OperatorCommand(line, order.seconds + MARGIN, sudo=True)

        def result(answer: CommandResult, image: str = image) -> None:
            pull = _read(answer, image, order.ways[answer.node].no_deadline)
            so_far.add(pull)
            heard(pull)

        run_on_all(only(access, order.ways), nodes, command, bounds, commanded, stopping=stopping, heard=result)


def _read(answer: CommandResult, image: str, no_deadline: str) -> TimedPull | NotPulled:
    pull = timed_pull(answer.node, image, answer.stdout.decode("utf-8", "replace"))
    if pull is not None:
        return replace(pull, no_deadline=no_deadline)
    why = f"{answer.message} [{answer.reference}]" if answer.reference else "the answer is not whole"
    return NotPulled(answer.node, image, why)


def folded_unknown(unknown: Sequence[NotPulled]) -> Iterator[tuple[str, str, list[str]]]:
    """Image, reason, nodes."""
    by: dict[tuple[str, str], list[str]] = {}
    for each in unknown:
        by.setdefault((each.image, nameless(each.why, each.node)), []).append(each.node)
    return ((image, for_all(why, names), names) for (image, why), names in by.items())
