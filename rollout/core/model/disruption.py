"""What a change does to a node, from least to most. The playbook may cap it; the plan shows it."""

from __future__ import annotations

from enum import StrEnum


class Disruption(StrEnum):
    """The class of a change: the most disruptive thing that it does."""

    NONE = "none"  # files that are read anew by themselves (containerd's hosts.toml)
    RELOAD = "reload"  # a unit gets SIGHUP (dockerd's daemon.json)
    RESTART_RUNTIME = "restart-runtime"  # pulls in flight are cancelled, containers go on
    RESTART_KUBELET = "restart-kubelet"
    DRAIN_AND_RESTART = "drain-and-restart"  # pods would not survive it where they are

    @property
    def rank(self) -> int:
        """0 for the least."""
        return list(Disruption).index(self)

    @property
    def restarts(self) -> bool:
        """Whether the kubelet or a runtime is restarted: pulls in flight are cancelled, and the node has to settle."""
        return self.rank >= Disruption.RESTART_RUNTIME.rank


def worst(*classes: Disruption) -> Disruption:
    """The most disruptive of these; none at all is ``NONE``."""
    return max(classes, key=lambda each: each.rank, default=Disruption.NONE)
