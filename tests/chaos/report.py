"""The report of runs: a line each, the details of runs with findings, and the page ``results/reliability.md``."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.chaos.draws import Kind
from tests.chaos.findings import Harm
from tests.chaos.site import CLUSTER, Site
from tests.chaos.trial import Result
from tests.places import ROOT

PAGE = ROOT / "results/reliability.md"
HEADS = {
    "embedded": Path(__file__).with_name("reliability.md.head"),
    "dask": Path(__file__).with_name("reliability.regions.md.head"),
}
"""The written text of each engine's part of the page."""
PART = "\n## Nodes behind the workers of regions\n"
"""The second part begins with it."""
COLUMNS = (
    "fault", "runs", "struck in the run", "resumed", "reverted by guard or boot", "ended with new files", "worst s",
    "lost nodes", "untrue", "over a limit", "left behind", "did not end",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of the measurement."""

    date: str
    machine: str
    versions: str
    command: str
    minutes: float
    engine: str = "embedded"


def conditions(seed: int, runs: int, fleets: int, seconds: float, engine: str) -> Conditions:
    cpu = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.machine(),
    )
    return Conditions(
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        machine=f"{os.cpu_count()} processors ({cpu}), Linux {platform.release()}",
        versions=f"rollout {_first('git', 'rev-parse', '--short', 'HEAD')}, Python {platform.python_version()}, "
        f"{_first('systemd-nspawn', '--version')}",
        command=f"make chaos {'' if engine == 'embedded' else f'ENGINE={engine} '}RUNS={runs} SEED={seed} FLEETS={fleets}",
        engine=engine,
        minutes=seconds / 60,
    )


def _first(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    return (done.stdout.splitlines() or ["?"])[0]


def table(results: Sequence[Result]) -> Iterator[str]:
    """A row for each kind, then the total."""
    yield _row(*COLUMNS)
    yield _row(*("---",) * len(COLUMNS))
    for kind in Kind:
        if mine := [result for result in results if result.draw.kind is kind]:
            yield _counted(kind, mine)
    yield _counted("all", results)


def _counted(what: str, results: Sequence[Result]) -> str:
    return _row(
        what,
        len(results),
        sum(result.reached for result in results),
        sum(result.resumed > 0 for result in results),
        sum(result.saved_themselves for result in results),
        sum(result.confirmed for result in results),
        f"{max((result.longest for result in results), default=0.0):.1f}",
        *(sum(result.count(harm) for result in results) for harm in Harm),
    )


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def story(result: Result, site: Site) -> str:
    """One line, or for a run with findings everything that is known."""
    when = f"after {result.at:.1f} s" + ("" if result.reached else ", when it was over")
    head = (
        f"{'ok ' if not result.findings else 'BAD'} {result.draw}; struck {when}; resumed {result.resumed}, "
        f"saved themselves {result.saved_themselves}, new {result.confirmed}, {result.longest:.1f} s, took {result.took:.0f} s; "
        f"{', '.join(word for word in result.words.values() if word != 'confirmed []')}"
    )
    return "\n".join([head, *_whole_story(result, site)]) if result.findings else head


def _whole_story(result: Result, site: Site) -> Iterator[str]:
    yield from (f"    {finding}" for finding in result.findings)
    engine = "--engine dask " if site.engine else ""
    yield f"    again: python -m tests.chaos {engine}--run {result.draw.number} --seed {result.draw.seed}"
    for state in (site.state, "other", "emergency"):
        journal = site.journal(state)
        for header in reversed(journal.runs(CLUSTER)):
            yield f"    journal {state}: {header.run} ({header.goal}), began {header.at:.1f}"
            yield from (f"        {_event(json.loads(event), header.at)}" for event in journal.events(header.run))
    for seen in result.seen:
        yield f"    {seen.node}: token {' '.join(seen.token)}"
        yield from (
            f"        {' '.join(f'{key}={value}' for key, value in receipt.items())}" for receipt in seen.receipts
        )
        yield from (
            f"        {path}: {what}" for path, what in seen.tree.items() if path in site.known[seen.node].targets
        )
    yield from (f"    | {line}" for line in site.said().splitlines())


def _event(event: dict[str, Any], began: float) -> str:
    words = (event.get(key) for key in ("node", "verb", "trigger", "reference", "message", "leftovers", "counter"))
    return f"{event['at'] - began:7.1f} {event['event']} {' '.join(str(word) for word in words if word)}"[:400]


def part(results: Sequence[Result], around: Conditions) -> str:
    """The part of the page about this engine: the written text, and the measurements."""
    facts = f"{around.date}, {around.machine}; {around.versions}; {around.minutes:.0f} minutes; `{around.command}`."
    counted = f"The nodes counted {sum(result.applied for result in results)} changes of their files."
    return f"{HEADS[around.engine].read_text()}\n{facts} {counted}\n\n" + "\n".join(table(results)) + "\n"


def page(before: str, results: Sequence[Result], around: Conditions) -> str:
    """The whole page, with the part of this engine exchanged."""
    first, _, second = before.partition(PART)
    if around.engine == "embedded":
        first = part(results, around)
        return f"{first}{PART}{second}" if second else first
    return first + part(results, around)


def write(results: Sequence[Result], around: Conditions) -> None:
    PAGE.write_text(page(PAGE.read_text(), results, around))
