"""What a rollback reverts: a run by its journal, or runs by what the nodes alone report."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field, replace

from rollout.app.following import released_since, rolled_back_directly
from rollout.app.node_histories import cluster_history, files_of_plans, newer_than, with_files
from rollout.app.ports import PastRuns
from rollout.app.reverted_elsewhere import NOWHERE, Elsewhere
from rollout.core.model.areas import AreaKind, sizes
from rollout.core.model.config_map import ConfigMapChange
from rollout.core.model.fleet_changes import GONE, IS_GONE, Leaver
from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Inventory, Role, role_of
from rollout.core.model.plan import CONTROL_PLANE_WAVE, Wave
from rollout.core.model.playbook import Limits, Share
from rollout.core.model.report import Report
from rollout.core.model.snapshot import ReceiptState
from rollout.core.model.transactions import in_force, topmost_on, undone_at, undone_in_part
from rollout.core.plans.receipt_history import OURS, OnNodes, OtherClusters, highest_token, on_nodes
from rollout.core.plans.roles import seen_in_report
from rollout.core.presentation.emergency_text import of_other, revert_command
from rollout.core.presentation.nothing_to_do import ANOTHER_RUN
from rollout.core.run.facts import may_hold
from rollout.core.run.order import leavers, revert_order
from rollout.core.run.state import LeftOut, NodeState, Order, Phase, RunState
from rollout.core.text.message_folding import folded, for_all
from rollout.core.text.nodesets import expand, fold
from rollout.core.text.suggest import did_you_mean
from rollout.core.text.terminal import counted, printable
from rollout.errors import UsageError

EMERGENCY_ZONE = Share(percent=50.0)
"""The default share of a zone that may be unavailable at once, if there is more than one zone."""


@dataclass(frozen=True, slots=True)
class SinceRun:
    """What later runs did to the nodes of a run, by the journal. Each is run → nodes.

    ``rolled_back``: later rollbacks, with the nodes where they reverted it. ``on_top``: the run to roll back first, where later
    runs in force have changed the same files. ``stuck``: of these nodes, those where that run cannot be rolled back, or only
    with ``--force``. ``released``: nodes where a later rollback found no change of it. ``restored``: nodes where it is reverted,
    and the forced revert of a newer run wrote its files again. ``in_part``: nodes where the revert of an older run restored
    some of its files. ``elsewhere``: runs of another journal, with the nodes where they reverted it. ``config_map``: what
    restores the ConfigMap that it may have written, unless a rollback has.
    """

    rolled_back: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    on_top: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    stuck: frozenset[str] = frozenset()
    released: frozenset[str] = frozenset()
    restored: frozenset[str] = frozenset()
    in_part: frozenset[str] = frozenset()
    elsewhere: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    config_map: ConfigMapChange | None = None


NOTHING_SINCE = SinceRun()


def since_run(journal: PastRuns, run: str, elsewhere: Elsewhere = NOWHERE) -> SinceRun:
    """What later runs did to the nodes of a run, by the journal, and by the nodes with a revert that it does not have."""
    history = cluster_history(journal, journal.header(run).cluster, read=elsewhere.nodes)
    newer = newer_than(run, history.nodes)
    nodes = {name for names in newer.values() for name in names}
    known = with_files(history.nodes, nodes, {run, *newer}, files_of_plans(journal))
    topmost = {name: top for name, transactions in known.items() if (top := topmost_on(run, transactions))}
    stuck = frozenset(
        name
        for name, top in topmost.items()
        if name in history.restored.get(top, ()) or undone_in_part(top, known[name])
    )
    rolled_back = history.rolled_back(run, rolled_back_directly(journal, run))
    told = {name for names in rolled_back.values() for name in names}
    return SinceRun(
        rolled_back,
        {top: tuple(name for name in topmost if topmost[name] == top) for top in dict.fromkeys(topmost.values())},
        stuck,
        released_since(journal, run),
        history.restored.get(run, frozenset()),
        frozenset(name for name, transactions in history.nodes.items() if undone_in_part(run, transactions)),
        _elsewhere(run, elsewhere, told),
    )


def _elsewhere(run: str, elsewhere: Elsewhere, told: Collection[str]) -> Mapping[str, tuple[str, ...]]:
    """The run of another journal that claimed a node last → the nodes where nothing of ``run`` is in force any more, without ``told``."""
    found: dict[str, tuple[str, ...]] = {}
    for name, transactions in elsewhere.nodes.items():
        mine = next((each for each in transactions if each.tx == run), None)
        if name in told or mine is None or mine in in_force(transactions):
            continue
        ended = undone_at(transactions).get(run, mine.reverted_at)
        is_last = ended == max(max(each.applied_at, each.reverted_at) for each in transactions)
        by = (
            elsewhere.by[name] if is_last else ANOTHER_RUN
        )  # the node does not record which run reverted it: the last to claim it may only have claimed it
        found[by] = (*found.get(by, ()), name)
    return found


def rollback_order(
    state: RunState,
    run: str,
    chosen: frozenset[str] | None,
    inventory: Inventory,
    limits: Limits,
    since: SinceRun = NOTHING_SINCE,
    *,
    force: bool,
) -> Order:
    """The order that reverts a run on those of its nodes that may have its change.

    ``chosen``: these nodes of the inventory only (``None``: all). Nodes of the run that the inventory does not list are left out
    and reported: they keep none of the others from being reverted.

    A run that has not ended has claimed all its nodes. On nodes that it has not touched, only the claim is ended, and so on
    nodes that a run of another journal has reverted. Nodes that a later run has rolled back are not in the order. Nodes with a newer change of the same files are left out, and nodes where
    an older run was reverted under it, unless ``force`` is given: they would refuse. Nodes that have no copy of the old files
    any more, because the run was reverted there once, are always left out.
    """
    claimed = state.phase is not Phase.ENDED
    back = since.released.union(*since.rolled_back.values(), *(() if claimed else since.elsewhere.values()))
    transactions = {
        name: state.transaction(name)
        for name, record in state.nodes.items()
        if (chosen is None or name in chosen) and name not in back and (claimed or may_hold(record))
    }
    listed = {name: transaction for name, transaction in transactions.items() if name in inventory.nodes}
    absent = {
        name: Leaver(GONE, f"{_not_listed(inventory)}; it may still have the change")
        for name in transactions
        if name not in listed and state.nodes[name].state is not NodeState.PENDING
    }
    kept = tuple(_kept(since, listed, state.order.run, force=force))
    there = {name for each in kept for name in expand(each.nodes)}
    reverted = {name: transaction for name, transaction in listed.items() if name not in there}
    seen = control_plane_of(state.order.waves)
    order = _revert_order(run, inventory, reverted, limits, (*leavers(absent), *kept), force=force, seen=seen)
    return replace(
        order, config_map=since.config_map if chosen is None else None
    )  # a part of the nodes keeps the change


def control_plane_of(waves: Iterable[Wave]) -> frozenset[str]:
    """The nodes that were seen to be of the control plane when these waves were planned."""
    return frozenset(name for wave in waves if wave.name == CONTROL_PLANE_WAVE for name in wave.nodes)


def _not_listed(inventory: Inventory) -> str:
    return f"the node list of {inventory.remembered} does not have it" if inventory.remembered else IS_GONE


def _kept(since: SinceRun, nodes: Collection[str], run: str, *, force: bool) -> Iterator[LeftOut]:
    """Nodes that would refuse the revert, or have nothing to revert with. Below newer runs: folded by the newest of them."""
    restored = [name for name in nodes if name in since.restored]
    if restored:
        why = "it is reverted there, but the forced revert of a newer run wrote its files again; only a new plan can change them"
        yield LeftOut("written again", why, fold(restored), len(restored))
    if force:
        return
    below = {name for names in since.on_top.values() for name in names}
    for above, named in since.on_top.items():
        names = [name for name in named if name in nodes and name not in since.restored]
        if free := [name for name in names if name not in since.stuck]:
            why = f"newer runs changed its files; first `rollout rollback {above}`"
            yield LeftOut("below a newer run", why, fold(free), len(free))
        if stuck := [name for name in names if name in since.stuck]:
            why = f"newer runs changed its files, and run {above} cannot be rolled back there; only a new plan, or --force, can change them"
            yield LeftOut("below a newer run", why, fold(stuck), len(stuck))
    in_part = [name for name in nodes if name in since.in_part and name not in below and name not in since.restored]
    if in_part:
        why = f"an older run was reverted under run {run}; --force writes the bytes that {run} met into these files too"
        yield LeftOut("reverted in part", why, fold(in_part), len(in_part))


def _revert_order(
    run: str,
    inventory: Inventory,
    transactions: Mapping[str, str],
    limits: Limits,
    left_out: tuple[LeftOut, ...] = (),
    *,
    force: bool,
    seen: Collection[str] = (),
) -> Order:
    """``seen``: nodes that runs have seen to be of the control plane, whatever the inventory says."""
    one_at_a_time = [
        name for name in transactions if name in seen or role_of(inventory.nodes[name].labels) is Role.CONTROL_PLANE
    ]
    if limits.per_zone is None and len(sizes(inventory.nodes.values(), AreaKind.ZONE)) > 1:
        limits = replace(limits, per_zone=EMERGENCY_ZONE)
    return revert_order(
        run,
        inventory.cluster,
        transactions,
        inventory.nodes,
        limits,
        left_out,
        force=force,
        one_at_a_time=one_at_a_time,
    )


@dataclass(frozen=True, slots=True)
class RunsToRevert:
    """Which runs an emergency reverts: the named runs, ``every`` run (each node's newest), or else the newest run.

    A run of another cluster is reverted only if it is named.
    """

    runs: tuple[str, ...] = ()
    every: bool = False


@dataclass(frozen=True, slots=True)
class Emergency:
    """What the nodes alone report: selected runs, and nodes to revert, already reverted, and without an answer."""

    picked: tuple[str, ...]
    order: Order
    counter: int
    seen: OnNodes
    already: Mapping[str, str]  # node → its transaction, already reverted
    without: tuple[str, ...] = ()  # nodes that answered, and have no transaction of the cluster


def emergency(
    reports: Mapping[str, Report],
    run: str,
    picked: tuple[str, ...],
    inventory: Inventory,
    limits: Limits,
    *,
    force: bool,
    known: frozenset[str] = frozenset(),
    control_plane: Collection[str] = (),
    others: OtherClusters = OURS,
) -> Emergency:
    """Revert the ``picked`` runs, only on nodes with their newest transaction in these runs.

    A revert makes that transaction ``reverted``, and it stays the newest: a repeated emergency reverts nothing older.
    Nodes without a change to revert are claimed too if a picked run was the last that claimed them: a controller that
    has just resumed that run would change them after the emergency. So are nodes that another run holds and has not
    touched. All of these are asked for a transaction that they do not have. Claims of runs that have transactions on
    nodes and are not ``picked`` are kept, as printed, and so are those of ``others``. (An emergency that died has none.)
    ``known``: runs on nodes that were read before. ``control_plane``: nodes that earlier runs have seen to be of it;
    those that show it themselves now are of it, too.
    """
    seen = on_nodes(reports, others)
    keep = (known | seen.known_runs).union(others).difference(picked)
    held = {name: receipt for name, receipt in seen.newest.items() if receipt.run in picked}
    todo = {name: receipt.tx for name, receipt in held.items() if receipt.state is not ReceiptState.REVERTED}
    claimants = {name: held_by(report, keep) or _last_claim(report, picked) for name, report in reports.items()}
    claimed = {name: claimant for name, claimant in claimants.items() if claimant}
    todo |= {name: held[name].tx for name in held if name in claimed and name not in todo}
    already = {name: receipt.tx for name, receipt in held.items() if name not in todo}
    todo |= {name: f"{claimant}-1" for name, claimant in claimed.items() if name not in held}
    unasked = tuple(
        LeftOut("silent", f"did not answer; pending recovery: {for_all(why, names)}", fold(names), len(names))
        for why, names in folded(seen.silent).items()
    )
    shown = {name for name, report in reports.items() if seen_in_report(report)}
    order = _revert_order(run, inventory, todo, limits, unasked, force=force, seen={*control_plane, *shown})
    without = tuple(name for name in reports if name not in seen.newest and name not in seen.silent)
    return Emergency(picked, order, highest_token(reports) + 1, seen, already, without)


def pick(seen: OnNodes, wanted: RunsToRevert) -> tuple[str, ...]:
    """The selected runs, from what the nodes that answered report. Raises ``UsageError``.

    If none is named: the newest credible run. It may be on few nodes or only one. A rollout that has just reached its
    canary looks like this, but so does a forged receipt; ``seen_lines`` then prints which run most nodes have.
    """
    if not seen.newest:
        away = [
            f"{counted(len(names), 'node')} did not answer, {fold(names)}: {for_all(why, names)}"
            for why, names in folded(seen.silent).items()
        ]
        raise UsageError(
            "nothing-to-take-back",
            "no node that answered has a transaction of rollout",
            hint=printable("; ".join(away), 600)
            or "there is nothing to revert; `rollout uninstall` also removes transactions",
        )
    for run in wanted.runs:
        if not seen.known(run):
            hint = did_you_mean(run, [each.run for each in seen.runs])
            raise UsageError("no-such-run", f"no node that answered has a transaction of `{printable(run)}`", hint=hint)
    if wanted.runs:
        return wanted.runs
    ours = tuple(each.run for each in seen.runs if not each.cluster)
    if not ours:
        raise UsageError(
            "nothing-to-take-back",
            "no node that answered has a transaction of this cluster",
            hint="; ".join(
                f"run {each.run}{of_other(each.cluster)}: {revert_command(each.run, each.cluster)}"
                for each in seen.runs
            ),
        )
    if wanted.every:
        return ours
    if seen.newest_run is None:
        raise UsageError(
            "false-counters",
            "the counters that the nodes report cannot be true, so the newest run is not known",
            hint="give RUN, or --every-run: " + printable(", ".join(ours), 300),
        )
    return (seen.newest_run.run,)


def _last_claim(report: Report, picked: Collection[str]) -> str:
    """The run among ``picked`` that was the last to claim a node, or ``""``. The claim may have ended."""
    token = report.token
    return token.run if token is not None and token.run in picked else ""


def held_by(report: Report, others: Collection[str]) -> str:
    """The run that still has a claim on a node, or ``""``.

    The runs in ``others`` keep their claims and do not count.
    """
    token = report.token
    return token.run if token is not None and token.live and token.run not in others else ""
