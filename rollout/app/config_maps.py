"""A run's ConfigMap: what a plan writes into it, the write itself, and what a rollback has to restore.

The request is in the journal before it is sent: the event that leads to it is. What came of it is read back, so a
controller that dies in between leaves no doubt to the next one, which reads and goes on from there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import replace

from rollout.app.following import headers_of, order_of, plan_of, replay_if_readable
from rollout.app.ports import Clock, ConfigMap, ConfigMaps, PastRuns, RunHeader
from rollout.core.model.config_map import NOT_SENT, RENAMED, ConfigMapChange, ConfigMapOutcome, ConfigMapStanding
from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Inventory
from rollout.core.model.live import LiveNode
from rollout.core.model.plan import Plan, Remark, Standing
from rollout.core.model.settings import IfUnsupported, Setting, Value
from rollout.core.model.snapshot import digest
from rollout.core.plans.wanted_fields import wanted_fields
from rollout.core.run.events import ConfigMapRead
from rollout.core.run.state import Goal, Phase, RunState
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable
from rollout.errors import AwayError, RemoteError, StateError
from rollout.kubelet import fields as kubelet_fields
from rollout.kubelet.changes.splice import SpliceError
from rollout.kubelet.kubeadm import (
    CLUSTER_CONFIGURATION,
    KEY,
    NAMESPACE,
    WRITES,
    config_map_name,
    differences,
    kubernetes_version,
    lacking,
    with_fields,
)
from rollout.kubelet.node.managers import REMARK

ASK_SECONDS = 5.0
"""Seconds for one request."""

PUT_SECONDS = 15.0
"""Seconds after which an API server that does not answer is left: a rollback waits for it before it reverts nodes."""

PAUSE = 1.0
"""Seconds between two tries."""

_FINAL = frozenset({"no-endpoint", "forbidden", "unauthorized", "bad-answer", "http-422"})
"""422: it is immutable, or an admission webhook does not allow the text."""


def put(
    change: ConfigMapChange,
    config_maps: ConfigMaps,
    clock: Clock,
    wait: Callable[[float], None],
    holds: Callable[[], bool],
    *,
    void: bool = False,
) -> ConfigMapRead:
    """Write the new text where the old one is, and read it back. What others wrote is never overwritten.

    ``holds``: whether this controller has the cluster's lease. It is asked between read and write: a controller that was frozen
    for long finds that a rollback has the lease, or its write fails because the rollback has written since that read.
    ``void``: the old text is restored. Where it is there already, a write that an earlier controller has begun is made to fail.
    """
    until, restores = clock.now() + PUT_SECONDS, void
    while True:
        seen: str | None = None
        try:
            if not restores and (renamed := _renamed(change, config_maps)):
                return ConfigMapRead(clock.now(), ConfigMapOutcome.CHANGED, "", RENAMED, f"{renamed}; plan again")
            found = config_maps.read(change.namespace, change.name, ASK_SECONDS)
            text = None if found is None else found.data.get(change.key)
            if found is None or text is None or found.uid != change.uid or text not in (change.before, change.after):
                return _left_alone(change, found, clock.now())
            if text == change.after and not void:
                return _as_wanted(change, config_maps, clock.now(), restores=restores)
            if not holds():
                said = "another controller has the cluster's lease, or the journal does not answer"
                return ConfigMapRead(clock.now(), ConfigMapOutcome.UNANSWERED, "", "lease-lost", said)
            seen = text
            if text == change.after:
                config_maps.touch(found, ASK_SECONDS)
            else:
                config_maps.write(found, change.key, change.after, ASK_SECONDS)
            void = False
        except RemoteError as error:
            final = error.reference in _FINAL and not isinstance(error, AwayError)
            if final and seen == change.after:  # nor may an earlier controller write it
                return _as_wanted(change, config_maps, clock.now(), restores=restores)
            if final and seen is not None:
                said = printable(f"it could not be written: {error.message} [{error.reference}]", 300)
                read = digest(seen.encode())
                return ConfigMapRead(clock.now(), ConfigMapOutcome.REFUSED, read, "config-map-refused", said)
            if final or clock.now() >= until:
                failed = "read" if seen is None else "written"
                message = printable(f"it could not be {failed}: {error.message}", 300)
                return ConfigMapRead(clock.now(), ConfigMapOutcome.UNANSWERED, "", error.reference, message)
            if error.reference != "conflict":
                wait(PAUSE)


def _as_wanted(change: ConfigMapChange, config_maps: ConfigMaps, at: float, *, restores: bool) -> ConfigMapRead:
    """It has the new text. Where that restores it: an upgrade may have made another one of it in between."""
    renamed = ""
    if restores:
        with suppress(RemoteError):  # what was read stays true
            renamed = _renamed(change, config_maps)
    if not renamed:
        return ConfigMapRead(at, ConfigMapOutcome.WRITTEN, change.digest_after)
    said = printable(f"it is restored, but {renamed}", 600)
    return ConfigMapRead(at, ConfigMapOutcome.CHANGED, change.digest_after, RENAMED, said)


def _renamed(change: ConfigMapChange, config_maps: ConfigMaps) -> str:
    """Which ConfigMap kubeadm reads instead of the plan's, and how its text differs from the wanted one; ``""``: it is the plan's."""
    cluster, key = CLUSTER_CONFIGURATION
    known = config_maps.read(change.namespace, cluster, ASK_SECONDS)
    if known is None or key not in known.data:
        raise RemoteError("bad-answer", f"the cluster has no ConfigMap {change.namespace}/{cluster} any more")
    try:
        name, version = config_map_name(known.data[key]), kubernetes_version(known.data[key])
    except SpliceError as error:
        raise RemoteError("bad-answer", f"ConfigMap {change.namespace}/{cluster}: {error}") from error
    if name == change.name:
        return ""
    text = ""
    with suppress(RemoteError):  # it may be read by those only that have a right to the new name
        found = config_maps.read(change.namespace, name, ASK_SECONDS)
        text = found.data.get(change.key, "") if found is not None else ""
    differs = f", which differs in {differences(change.after, text)}" if text and text != change.after else ""
    return printable(f"kubeadm reads {name} now: the control plane is of {version}{differs}", 500)


def _left_alone(change: ConfigMapChange, found: ConfigMap | None, at: float) -> ConfigMapRead:
    text = None if found is None else found.data.get(change.key)
    if found is None or text is None:
        said = "it does not exist any more"
    elif found.uid != change.uid:
        said = "it is not the one of the plan, so it was left as it is: it is of another cluster (which kubeconfig and context is it?), or others have made it anew"
    else:
        said = f"others have changed it, so it was left as it is; it differs in {differences(change.before, text)}"
    read = "" if text is None else digest(text.encode())
    return ConfigMapRead(at, ConfigMapOutcome.CHANGED, read, "config-map-changed", printable(said, 600))


# What a rollback restores.


@dataclass(frozen=True, slots=True)
class RunWithConfigMap:
    """What one run did to a ConfigMap. ``change`` ``None``: its order has none. ``has_ended``: this stays so."""

    change: ConfigMapChange | None = None
    standing: ConfigMapStanding = NOT_SENT
    reverts: bool = False
    has_nodes: bool = True
    has_ended: bool = True


KnownRuns = MutableMapping[str, RunWithConfigMap]
"""Run → what it did, as far as it was read before."""


def to_restore(journal: PastRuns, source: RunState) -> ConfigMapChange | None:
    """What restores the ConfigMap of a run; ``None``: it was never asked to write one, or is restored: by its halt, or by a later rollback.

    What newer runs without nodes have written over it is undone with it: the old text can be restored only as a whole.
    """
    run, known = source.order.run, dict[str, RunWithConfigMap]()
    past = _since(journal, source.order.cluster, (run,), known)
    mine = _undone(past, run)
    together = _together(past, (run,))
    return together if mine is None or (together is not None and together.after == mine.after) else mine


def _since(
    journal: PastRuns, cluster: str, runs: Collection[str], known: KnownRuns
) -> Mapping[str, RunWithConfigMap | None]:
    """The runs of a cluster, newest first, down to the oldest of ``runs``. ``None``: what it did cannot be read."""
    names = [header.run for header in headers_of(journal, cluster)]
    oldest = max((at for at, run in enumerate(names) if run in runs), default=-1)
    return {run: _what_it_did(journal, run, known) for run in names[: oldest + 1]}


def _what_it_did(journal: PastRuns, run: str, known: KnownRuns) -> RunWithConfigMap | None:
    """Only a run with a ConfigMap is replayed, because that takes long with very many nodes."""
    if run not in known:
        found = _read(journal, run)
        if found is None or not found.has_ended:
            return found
        known[run] = found
    return known[run]


def _read(journal: PastRuns, run: str) -> RunWithConfigMap | None:
    try:
        header = journal.header(run)
        if order_of(header).config_map is None:
            return RunWithConfigMap()
    except StateError as error:
        had_none = error.reference == "another-version" and _had_none(header)
        return RunWithConfigMap() if had_none else None
    state = replay_if_readable(journal, run)
    if state is None:
        return None
    order, has_ended = state.order, state.phase is Phase.ENDED
    return RunWithConfigMap(order.config_map, state.config_map, order.goal is Goal.REVERT, bool(order.nodes), has_ended)


def _undone(past: Mapping[str, RunWithConfigMap | None], run: str) -> ConfigMapChange | None:
    """``past``: newest first, down to ``run`` at least. One that cannot be read restored nothing that we know of."""
    found = past.get(run)
    if found is None or found.change is None or found.reverts or not found.standing.sent or _restored(found.standing):
        return None
    return None if _restorer(past, run, found.change) else found.change.undone


def _restorer(past: Mapping[str, RunWithConfigMap | None], run: str, mine: ConfigMapChange) -> str:
    """The oldest later rollback that has restored it; ``""``: none."""
    over = {
        mine.after
    }  # the texts of this run and of those that follow it: a rollback from there to another text restores both
    for later, each in reversed(tuple(past.items())[: list(past).index(run)]):
        if each is None or each.change is None or not _same_object(each.change, mine) or each.change.before not in over:
            continue
        if not each.reverts:
            over.add(each.change.after)
        elif _restored(each.standing) and each.change.after not in over:
            return later
    return ""


def restored_by(journal: PastRuns, state: RunState) -> str:
    """The later rollback that has restored the ConfigMap of a run; ``""``: none, or it wrote none."""
    mine, run = state.order.config_map, state.order.run
    if mine is None or not state.config_map.sent or state.order.goal is Goal.REVERT:
        return ""
    return _restorer(_since(journal, state.order.cluster, (run,), {}), run, mine)


def _restored(standing: ConfigMapStanding) -> bool:
    """Also where an upgrade has made another ConfigMap, which kubeadm reads instead."""
    is_there = standing.outcome is ConfigMapOutcome.WRITTEN or standing.reference == RENAMED
    return standing.restores and is_there


def _together(past: Mapping[str, RunWithConfigMap | None], runs: Collection[str]) -> ConfigMapChange | None:
    """Newer runs that changed no node are of it, too: no node has a receipt of them."""
    chosen = (run for run, each in past.items() if each is not None and (run in runs or not each.has_nodes))
    return to_restore_together(change for run in chosen if (change := _undone(past, run)) is not None)


def _same_object(one: ConfigMapChange, other: ConfigMapChange) -> bool:
    return (one.namespace, one.name, one.key, one.uid) == (other.namespace, other.name, other.key, other.uid)


def to_restore_together(changes: Iterable[ConfigMapChange]) -> ConfigMapChange | None:
    """What restores several runs' ConfigMap at once. ``changes``: what restores each, the newest run first.

    As far as they follow one another: what another run has written in between is not undone.
    """
    together: ConfigMapChange | None = None
    for change in changes:
        if together is None:
            together = change
        elif _same_object(change, together) and change.before == together.after:
            together = replace(together, after=change.after)
    return together


@dataclass(frozen=True, slots=True)
class RestoreOfRuns:
    """What restores the ConfigMap of several runs. ``unknown``: the runs of which the journal does not show whether they wrote one."""

    change: ConfigMapChange | None
    unknown: tuple[str, ...]


def to_restore_of(
    journal: PastRuns, cluster: str, runs: Collection[str], known: KnownRuns | None = None
) -> RestoreOfRuns:
    """By the journal alone. It may be another controller's, or have runs of another version.

    ``known``: runs that were read before, and gets those that are read now.
    """
    past = _since(journal, cluster, runs, {} if known is None else known)
    return RestoreOfRuns(_together(past, runs), tuple(run for run in runs if past.get(run) is None))


def _had_none(header: RunHeader) -> bool:
    """Whether the plan of a run that cannot be replayed had no ConfigMap."""
    plan = plan_of(header)
    return plan is not None and plan.config_map is None


# What a plan writes.


LEFT_OUT, IN_PART = "config-map-left-out", "config-map-in-part"


def with_config_map(
    plan: Plan,
    inventory: Inventory,
    settings: Mapping[str, Mapping[str, Setting]],
    live: Sequence[LiveNode] | None,
    config_maps: ConfigMaps,
) -> Plan:
    """The plan with kubeadm's ConfigMap, or with a warning that says why it leaves it alone. ``live``: the cluster's Nodes."""
    fields = _one_value(plan, inventory, settings, live)
    if isinstance(fields, str):
        return _warned(plan, LEFT_OUT, f"{_LEFT_ALONE}: {fields}")
    found = _as_planned(fields, config_maps)
    if isinstance(found, str):
        return _warned(plan, LEFT_OUT, f"{_LEFT_ALONE}: {found}")
    change = found if found.before != found.after else None
    plan = replace(
        plan, config_map=change, remarks=tuple(each for each in plan.remarks if each.reference != REMARK)
    )  # the next upgrade keeps it
    names = dict.fromkeys(name for name in next(iter(settings.values())) if name.partition(".")[0] not in fields)
    if names and plan.has_work:
        said = (
            f"kubeadm's ConfigMap has no place for {', '.join(names)}: nodes that join later do not get it from there"
        )
        return _warned(plan, IN_PART, said)
    return plan


_LEFT_ALONE = "kubeadm's ConfigMap is left alone, so nodes that join later do not get the change"


def _warned(plan: Plan, reference: str, text: str) -> Plan:
    return replace(plan, remarks=(*plan.remarks, Remark(reference, text, ())))


def _one_value(
    plan: Plan,
    inventory: Inventory,
    settings: Mapping[str, Mapping[str, Setting]],
    live: Sequence[LiveNode] | None,
) -> Mapping[str, Value] | str:
    """The fields that every node of the cluster gets; or why there are none: kubeadm gives one text to all of them."""
    if plan.limit:
        return f"the plan is for a part of the cluster ({printable(plan.limit, 100)})"
    if live is None:
        return "the API server did not list its Nodes"
    if strangers := [node.name for node in live if node.name not in inventory.nodes]:
        return f"the inventory does not list {counted(len(strangers), 'Node')} of the cluster: {fold(strangers)}"
    if skipped := [left.name for left in plan.left if left.reference == "control-plane"]:
        return f"the playbook leaves out the control plane ({fold(skipped)}), which gets the same ConfigMap; `controlPlane: true` takes it in"
    if reasons := _reasons(plan):
        return f"the plan leaves out nodes, and kubeadm gives the same text to them: {reasons}"
    wanted = {
        json.dumps({name: each.value for name, each in settings[node].items()}, sort_keys=True) for node in settings
    }
    if len(wanted) > 1:
        return "the inventory gives its nodes different settings"
    found = [wanted_fields(group.change, WRITES) for group in plan.groups]
    if any(fields != found[0] for fields in found):
        return "nodes of the plan get different fields"
    if found:
        return found[0] or _NO_FIELD
    return _of_settings(next(iter(settings.values()), {}))


_NO_FIELD = "the change has no field of a KubeletConfiguration"


def _of_settings(settings: Mapping[str, Setting]) -> Mapping[str, Value] | str:
    """The fields where no node is changed: each has them already, in whatever home."""
    mine = {name: each for name, each in settings.items() if kubelet_fields.field(name) is not None}
    skipped = [name for name, each in mine.items() if each.if_unsupported is IfUnsupported.SKIP]
    if skipped:
        return f"the plan changes no node, so it does not show whether each node has {', '.join(skipped)} (`ifUnsupported: skip`)"
    return {name: each.value for name, each in mine.items()} or _NO_FIELD


def _reasons(plan: Plan) -> str:
    """Why the plan leaves nodes out that do not have the change: nobody knows whether their kubelets start with it."""
    left = [each for each in plan.left if each.standing is not Standing.AS_WANTED]
    references = dict.fromkeys(each.reference for each in left)
    folded = {reference: fold(each.name for each in left if each.reference == reference) for reference in references}
    return ", ".join(f"{names} [{reference}]" for reference, names in folded.items())


def _as_planned(fields: Mapping[str, Value], config_maps: ConfigMaps) -> ConfigMapChange | str:
    """``str``: why it cannot be planned."""
    cluster, key = CLUSTER_CONFIGURATION
    try:
        known = config_maps.read(NAMESPACE, cluster, ASK_SECONDS)
        if known is None or key not in known.data:
            return f"the cluster has no ConfigMap {NAMESPACE}/{cluster}: kubeadm did not make it"
        name = config_map_name(known.data[key])
        found = config_maps.read(NAMESPACE, name, ASK_SECONDS)
        if found is None or KEY not in found.data:
            return f"the cluster has no ConfigMap {NAMESPACE}/{name} with the key {KEY}"
        text = found.data[KEY]
        return ConfigMapChange(NAMESPACE, name, KEY, text, with_fields(text, lacking(text, fields)), found.uid)
    except RemoteError as error:
        return printable(f"{error.message} [{error.reference}]", 300)
    except SpliceError as error:
        return printable(f"its text cannot be edited: {error} [{error.reference}]", 300)
