"""kubeadm's ConfigMap with the kubelets' configuration: its name, and its text with other fields.

``kubeadm join`` and ``kubeadm upgrade node`` write it to ``/var/lib/kubelet/config.yaml`` of each node, as it is under the
key ``kubelet``. Its name is in cmd/kubeadm/app/constants (``GetKubeletConfigMapName``) and depends on the minor of the
control plane, which the ConfigMap ``kubeadm-config`` has, and on the gate UnversionedKubeletConfigMap there:

* up to 1.22 there is no such gate: ``kubelet-config-1.N``
* 1.23: off by default (alpha). 1.24: on by default (beta, CHANGELOG-1.24)
* from 1.25 on it is locked to on (CHANGELOG-1.25, kubernetes#110327): ``kubelet-config``

kubeadm leaves its annotation ``kubeadm.kubernetes.io/component-config.hash`` on the ConfigMap. It no longer fits the text after
an edit, by rollout or by ``kubectl edit``: by that kubeadm knows that the text is the user's, and keeps it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from rollout.core.model.settings import Value
from rollout.core.model.verification import KUBEADM_CONFIG
from rollout.kubelet import values
from rollout.kubelet.changes import splice

NAMESPACE = "kube-system"
CLUSTER_CONFIGURATION = ("kubeadm-config", "ClusterConfiguration")
"""The name and the key of what kubeadm knows of the cluster."""
KEY = "kubelet"
WRITES = KUBEADM_CONFIG
"""The file of a node that gets the text."""

_GATE = "UnversionedKubeletConfigMap"
_GATE_SINCE, _ON_SINCE, _LOCKED_SINCE = 23, 24, 25
_VERSION = re.compile(r"v?1\.(\d+)(\.|$)")


def config_map_name(cluster_configuration: str) -> str:
    """The name of the ConfigMap by kubeadm's ``ClusterConfiguration``. ``SpliceError``: it has no version that is known."""
    document = splice.read(cluster_configuration.encode())
    version = _VERSION.match(str(document.get("kubernetesVersion", "")))
    if version is None:
        raise splice.SpliceError(
            "kubeadm-version-unknown", "kubeadm's ClusterConfiguration has no kubernetesVersion of 1.N"
        )
    minor, gates = int(version[1]), document.get("featureGates")
    enabled = gates.get(_GATE) if isinstance(gates, dict) else None
    without = minor >= _LOCKED_SINCE or (
        minor >= _GATE_SINCE and (minor >= _ON_SINCE if enabled is None else enabled is True)
    )
    return "kubelet-config" if without else f"kubelet-config-1.{minor}"


def kubernetes_version(cluster_configuration: str) -> str:
    """The version of the control plane, as kubeadm has it."""
    return str(splice.read(cluster_configuration.encode()).get("kubernetesVersion", ""))


def lacking(text: str, fields: Mapping[str, Value]) -> Mapping[str, Value]:
    """Those of the fields with a value that a kubelet does not read from the text as it is: ``60s`` is also ``1m0s``."""
    document = splice.read(text.encode())
    return {
        name: value
        for name, value in fields.items()
        if name not in document or not _has(document[name], value, (name,))
    }


def _has(found: Value, wanted: Value, path: tuple[str, ...]) -> bool:
    if isinstance(found, dict) and isinstance(wanted, dict):
        return all(name in found and _has(found[name], value, (*path, name)) for name, value in wanted.items())
    return values.same(path, found, wanted)


def with_fields(text: str, fields: Mapping[str, Value]) -> str:
    """The text with these fields. Everything else keeps its bytes. ``SpliceError``: it cannot be edited safely."""
    document = splice.read(text.encode())
    if document.get("kind") != "KubeletConfiguration":
        raise splice.SpliceError("not-a-kubelet-config", "its text is not a KubeletConfiguration")
    return splice.splice(text.encode(), splice.written(fields)).content.decode()


def differences(expected: str, found: str) -> str:
    """The fields in which two texts differ, as ``maxPods: 110 → 90``; else that they differ in bytes only."""
    try:
        before, now = splice.read(expected.encode()), splice.read(found.encode())
    except splice.SpliceError as error:
        return f"its form: {error}"
    names = [name for name in dict.fromkeys((*before, *now)) if before.get(name) != now.get(name)]
    shown = (f"{name}: {_shown(before.get(name))} → {_shown(now.get(name))}" for name in names)
    return ", ".join(shown) or "bytes, though not in the value of a field"


def _shown(value: Value) -> str:
    return "not set" if value is None else values.shown(value)
