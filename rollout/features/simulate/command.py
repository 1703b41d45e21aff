"""``simulate``: rehearses a plan offline, prints the story of one seed, or counts the results of many seeds."""

from __future__ import annotations

import gc
import sys
from datetime import datetime
from pathlib import Path

import click

from rollout.adapters.clock import SystemZones
from rollout.cli.project import output_option
from rollout.cli.proposals import say
from rollout.cli.registry import registered
from rollout.composition.kinds import start_times
from rollout.composition.plan_files import plan_in
from rollout.core.model.plan import Plan
from rollout.core.text import documents
from rollout.core.text.nodesets import Names
from rollout.core.text.terminal import printable
from rollout.errors import UsageError
from rollout.simulator.draw import scenario
from rollout.simulator.fault_words import faults_of
from rollout.simulator.forecast import ForecastDocument, foreseen_lines
from rollout.simulator.play import PlayDocument, PlayOutcome
from rollout.simulator.rehearsal import PlanRehearsal
from rollout.simulator.tally import Tally, TallyDocument, page, played_on_all_cores, rows, smallest

LAW_BROKEN = 70
"""Exit code for a broken law, which is a bug in rollout."""


@registered("Rehearse a plan offline on model nodes.", prints=(ForecastDocument, PlayDocument, TallyDocument))
@click.command()
@click.argument("plan_file", required=False, metavar="[PLAN]", type=click.Path(path_type=Path))
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="WHERE: WHAT",
    help="With PLAN: play this fault, such as 'rack12: 3% unhealthy at 10m'.",
)
@click.option(
    "--at", default="", metavar="TIME", help="With PLAN: when the run begins, such as 2026-11-27T20:00Z; default: now."
)
@click.option("--exit-code", is_flag=True, help="With PLAN: exit as `rollout apply` would.")
@click.option("--seed", type=int, default=None, help="Play this seed and print its story.")
@click.option(
    "--seeds", type=click.IntRange(1), default=None, help="Play this many seeds on all cores and count the results."
)
@click.option("--first", type=int, default=0, show_default=True, help="With --seeds: the first seed.")
@click.option("--write", type=click.Path(path_type=Path), default=None, help="With --seeds: write the tables here.")
@output_option
def simulate(
    plan_file: Path | None,
    faults: tuple[str, ...],
    at: str,
    exit_code: bool,  # noqa: FBT001 - click's flag
    seed: int | None,
    seeds: int | None,
    first: int,
    write: Path | None,
    output: str,
) -> int:
    """Rehearse a saved PLAN offline on model nodes; or play random faults (--seed, --seeds) and check every law.

    Example: `rollout simulate rno.plan.json`
    """
    if sum(given is not None for given in (plan_file, seed, seeds)) != 1:
        raise UsageError("plan-or-seed", "give a plan file, --seed or --seeds")
    if plan_file is None and (faults or at or exit_code):
        raise UsageError("plan-or-seed", "--fault, --at and --exit-code need a plan file")
    if plan_file is not None:
        code = _rehearse(plan_file, faults, at, output)
        return code if exit_code else 0
    if seed is not None:
        return _tell(smallest(scenario(seed)), output)
    return _count(first, seeds or 0, write, output)


def _rehearse(path: Path, said: tuple[str, ...], at: str, output: str) -> int:
    plan = plan_in(path)
    if not plan.nodes:
        raise UsageError("nothing-to-rehearse", f"{path} changes no node")
    zones = SystemZones()
    start = _seconds(at) if at else zones.wall_seconds()
    rehearsal = PlanRehearsal(plan, faults_of(said, _names(plan)), start=start, zones=zones, times=start_times)
    gc.disable()  # a rehearsal makes values that stay, and hardly a cycle to look for
    try:
        found = rehearsal.run()
        if output == "json":
            click.echo(documents.page(ForecastDocument(found)))
        else:
            say("\n".join(foreseen_lines(found)))
    finally:
        gc.enable()
    return found.exit_code or 0


def _seconds(at: str) -> float:
    """Seconds since the epoch of a time with its offset."""
    try:
        found = datetime.fromisoformat(at)
    except ValueError:
        found = datetime.min  # noqa: DTZ901 - has no zone, so it is refused
    if found.tzinfo is None:
        raise UsageError(
            "bad-time", f"--at needs a time with its zone, not `{printable(at, 40)}`", hint="--at 2026-11-27T20:00Z"
        )
    return found.timestamp()


def _names(plan: Plan) -> Names:
    """What a fault may name: the plan's nodes in the order of their release, its racks, zones, waves and groups."""
    sets: dict[str, set[str]] = {wave.name: set(wave.nodes) for wave in plan.waves}
    for node in plan.nodes.values():
        for name in (node.rack, node.zone, node.group):
            sets.setdefault(name, set()).add(node.name)
    return Names([name for wave in plan.waves for name in wave.nodes], sets)


def _tell(outcome: PlayOutcome, output: str) -> int:
    drawn = outcome.scenario
    if output == "json":
        click.echo(documents.page(PlayDocument(outcome)))
    else:
        say(f"seed {drawn.seed}: {len(drawn.order.nodes)} nodes, {outcome.controllers} controllers")
        for fault in drawn.faults:
            say(f"fault: {fault}")
        for line in outcome.story:
            say(printable(str(line), 400))
        say(f"ended: {outcome.ending}; {outcome.broken or 'every law was kept'}")
    return LAW_BROKEN if outcome.broken else 0


def _count(first: int, count: int, write: Path | None, output: str) -> int:
    tally = played_on_all_cores(first, count, _progress if output == "text" and sys.stderr.isatty() else _silent)
    if write is not None:
        write.write_text(page(tally, f"make simulate SEEDS={count}"))
    if output == "json":
        click.echo(documents.page(TallyDocument(tally)))
    else:
        for name, number in rows(tally):
            say(f"{number:>12} {name}")
        for seed, law in sorted(tally.broken.items()):
            say(f"seed {seed}: {law}; `rollout simulate --seed {seed}` prints the story")
    return LAW_BROKEN if tally.broken else 0


def _progress(tally: Tally) -> None:
    say(f"\r{tally.seeds:,} seeds, {len(tally.broken)} broken, {tally.took:.0f} s", nl=False, err=True)


def _silent(_tally: Tally) -> None:
    """No progress is shown."""
