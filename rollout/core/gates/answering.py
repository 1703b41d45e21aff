"""Which nodes an instant query's answer speaks of, so that nodes whose series vanish are missed.

A sample is a node's when one of its labels holds the node's name: alone, with a port (``n1:9100``), or as the beginning of
a longer name (``n1.example.net``). A query that adds nodes up has no such label: nothing can be counted in it.
"""

from __future__ import annotations

from collections.abc import Collection, Set

from rollout.core.gates.measured import SHOWN, Samples
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable


def answering(answer: Samples, names: Collection[str]) -> frozenset[str]:
    """Those of ``names`` of which there is a sample."""
    wanted = frozenset(names)
    found = (_named(value, wanted) for sample in answer.samples for value in sample.words)
    return frozenset(name for name in found if name)


def vanished(now: Set[str], before: Set[str], touched: Collection[str]) -> str:
    """What to say of touched nodes that answered before the wave and do not now; ``""``: none."""
    gone = sorted((before & frozenset(touched)) - now)
    if not gone:
        return ""
    named = printable(fold(gone[:SHOWN]), 200)
    more = f" and {len(gone) - SHOWN} more" if len(gone) > SHOWN else ""
    have = "has" if len(gone) == 1 else "have"
    return f"samples of {share(now, touched)}: {named}{more} {have} none now and had some before the wave"


def unnamed(answer: Samples, touched: Collection[str]) -> str:
    """What to say of an answer to a query for nodes that names none of them."""
    number, of = counted(len(answer.samples), "sample"), counted(len(touched), "touched node")
    return f"{number}, of no node: it cannot be told how many of {of} were counted; keep their label, as in `sum by (node) (…)`"


def seen(now: Collection[str], touched: Collection[str]) -> str:
    """How many of the touched nodes an answer speaks of, to be said before its evidence; ``""``: all of them.

    A query without ``$nodes`` may speak of the whole cluster.
    """
    if not now:
        return "not of single nodes: "
    return f"{share(now, touched)}: " if len(now) < len(touched) else ""


def share(now: Collection[str], touched: Collection[str]) -> str:
    """``1 of 7 nodes``."""
    return f"{len(now)} of {counted(len(touched), 'node')}"


def _named(word: str, names: Set[str]) -> str:
    """The longest of ``names`` that a label's value begins with, up to a port or a dot."""
    if word in names:
        return word
    host = word.partition(":")[0]
    while host and host not in names:
        host = host.rpartition(".")[0]
    return host
