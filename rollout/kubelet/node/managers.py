"""What else configures a node: systems that own the kubelet's configuration, and managers that may overwrite it.

The agent reports marks (``fact manager-NAME MARK…``: paths, units with ``:enabled`` and ``:active``, ``cron``), ``fact
os ID`` and ``fact reboot-pending PATH``. A mark means that something is installed, not that it manages the kubelet.
Only an owner is a reason to refuse.
"""

from __future__ import annotations

from collections.abc import Mapping

from rollout.core.model.plan import Change
from rollout.core.model.snapshot import Snapshot
from rollout.core.model.verification import KUBEADM_CONFIG

# kubeadm owns the file that it has written.
#
# ``kubeadm upgrade node`` rewrites ``/var/lib/kubelet/config.yaml`` from the ConfigMap ``kubelet-config`` in
# ``kube-system`` (``kubelet-config-1.N`` before 1.24). It applies the patches of ``--patches`` (target
# ``kubeletconfiguration``, from kubeadm 1.25 on, kubernetes #110405). Before that it copies the old file to
# ``/etc/kubernetes/tmp/kubeadm-kubelet-config…/config.yaml`` (cmd/kubeadm/app/phases/upgrade/postupgrade.go). Changes
# that were made only on the node are then lost.


FLAGS_FILE = "/var/lib/kubelet/kubeadm-flags.env"
"""Only kubeadm writes it."""

REMARK = "kubeadm-rewrites"
REMARK_TEXT = (
    f"the next `kubeadm upgrade node` rewrites {KUBEADM_CONFIG} from the ConfigMap, without this change;"
    " `rollout export kubeadm` prints the patch that keeps it"
)


def rewrites(snapshot: Snapshot, change: Change) -> bool:
    """Whether kubeadm would undo the change: it edits the file that kubeadm has written."""
    flags = snapshot.files.get(FLAGS_FILE)
    ours = any(file.path == KUBEADM_CONFIG for file in change.files)
    return ours and flags is not None and flags.kind == "regular"


Said = tuple[str, str]
"""A reference and one line of text."""

_OWNERS: Mapping[str, str] = {
    "mco": "OpenShift's Machine Config Operator owns this node's files: it would find the change, mark the node degraded"
    " and stop updating its pool. Change a KubeletConfig or MachineConfig object instead",
    "talos": "Talos generates the kubelet's configuration from its machine config and keeps /etc read-only. Change"
    " machine.kubelet in the machine config (talosctl patch machineconfig) instead",
    "bottlerocket": "Bottlerocket generates the kubelet's configuration from its settings at every start. Change"
    " settings.kubernetes (apiclient set) instead",
}

_MANAGERS: Mapping[str, tuple[str, str]] = {
    "puppet": ("Puppet", "its next agent run"),
    "chef": ("Chef", "its next client run"),
    "ansible-pull": ("ansible-pull", "its next pull"),
    "salt": ("Salt", "its next state run"),
    "cfengine": ("CFEngine", "its next agent run"),
}

_DISABLED = "agent_disabled.lock"


def refusal(snapshot: Snapshot) -> Said | None:
    """The owner of the kubelet's configuration, if it is not rollout: ``managed-by-NAME``, the consequence, what to do."""
    for name, text in _OWNERS.items():
        marks = snapshot.facts.get(f"manager-{name}", "")
        evidence = f"/etc/os-release: ID={name}" if snapshot.facts.get("os") == name else marks
        if evidence:
            return f"managed-by-{name}", f"{text} (found: {evidence})"
    return None


def remarks(snapshot: Snapshot) -> tuple[Said, ...]:
    """Remarks for a node before it is changed, worst first. Nodes with the same marks have the same texts."""
    lines = [
        (f"may-be-undone-by-{name}", _undone(name, snapshot.facts[f"manager-{name}"]))
        for name in _MANAGERS
        if snapshot.facts.get(f"manager-{name}")
    ]
    pending = snapshot.facts.get("reboot-pending", "")
    if pending:
        text = f"{pending} exists: kured or another tool may reboot the node during the run"
        lines.append(("reboot-pending", f"{text}; an armed change is then reverted at boot"))
    linked = snapshot.facts.get("hard-links", "")
    if linked:
        text = "each has other names (hard links). A change replaces the file, so the other names keep the old bytes"
        lines.append(("hard-linked", f"{linked}: {text}"))
    return tuple(lines)


def _undone(name: str, marks: str) -> str:
    title, occasion = _MANAGERS[name]
    if _DISABLED in marks:
        return (
            f"{title} is installed but disabled by its lock; once enabled it may overwrite these files (found: {marks})"
        )
    return (
        f"{title} is installed: {occasion} may overwrite these files, unless it does not manage them (found: {marks})"
    )
