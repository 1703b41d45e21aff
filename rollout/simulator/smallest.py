"""A broken law with as little around it as breaks it still: faults are left out one by one."""

from __future__ import annotations

from dataclasses import replace

from rollout.simulator.play import Outcome, Play
from rollout.simulator.scenario import Scenario


def smallest(scenario: Scenario) -> Outcome:
    """The play of the fewest faults that break a law of the same number; the whole scenario's if it breaks none."""
    found = Play(scenario).run()
    if not found.broken:
        return found
    left = 0
    while left < len(found.scenario.faults):
        faults = found.scenario.faults
        shorter = Play(replace(scenario, faults=(*faults[:left], *faults[left + 1 :]))).run()
        if law_of(shorter.broken) == law_of(found.broken):
            found = shorter
        else:
            left += 1
    return found


def law_of(words: str) -> str:
    """``law 4: …`` is law 4."""
    return words.partition(":")[0]
