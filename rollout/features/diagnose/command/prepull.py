"""``prepull`` and ``diagnose probe``: images pulled on nodes through their own runtimes, bounded and timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import click

from rollout.app.operator_commands import bounds_of
from rollout.app.planning import read_fleet
from rollout.app.ports import Note
from rollout.app.reading import only
from rollout.cli.options import limit_option, reason_option, session_options, yes_option
from rollout.cli.project import cluster_option
from rollout.cli.proposals import say
from rollout.cli.registry import registered
from rollout.cli.stopping import INTERRUPTED, told_once
from rollout.cli.terminal import Terminal
from rollout.composition.operators import operator
from rollout.composition.wiring import Session, new_run_id
from rollout.core.model.inventory import Inventory
from rollout.core.model.snapshot import FleetSnapshot
from rollout.core.text import documents, durations
from rollout.core.text.nodesets import fold, limited
from rollout.core.text.terminal import counted, printable
from rollout.errors import UsageError
from rollout.features.diagnose.asking.prepulls import (
    NotPulled,
    Pulled,
    PullOrder,
    PullsDocument,
    checked_images,
    few_of_each_kind,
    folded_unknown,
    pull_on_all,
    pulls_document,
    ways_of,
)
from rollout.features.diagnose.rules.finding import ProposalTarget
from rollout.features.diagnose.rules.timed_pulls import PULL_WORDS, PullEnd, TimedPull, conclusions, pull_line

LONGEST = 24 * 3600.0
TENTHS = 10
_images = click.argument("images", nargs=-1, required=True, metavar="IMAGE...")
_timeout = click.option("--timeout", default="10m", show_default=True, help="Time for each pull on each node.")
_per_registry = click.option(
    "--per-registry",
    type=click.IntRange(1, 100),
    default=10,
    show_default=True,
    help="The most pulls at once; images are pulled one after the other. The limit of each rack holds too.",
)


@registered(
    "Measure pulls on a few nodes of each kind.", within="diagnose", prints=(PullsDocument,), needs_output=False
)
@click.command()
@_images
@cluster_option
@limit_option
@_timeout
@_per_registry
@click.option("--nodes-per-kind", type=click.IntRange(1, 20), default=2, show_default=True, help="Nodes of each kind.")
@yes_option
@reason_option
@session_options
def probe(
    session: Session, images: tuple[str, ...], cluster: str, limit: str, timeout: str, per_registry: int, nodes_per_kind: int,
    yes: bool,  # noqa: FBT001 - click's flag
) -> int:  # fmt: skip
    """Pull IMAGES on a few nodes of each kubelet and runtime, and time each pull and its longest time without progress.

    The images stay on these nodes.

    Example: `rollout diagnose probe registry.example.net/shop:1.2 --cluster rno`
    """
    inventory, wanted = session.inventory(cluster), checked_images(images)
    fleet = _read(session, inventory, limit)
    chosen = few_of_each_kind(inventory, fleet, nodes_per_kind)
    return _pulled(_Call(session, inventory, "probe", wanted, _seconds(timeout), per_registry, yes), fleet, chosen)


@registered("Pull images on nodes before their pods need them.", prints=(PullsDocument,), needs_output=False)
@click.command()
@_images
@cluster_option
@limit_option
@_timeout
@_per_registry
@yes_option
@reason_option
@session_options
def prepull(
    session: Session, images: tuple[str, ...], cluster: str, limit: str, timeout: str, per_registry: int,
    yes: bool,  # noqa: FBT001 - click's flag
) -> int:  # fmt: skip
    """Pull IMAGES on nodes before their pods need them. A node that has an image pulls nothing, so the same command continues an interrupted one.

    The images stay on the nodes.

    Example: `rollout prepull registry.example.net/shop:1.2 --cluster rno --limit @rack01`
    """
    inventory, wanted = session.inventory(cluster), checked_images(images)
    fleet = _read(session, inventory, limit)
    return _pulled(
        _Call(session, inventory, "prepull", wanted, _seconds(timeout), per_registry, yes), fleet, tuple(fleet.nodes)
    )


@dataclass(frozen=True, slots=True)
class _Call:
    session: Session
    inventory: Inventory
    name: str
    images: tuple[str, ...]
    seconds: float
    per_registry: int
    yes: bool

    @property
    def watched(self) -> bool:
        """A probe measures silences; a prepull pulls as the kubelet does, where it can."""
        return self.name == "probe"


def _read(session: Session, inventory: Inventory, limit: str) -> FleetSnapshot:
    return read_fleet(session, inventory, limited(limit, inventory))


def _pulled(call: _Call, fleet: FleetSnapshot, chosen: tuple[str, ...]) -> int:
    ways, unread = ways_of(fleet)
    ways = {name: ways[name] for name in chosen if name in ways}
    said = f"{counted(len(call.images), 'image')} on {fold(list(ways))} ({counted(len(ways), 'node')})"
    say(f"{said}. The images stay there: rollout does not remove them.", err=call.session.output == "json")
    so_far = Pulled(unknown=[*unread])
    if ways:
        cluster = call.inventory.cluster
        Terminal(call.session, call.yes).confirm(cluster, f"{counted(len(ways), 'node')} of {cluster} will pull")
    note = _noted(call)
    note(f"{said}: {', '.join(call.images)}{f'; reason: {call.session.reason}' if call.session.reason else ''}")
    stopped = _run(call, PullOrder(call.images, ways, call.seconds, call.watched), so_far) if ways else False
    note(f"ended: {_counts(so_far)}")
    _show(call, so_far)
    return INTERRUPTED if stopped else 0 if so_far.good and ways else 4


def _noted(call: _Call) -> Callable[[str], None]:
    journal, name = call.session.journal(), f"{call.name} {new_run_id()}"
    cluster = call.inventory.cluster
    return lambda text: journal.note(cluster, Note(time.time(), operator(), f"{name}: {text}"))


def _run(call: _Call, order: PullOrder, so_far: Pulled) -> bool:
    """Whether Ctrl-C ended it early."""
    interrupts = call.session.interruption()
    interrupts.install()
    names = tuple(order.ways)
    access, nodes = call.session.access(call.inventory, names), call.session.command_nodes()
    heard = _Progress(call.session.output == "text", len(names) * len(order.images))
    try:
        pull_on_all(
            only(access, names), nodes, order, bounds_of(call.inventory, names, call.per_registry), so_far,
            stopping=told_once(interrupts.asked), heard=heard,
        )  # fmt: skip
    except KeyboardInterrupt:  # the second Ctrl-C
        return True
    nodes.close()
    return interrupts.asked()


@dataclass(slots=True)
class _Progress:
    """A line for each tenth of the pulls, and one for each that failed, on standard error."""

    text: bool
    whole: int
    done: int = 0

    def __call__(self, found: TimedPull | NotPulled) -> None:
        before, self.done = self.done, self.done + 1
        if self.text and isinstance(found, TimedPull) and not found.there:
            say(printable(pull_line(found), 500), err=True)
        if self.text and self.done * TENTHS // self.whole > before * TENTHS // self.whole:
            say(f"{self.done} of {counted(self.whole, 'pull')}", err=True)


def _show(call: _Call, so_far: Pulled) -> None:
    order = ProposalTarget(call.inventory.cluster)
    if call.session.output == "json":
        click.echo(documents.page(pulls_document(so_far, order)))
        return
    for pull in so_far.pulls if call.watched else ():
        say(printable(pull_line(pull), 500))
    for image, why, names in folded_unknown(so_far.unknown):
        say(printable(f"{fold(names)}: {image or 'nothing pulled'}: {why}", 500))
    for line in conclusions(so_far.pulls, order):
        say(printable(line, 1000))
    say(_counts(so_far))


def _counts(so_far: Pulled) -> str:
    ends = [(end, sum(pull.end is end for pull in so_far.pulls)) for end in PullEnd]
    parts = [f"{count} {PULL_WORDS[end]}" for end, count in ends if count]
    parts += [f"{len(so_far.unknown)} unknown"] if so_far.unknown else []
    parts += [f"{so_far.left} not started"] if so_far.left else []
    return f"{counted(len(so_far.pulls) + len(so_far.unknown) + so_far.left, 'pull')}: {', '.join(parts) or 'none'}"


def _seconds(text: str) -> float:
    try:
        seconds = durations.parse(text)
    except durations.DurationError as error:
        raise UsageError("bad-duration", f"--timeout {printable(text, 60)!r}: {error}") from None
    if not 1 <= seconds <= LONGEST:
        raise UsageError("bad-duration", f"--timeout {printable(text, 60)!r}: it must be from 1s to 24h")
    return seconds
