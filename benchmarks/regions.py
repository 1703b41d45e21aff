"""``make simulate-regions``: one run over 100,000 model nodes in 20 regions behind a WAN, on virtual time.

The run machine is the real one. Nodes and links are the simulator's: each region has a delay of its own, and one is cut
off in the middle of the last wave. Bytes are those of the real messages, for a plan of the shipped playbook's size.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rollout.app.ports import Target
from rollout.core.model.playbook import Limits, Share
from rollout.core.model.report import RemoteAnswer
from rollout.core.run.state import NodeState, Order, RunState, Verb
from rollout.features.regions.client.exchanges import LONGEST_PAUSE
from rollout.features.regions.client.messages import (
    CallAnswer,
    Exchange,
    VerbCall,
    encode_answer,
    encode_exchange,
    encode_reply,
)
from rollout.simulator.fleet import ModelLink
from tests.orders import make_order
from tests.plays import Drive

REGIONS = 20
RACK = 50
LAN = 0.005
"""Seconds that a message needs between a worker and its nodes."""

NEAREST, FARTHEST = 0.002, 0.15
"""Seconds that a message needs between the controller and the first and the last region."""

WAIT = LONGEST_PAUSE / 2
"""Seconds that a call or an answer waits for the message that carries it, on average: many calls are in progress."""

GRAIN = 0.25
"""Seconds of answers that the driver takes together."""

CUT_AFTER, CUT_SECONDS = 400.0, 600.0
CUT_REGION = "region-07"
LIMITS = Limits(per_rack=Share(percent=10.0), in_flight=2000, pace=200.0)

PAYLOADS = {Verb.APPLY: 6000}
"""Bytes of a verb's payload: two files of a kubelet, in base64."""

ANSWERS = {Verb.READ: 400, Verb.APPLY: 500, Verb.MEASURE: 1800, Verb.CONFIRM: 200, Verb.REVERT: 400, Verb.CLEAN: 200}
"""Bytes of an agent's answer, about."""


@dataclass(frozen=True, slots=True)
class RegionsPlayed:
    """One run. ``seconds``: of the fleet's time; ``took``: of this machine's. ``states``: region → state → nodes."""

    seconds: float
    took: float
    messages: int
    sent: int
    ending: str
    halt: str
    states: Mapping[str, Mapping[str, int]]
    guards: int


def region_of(name: str) -> str:
    return name.partition("/")[0]


def fleet_order(nodes: int) -> Order:
    racks = {
        f"region-{region:02}/rack-{rack:03}": RACK
        for region in range(REGIONS)
        for rack in range(nodes // REGIONS // RACK)
    }
    waves = (
        ("canary", lambda name: name.endswith("/rack-000-1")),
        ("per rack", lambda name: name.endswith("-1")),
        ("rest", lambda _name: True),
    )
    return make_order(racks, waves, limits=LIMITS, zone_of={rack: region_of(rack) for rack in racks}, soak=60.0)


def play(nodes: int, *, cut: bool, cut_after: float = CUT_AFTER) -> RegionsPlayed:
    began = time.monotonic()
    order = fleet_order(nodes)
    drive = Drive(order)
    drive.grain = GRAIN
    for name in order.nodes:
        region = int(region_of(name)[-2:])
        wan = NEAREST + (FARTHEST - NEAREST) * region / (REGIONS - 1)
        drive.links[name] = ModelLink(wan + LAN + WAIT)
        if cut and region_of(name) == CUT_REGION:
            drive.links[name].cuts.append((cut_after, cut_after + CUT_SECONDS))
    end = drive.run(patience=1e6)
    return RegionsPlayed(
        drive.now,
        time.monotonic() - began,
        2 * len(drive.asked),
        sum(_bytes(ask.node, ask.verb) for ask in drive.asked),
        str(end.ending),
        end.halt.message if end.halt else "",
        _states(end),
        sum(1 for node in drive.nodes.values() if node.under_way is not None),
    )


def _states(end: RunState) -> Mapping[str, Mapping[str, int]]:
    found: dict[str, Counter[str]] = {}
    for name, record in end.nodes.items():
        found.setdefault(region_of(name), Counter())[record.state.value] += 1
    return found


_SIZES: dict[Verb, int] = {}


def _bytes(node: str, verb: Verb) -> int:
    """Bytes of a call and its answer. All nodes have names of about one length."""
    if verb not in _SIZES:
        words = f"{verb} tx=r20261124-202955-39d8-0123456789 run=r20261124-202955-39d8 counter=3"
        target = Target(node, "10.120.130.140", "sre", 22, region_of(node))
        payload = b"x" * PAYLOADS.get(verb, 0)
        call = VerbCall("0" * 32, 1.8e9, target, words, payload, sudo=True, deadline=90.0)
        answer = RemoteAnswer(0, b"x" * ANSWERS.get(verb, 300), b"", started=True)
        exchange = Exchange("0" * 16, "0" * 32, 1000, ("0" * 32,), 100.0, (call,))
        reply = encode_reply("0" * 16, 100.0, [encode_answer(CallAnswer("0" * 32, answer, 0.5))])
        _SIZES[verb] = len(encode_exchange(exchange)) + len(reply)
    return _SIZES[verb]


def page(nodes: int, whole: RegionsPlayed, cut: RegionsPlayed) -> Iterator[str]:
    yield f"# Scale: {nodes:,} nodes in {REGIONS} regions, simulated"
    yield ""
    yield "`make simulate-regions` writes this page. The run machine is the real one. Nodes, links and time are models: see [simulation](simulation.md)."
    yield ""
    yield (
        f"{nodes:,} nodes, {REGIONS} [regions](../docs/regions.md) with {nodes // REGIONS:,} nodes each, racks of {RACK}. A message takes {NEAREST * 1000:.0f} ms to the nearest region "
        f"and {FARTHEST * 1000:.0f} ms to the farthest. A call or an answer waits {WAIT * 1000:.0f} ms for its message, on average. Limits: {LIMITS.in_flight:,} nodes in flight, {LIMITS.pace:g} restarts per second, {LIMITS.per_rack} of a rack."
    )
    yield ""
    yield f"| | no cut | {CUT_REGION} cut for {CUT_SECONDS:.0f} s in the last wave |"
    yield "| --- | --- | --- |"
    yield f"| time of the run | {whole.seconds:,.0f} s | {cut.seconds:,.0f} s |"
    yield f"| end | {whole.ending} | {cut.ending} |"
    yield f"| calls and answers per node | {whole.messages / nodes:.1f} | {cut.messages / nodes:.1f} |"
    yield f"| bytes per node over the WAN, if each call had a message of its own | {whole.sent / nodes:,.0f} | {cut.sent / nodes:,.0f} |"
    yield f"| calls and answers per second, on average | {whole.messages / whole.seconds:,.0f} | {cut.messages / cut.seconds:,.0f} |"
    yield f"| the cut region | {_said(whole, inside=True)} | {_said(cut, inside=True)} |"
    yield f"| the other 19 regions | {_said(whole, inside=False)} | {_said(cut, inside=False)} |"
    yield f"| nodes with an armed guard at the end | {whole.guards} | {cut.guards} |"
    yield f"| this simulation took | {whole.took:,.0f} s | {cut.took:,.0f} s |"
    yield ""
    if cut.halt:
        yield f"The cut: {cut.halt}."
        yield ""
    yield "A region that is cut off costs the budgets its nodes in flight and those that are released to it. The budgets then halt the run: no further node begins in any region."
    yield "Nodes of the other regions that are in flight at the halt are confirmed or reverted. Nodes of the cut region are reverted by their guards, and read when the region is back. Until then they are pending recovery."


def _said(played: RegionsPlayed, *, inside: bool) -> str:
    counts: Counter[str] = Counter()
    for region, found in played.states.items():
        if (region == CUT_REGION) is inside:
            counts.update(found)
    return ", ".join(f"{counts[kind.value]:,} {kind.value}" for kind in NodeState if counts[kind.value])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--write", type=Path)
    asked = parser.parse_args()
    text = "\n".join(page(asked.nodes, play(asked.nodes, cut=False), play(asked.nodes, cut=True))) + "\n"
    if asked.write:
        asked.write.write_text(text)
    print(text)  # noqa: T201 - the result


if __name__ == "__main__":
    main()
