"""``prepull`` and ``diagnose probe``: images pulled on nodes through their own runtimes, bounded and timed."""

from __future__ import annotations

from dataclasses import dataclass

import click

from rollout.cli.options import limit_option, reason_option, session_options, typed_confirmation, yes_option
from rollout.cli.project import cluster_option
from rollout.cli.proposals import say
from rollout.cli.registry import registered
from rollout.composition.wiring import Session
from rollout.core.text import documents, durations
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable
from rollout.errors import UsageError
from rollout.features.diagnose.asking.hand_pulls import HandPulls, HandPullsEnd, pull_by_hand
from rollout.features.diagnose.asking.prepulls import (
    NotPulled,
    PullsDocument,
    checked_images,
    folded_unknown,
    pulls_document,
)
from rollout.features.diagnose.rules.finding import ProposalTarget
from rollout.features.diagnose.rules.timed_pulls import TimedPull, conclusions, pull_line

LONGEST = 24 * 3600.0
TENTHS = 10
_images = click.argument("images", nargs=-1, required=True, metavar="IMAGE...")
_timeout = click.option("--timeout", default="10m", show_default=True, help="Time limit for each pull on each node.")
_per_registry = click.option(
    "--per-registry",
    type=click.IntRange(1, 100),
    default=10,
    show_default=True,
    help="The most nodes that pull at once; the limit of each rack also holds. Images are pulled one after the other.",
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
@click.option(
    "--nodes-per-kind", type=click.IntRange(1, 20), default=2, show_default=True, help="Number of nodes of each kind."
)
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
    wanted = HandPulls(
        "probe", checked_images(images), limit, _seconds(timeout), per_registry, nodes_per_kind, watched=True
    )  # fmt: skip
    return _pulled(session, cluster, wanted, yes=yes)


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
    wanted = HandPulls("prepull", checked_images(images), limit, _seconds(timeout), per_registry)
    return _pulled(session, cluster, wanted, yes=yes)


def _pulled(session: Session, cluster: str, wanted: HandPulls, *, yes: bool) -> int:
    """The exit code."""
    screen = _Screen(cluster, json=session.output == "json", yes=yes, each_pull=wanted.watched)
    return pull_by_hand(session, screen, session.inventory(cluster), wanted).exit_code


@dataclass(slots=True)
class _Screen:
    """What the operator sees. ``each_pull``: each one is listed at the end, too."""

    cluster: str
    json: bool
    yes: bool
    each_pull: bool
    whole: int = 0
    done: int = 0

    def begins(self, what: str, pulls: int) -> None:
        self.whole = pulls
        say(f"{what}. Images stay on the nodes: rollout does not remove them.")

    def confirm(self, cluster: str, what: str) -> None:
        typed_confirmation(cluster, what, yes=self.yes)

    def warn(self, text: str) -> None:
        say(text, err=True)

    def heard(self, found: TimedPull | NotPulled) -> None:
        """A line for each tenth of the pulls, and one for each that failed, on standard error."""
        before, self.done = self.done, self.done + 1
        if self.json:
            return
        if isinstance(found, TimedPull) and not found.there:
            say(printable(pull_line(found), 500), err=True)
        if self.done * TENTHS // self.whole > before * TENTHS // self.whole:
            say(f"{self.done} of {counted(self.whole, 'pull')}", err=True)

    def ended(self, end: HandPullsEnd) -> None:
        target, found = ProposalTarget(self.cluster), end.pulled
        if self.json:
            click.echo(documents.page(pulls_document(found, target)))
            return
        for pull in found.pulls if self.each_pull else ():
            say(printable(pull_line(pull), 500))
        for image, why, names in folded_unknown(found.unknown):
            say(printable(f"{fold(names)}: {image or 'nothing pulled'}: {why}", 500))
        for line in conclusions(found.pulls, target):
            say(printable(line, 1000))
        say(end.counts)


def _seconds(text: str) -> float:
    try:
        seconds = durations.parse(text)
    except durations.DurationError as error:
        raise UsageError("bad-duration", f"--timeout {printable(text, 60)!r}: {error}") from None
    if not 1 <= seconds <= LONGEST:
        raise UsageError("bad-duration", f"--timeout {printable(text, 60)!r}: it must be from 1s to 24h")
    return seconds
