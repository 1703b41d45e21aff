"""Which back ends a run needs, and whether their addresses are known. Checked before anything is changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum

from rollout.core.model.frozen import dataclass
from rollout.core.model.gate_kinds import known
from rollout.core.model.gates import Gate
from rollout.core.model.inventory import Endpoints, Inventory
from rollout.core.model.plan import Plan
from rollout.core.model.playbook import Disruption, Policy
from rollout.errors import Problem


class PodNeeds(StrEnum):
    """What the API server is asked about pods, apart from gates. COUNTED: right before a change, as when planning."""

    NOT_ASKED = "not asked"
    COUNTED = "counted"
    DRAINED = "drained"


@dataclass(frozen=True, slots=True)
class Needs:
    """Everything that a run asks of back ends. ``pulls``: a soak counts the image pulls of kubelets. ``late``: gates are asked after the run, too.

    ``config_map``: the namespace and the name of one that it writes; ``config_maps``: a plan reads some.
    """

    gates: tuple[Gate, ...] = ()
    pods: PodNeeds = PodNeeds.NOT_ASKED
    pulls: bool = False
    late: bool = False
    config_map: tuple[str, str] | None = None
    config_maps: bool = False


def needs_of(plan: Plan | None) -> Needs:
    """``None``: a rollback, which asks no back end."""
    if plan is None:
        return Needs()
    pulls = any(wave.data is not None and wave.data.pulls for wave in plan.waves)
    written = (plan.config_map.namespace, plan.config_map.name) if plan.config_map is not None else None
    if any(node.drain for node in plan.nodes.values()):
        return Needs(plan.gates, PodNeeds.DRAINED, pulls, config_map=written)
    counted = any(node.less_room for node in plan.nodes.values())
    return Needs(plan.gates, PodNeeds.COUNTED if counted else PodNeeds.NOT_ASKED, pulls, config_map=written)


def needs_to_plan(inventory: Inventory, policy: Policy, kubeconfig: str) -> Needs:
    """A playbook may have nodes drained. Without a kubeconfig it is unknown which nodes need it."""
    drains = policy.disruption is Disruption.DRAIN_AND_RESTART and (kubeconfig or inventory.endpoints.kubeconfig)
    demands = (policy.data, *(wave.data for wave in policy.waves))
    pulls = any(data is not None and data.pulls for data in demands)
    pods = PodNeeds.DRAINED if drains else PodNeeds.NOT_ASKED
    late = policy.late is not None
    return Needs(policy.gates, pods, pulls, late=late, config_maps=policy.kubeadm_config_map)


def with_gates_of_api(policy: Policy, kubeconfig: str) -> Policy:
    """The policy with the gates that are on by default if a kubeconfig is given, unless its playbook switches them off or names them."""
    named = {gate.name for gate in policy.gates} | {*policy.without}
    if not kubeconfig:
        return policy
    return replace(policy, gates=(*policy.gates, *(gate for gate in known().by_api if gate.name not in named)))


def needs_cluster(gates: Iterable[Gate]) -> bool:
    """Whether one of the gates asks the API server."""
    return any(gate.asks.asks_api for gate in gates)


def needs_http(gates: Iterable[Gate]) -> bool:
    """Whether one of the gates asks a server by a URL."""
    return any(gate.asks.asks_http for gate in gates)


_KUBECONFIG = "use --kubeconfig FILE, or set `endpoints: {kubeconfig: FILE}` in the inventory"


def unnamed(needs: Needs, endpoints: Endpoints, cluster: str) -> tuple[Problem, ...]:
    """One problem for each kind of back end that is needed but not set."""
    lacking = [(gate.name, gate.asks.back_end) for gate in needs.gates if gate.asks.lacks_back_end(endpoints)]
    kinds = dict.fromkeys(query.back_end for query in known().queries.values())
    missing = {what: names for what in kinds if (names := [name for name, lacks in lacking if lacks == what])}
    problems = tuple(
        Problem(
            f"no-{what.lower()}",
            f"the gate{'s' * (len(names) > 1)} {', '.join(names)} need{'s' * (len(names) == 1)} {article} {what}, and the "
            f"inventory of {cluster} names none",
            hint=_hint(what),
        )
        for what, names in missing.items()
        for article in ("an" if what[0] == "A" else "a",)
    )
    if needs.late and not any(gate.can_be_late for gate in needs.gates):
        message = "`watchFor` is set, and without a kubeconfig no gate can be measured after the run"
        problems = (*problems, Problem("nothing-to-watch", message, hint=_KUBECONFIG))
    asked = (
        (needs.pods is not PodNeeds.NOT_ASKED, "pods on nodes are to be drained or counted"),
        (needs.pulls, "image pulls are to be counted"),
        (needs.config_map is not None or needs.config_maps, "kubeadm's ConfigMap is to be written"),
    )
    what = next((words for is_asked, words in asked if is_asked), "")
    if problems or endpoints.kubeconfig or not what:
        return problems
    message = f"{what}, which needs a kubeconfig, and the inventory of {cluster} names none"
    return (Problem("no-kubeconfig", message, hint=_KUBECONFIG),)


def _hint(what: str) -> str:
    if what == "kubeconfig":
        return _KUBECONFIG
    return f"set `endpoints: {{{what.lower()}: URL}}` in the inventory, or `url` in the gate"
