"""Are the touched nodes worse than the control group? A simple statistic that can be checked by hand.

    centre = the median of each group
    spread = 1.4826 × the median distance of the control group from its own median (its robust standard deviation)
    slack  = the largest of  tolerance × |control's centre|,  3 × spread  and, where the control's centre is 0,  0.01
    worse  = the touched nodes' centre lies beyond the control's centre by more than the slack

One odd node does not move a median. So this comparison does not find one bad node among many touched ones; the node
gates and ``atMost`` do. A canary of one node is compared as it is. A control group of fewer than three samples has no
meaningful spread: only the tolerance counts then. A share of zero is zero, so 0.01 is allowed if the control group is
all zeros. NaN and infinite samples cannot be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from statistics import median

from rollout.core.model.frozen import dataclass
from rollout.core.model.verdict import Verdict
from rollout.gates.prometheus.query import Worse

NORMAL = 1.4826
"""The factor from the median distance of normally distributed samples to their standard deviation."""

SIGMAS = 3.0
ENOUGH_FOR_SPREAD = 3
FLOOR = 0.01
"""The slack for a control group with centre 0, where a share is 0: 10 ms, 1 %, one error in 100 s."""


@dataclass(frozen=True, slots=True)
class SampleGroup:
    """Samples of nodes that belong together; ``what`` is their name in the evidence."""

    what: str
    samples: Sequence[float]


def compare(touched: SampleGroup, control: SampleGroup, worse: Worse, tolerance: float) -> tuple[Verdict, str]:
    """PASS, FAIL or, if nothing can be compared, UNKNOWN; the evidence has every number behind the verdict."""
    for group in (touched, control):
        if not group.samples:
            return Verdict.UNKNOWN, f"no sample of the {group.what}"
        if not all(map(isfinite, group.samples)):
            return Verdict.UNKNOWN, f"a sample of the {group.what} is not a finite number"
    ours, theirs = median(touched.samples), median(control.samples)
    spread = _spread(control.samples, theirs)
    by_share, by_spread = tolerance * abs(theirs), SIGMAS * spread
    floor = FLOOR if theirs == 0 else 0.0
    slack = max(by_share, by_spread, floor)
    apart = ours - theirs if worse is Worse.HIGHER else theirs - ours
    floored = f"; at least {floor:g} beside a 0" if floor else ""
    evidence = (
        f"{touched.what} {_shown(touched.samples)}, {control.what} {_shown(control.samples)}: {ours:g} is "
        f"{_apart(apart, worse)}; allowed {slack:g} (the larger of {tolerance:.0%} = {by_share:g} and 3 sigma = {by_spread:g}{floored})"
    )
    return (Verdict.FAIL if apart > slack else Verdict.PASS), evidence


def _spread(samples: Sequence[float], centre: float) -> float:
    if len(samples) < ENOUGH_FOR_SPREAD:
        return 0.0
    return NORMAL * median(abs(sample - centre) for sample in samples)


def _shown(samples: Sequence[float]) -> str:
    """Median, range and number."""
    return f"{median(samples):g} (median of {len(samples)}, {min(samples):g} to {max(samples):g})"


def _apart(apart: float, worse: Worse) -> str:
    better = "lower" if worse is Worse.HIGHER else "higher"
    return f"{apart:g} {worse.value}" if apart >= 0 else f"{-apart:g} {better}"
