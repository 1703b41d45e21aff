"""The proof of a rollback: reads every node again and judges it by its own receipts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rollout.app.isolation import READING_FAILED, Keep, attempt, keep_nothing, run_snapshot, run_verification
from rollout.app.node_worker import READ_SECONDS, UNIT, NodeAccess
from rollout.app.ports import Nodes, Target
from rollout.app.reading import each
from rollout.core.model.proof import BOOT_UNIT, NodeProof, proof_of
from rollout.core.model.snapshot import Unread
from rollout.core.model.verification import Verification
from rollout.kubelet.agent import agent_call
from rollout.kubelet.health_gates.expectations import DEFAULT_HEALTHZ_PORT, healthz_port

_NOT_THERE = frozenset({"refused", "timeout"})


def prove(
    access: NodeAccess,
    nodes: Nodes,
    transactions: Mapping[str, str],
    left: Mapping[str, tuple[str, ...]],
    keep: Keep = keep_nothing,
) -> tuple[NodeProof, ...]:
    """Prove each node of ``access``. ``transactions``: node → what was reverted; ``left``: what cleanup could not remove.

    ``keep`` stores the trace of an answer that rollout fails on. That node is not proven.
    """

    def judged(target: Target, found: Verification | Unread) -> NodeProof:
        return proof_of(found, transactions[target.name], left.get(target.name, ()))

    def read(target: Target) -> NodeProof:
        name = target.name
        return attempt(
            name,
            lambda: judged(target, _found(access, nodes, target, keep)),
            lambda why: judged(target, Unread(name, READING_FAILED, why)),
            keep,
        )

    return tuple(each(access, nodes, read).values())


def _found(access: NodeAccess, nodes: Nodes, target: Target, keep: Keep) -> Verification | Unread:
    found = _asked(access, nodes, target, DEFAULT_HEALTHZ_PORT, keep)
    if isinstance(found, Verification) and found.measurement.healthz in _NOT_THERE:
        return _asked_where_it_is(access, nodes, target, found, keep)
    return found


def _asked_where_it_is(
    access: NodeAccess, nodes: Nodes, target: Target, found: Verification, keep: Keep
) -> Verification | Unread:
    """The kubelet may serve healthz on another port: its files contain the port."""
    command = agent_call.snapshot(access.program, unit=UNIT, sudo=access.sudo[target.name], deadline=READ_SECONDS)
    snapshot = run_snapshot(nodes, target, command, keep)
    if isinstance(snapshot, Unread):
        return replace(found, measurement=replace(found.measurement, healthz=None))
    port = healthz_port(snapshot)
    return found if port == DEFAULT_HEALTHZ_PORT else _asked(access, nodes, target, port, keep)


def _asked(access: NodeAccess, nodes: Nodes, target: Target, port: int, keep: Keep) -> Verification | Unread:
    command = agent_call.verify(
        access.program,
        unit=UNIT,
        paths=(BOOT_UNIT,),
        sudo=access.sudo[target.name],
        deadline=READ_SECONDS,
        healthz_port=port,
    )
    return run_verification(nodes, target, command, keep)
