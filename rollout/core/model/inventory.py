"""The inventory as the rest of the program sees it: validated, merged, frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rollout.core.model.settings import Setting
from rollout.errors import Place


@dataclass(frozen=True, slots=True)
class Node:
    """One machine. ``address`` is what SSH is given (``ssh_config`` may map it further); ``user``, ``port`` and ``sudo`` may
    be unset.
    """

    name: str
    address: str
    rack: str
    zone: str
    labels: Mapping[str, str] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    user: str | None = None
    port: int | None = None
    sudo: bool | None = None
    registry: str = ""  # what it pulls from (an upstream or a mirror), for the arithmetic of loads; "": not said

    @property
    def through_sudo(self) -> bool:
        """Everybody but root, unless the inventory says otherwise."""
        return self.user != "root" if self.sudo is None else self.sudo


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where what gates ask is found. Paths are on the controller's machine; ``""``: not said."""

    kubeconfig: str = ""
    context: str = ""
    prometheus: str = ""
    alertmanager: str = ""
    token_file: str = ""  # bearer token for Prometheus and Alertmanager
    ca_file: str = ""  # certificate authority for both


@dataclass(frozen=True, slots=True)
class Level:
    """Settings as said at one level of precedence, with the nodes they are said for (``None``: all)."""

    name: str
    nodes: frozenset[str] | None
    settings: Mapping[str, Setting]


@dataclass(frozen=True, slots=True)
class Inventory:
    """A cluster's nodes in inventory order, its nodesets by name, and its settings in order of precedence.

    ``nodesets`` holds every name that ``@name`` may mean: racks, zones, groups and ``@all``.
    ``digest`` is the SHA-256 of the file as written. ``playbook`` is what is planned when none is named; ``""``: not said.
    """

    cluster: str
    api_server: str
    nodes: Mapping[str, Node]
    nodesets: Mapping[str, frozenset[str]]
    levels: tuple[Level, ...]
    digest: str
    endpoints: Endpoints = Endpoints()
    playbook: str = ""
    playbook_place: Place | None = field(default=None, compare=False)
