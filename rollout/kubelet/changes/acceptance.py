"""Side effects of a restart: edits by others that the running process has not read. The playbook must accept each one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from ipaddress import ip_address

from rollout.core.model.plan import FileChange
from rollout.core.model.settings import Value
from rollout.kubelet.changes.kubelet_changes import KubeletChange
from rollout.kubelet.homes import InFlag
from rollout.kubelet.node import layout, unloaded
from rollout.kubelet.node.layout import LayoutError
from rollout.kubelet.node.sources import Found
from rollout.kubelet.node.unloaded import Unloaded
from rollout.kubelet.runtimes.outcome import RuntimeChange

# Changes of a node's ground: its identity, its cgroups, its folders. The playbook must accept each by name.


_DRIVER = (
    "running pods stay in the cgroups of the old driver, where the kubelet does not find them: drain the node first"
)
_ROOT = "the kubelet starts with an empty folder: its state of volumes, devices and pods stays in the old one"
_UNREGISTERED = "the kubelet no longer registers its Node; a deleted Node is not created again"
_STATIC = "static pods of the old folder are stopped, those of the new one are started"
_NO_ADDRESS = "is not an address; the kubelet ignores it, and pods do not get it as a name server"


def check_grounds(found: Found, change: KubeletChange, accepted: Collection[str]) -> None:
    """``LayoutError`` with every change of the ground that is not accepted."""
    said = [f"{name}: {what}" for name, what in _changes(found, change) if name not in accepted]
    if said:
        names = ", ".join(sorted({line.partition(":")[0] for line in said}))
        raise LayoutError("ground-changed", f"{'; '.join(said)}. `accept: [{names}]` in the playbook allows it")


def _changes(found: Found, change: KubeletChange) -> Iterator[tuple[str, str]]:
    before, after = found.outcome.effective, change.outcome.effective
    if _differ(before, after, "cgroupDriver"):
        yield "cgroupDriver", _from_to(before, after, "cgroupDriver", _DRIVER)
    if _differ(before, after, "staticPodPath"):
        yield "staticPodPath", _from_to(before, after, "staticPodPath", _STATIC)
    if _differ(before, after, "clusterDNS"):
        for entry in _entries(after.get("clusterDNS")):
            if not _is_address(entry):
                yield "clusterDNS", f"{entry!r} {_NO_ADDRESS}"
    for flag in change.flags:
        yield from _by_flag(found, flag)


def _by_flag(found: Found, flag: InFlag) -> Iterator[tuple[str, str]]:
    if flag.name == "--root-dir" and (found.layout.flag(flag.name) or "/var/lib/kubelet") != flag.text:
        yield flag.name, _ROOT
    if flag.name == "--register-node" and flag.text == "false" and found.layout.flag(flag.name) != "false":
        yield flag.name, _UNREGISTERED


def _differ(before: Mapping[str, Value], after: Mapping[str, Value], field: str) -> bool:
    return (before.get(field) or "") != (after.get(field) or "")


def _from_to(before: Mapping[str, Value], after: Mapping[str, Value], field: str, what: str) -> str:
    return f"{before.get(field) or 'nothing'} becomes {after.get(field) or 'nothing'}: {what}"


def _entries(value: Value) -> list[str]:
    return [str(entry) for entry in value] if isinstance(value, list) else []


def _is_address(entry: str) -> bool:
    try:
        ip_address(entry)
    except ValueError:
        return False
    return True


_MOST = 8
"""The most values that one refusal names."""


def check(
    found: Found, by_kubelet: KubeletChange, by_runtime: RuntimeChange, accepted: Mapping[str, str]
) -> tuple[str, ...]:
    """Notes on the edits that this change puts in force, if all are accepted; else ``LayoutError``."""
    edits = tuple(_foreign(found, by_kubelet, by_runtime))
    refused = [each for each in edits if not accepted.keys() & set(each.names)]
    if refused:
        raise LayoutError("edited-not-loaded", _refusal(refused))
    return tuple(f"takes effect with this restart: {each.told}{_reason(each, accepted)}" for each in edits)


def left(found: Found) -> tuple[str, ...]:
    """Notes on a node that is not restarted: values in its files that are not in force."""
    edits = unloaded.of_kubelet(found)
    return (f"not in force until the kubelet restarts: {_listed(edits)}",) if edits else ()


def anchor(found: Found) -> FileChange | None:
    """The file that records a change which only restarts: it keeps its bytes."""
    stale = [entry.path for entry in found.snapshot.stale]
    homes = (found.layout.config_path, *found.layout.environments, layout.DROP_IN)
    for path in (*stale, *homes):
        state = found.snapshot.files.get(path)
        if state is not None and state.content is not None and state.kind == "regular":
            return FileChange(path, state.digest, state.digest, state.mode, ())
    return None


def _foreign(found: Found, by_kubelet: KubeletChange, by_runtime: RuntimeChange) -> Iterator[Unloaded]:
    if by_kubelet.restarts:
        asked = by_kubelet.fields
        yield from (each for each in unloaded.of_kubelet(found) if not unloaded.says(asked, each.field))
    yield from unloaded.of_runtime(found.snapshot, (*by_runtime.units, *by_runtime.hangups))


def _refusal(refused: list[Unloaded]) -> str:
    files = ", ".join(dict.fromkeys(each.file for each in refused))
    name = refused[0].names[-1] if len(refused) == 1 else refused[0].file
    return (
        f"{files} was edited and not loaded; this restart would put into force: {_listed(refused)}. To allow it, add"
        f" `accept: [{{setting: {name}, reason: …}}]` to the playbook (single values can be named, too); otherwise undo the edit{_how_to_know(refused)}"
    )


def _how_to_know(refused: list[Unloaded]) -> str:
    if not any(unloaded.UNKNOWN in each.told for each in refused):
        return ""
    return ". With a kubeconfig that may read nodes/proxy, /configz shows the values of the running kubelet"


def _listed(edits: tuple[Unloaded, ...] | list[Unloaded]) -> str:
    said = "; ".join(each.told for each in edits[:_MOST])
    return said + (f"; and {len(edits) - _MOST} more" if len(edits) > _MOST else "")


def _reason(each: Unloaded, accepted: Mapping[str, str]) -> str:
    why = next((accepted[name] for name in each.names if accepted.get(name)), "")
    return f" (accepted: {why})" if why else " (accepted in the playbook)"
