"""Gates as values: what each kind asks, and when. ``core.health_gates`` judges the answers."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, assert_never, get_args

from rollout.core.model.frozen import dataclass


class GateKind(StrEnum):
    UNIT = "unit"
    PROCESS = "process"
    HEALTHZ = "healthz"
    EFFECTIVE_CONFIG = "effectiveConfig"
    NODE_READY = "nodeReady"  # the Node is Ready and its lease was renewed after the restart
    PODS_KEPT = "podsKept"  # no pod was rejected at re-admission
    CONTAINERS_KEPT = "containersKept"  # no container was restarted by us
    IMAGE_PULLS = "imagePulls"  # no new image-pull failure
    PROMETHEUS = "prometheus"
    ALERTMANAGER = "alertmanager"
    HTTP = "http"
    COMMAND = "command"


AgentKind = Literal[GateKind.UNIT, GateKind.PROCESS, GateKind.HEALTHZ, GateKind.EFFECTIVE_CONFIG]
"""Gates that the agent measures on each node."""

ApiKind = Literal[GateKind.NODE_READY, GateKind.PODS_KEPT, GateKind.CONTAINERS_KEPT, GateKind.IMAGE_PULLS]
"""Gates of a node that ask the API server and compare with a baseline from right before the node's change."""

WaveKind = Literal[GateKind.PROMETHEUS, GateKind.ALERTMANAGER, GateKind.HTTP, GateKind.COMMAND]
"""Gates that a playbook may name for a wave; a command also for nodes."""

API_GATES: frozenset[GateKind] = frozenset(get_args(ApiKind))


class BackEnd(StrEnum):
    """What gates ask beyond the nodes, by the name that people know it by."""

    KUBECONFIG = "kubeconfig"
    PROMETHEUS = "Prometheus"
    ALERTS = "Alertmanager"


class GateScope(StrEnum):
    NODE = "node"  # before confirm, again in the soak; a command runs on the node
    WAVE = "wave"  # in every round of the soak; a command runs where the controller runs


class Worse(StrEnum):
    """Which way a measurement gets worse."""

    HIGHER = "higher"
    LOWER = "lower"


NODES = "$nodes"
"""Replaced in a query by a regular expression for the names of nodes."""


@dataclass(frozen=True, slots=True)
class PrometheusQuery:
    """An instant query; ``$nodes`` in it is replaced by a regular expression that matches the touched nodes' names.

    Every sample must be within ``at_most`` and ``at_least``. With ``worse``, the query is asked again with ``$nodes``
    for the control group (nodes not touched yet) and the two are compared, see ``core.health_gates.comparison``; ``tolerance`` is the
    share of the control's median by which the touched nodes may be worse. ``url`` ``""``: the inventory's.
    """

    query: str
    url: str = ""
    at_most: float | None = None
    at_least: float | None = None
    worse: Worse | None = None
    tolerance: float = 0.2


@dataclass(frozen=True, slots=True)
class AlertQuery:
    """Alerts that match all of ``matchers`` (``severity="critical"``) must not start to fire; silenced ones do not count.

    ``silence`` seconds (0: none): a silence of that length is set for the wave's nodes before the wave and lifted at the
    run's end; ``node_label`` is the alerts' label that holds the node's name. ``url`` ``""``: the inventory's.
    """

    matchers: tuple[str, ...]
    url: str = ""
    silence: float = 0.0
    node_label: str = "node"


@dataclass(frozen=True, slots=True)
class HttpQuery:
    """``GET url`` must answer with ``status`` and, if set, ``contains`` in the first MiB of its body."""

    url: str
    status: int = 200
    contains: str = ""


@dataclass(frozen=True, slots=True)
class CommandQuery:
    """A program with its arguments: on the node for a node gate, where the controller runs for a wave gate."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AgentCheck:
    """What the agent measures on each node."""

    kind: AgentKind


@dataclass(frozen=True, slots=True)
class ApiCheck:
    """What the API server reports about each node."""

    kind: ApiKind


@dataclass(frozen=True, slots=True)
class NoQuery:
    """A kind that needs a query, in a plan without one: it asks nothing and never passes."""

    kind: GateKind


Asked = PrometheusQuery | AlertQuery | HttpQuery | CommandQuery | AgentCheck | ApiCheck | NoQuery
"""What a gate asks: the closed set that rollout knows."""


@dataclass(frozen=True, slots=True)
class Gate:
    """One condition that must hold; ``kind`` decides which of the last fields is set. ``timeout`` is seconds to ask, retries included."""

    kind: GateKind
    scope: GateScope
    name: str
    command: tuple[str, ...] = ()
    timeout: float = 10.0
    prometheus: PrometheusQuery | None = None
    alertmanager: AlertQuery | None = None
    http: HttpQuery | None = None

    @property
    def asks(self) -> Asked:
        """What it asks."""
        match self.kind:
            case GateKind.UNIT | GateKind.PROCESS | GateKind.HEALTHZ | GateKind.EFFECTIVE_CONFIG as kind:
                return AgentCheck(kind)
            case GateKind.NODE_READY | GateKind.PODS_KEPT | GateKind.CONTAINERS_KEPT | GateKind.IMAGE_PULLS as kind:
                return ApiCheck(kind)
            case GateKind.COMMAND:
                return CommandQuery(self.command)
            case GateKind.PROMETHEUS as kind:
                return self.prometheus or NoQuery(kind)
            case GateKind.ALERTMANAGER as kind:
                return self.alertmanager or NoQuery(kind)
            case GateKind.HTTP as kind:
                return self.http or NoQuery(kind)
            case _ as never:
                assert_never(never)


DEFAULT_GATES = tuple(Gate(kind, GateScope.NODE, kind.value) for kind in get_args(AgentKind))
