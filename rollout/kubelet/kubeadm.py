"""Living with kubeadm, which owns the file that it made.

``kubeadm upgrade node`` writes ``/var/lib/kubelet/config.yaml`` anew from the ConfigMap ``kubelet-config`` in ``kube-system``
(``kubelet-config-1.N`` before 1.24), with the patches of ``--patches`` laid over it (target ``kubeletconfiguration``, from
kubeadm 1.25 on, kubernetes #110405), after a copy to ``/etc/kubernetes/tmp/kubeadm-kubelet-config…/config.yaml``
(cmd/kubeadm/app/phases/upgrade/postupgrade.go). What was changed on the node alone is gone then.
"""

from __future__ import annotations

from rollout.core.model.plan import Change
from rollout.core.model.snapshot import Snapshot
from rollout.core.model.verification import KUBEADM_CONFIG

FLAGS_FILE = "/var/lib/kubelet/kubeadm-flags.env"
"""Only kubeadm makes it."""

REMARK = "kubeadm-rewrites"
REMARK_TEXT = (
    f"the next `kubeadm upgrade node` writes {KUBEADM_CONFIG} anew from the ConfigMap, without this change;"
    " `rollout export kubeadm` prints the patch that keeps it"
)


def rewrites(snapshot: Snapshot, change: Change) -> bool:
    """Whether kubeadm would undo the change: it edits the file that kubeadm made."""
    flags = snapshot.files.get(FLAGS_FILE)
    ours = any(file.path == KUBEADM_CONFIG for file in change.files)
    return ours and flags is not None and flags.kind == "regular"
