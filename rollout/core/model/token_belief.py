"""Which token counters are believed: a node that says a wrong one must not raise every other node's.

A run takes a token above the highest that the journal and the nodes know. Whoever has a node can make it say any number; with
the highest that fits, no later token would. So what most nodes say, or the journal, is the ground, and one may be above it by
what a thousand runs a day for years would make; what is above that is a lie, and of no consequence to anybody else.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median_low

MOST_ABOVE = 1_000_000
MOST_AT_ALL = 10**14
"""Of fewer than three nodes none can be told from the others. The agent takes counters below 10**15."""


def highest_believed(counters: Iterable[int], known: int = 0) -> int:
    """The highest counter that is no lie; ``known`` is the journal's, and the least there is."""
    told = sorted(counters)
    if not told:
        return known
    few = len(told) < 3
    most = MOST_AT_ALL if few and not known else max(known, 0 if few else median_low(told)) + MOST_ABOVE
    return max([known, *(counter for counter in told if counter <= most)])


def is_beyond_belief(counter: int, ours: int) -> bool:
    """Whether a node's answer to a run of token ``ours`` names a token that no other run can have."""
    return counter > ours + MOST_ABOVE
