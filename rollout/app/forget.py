"""Removes what rollout keeps on nodes: receipts, copies, token."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

from rollout.app.call import CallPorts, Operator
from rollout.app.isolation import Keep, keep_nothing, run_verb
from rollout.app.node_access import NodeAccess
from rollout.app.ports import Nodes, Note, Target
from rollout.app.reading import access_within, each, read_receipts
from rollout.app.runs import check_nothing_unfinished
from rollout.core.model.frozen import dataclass
from rollout.core.model.report import Outcome, Report
from rollout.core.plans.receipt_history import highest_token
from rollout.core.presentation.drift_text import NotAsked, not_done
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.deadlines import TIMES

FORGET_SECONDS = TIMES["forget"].waits


@dataclass(frozen=True, slots=True)
class ForgetDocument:
    """``forgotten``: the nodeset without receipts, copies and token; ``failed``: the other nodes."""

    cluster: str
    forgotten: str
    failed: tuple[NotAsked, ...]

    @property
    def exit_code(self) -> int:
        return 4 if self.failed else 0


def forget_cluster(call: CallPorts, operator: Operator, cluster: str, limit: str) -> ForgetDocument:
    """The nodes of ``limit`` (``""``: all). ``StateError`` ``run-unfinished``, ``locked``: a run needs its receipts."""
    check_nothing_unfinished(call.past(), cluster)
    access = access_within(call, cluster, limit)
    what = f"{counted(len(access.targets), 'node')} of {cluster} will lose what a rollback needs"
    operator.confirm(cluster, what)
    with closing(call.nodes()) as nodes:
        reports = read_receipts(access, nodes, keep=call.keep)
        answers = forget_fleet(access, nodes, call.new_run_id(), highest_token(reports) + 1, call.keep)
    done = fold(name for name, report in answers.items() if report.outcome is Outcome.DONE)
    call.journal().note(cluster, Note(call.clock.now(), call.who, f"forgotten on {done}: {call.reason}"))
    return ForgetDocument(cluster, done, not_done(answers))


def forget_fleet(
    access: NodeAccess, nodes: Nodes, run: str, counter: int, keep: Keep = keep_nothing
) -> Mapping[str, Report]:
    """Remove what rollout keeps on every node of ``access``. A node with a transaction in progress refuses."""

    def remove(target: Target) -> Report:
        command = agent_call.forget(
            access.program, run=run, counter=counter, sudo=access.sudo[target.name], deadline=FORGET_SECONDS
        )
        return run_verb(nodes, target, "forget", command, keep)

    return each(access, nodes, remove)
