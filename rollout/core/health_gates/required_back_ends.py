"""Which back ends a run needs, and whether their addresses are known. Checked before anything is changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from rollout.core.model.gates import API_GATES, AlertQuery, Gate, PrometheusQuery
from rollout.core.model.inventory import Endpoints
from rollout.core.model.plan import Plan
from rollout.errors import Problem


class PodNeeds(StrEnum):
    """What the API server is asked about pods, apart from gates. COUNTED: right before a change, as when planning."""

    NOT_ASKED = "not asked"
    COUNTED = "counted"
    DRAINED = "drained"


@dataclass(frozen=True, slots=True)
class Needs:
    """Everything that a run asks of back ends."""

    gates: tuple[Gate, ...] = ()
    pods: PodNeeds = PodNeeds.NOT_ASKED


def needs_of(plan: Plan | None) -> Needs:
    """``None``: a rollback, which asks no back end."""
    if plan is None:
        return Needs()
    if any(node.drain for node in plan.nodes.values()):
        return Needs(plan.gates, PodNeeds.DRAINED)
    counted = any(node.less_room for node in plan.nodes.values())
    return Needs(plan.gates, PodNeeds.COUNTED if counted else PodNeeds.NOT_ASKED)


def needs_cluster(gates: Iterable[Gate]) -> bool:
    """Whether one of the gates asks the API server."""
    return any(gate.kind in API_GATES for gate in gates)


_KUBECONFIG = "use --kubeconfig FILE, or set `endpoints: {kubeconfig: FILE}` in the inventory"


def unnamed(needs: Needs, endpoints: Endpoints, cluster: str) -> tuple[Problem, ...]:
    """One problem for each kind of back end that is needed but not set."""
    found = {what: (names, hint) for what, names, hint in _needs(needs.gates, endpoints) if names}
    problems = tuple(
        Problem(
            f"no-{what.lower()}",
            f"the gate{'s' * (len(names) > 1)} {', '.join(names)} need{'s' * (len(names) == 1)} {article} {what}, and the "
            f"inventory of {cluster} names none",
            hint=hint,
        )
        for what, (names, hint) in found.items()
        for article in ("an" if what[0] == "A" else "a",)
    )
    if problems or needs.pods is PodNeeds.NOT_ASKED or endpoints.kubeconfig:
        return problems
    message = f"pods on nodes are to be drained or counted, which needs a kubeconfig, and the inventory of {cluster} names none"
    return (Problem("no-kubeconfig", message, hint=_KUBECONFIG),)


def _needs(gates: tuple[Gate, ...], endpoints: Endpoints) -> Iterator[tuple[str, list[str], str]]:
    """Each kind of back end with the gates that need it but lack it, and what to do."""
    if not endpoints.kubeconfig:
        lacking = [gate.name for gate in gates if gate.kind in API_GATES]
        yield "kubeconfig", lacking, _KUBECONFIG
    if not endpoints.prometheus:
        lacking = [gate.name for gate in gates if isinstance(gate.asks, PrometheusQuery) and not gate.asks.url]
        yield "Prometheus", lacking, "set `endpoints: {prometheus: URL}` in the inventory, or `url` in the gate"
    if not endpoints.alertmanager:
        lacking = [gate.name for gate in gates if isinstance(gate.asks, AlertQuery) and not gate.asks.url]
        yield "Alertmanager", lacking, "set `endpoints: {alertmanager: URL}` in the inventory, or `url` in the gate"
