"""What else a restart brings into force: edits by others that the running process has not read. Each needs the playbook's word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rollout.core.model.plan import FileChange
from rollout.kubelet.changes.kubelet_changes import KubeletChange
from rollout.kubelet.node import layout, unloaded
from rollout.kubelet.node.found import Found
from rollout.kubelet.node.layout import LayoutError
from rollout.kubelet.node.unloaded import Unloaded
from rollout.kubelet.runtimes.outcome import RuntimeChange

_MOST = 8
"""So many values are named in one refusal."""


def check(
    found: Found, by_kubelet: KubeletChange, by_runtime: RuntimeChange, accepted: Mapping[str, str]
) -> tuple[str, ...]:
    """Notes on the edits that come into force with this change, all of them accepted; else ``LayoutError``."""
    edits = tuple(_foreign(found, by_kubelet, by_runtime))
    refused = [each for each in edits if not accepted.keys() & set(each.names)]
    if refused:
        raise LayoutError("edited-not-loaded", _refusal(refused))
    return tuple(f"comes into force by this restart: {each.told}{_reason(each, accepted)}" for each in edits)


def left(found: Found) -> tuple[str, ...]:
    """Notes on a node that is not restarted: what stands in its files and is not in force."""
    edits = unloaded.of_kubelet(found)
    return (f"not in force before the kubelet restarts: {_listed(edits)}",) if edits else ()


def anchor(found: Found) -> FileChange | None:
    """The file that a change which only restarts is written down by: it is given the bytes that it has."""
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
        f"{files} was edited and not loaded; this restart would bring into force {_listed(refused)}. If that is meant, write"
        f" `accept: [{{setting: {name}, reason: …}}]` into the playbook (each value may be named, too); else undo the edit{_how_to_know(refused)}"
    )


def _how_to_know(refused: list[Unloaded]) -> str:
    if not any(unloaded.UNKNOWN in each.told for each in refused):
        return ""
    return ". With a kubeconfig that may read nodes/proxy, /configz tells what the kubelet has"


def _listed(edits: tuple[Unloaded, ...] | list[Unloaded]) -> str:
    said = "; ".join(each.told for each in edits[:_MOST])
    return said + (f"; and {len(edits) - _MOST} more" if len(edits) > _MOST else "")


def _reason(each: Unloaded, accepted: Mapping[str, str]) -> str:
    why = next((accepted[name] for name in each.names if accepted.get(name)), "")
    return f" (accepted: {why})" if why else " (accepted in the playbook)"
