"""What else configures a node: systems that own the kubelet's configuration, and managers that may overwrite it.

The agent reports marks (``fact manager-NAME MARK…``: paths, units with ``:enabled`` and ``:active``, ``cron``), ``fact
os ID`` and ``fact reboot-pending PATH``. A mark means that something is installed, not that it manages the kubelet.
Only an owner is a reason to refuse.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib import resources
from typing import Any

from rollout.core.model.frozen import dataclass
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


Said = tuple[str, str]
"""A reference and one line of text."""


@dataclass(frozen=True, slots=True)
class Renderer:
    """A tool that writes files of a kubelet or of its runtime anew: ``files`` and ``runtime`` are patterns of ``fnmatch`` for them.

    ``undone``: when, and by what. ``instead`` and ``runtime_instead``: where the setting belongs. ``os``: the ID of the system that
    always has the tool; others have its marks. ``source``: where this was read. The rows are in ``renderers.toml``.
    """

    undone: str
    files: tuple[str, ...]
    instead: str
    source: str
    runtime: tuple[str, ...] = ()
    runtime_instead: str = ""
    os: str = ""

    def of(self, path: str) -> str:
        """Where the settings of this file belong; ``""``: the tool does not write it."""
        for patterns, instead in ((self.files, self.instead), (self.runtime, self.runtime_instead or self.instead)):
            if any(fnmatchcase(path, pattern) for pattern in patterns):
                return instead
        return ""


def _table() -> Mapping[str, Renderer]:
    text = resources.files("rollout.kubelet.node").joinpath("renderers.toml").read_text(encoding="utf-8")
    return {name: _row(entry) for name, entry in tomllib.loads(text).items()}


def _row(entry: Mapping[str, Any]) -> Renderer:
    lists = {key: tuple(entry.get(key, ())) for key in ("files", "runtime")}
    return Renderer(**{**entry, **lists})


_RENDERERS = _table()


def undone(snapshot: Snapshot, change: Change) -> tuple[Said, ...]:
    """What will undo the change, and when: tools that write its files anew."""
    paths = [file.path for file in change.files]
    flags = snapshot.files.get(FLAGS_FILE)
    by_kubeadm = KUBEADM_CONFIG in paths and flags is not None and flags.kind == "regular"
    return (*(((REMARK, REMARK_TEXT),) if by_kubeadm else ()), *_rendered(snapshot, paths))


def _rendered(snapshot: Snapshot, paths: Sequence[str]) -> Iterator[Said]:
    """A line for each tool and each place where the settings belong instead."""
    for name, each in _RENDERERS.items():
        evidence = _evidence(snapshot, name, each.os)
        for instead in dict.fromkeys(each.of(path) for path in paths) if evidence else ():
            if instead:
                files = ", ".join(path for path in paths if each.of(path) == instead)
                yield (
                    f"rendered-by-{name}",
                    f"{files}: {each.undone}: put the setting into {instead} (found: {evidence})",
                )


def renderer(snapshot: Snapshot, path: str) -> str:
    """The tool of this node that writes this file anew; ``""``: none is known."""
    return next(
        (name for name, each in _RENDERERS.items() if each.of(path) and _evidence(snapshot, name, each.os)),
        "",
    )


RENDERED_BY = frozenset({"os", *(f"manager-{name}" for name in _RENDERERS)})
"""The facts of a node that show which tool renders its files."""


def _evidence(snapshot: Snapshot, name: str, os: str) -> str:
    """``/etc/os-release: ID=talos``, or the marks of its tool; ``""``: it is not there."""
    return (
        f"/etc/os-release: ID={os}"
        if os and snapshot.facts.get("os") == os
        else snapshot.facts.get(f"manager-{name}", "")
    )


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


def kubelet_elsewhere(snapshot: Snapshot) -> str:
    """Which unit should have the kubelet of a node without ``kubelet.service``, and none that runs has; ``""``: not known."""
    for name, title in (("rke2", "RKE2"), ("k3s", "k3s")):
        marks = snapshot.facts.get(f"manager-{name}", "")
        if marks:
            return (
                f"systemd has no kubelet.service, and {title} is installed (found: {marks}), but not exactly one of its units"
                f" runs or is enabled: which one has the kubelet is unknown. Its arguments are in /etc/rancher/{name}/config.yaml"
            )
    return ""


_DISABLED = "agent_disabled.lock"


def refusal(snapshot: Snapshot) -> Said | None:
    """The owner of the kubelet's configuration, if it is not rollout: ``managed-by-NAME``, the consequence, what to do."""
    for name, text in _OWNERS.items():
        evidence = _evidence(snapshot, name, name)
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
