"""Changes of what a node stands on: its identity, its cgroups, its folders. Each must be accepted by name in the playbook."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from ipaddress import ip_address

from rollout.core.model.settings import Value
from rollout.kubelet.changes.kubelet_changes import KubeletChange
from rollout.kubelet.homes import InFlag
from rollout.kubelet.node.found import Found
from rollout.kubelet.node.layout import LayoutError

_DRIVER = (
    "running pods stay in the cgroups of the old driver, where the kubelet does not find them: drain the node first"
)
_ROOT = "the kubelet begins with an empty folder: what it knows of volumes, devices and pods stays in the old one"
_UNREGISTERED = "the kubelet no longer registers its Node; one that is deleted stays away"
_STATIC = "static pods of the old folder are stopped, those of the new one are started"
_NO_ADDRESS = "is no address; the kubelet leaves it out, and pods get no such name server"


def check(found: Found, change: KubeletChange, accepted: Collection[str]) -> None:
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
