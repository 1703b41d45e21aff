"""A run's ConfigMap: what a plan writes into it, the write itself, and what a rollback has to restore.

The request is in the journal before it is sent: the event that leads to it is. What came of it is read back, so a
controller that dies in between leaves no doubt to the next one, which reads and goes on from there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from rollout.app.ports import Clock, ConfigMap, ConfigMaps
from rollout.core.model.config_map import RENAMED, ConfigMapChange, ConfigMapOutcome
from rollout.core.model.inventory import Inventory
from rollout.core.model.live import LiveNode
from rollout.core.model.plan import Plan, Remark, Standing
from rollout.core.model.settings import IfUnsupported, Setting, Value
from rollout.core.model.snapshot import digest
from rollout.core.plans.wanted_fields import wanted_fields
from rollout.core.run.events import ConfigMapRead
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable
from rollout.errors import AwayError, RemoteError
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
                why = "another controller has the cluster's lease, or the journal does not answer"
                return ConfigMapRead(clock.now(), ConfigMapOutcome.UNANSWERED, "", "lease-lost", why)
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
                why = printable(f"it could not be written: {error.message} [{error.reference}]", 300)
                read = digest(seen.encode())
                return ConfigMapRead(clock.now(), ConfigMapOutcome.REFUSED, read, "config-map-refused", why)
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
        message = "it does not exist any more"
    elif found.uid != change.uid:
        message = "it is not the one of the plan, so it was left as it is: it is of another cluster (which kubeconfig and context is it?), or others have made it anew"
    else:
        message = f"others have changed it, so it was left as it is; it differs in {differences(change.before, text)}"
    read = "" if text is None else digest(text.encode())
    return ConfigMapRead(at, ConfigMapOutcome.CHANGED, read, "config-map-changed", printable(message, 600))


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
    planned = _as_planned(fields, config_maps)
    if isinstance(planned, str):
        return _warned(plan, LEFT_OUT, f"{_LEFT_ALONE}: {planned}")
    change = planned if planned.before != planned.after else None
    plan = replace(
        plan, config_map=change, remarks=tuple(each for each in plan.remarks if each.reference != REMARK)
    )  # the next upgrade keeps it
    names = dict.fromkeys(name for name in next(iter(settings.values())) if name.partition(".")[0] not in fields)
    if names and plan.has_work:
        message = (
            f"kubeadm's ConfigMap has no place for {', '.join(names)}: nodes that join later do not get it from there"
        )
        return _warned(plan, IN_PART, message)
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
