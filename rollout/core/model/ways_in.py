"""How a node is reached, and what can be tried on the way to it and to the back ends of gates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Become(StrEnum):
    """The program that runs the agent as root, where the login is not root's."""

    SUDO = "sudo"
    DOAS = "doas"


@dataclass(frozen=True, slots=True)
class Way:
    """How a node is reached, by ssh_config. ``address`` is what a ``Host`` pattern there must match.

    ``key``: the key that the node accepted; ``""``: it accepted none yet. ``via``: the bastion or the program before it, ``""`` without one.
    """

    address: str
    host: str
    port: int
    user: str
    via: str = ""
    known_hosts: str = ""
    key: str = ""


class DoctorCheck(StrEnum):
    """The checks in their order: each of a node needs those before it, up to ``sudo``."""

    ROUTE = "ssh_config"
    NAME = "name resolution"
    CONNECTION = "TCP"
    HOST_KEY = "host key"
    LOGIN = "login"
    SHELL = "shell"
    SUDO = "sudo"
    CLOCK = "clock"
    DISK = "disk"
    SYSTEMD = "systemd"
    KUBELET = "kubelet"
    RUNTIME = "runtime"
    API = "API server"
    PROMETHEUS = "Prometheus"
    ALERTS = "alerts"


@dataclass(frozen=True, slots=True)
class Probe:
    """How a back end of gates is tried: ``ask`` it for a result, in so many seconds. ``url`` ``""``: the inventory names none."""

    check: DoctorCheck
    url: str
    ask: Callable[[float], str]
