"""The kubelet's notes on its CPU and memory manager: with another policy than the one noted it does not start.

``configured policy … differs from state checkpoint policy …`` (pkg/kubelet/cm/cpumanager/state/state_checkpoint.go and
memorymanager's, 1.20 to 1.36); somebody must drain the node and remove the file. rollout sets neither policy, but a file
that somebody has edited since the kubelet's start would come into force by our restart.
"""

from __future__ import annotations

from rollout.core.model.snapshot import Snapshot
from rollout.core.text import json_text
from rollout.kubelet.configuration.outcome import Outcome
from rollout.kubelet.node.found import Found
from rollout.kubelet.node.layout import Layout, LayoutError

_MANAGERS = (
    ("cpuManagerPolicy", "none", "cpu_manager_state"),
    ("memoryManagerPolicy", "None", "memory_manager_state"),
)


def check(found: Found, then: Layout, outcome: Outcome) -> None:
    """``LayoutError`` where the policies in force afterwards are not those that the kubelet has noted."""
    root = then.flag("--root-dir") or "/var/lib/kubelet"
    for field, default, name in _MANAGERS:
        path = f"{root.rstrip('/')}/{name}"
        noted = _noted(found.snapshot, path)
        policy = outcome.effective.get(field) or default
        if noted and noted != policy:
            message = (
                f'configured policy "{policy}" differs from state checkpoint policy "{noted}": with {path} as it is the '
                f"kubelet would not start ({field})"
            )
            raise LayoutError("policy-state-conflict", message)


def _noted(snapshot: Snapshot, path: str) -> str:
    """The policy in the file, ``""`` where there is none or it was not read."""
    state = snapshot.files.get(path)
    if state is None or state.content is None:
        return ""
    try:
        said = json_text.parse(state.content)
    except ValueError:
        raise LayoutError(
            "policy-state-unreadable", f"{path} is not JSON; the kubelet would not start with it"
        ) from None
    noted = said.get("policyName", "") if isinstance(said, dict) else ""
    return str(noted)
