"""What was probably meant: the words of rollout beside those of a kubelet."""

from __future__ import annotations

import pytest

from rollout.kubelet.configuration import hints
from rollout.kubelet.configuration.outcome import MessageLevel

from .starts import said, started


@pytest.mark.parametrize(
    ("minor", "written", "hint"),
    [
        (30, "--pod-manift-path", "did you mean `--pod-manifest-path`?"),
        (30, "--maxPods", "did you mean `--max-pods`?"),
        (30, "--max-parallel-image-pulls", "it is no flag: the file has `maxParallelImagePulls`"),
        (24, "--network-plugin", "it was removed in 1.24"),
        (31, "--iptables_drop_bit", "it was removed in 1.31; the file has `iptablesDropBit`"),
        (21, "--reserved-memory", "it was added in 1.22; the file has `reservedMemory`"),
        (20, "--reserved-memory", "it was added in 1.22"),
        (20, "--nothing-like-it", ""),
        (20, "", ""),
    ],
)
def test_a_flag(minor: int, written: str, hint: str) -> None:
    assert hints.unknown_flag(written, minor) == hint


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("MaxPods: 5", "did you mean `maxPods`?"),
        ("max-pods: 5", "did you mean `maxPods`?"),
        ("max_pods: 5", "did you mean `maxPods`?"),
        ("anonymousAuth: false", "the field is `authentication.anonymous.enabled`"),
        ("clientCAFile: /x", "the field is `authentication.x509.clientCAFile`"),
        ("cacheTTL: 1m", "the field is `authentication.webhook.cacheTTL`"),
        ("nodeIP: 10.0.0.1", "it is a flag and no field: `--node-ip`"),
        ("NodeSwap: true", "it is a feature gate: write it below `featureGates`"),
        ("nodefs.available: 5%", "it is a key of `evictionHard` or `evictionSoft`: indent it below one of them"),
        ("authentication: {webhok: {}}", "did you mean `webhook`?"),
        ("\u00a0maxPods: 5", "the name has blanks or letters that no field has; did you mean `maxPods`?"),
    ],
)
def test_a_field(written: str, hint: str) -> None:
    (text,) = said(started("1.30.1", written + "\n"), MessageLevel.POLICY)
    assert text.endswith(f"({hint})")


@pytest.mark.parametrize(
    ("version", "written", "flags", "line", "hint"),
    [
        ("1.30.1", "featureGates:\n  NodeSwp: true", (), 4, "did you mean `NodeSwap`?"),
        ("1.28.1", "featureGates:\n  DevicePlugins: true", (), 4, "1.27 is the last minor with this gate: remove it"),
        ("1.27.1", "featureGates:\n  SidecarContainers: true", (), 4, "1.28 is the first minor with this gate"),
        ("1.28.1", "featureGates: {CPUManager: }", (), 3, "remove the gate"),
        ("1.33.1", "evictionHard:\n  memory.available: 100MB", (), 4, "the setting is `evictionHard.memory.available`; write a quantity or a share, such as `500Mi`, `1.5Gi` or `5%`"),
        ("1.33.1", "evictionHard:\n  memory.availble: 5%", (), 4, "did you mean `memory.available`?"),
        ("1.33.1", "kubeReserved:\n  storage: 1Gi", (), 4, "known are cpu, ephemeral-storage, memory, pid"),
        ("1.26.1", "systemReserved:\n  memory: 1gb", (), 4, "the setting is `systemReserved.memory`; write a quantity, such as `100m`, `500Mi` or `1.5Gi`"),
        ("1.20.2", "evictionSoft:\n  memory.available: 5%", (), 4, "write `memory.available` below `evictionSoftGracePeriod`, such as `1m30s`"),
        ("1.20.2", "evictionSoft: {memory.available: 5%}\nevictionSoftGracePeriod:\n  memory.available: '5'", (), 5, "the setting is `evictionSoftGracePeriod.memory.available`; write a duration, such as `90s` or `1m30s`"),
        ("1.20.2", "evictionMinimumReclaim:\n  memory.available: x", (), 4, "the setting is `evictionMinimumReclaim.memory.available`; write a quantity or a share, such as `500Mi`, `1.5Gi` or `5%`"),
        ("1.30.1", "authentication:\n  webhook:\n    cacheTTL: 20", (), 5, "a duration is a text with units, such as `30s`, `5m` or `1h30m`; there are no days"),
        ("1.30.1", "imageMinimumGCAge: 1d", (), 3, "the setting is `imageMinimumGCAge`; a duration is a text with units, such as `30s`, `5m` or `1h30m`; there are no days"),
        ("1.30.1", "kubeReserved:\n  cpu: 1", (), 4, "the setting is `kubeReserved.cpu`; write the value in quotes"),
        ("1.30.1", 'failSwapOn: "false"', (), 3, "write `true` or `false`, without quotes"),
        ("1.30.1", "clusterDNS: 10.0.0.10", (), 3, "write a list, such as `[a, b]`"),
        ("1.30.1", "featureGates: A=true", (), 3, "write keys with values, such as `{key: value}`"),
        ("1.24.1", "logging: {flushFrequency: 5s}", (), 3, "this minor reads a whole number of nanoseconds"),
        ("1.30.1", "", ("--system-reserved=cpu=memory=1Gi",), None, "`--system-reserved=cpu=memory=1Gi` sets `systemReserved`; write a quantity, such as `100m`, `500Mi` or `1.5Gi`"),
        ("1.30.1", "imageGCHighThresholdPercent: 70", (), None, ""),
        ("1.30.1", "", ("$KUBELET_EXTRA_ARGS",), None, "systemd fills in such a variable: give its content"),
        ("1.33.1", "address: '{{ ip }}'", (), 3, "the setting is `address`"),
    ],
)  # fmt: skip
def test_a_value(version: str, written: str, flags: tuple[str, ...], line: int | None, hint: str) -> None:
    """The hint names the setting where the kubelet's own text does not; the place is the key in a map."""
    found = started(version, written + "\n", *flags)
    (fatal,) = (message for message in found.messages if message.level is MessageLevel.FATAL)
    assert (fatal.place and fatal.place.line, fatal.hint) == (line, hint)


@pytest.mark.parametrize(
    ("document", "line"),
    [
        ("kind: Config\napiVersion: v1\n", 1),
        ("apiVersion: kubelet.config.k8s.io/v1\nkind: KubeletConfiguration\n", 1),
        ("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: kubeletConfiguration\n", 2),
        ("kind: KubeletConfiguration\n", 1),
        ("maxPods: 5\n", 1),
        ("apiVersion: kubeadm.k8s.io/v1beta3\nkind: InitConfiguration\n---\nkind: KubeletConfiguration\n", 2),
    ],
)
def test_a_file_of_another_kind(document: str, line: int) -> None:
    (fatal,) = started("1.33.1", document, bare=True).messages
    wanted = "the first document must have `apiVersion: kubelet.config.k8s.io/v1beta1` and `kind: KubeletConfiguration`"
    assert (fatal.place and fatal.place.line, fatal.hint) == (line, wanted)


@pytest.mark.parametrize(
    "document", ["{kind: KubeletConfiguration}", '{"kind": "KubeletConfiguration",}', '{\n// why\n"kind": 1}']
)
def test_yaml_that_begins_with_a_brace(document: str) -> None:
    (fatal,) = started("1.33.1", document, bare=True).messages
    assert fatal.hint == "a file that begins with `{` is read as JSON"
