"""Waits for the instant of a run: a share of its usual duration, a step of the agent, or an answer in the journal."""

from __future__ import annotations

import json
import time

from tests.chaos.draws import ANSWERS, STEPS, WITHOUT_POWER, Draw
from tests.chaos.site import CLUSTER, Site
from tests.controllers import Process

LOOK_EVERY = 0.02


def set_up(site: Site, draw: Draw) -> None:
    """Makes the node wait at the step."""
    if draw.moment in STEPS:
        site.nodes[draw.struck[0]].hold(STEPS[draw.moment])


def reach(site: Site, draw: Draw, controller: Process) -> bool:
    """Wait for it. False if the run ended before, or its moment never came."""
    if not draw.moment:
        return _share(site, draw.fraction, controller)
    node = site.nodes[draw.struck[0]]
    while controller.poll() is None:
        if node.holds() if draw.moment in STEPS else _answered(site, node.name, ANSWERS[draw.moment]):
            return True
        time.sleep(LOOK_EVERY)
    return False


def _share(site: Site, fraction: float, controller: Process) -> bool:
    """The machine may have become faster: a run that ended before its instant gives the new usual duration."""
    began = time.monotonic()
    while time.monotonic() < began + fraction * site.undisturbed:
        if controller.poll() is not None:
            site.undisturbed = time.monotonic() - began
            return False
        time.sleep(LOOK_EVERY)
    return True


def let_go(site: Site, draw: Draw) -> None:
    """The step continues, unless the node lost its power there."""
    if draw.moment in STEPS and draw.kind not in WITHOUT_POWER:
        site.nodes[draw.struck[0]].let_go()


def _answered(site: Site, node: str, verb: str) -> bool:
    journal = site.journal()
    for header in journal.runs(CLUSTER)[:1]:
        for body in map(json.loads, journal.events(header.run)):
            if (body["event"], body.get("node"), body.get("verb")) == ("Answered", node, verb):
                return True
    return False
