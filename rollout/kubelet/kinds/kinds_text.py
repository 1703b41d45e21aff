"""Kinds of nodes for people: all of them, or what the ones that are meant have in common."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rollout.kubelet.kinds.kind import Kind


def shown(some: Collection[Kind], every: Collection[Kind]) -> str:
    """``every kind of node``, or ``kubelets 1.22 and 1.23 over containerd (plain)``. What holds of all is left out."""
    if set(some) == set(every):
        return "every kind of node"
    minors = sorted({kind.minor for kind in some})
    same = [kind for kind in every if kind.minor in minors]
    runtimes, installed = {kind.runtime for kind in some}, {kind.installed for kind in some}
    over = f" over {_listed(sorted(runtimes))}" if runtimes != {kind.runtime for kind in same} else ""
    how = f" ({_listed(sorted(installed))})" if installed != {kind.installed for kind in same} else ""
    return f"kubelet{'s' * (len(minors) > 1)} {_listed(f'1.{minor}' for minor in minors)}{over}{how}"


def _listed(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
