"""The settings of new nodes in the languages of the tools that make them, as text to commit.

A function for each format. What a format has no place for is named with its reason, never left out without a word. Where a
format's rules were read (2026-11):

* nodeadm: awslabs/amazon-eks-ami, nodeadm/api/v1alpha1/nodeconfig_types.go (``KubeletOptions``), and its page of examples
  (several objects of one user data are merged, the last one wins)
* cloud-init: canonical/cloud-init cloudinit/config/cc_write_files.py
* Ignition 3.0.0, Butane ``fcos`` 1.0.0, which every later version of them reads: coreos/butane docs/config-fcos-v1_0.md,
  docs/config-flatcar-v1_0.md
* kubespray: roles/kubernetes/node/templates/kubelet-config.v1beta1.yaml.j2, kubelet.env.v1beta1.j2, defaults/main.yml (46dbdd399)
* kops: pkg/apis/kops/v1alpha2/componentconfig.go (``KubeletConfigSpec``), nodeup/pkg/model/kubelet.go (268927e264)
* k3s and RKE2: ``rollout/kubelet/node/rancher.py``
* MCO: openshift/machine-config-operator, pkg/controller/kubelet-config/helpers.go (``validateUserKubeletConfig``,
  ``generateKubeletIgnFiles``; 01d2ca83b9). Its list was once called ``blacklistKubeletConfigurationFields``
* Talos: siderolabs/talos, pkg/machinery/kubelet/kubelet.go (``ProtectedConfigurationFields``; 6ea50fb353),
  pkg/machinery/config/types/k8s/kubelet.go (``V1Alpha1ConflictValidate``; ad8823176e, website/content/v1.15)
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

from rollout.core.model.conditions import of_kind
from rollout.core.model.plan import Plan
from rollout.core.model.settings import Value
from rollout.core.text import diff, nodesets
from rollout.core.text.documents import PrintedKey, Shown
from rollout.core.text.terminal import counted, printable
from rollout.features.export.rules.plan_texts import MOST_TEXTS, ExportedText, FormatTexts, NewNodesRule, NoPlace
from rollout.features.export.rules.settings import NewNodeSettings, settings_in_force, yaml_of
from rollout.kubelet import fields as kubelet_fields
from rollout.kubelet import values
from rollout.kubelet.configuration import schema
from rollout.kubelet.node import packaged, rancher

_TYPE = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
DROP_IN = f"{packaged.CONFIG_DIR}/99-rollout.conf"


@dataclass(frozen=True, slots=True)
class ExportPlace:
    """Where a format puts the settings: the ``path`` of a file, the ``name`` of an object."""

    path: str = DROP_IN
    name: str = "rollout"


@dataclass(frozen=True, slots=True)
class Expressed:
    """``body``: the document of a format, parsed. ``hints``: what people must know to use it."""

    body: Mapping[str, Value]
    hints: tuple[str, ...] = ()
    no_place: tuple[NoPlace, ...] = ()


def nodeadm(wanted: NewNodeSettings, _place: ExportPlace) -> Expressed:
    """``spec.kubelet`` of a NodeConfig: ``config`` and ``flags``."""
    kubelet = _filled(config=dict(wanted.fields), flags=list(wanted.flags))
    return Expressed(
        {"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": {"kubelet": kubelet}},
        (
            "A part of the user data with `Content-Type: application/node.eks.aws`, after the part with spec.cluster: the last one wins.",
        ),
    )


def cloud_init(wanted: NewNodeSettings, place: ExportPlace) -> Expressed:
    """``write_files`` of a drop-in."""
    file: Value = {"path": place.path, "owner": "root:root", "permissions": "0644", "content": _drop_in_text(wanted)}
    return Expressed({"write_files": [file]}, _drop_in_hints(place), _flags_nowhere(wanted))


def butane(wanted: NewNodeSettings, place: ExportPlace) -> Expressed:
    """``storage.files`` with the text; ``butane`` makes Ignition of it."""
    file: Value = {"path": place.path, "mode": 0o644, "overwrite": True, "contents": {"inline": _drop_in_text(wanted)}}
    return Expressed(
        {"variant": "fcos", "version": "1.0.0", "storage": {"files": [file]}},
        (*_drop_in_hints(place), "For Flatcar: `variant: flatcar`."),
        _flags_nowhere(wanted),
    )


def ignition(wanted: NewNodeSettings, place: ExportPlace) -> Expressed:
    """The same as Ignition reads it: the text is a data URL, and the mode is decimal."""
    data = base64.b64encode(_drop_in_text(wanted).encode()).decode()
    contents: Value = {"source": f"data:;base64,{data}"}
    file: Value = {"path": place.path, "mode": 0o644, "overwrite": True, "contents": contents}
    return Expressed(
        {"ignition": {"version": "3.0.0"}, "storage": {"files": [file]}}, _drop_in_hints(place), _flags_nowhere(wanted)
    )


def _drop_in_text(wanted: NewNodeSettings) -> str:
    return yaml_of({**_TYPE, **wanted.fields})


def _drop_in_hints(place: ExportPlace) -> tuple[str, ...]:
    folder = place.path.rpartition("/")[0]
    return (
        f"A kubelet reads this file only with --config-dir={folder}, which it has from 1.28 on (1.28 and 1.29 with KUBELET_CONFIG_DROPIN_DIR_ALPHA).",
    )


def _flags_nowhere(wanted: NewNodeSettings) -> tuple[NoPlace, ...]:
    why = "a drop-in has fields only; a flag belongs into the kubelet's unit or its environment file"
    return tuple(NoPlace(flag, why) for flag in wanted.flags)


# kubespray. Its template writes some keys itself. The same key in kubelet_config_extra_args is twice in the kubelet's file.

_KUBESPRAY_VARIABLES = {
    "address": "kubelet_bind_address", "cgroupDriver": "kubelet_cgroup_driver",
    "containerLogMaxFiles": "kubelet_logfiles_max_nr", "containerLogMaxSize": "kubelet_logfiles_max_size",
    "cpuManagerPolicy": "kubelet_cpu_manager_policy", "cpuManagerPolicyOptions": "kubelet_cpu_manager_policy_options",
    "enforceNodeAllocatable": "kubelet_enforce_node_allocatable", "eventRecordQPS": "kubelet_event_record_qps",
    "evictionHard": "eviction_hard", "failCgroupV1": "kubelet_fail_cgroup_v1", "failSwapOn": "kubelet_fail_swap_on",
    "featureGates": "kubelet_feature_gates", "healthzBindAddress": "kubelet_healthz_bind_address",
    "healthzPort": "kubelet_healthz_port", "imageGCHighThresholdPercent": "kubelet_image_gc_high_threshold",
    "imageGCLowThresholdPercent": "kubelet_image_gc_low_threshold", "kubeletCgroups": "kubelet_kubelet_cgroups",
    "makeIPTablesUtilChains": "kubelet_make_iptables_util_chains", "maxParallelImagePulls": "kubelet_max_parallel_image_pulls",
    "maxPods": "kubelet_max_pods", "nodeStatusUpdateFrequency": "kubelet_status_update_frequency",
    "podPidsLimit": "kubelet_pod_pids_limit", "protectKernelDefaults": "kubelet_protect_kernel_defaults",
    "readOnlyPort": "kube_read_only_port", "resolvConf": "kube_resolv_conf",
    "rotateCertificates": "kubelet_rotate_certificates", "seccompDefault": "kubelet_seccomp_default",
    "serverTLSBootstrap": "kubelet_rotate_server_certificates", "shutdownGracePeriod": "kubelet_shutdown_grace_period",
    "shutdownGracePeriodCriticalPods": "kubelet_shutdown_grace_period_critical_pods",
    "streamingConnectionIdleTimeout": "kubelet_streaming_connection_idle_timeout",
    "topologyManagerPolicy": "kubelet_topology_manager_policy", "topologyManagerScope": "kubelet_topology_manager_scope",
}  # fmt: skip
"""Field → the variable with its value."""

_KUBESPRAY_OWN = {
    "authentication": "it writes this key from several variables",
    "authorization": "it writes this key from kubelet_authorization_mode_webhook",
    "clusterDNS": "it writes this key from dns_mode",
    "clusterDomain": "its variable dns_domain is the whole cluster's",
    "containerRuntimeEndpoint": "its variable cri_socket is also that of other tools",
    "kubeReserved": "it writes this key from kube_cpu_reserved, kube_memory_reserved and others",
    "kubeReservedCgroup": "it writes this key with kube_reserved",
    "memorySwap": "it writes this key from kubelet_swap_behavior with kubelet_fail_swap_on: false",
    "staticPodPath": "its variable kube_manifest_dir is also kubeadm's",
    "systemReserved": "it writes this key from system_cpu_reserved, system_memory_reserved and others",
    "systemReservedCgroup": "it writes this key with system_reserved",
    "tlsCipherSuites": "its variable tls_cipher_suites is also the API server's",
    "tlsMinVersion": "its variable tls_min_version is also the API server's",
    "tracing": "it writes this key from kubelet_tracing and others",
}
_KUBESPRAY_ONLY_TRUE = frozenset({"protectKernelDefaults", "rotateCertificates", "serverTLSBootstrap"})
_KUBESPRAY_NO_EMPTY = frozenset({"enforceNodeAllocatable", "evictionHard", "featureGates", "cpuManagerPolicyOptions"})


def kubespray(wanted: NewNodeSettings, _place: ExportPlace) -> Expressed:
    """Its own variable of a field, else ``kubelet_config_extra_args``; flags in ``kubelet_custom_flags``."""
    refused = {name: why for name, value in wanted.fields.items() if (why := _no_kubespray_place(name, value))}
    own = {name: variable for name, variable in _KUBESPRAY_VARIABLES.items() if name in wanted.fields}
    variables = {
        own[name]: _kubespray_value(name, value)
        for name, value in wanted.fields.items()
        if name in own and name not in refused
    }
    extra = {name: value for name, value in wanted.fields.items() if name not in own and name not in refused}
    body = {**variables, **_filled(kubelet_config_extra_args=extra, kubelet_custom_flags=list(wanted.flags))}
    return Expressed(
        body,
        tuple(_kubespray_hints(wanted, body)),
        tuple(NoPlace(name, f"kubespray: {why}") for name, why in refused.items()),
    )


def _no_kubespray_place(name: str, value: Value) -> str:
    if name in _KUBESPRAY_OWN:
        return f"{_KUBESPRAY_OWN[name]}; in kubelet_config_extra_args the kubelet's file would have the key twice"
    if name in _KUBESPRAY_ONLY_TRUE and value is not True:
        return f"{_KUBESPRAY_VARIABLES[name]} writes nothing but true"
    return f"{_KUBESPRAY_VARIABLES[name]} writes no empty value" if name in _KUBESPRAY_NO_EMPTY and not value else ""


def _kubespray_value(name: str, value: Value) -> Value:
    if name == "featureGates" and isinstance(value, dict):
        return [f"{gate}={values.flag_text(on)}" for gate, on in value.items()]
    return _comma(value) if name == "enforceNodeAllocatable" else value


def _kubespray_hints(wanted: NewNodeSettings, body: Mapping[str, Value]) -> Iterator[str]:
    yield "group_vars/k8s_cluster/*.yml. Ansible replaces a variable as a whole: merge lists and maps of your own by hand."
    if "kubelet_config_extra_args" in body:
        yield "Its own keys written into kubelet_config_extra_args, too, would be in the kubelet's file twice."
    if "failCgroupV1" in wanted.fields:
        yield "kubelet_fail_cgroup_v1 is written for Kubernetes 1.35 and newer only."
    if "maxParallelImagePulls" in wanted.fields:
        yield "kubelet_max_parallel_image_pulls is known from kubespray 2.29 on; an older one ignores it."
    elif wanted.fields.get("serializeImagePulls") is False:
        yield "From kubespray 2.29 on kubelet_max_parallel_image_pulls is 1 by default, which keeps pulls serial: set it, too."


# kops. Its KubeletConfigSpec has names and types of its own.

_KOPS_SAME = frozenset({
    "allowedUnsafeSysctls", "cgroupDriver", "cgroupRoot", "clusterDomain", "containerLogMaxFiles", "containerLogMaxSize",
    "cpuCFSQuota", "cpuCFSQuotaPeriod", "cpuManagerPolicy", "enableDebuggingHandlers", "eventBurst", "eventRecordQPS",
    "evictionMaxPodGracePeriod", "evictionPressureTransitionPeriod", "failSwapOn", "hairpinMode",
    "imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "imageMaximumGCAge", "imageMinimumGCAge",
    "kernelMemcgNotification", "kubeAPIQPS", "kubeReserved", "kubeReservedCgroup", "kubeletCgroups", "maxParallelImagePulls",
    "maxPods", "nodeLeaseDurationSeconds", "nodeStatusUpdateFrequency", "podCIDR", "podPidsLimit", "protectKernelDefaults",
    "readOnlyPort", "registerNode", "registryBurst", "registryPullQPS", "resolvConf", "rotateCertificates",
    "runtimeRequestTimeout", "seccompDefault", "serializeImagePulls", "shutdownGracePeriod",
    "shutdownGracePeriodCriticalPods", "streamingConnectionIdleTimeout", "systemCgroups", "systemReserved",
    "systemReservedCgroup", "tlsCipherSuites", "tlsMinVersion", "topologyManagerPolicy", "volumeStatsAggPeriod",
})  # fmt: skip
"""Fields with their own name and type there."""

_KOPS_NAMES = {
    "authentication.anonymous.enabled": "anonymousAuth",
    "authentication.webhook.cacheTTL": "authenticationTokenWebhookCacheTtl",
    "authentication.webhook.enabled": "authenticationTokenWebhook",
    "authentication.x509.clientCAFile": "clientCaFile",
    "authorization.mode": "authorizationMode",
    "crashLoopBackOff.maxContainerRestartPeriod": "crashLoopBackOffMaxContainerRestartPeriod",
    "logging.format": "logFormat",
    "logging.verbosity": "logLevel",
    "memorySwap.swapBehavior": "memorySwapBehavior",
    "staticPodPath": "podManifestPath",
    "volumePluginDir": "volumePluginDirectory",
}
_KOPS_TEXTS = frozenset({
    "clusterDNS", "enforceNodeAllocatable", "evictionHard", "evictionMinimumReclaim", "evictionSoft",
    "evictionSoftGracePeriod", "featureGates",
})  # fmt: skip
"""Fields that are lists or maps, and texts (``featureGates``: a map of texts) there."""
_KOPS_FLAGS = {"--image-pull-progress-deadline": "imagePullProgressDeadline", "--v": "logLevel"}
_KOPS_NUMBERS = frozenset({"--v"})
_KOPS_EMPTY = frozenset({"resolvConf"})
"""Texts that kops passes on when they are empty."""


def kops(wanted: NewNodeSettings, _place: ExportPlace) -> Expressed:
    """``spec.kubelet`` of a Cluster or an InstanceGroup."""
    flat = dict(_flat(wanted.fields))
    placed = {path: _kops(path, value) for path, value in flat.items()}
    flags = {flag: _KOPS_FLAGS.get(flag.partition("=")[0]) for flag in wanted.flags}
    kubelet = {
        **{found[0]: found[1] for found in placed.values() if isinstance(found, tuple)},
        **{name: _kops_flag(flag) for flag, name in flags.items() if name},
    }
    return Expressed(
        {"spec": {"kubelet": kubelet}},
        (
            "`kops edit cluster` (or `kops edit instancegroup`), then `kops update cluster`. Names and types are those of kops of 2026-08: an older one refuses a field that it does not know.",
            *(("eventQPS, if your spec has it, wins over eventRecordQPS.",) if "eventRecordQPS" in kubelet else ()),
        ),
        (
            *(NoPlace(path, found) for path, found in placed.items() if isinstance(found, str)),
            *(NoPlace(flag, "kops: KubeletConfigSpec has no field for it") for flag, name in flags.items() if not name),
        ),
    )


def _flat(fields: Mapping[str, Value]) -> Iterator[tuple[str, Value]]:
    """The paths of objects; a field of any other type is one value."""
    kinds = schema.fields_of(schema.ROOT, kubelet_fields.known_minors()[-1])
    for name, value in fields.items():
        kind = kinds.get(name)
        if isinstance(value, dict) and kind is not None and kind.form is schema.Form.OBJECT:
            yield from _leaves(name, value)
        else:
            yield name, value


def _leaves(path: str, value: Value) -> Iterator[tuple[str, Value]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(f"{path}.{key}", inner)
    else:
        yield path, value


def _kops(path: str, value: Value) -> tuple[str, Value] | str:
    """The name and value there, or why there is none."""
    if value in ("", [], {}) and path not in _KOPS_EMPTY:
        return "kops: it leaves out a field with an empty value"
    if path in _KOPS_SAME:
        return path, value
    if path in _KOPS_NAMES:
        return _KOPS_NAMES[path], value
    if path not in _KOPS_TEXTS:
        return "kops: KubeletConfigSpec has no field for it"
    if path == "clusterDNS" and isinstance(value, list) and len(value) > 1:
        return "kops: its clusterDNS is one address"
    if path == "featureGates" and isinstance(value, dict):
        return path, {gate: values.flag_text(on) for gate, on in value.items()}
    if isinstance(value, dict):
        return path, _pairs(value, "<" if path in {"evictionHard", "evictionSoft"} else "=")
    return path, _comma(value)


def _kops_flag(flag: str) -> Value:
    name, _, value = flag.partition("=")
    return int(value) if name in _KOPS_NUMBERS and value.isdecimal() else value


# k3s and RKE2: arguments in a file of config.yaml.d, or fields in the folder of drop-ins that they give to the kubelet.


def kubelet_args(embedding: rancher.Embedding, wanted: NewNodeSettings, _place: ExportPlace) -> Expressed:
    """``kubelet-arg+``: a field by its flag."""
    written = {name: _as_flag(name, value) for name, value in wanted.fields.items()}
    words = [word.removeprefix("--") for word in (*(flag for flag in written.values() if flag), *wanted.flags)]
    own = [word.partition("=")[0] for word in words if rancher.is_own(word)]
    folder = f"{embedding.agent_folder(())}/etc/kubelet.conf.d"
    return Expressed(
        {f"{rancher.KEY}+": [*words]} if words else {},
        (
            f"{embedding.own_file}: the key with + appends to your own (1.21 and newer).",
            *(f"{name} replaces the value that {embedding.title} gives itself." for name in own),
        ),
        tuple(
            NoPlace(
                name,
                f"no kubelet flag of every minor sets it; from 1.32 on a file in {folder} does: `rollout export new-nodes {embedding.name}-drop-in`",
            )
            for name, flag in written.items()
            if not flag
        ),
    )


def rancher_drop_in(embedding: rancher.Embedding, wanted: NewNodeSettings, _place: ExportPlace) -> Expressed:
    """A file beside ``00-NAME-defaults.conf``."""
    path = f"{embedding.agent_folder(())}/etc/kubelet.conf.d/99-rollout.conf"
    why = f"a drop-in has fields only: `rollout export new-nodes {embedding.name}` has it as {rancher.KEY}"
    return Expressed(
        {**_TYPE, **wanted.fields},
        (
            f"{path} (below --data-dir, if you set it), from 1.32 on; an older {embedding.title} does not give the folder to its kubelet.",
        ),
        tuple(NoPlace(flag, why) for flag in wanted.flags),
    )


def _as_flag(name: str, value: Value) -> str:
    """``--flag=value``; ``""`` where no flag sets the field in every minor, or the flag cannot express the value."""
    known = kubelet_fields.field(name)
    names = known.flags if known is not None else ()
    flag = next((kubelet_fields.flag(each) for each in names if _lasting(each)), None)
    text = _flag_value(flag.kind, value) if flag is not None else None
    return f"{flag.name}={text}" if flag is not None and text is not None else ""


def _lasting(name: str) -> bool:
    flag = kubelet_fields.flag(name)
    return flag is not None and flag.removed is None


def _flag_value(kind: str, value: Value) -> str | None:
    if isinstance(value, dict):
        separator = {"thresholds": "<", "pairs": "=", "gates": "="}.get(kind)
        plain = not any(isinstance(each, dict | list) or "," in str(each) for each in value.values())
        return _pairs(value, separator) if separator and plain and value else None
    if isinstance(value, list):
        plain = all(isinstance(each, str) and "," not in each for each in value)
        return ",".join(map(str, value)) if value and plain else None
    return values.flag_text(value)


# MCO, the operator of OpenShift and OKD.

_MCO_REFUSED = frozenset({
    "cgroupDriver", "clusterDNS", "clusterDomain", "failSwapOn", "featureGates", "memorySwap", "staticPodPath",
})  # fmt: skip
_MCO_ONCE_REFUSED = frozenset({"configMapAndSecretChangeDetectionStrategy", "runtimeRequestTimeout"})


def mco(wanted: NewNodeSettings, place: ExportPlace) -> Expressed:
    """A KubeletConfig for the worker pool."""
    refused = {name: why for name, value in wanted.fields.items() if (why := _no_mco_place(name, value))}
    config = {name: value for name, value in wanted.fields.items() if name not in refused}
    level = next((flag.removeprefix("--v=") for flag in wanted.flags if flag.removeprefix("--v=").isdecimal()), "")
    labels: Value = {"pools.operator.machineconfiguration.openshift.io/worker": ""}
    spec = _filled(
        machineConfigPoolSelector={"matchLabels": labels}, kubeletConfig=config, logLevel=int(level) if level else None
    )
    return Expressed(
        {
            "apiVersion": "machineconfiguration.openshift.io/v1",
            "kind": "KubeletConfig",
            "metadata": {"name": place.name},
            "spec": spec,
        },
        (
            "For another pool: its label in machineConfigPoolSelector. MCO drains and reboots the nodes of the pool.",
            *(f"{name}: older MCO refuse it." for name in wanted.fields if name in _MCO_ONCE_REFUSED),
        ),
        (
            *(NoPlace(name, f"MCO: {why}") for name, why in refused.items()),
            *(
                NoPlace(flag, "MCO: a KubeletConfig has fields only; a flag needs a MachineConfig with a drop-in of kubelet.service")
                for flag in wanted.flags
                if flag != f"--v={level}"
            ),
        ),
    )  # fmt: skip


def _no_mco_place(name: str, value: Value) -> str:
    if name in _MCO_REFUSED:
        return "validateUserKubeletConfig refuses a KubeletConfig with it" + (
            " (FeatureGate `cluster` has the gates)" if name == "featureGates" else ""
        )
    kind = schema.fields_of(schema.ROOT, kubelet_fields.known_minors()[-1]).get(name)
    pointer = kind is not None and kind.pointer
    if value in ("", [], {}, "0s") or (not pointer and (value is False or value == 0)):
        return "it does not merge an empty or zero value over its own (mergo.WithOverride)"
    return ""


# Talos.

_TALOS_PROTECTED = frozenset({
    "apiVersion", "authentication", "authorization", "cgroupRoot", "kind", "kubeletCgroups", "port", "protectKernelDefaults",
    "resolvConf", "rotateCertificates", "seccompDefault", "staticPodPath", "systemCgroups",
})  # fmt: skip


def talos(wanted: NewNodeSettings, _place: ExportPlace) -> Expressed:
    """A patch of a machine configuration."""
    config = {name: value for name, value in wanted.fields.items() if name not in _TALOS_PROTECTED}
    pairs = (flag.removeprefix("--").partition("=") for flag in wanted.flags)
    args = {name: value if sign else "true" for name, sign, value in pairs}
    return Expressed(
        {"machine": {"kubelet": _filled(extraConfig=config, extraArgs=dict(args))}},
        (
            "`talosctl machineconfig patch FILE --patch @THIS`; extraConfig refuses a field that Talos' own version of it does not know.",
            "If your machine configuration has a document `kind: KubeletConfig` (from Talos 1.15 on), it refuses machine.kubelet beside it: write extraConfig as its `config`, and extraArgs as its `extraArgs`.",
        ),
        tuple(
            NoPlace(name, "Talos: one of its ProtectedConfigurationFields")
            for name in wanted.fields
            if name in _TALOS_PROTECTED
        ),
    )  # fmt: skip


# The formats.


@dataclass(frozen=True, slots=True)
class Format:
    """``first``: the line with which a text must begin. ``comments``: whether the format has them."""

    express: Callable[[NewNodeSettings, ExportPlace], Expressed]
    first: str = ""
    comments: bool = True


_RKE2, _K3S = rancher.EMBEDDINGS["rke2-agent.service"], rancher.EMBEDDINGS["k3s-agent.service"]

FORMATS: Mapping[str, Format] = {  # the names of FORMAT_NAMES
    "butane": Format(butane),
    "cloud-init": Format(cloud_init, first="#cloud-config"),
    "ignition": Format(ignition, comments=False),
    "k3s": Format(partial(kubelet_args, _K3S)),
    "k3s-drop-in": Format(partial(rancher_drop_in, _K3S)),
    "kops": Format(kops),
    "kubespray": Format(kubespray),
    "mco": Format(mco),
    "nodeadm": Format(nodeadm),
    "rke2": Format(partial(kubelet_args, _RKE2)),
    "rke2-drop-in": Format(partial(rancher_drop_in, _RKE2)),
    "talos": Format(talos),
}


def comments(found: ExportedText) -> Iterator[str]:
    """What people must know of a text."""
    yield f"{counted(len(found.nodes), 'node')}: {printable(nodesets.fold(found.nodes), 160)}"
    yield from found.hints
    for each in found.no_place:
        shown = diff.redacted(each.setting) if "=" in each.setting else each.setting
        yield printable(f"No place for {shown}: {each.why}", 600)


def exported(name: str, found: Sequence[NewNodeSettings], path: str = DROP_IN) -> tuple[ExportedText, ...]:
    """A text for each distinct set of settings."""
    objects = ["rollout", *(f"rollout-{at}" for at in range(2, len(found) + 1))]
    return tuple(
        _exported(FORMATS[name], wanted, ExportPlace(path, object_name), alone=len(found) == 1)
        for wanted, object_name in zip(found, objects, strict=False)
    )


def completed(plan: Plan) -> Plan:
    """The plan with the texts that its playbook and inventory demand."""
    if not of_kind(plan.conditions, NewNodesRule):
        return plan
    found = settings_in_force([(plan, tuple(plan.nodes))])
    return replace(
        plan,
        conditions=tuple(_made(each, found) if isinstance(each, NewNodesRule) else each for each in plan.conditions),
    )


def _made(rule: NewNodesRule, found: Sequence[NewNodeSettings]) -> NewNodesRule:
    shown = found[:MOST_TEXTS]
    texts = (FormatTexts(name, exported(name, shown, rule.path or DROP_IN)) for name in rule.formats if shown)
    return replace(rule, planned=tuple(texts), more=len(found) - len(shown))


def planned_texts(plan: Plan, name: str, path: str) -> tuple[ExportedText, ...] | None:
    """The texts that the plan has under its digest; ``None``: it does not have all of them in this format. ``path`` ``""``: any."""
    rules = (
        each
        for each in of_kind(plan.conditions, NewNodesRule)
        if not each.more and (not path or (each.path or DROP_IN) == path)
    )
    return next((each.texts for rule in rules for each in rule.planned if each.format == name), None)


def _exported(form: Format, wanted: NewNodeSettings, place: ExportPlace, *, alone: bool) -> ExportedText:
    secret = tuple(flag for flag in wanted.flags if diff.redacted(flag) != flag)
    shown = NewNodeSettings(wanted.fields, tuple(flag for flag in wanted.flags if flag not in secret))
    made = form.express(shown, place)
    text = json.dumps(made.body, indent=2) + "\n" if not form.comments else yaml_of(made.body)
    differ = () if alone else ("These sets differ: give each to the machines of its nodes only.",)
    no_place = (
        *made.no_place,
        *(NoPlace(flag.partition("=")[0], "its value may be a secret, which is not exported") for flag in secret),
        *(NoPlace(name, "in force by default on these nodes; nothing is written") for name in wanted.by_default),
        *(NoPlace(each, "no file of the kubelet; new nodes need this, too") for each in wanted.others),
    )
    return ExportedText(text, (*differ, *made.hints), no_place, wanted.nodes)


def exported_lines(name: str, texts: Sequence[ExportedText]) -> Iterator[str]:
    """The texts with their comments, where the format has any: for a file."""
    form = FORMATS[name]
    if not texts and form.comments:
        yield "# no change of a kubelet is in force"
    for at, each in enumerate(texts):
        if at and form.comments:
            yield "---"
        yield from (form.first,) if form.first else ()
        yield from (f"# {line}" for line in comments(each) if form.comments)
        yield from each.text.splitlines()


_TEXT = Shown(
    "The ``text`` for ``nodes`` (a nodeset); ``noPlace`` are settings that the format cannot express.",
    (
        "text", "hints", "no_place", PrintedKey("nodes", "count", write=len, kind=int),
        PrintedKey("nodes", write=nodesets.fold),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NewNodesDocument:
    """What makes new nodes get the settings, in the language of a tool that makes nodes."""

    format: str
    texts: tuple[Annotated[ExportedText, _TEXT], ...]


def _filled(**keys: Value) -> dict[str, Value]:
    """Without keys that have nothing."""
    return {name: value for name, value in keys.items() if value not in (None, [], {})}


def _pairs(value: Mapping[str, Value], sign: str) -> str:
    return ",".join(f"{name}{sign}{values.flag_text(each)}" for name, each in value.items())


def _comma(value: Value) -> Value:
    return ",".join(map(str, value)) if isinstance(value, list) else value
