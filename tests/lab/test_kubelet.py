"""The lab's kubelet starts, or not, as the configuration code says: by version, with its own words."""

from __future__ import annotations

import pytest

from rollout.lab import kubelet
from tests.lab.trees import MemoryTree

CONFIG = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


def start(version: str, *flags: str, config: str | None = None) -> kubelet.ProgramStart:
    tree = MemoryTree()
    if config is not None:
        tree.write("/c.yaml", config)
        flags = (*flags, "--config=/c.yaml")
    return kubelet.start(version, ("/usr/bin/kubelet", *flags), tree)


@pytest.mark.parametrize(
    ("version", "flag", "status"),
    [
        ("1.20.15", "--image-pull-progress-deadline=5m", None),
        ("1.23.17", "--image-pull-progress-deadline=5m", None),
        ("1.24.1", "--image-pull-progress-deadline=5m", 1),
        ("1.20.15", "--image-pull-progress-deadline=5", 255),
        ("1.20.15", "--image-pull-progress-deadline=0", None),
        ("1.20.15", "--no-such-flag", 255),
        ("1.27.3", "--no-such-flag", 1),
        ("1.20.15", "--serialize-image-pulls=maybe", 255),
        ("1.20.15", "--serialize-image-pulls", None),
        ("1.20.15", "--max-pods=fifty", 255),
        ("1.20.15", "strayword", 255),
        ("1.20.15", "--v", 255),
    ],
)
def test_flags(version: str, flag: str, status: int | None) -> None:
    begun = start(version, flag)
    assert begun.status == status, begun.journal


@pytest.mark.parametrize(
    ("version", "lines", "fatal"),
    [
        ("1.20.15", "maxPods: 110", False),
        ("1.20.15", "maxPods: fifty", True),
        ("1.20.15", 'maxPods: "50"', True),
        ("1.20.15", "maxPods: true", True),
        ("1.20.15", "runtimeRequestTimeout: 120", True),
        ("1.20.15", "runtimeRequestTimeout: 2m", False),
        ("1.20.15", "runtimeRequestTimeout: 1d", True),
        ("1.20.15", 'runtimeRequestTimeout: "2 m"', True),
        ("1.20.15", "serializeImagePulls: null", False),
        ("1.20.15", "serializeImagePulls: [", True),
        ("1.20.15", "registryPullQPS: -1", True),
        ("1.20.15", "maxParallelImagePulls: 0", False),
        ("1.27.3", "maxParallelImagePulls: 0", True),
        ("1.27.3", "serializeImagePulls: true\nmaxParallelImagePulls: 5", True),
        ("1.27.3", "serializeImagePulls: false\nmaxParallelImagePulls: 5", False),
    ],
)
def test_configuration(version: str, lines: str, fatal: bool) -> None:
    begun = start(version, config=f"{CONFIG}{lines}\n")
    assert (begun.status is not None) == fatal, begun.journal


@pytest.mark.parametrize(
    "config", ["", "kind: KubeletConfiguration\n", CONFIG.replace("v1beta1", "v1"), "text", "a: b: c"]
)
def test_invalid_configurations(config: str) -> None:
    assert start("1.20.15", config=config).status == 255


def test_a_missing_configuration_is_fatal() -> None:
    begun = start("1.23.17", "--config=/nowhere")
    assert begun.status == 1
    assert "no such file" in begun.journal[-1]


@pytest.mark.parametrize("version", ["1.20.15", "1.23.17", "1.27.3"])
@pytest.mark.parametrize("lines", ["serialiseImagePulls: false", "MaxPods: 5", "maxPods: 5\nmaxPods: 6"])
def test_fields_that_the_strict_decoder_refuses_are_logged_and_ignored(version: str, lines: str) -> None:
    begun = start(version, config=f"{CONFIG}{lines}\n")
    assert begun.status is None
    assert "lenient decoding" in begun.journal[0]
    assert any(word in begun.journal[0] for word in ("unknown field", "already set"))


def test_the_health_port() -> None:
    assert start("1.20.15", config=CONFIG).healthz_port == 10248
    assert start("1.20.15", config=f"{CONFIG}healthzPort: 0\n").healthz_port == 0
    assert start("1.20.15", "--healthz-port=9", config=f"{CONFIG}healthzPort: 0\n").healthz_port == 9


def test_the_fingerprint_is_of_command_line_and_configuration() -> None:
    prints = {
        start("1.20.15", config=CONFIG).fingerprint,
        start("1.20.15", "--v=2", config=CONFIG).fingerprint,
        start("1.20.15", config=f"{CONFIG}maxPods: 5\n").fingerprint,
    }
    assert len(prints) == 3
    assert start("1.20.15", config=CONFIG).fingerprint in prints


# ------------------------------------------------------------------------------------------------------------- drop-ins


def with_drop_ins(version: str, config: str, **files: str) -> kubelet.ProgramStart:
    """The drop-ins by name, without their ending."""
    tree = MemoryTree()
    tree.write("/c.yaml", config)
    for name, text in files.items():
        tree.write(f"/d/{name}.conf", text)
    return kubelet.start(version, ("/usr/bin/kubelet", "--config=/c.yaml", "--config-dir=/d"), tree)


def test_drop_ins_are_merged_in_order_over_the_file() -> None:
    base = f"{CONFIG}maxPods: 5\nclusterDNS: [a, b]\nevictionHard: {{memory.available: 1Gi, nodefs.available: 5%}}\n"
    first = f"{CONFIG}maxPods: 6\nclusterDNS: [c]\nevictionHard: {{nodefs.available: 8%}}\n"
    begun = with_drop_ins("1.36.1", base, a=first, b=f"{CONFIG}maxPods: 7\nnoSuchField: 1\n")
    assert begun.status is None
    assert not [line for line in begun.journal if "lenient" in line], "unknown fields are dropped silently"
    assert (begun.values["maxPods"], begun.values["clusterDNS"]) == (7, ["c"])
    assert begun.values["evictionHard"] == {"memory.available": "1Gi", "nodefs.available": "8%"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "maxPods: 5\n",
        f"{CONFIG}maxPods: fifty\n",
        f"{CONFIG}maxPods: 5\nmaxPods: 6\n",
        f"{CONFIG}maxParallelImagePulls: 5\n",
    ],
)
def test_drop_in_errors_that_end_the_kubelet(text: str) -> None:
    assert with_drop_ins("1.36.1", CONFIG, a=text).status == 1
    assert (
        with_drop_ins("1.36.1", CONFIG, a=f"{CONFIG}serializeImagePulls: false\nmaxParallelImagePulls: 5\n").status
        is None
    )


def test_a_missing_folder_and_kubelets_that_do_not_know_the_flag_or_need_a_variable() -> None:
    assert with_drop_ins("1.36.1", CONFIG).status == 1
    assert with_drop_ins("1.27.3", CONFIG, a=CONFIG).status == 1
    assert with_drop_ins("1.29.1", CONFIG, a=CONFIG).status == 1
    assert with_drop_ins("1.30.1", CONFIG, a=CONFIG).status is None


def test_a_kubelet_newer_than_the_tables_behaves_like_the_newest_known_one() -> None:
    begun = start("1.99.0", config=f"{CONFIG}maxPods: 90\n")
    assert begun.status is None
    assert not [line for line in begun.journal if "lenient" in line]
