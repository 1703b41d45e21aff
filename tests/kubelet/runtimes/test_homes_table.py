"""Every pair of kubelet and runtime: for each intent the file, the lines, the units and the class, or the refusal."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollout.core.model.settings import Setting, Value
from rollout.core.model.snapshot import Snapshot
from rollout.kubelet.intents import DEADLINE, DOWNLOADS, INTENTS, MIRRORS
from rollout.kubelet.runtimes.description import Runtime
from rollout.kubelet.runtimes.known import ROWS
from tests.kubelet.nodes import regular
from tests.kubelet.runtimes.nodes import CONTAINERD, V2, V3, node, told

VALUES: dict[str, Value] = {DEADLINE: "3m", DOWNLOADS: 6, MIRRORS: {"docker.io": ["https://mirror.rno.example"]}}

FLAG = "--image-pull-progress-deadline=3m | kubelet.service | restart-kubelet"
DAEMON = '/etc/docker/daemon.json | {; "max-concurrent-downloads": 6; } | HUP docker.service | reload'
NO_DOCKER_MIRRORS = (
    "refused: registryMirrors: dockerd's registry-mirrors covers docker.io only; rollout does not write it"
)
CRI_DOCKERD = (
    "/etc/systemd/system/cri-docker.service.d/90-rollout.conf | [Service]; ExecStart=;"
    " ExecStart=/usr/bin/cri-dockerd --container-runtime-endpoint fd:// --image-pull-progress-deadline=3m"
    " | restart cri-docker.service | restart-runtime"
)
OLD_CONTAINERD = (
    "refused: imagePullProgressDeadline: image_pull_progress_timeout exists from containerd 1.7.0;"
    " an older one ignores it and pulls without a limit"
)
CTD = "/etc/containerd/config.toml"
RESTART = "restart containerd.service | restart-runtime"
TIMEOUT = f'{CTD} | image_pull_progress_timeout = "3m" | {RESTART}'
CRI_DOWNLOADS = f"{CTD} | max_concurrent_downloads = 6 | {RESTART}"
TRANSFER = f"{CTD} | [plugins.'io.containerd.transfer.v1.local']; max_concurrent_downloads = 6 | {RESTART}"
HOSTS = '/etc/containerd/certs.d/docker.io/hosts.toml | [host."https://mirror.rno.example"]; capabilities = ["pull", "resolve"]'
MIRRORS_V2 = f'{CTD} | [plugins."io.containerd.grpc.v1.cri".registry]; config_path = "/etc/containerd/certs.d" & {HOSTS} | {RESTART}'
MIRRORS_V3 = f"{CTD} | [plugins.'io.containerd.cri.v1.images'.registry]; config_path = \"/etc/containerd/certs.d\" & {HOSTS} | {RESTART}"
CRIO = '/etc/crio/crio.conf.d/99-rollout.conf | [crio.image]; pull_progress_timeout = "3m" | restart crio.service | restart-runtime'
OLD_CRIO = "refused: imagePullProgressDeadline: pull_progress_timeout exists from 1.30.11, 1.31.3 and 1.32.0; this CRI-O has no such key"
NO_CRIO_DOWNLOADS = "refused: maxConcurrentDownloads: rollout knows no limit on concurrent downloads for CRI-O"
NO_CRIO_MIRRORS = (
    "refused: registryMirrors: on CRI-O mirrors are set in /etc/containers/registries.conf.d; rollout does not write it"
)


def unknown(intent: str) -> str:
    return f"refused: rollout does not know this node's container runtime, so {intent} has no home here"


TABLE = [
    # kubelet    runtime              version    deadline        downloads          mirrors
    ("1.20.15", Runtime.DOCKERSHIM, "19.3.15", FLAG, DAEMON, NO_DOCKER_MIRRORS),
    ("1.23.17", Runtime.DOCKERSHIM, "20.10.24", FLAG, DAEMON, NO_DOCKER_MIRRORS),
    ("1.23.17", Runtime.CRI_DOCKERD, "0.2.0", CRI_DOCKERD, DAEMON, NO_DOCKER_MIRRORS),
    ("1.28.9", Runtime.CRI_DOCKERD, "0.3.15", CRI_DOCKERD, DAEMON, NO_DOCKER_MIRRORS),
    ("1.33.1", Runtime.CRI_DOCKERD, "0.4.0", CRI_DOCKERD, DAEMON, NO_DOCKER_MIRRORS),
    ("1.23.17", Runtime.CONTAINERD, "1.6.39", OLD_CONTAINERD, CRI_DOWNLOADS, MIRRORS_V2),
    ("1.26.15", Runtime.CONTAINERD, "1.7.0", TIMEOUT, CRI_DOWNLOADS, MIRRORS_V2),
    ("1.29.3", Runtime.CONTAINERD, "1.7.10", TIMEOUT, CRI_DOWNLOADS, MIRRORS_V2),
    ("1.29.3", Runtime.CONTAINERD, "1.7.24", TIMEOUT, CRI_DOWNLOADS, MIRRORS_V2),
    ("1.31.0", Runtime.CONTAINERD, "2.0.0", TIMEOUT, CRI_DOWNLOADS, MIRRORS_V3),
    ("1.33.1", Runtime.CONTAINERD, "2.1.0", TIMEOUT, TRANSFER, MIRRORS_V3),
    ("1.36.3", Runtime.CONTAINERD, "2.3.4", TIMEOUT, TRANSFER, MIRRORS_V3),
    ("1.29.3", Runtime.CRIO, "1.29.14", OLD_CRIO, NO_CRIO_DOWNLOADS, NO_CRIO_MIRRORS),
    ("1.30.5", Runtime.CRIO, "1.30.11", CRIO, NO_CRIO_DOWNLOADS, NO_CRIO_MIRRORS),
    ("1.30.5", Runtime.CRIO, "1.30.14", CRIO, NO_CRIO_DOWNLOADS, NO_CRIO_MIRRORS),
    ("1.31.3", Runtime.CRIO, "1.31.2", OLD_CRIO, NO_CRIO_DOWNLOADS, NO_CRIO_MIRRORS),
    ("1.31.3", Runtime.CRIO, "1.31.3", CRIO, NO_CRIO_DOWNLOADS, NO_CRIO_MIRRORS),
    ("1.32.4", Runtime.CRIO, "1.32.4", CRIO, NO_CRIO_DOWNLOADS, NO_CRIO_MIRRORS),
    ("1.34.1", Runtime.CRIO, "1.34.0", CRIO, NO_CRIO_DOWNLOADS, NO_CRIO_MIRRORS),
    ("1.29.3", Runtime.UNKNOWN, "3.0.0", unknown(DEADLINE), unknown(DOWNLOADS), unknown(MIRRORS)),
]  # fmt: skip
CASES = [
    pytest.param(kubelet, runtime, version, intent, expected, id=f"{kubelet}-{runtime.value}-{version}-{intent}")
    for kubelet, runtime, version, *row in TABLE
    for intent, expected in zip(INTENTS, row, strict=True)
]


def usual(kubelet: str, runtime: Runtime, version: str) -> Snapshot:
    """A node with the configuration file of its runtime's package."""
    files = {"1": [regular(CONTAINERD, V2)], "2": [regular(CONTAINERD, V3)]} if runtime is Runtime.CONTAINERD else {}
    return node(runtime, version, *files.get(version[0], []), kubelet=kubelet)


@pytest.mark.parametrize(("kubelet", "runtime", "version", "intent", "expected"), CASES)
def test_the_home_of_each_intent(kubelet: str, runtime: Runtime, version: str, intent: str, expected: str) -> None:
    assert told(usual(kubelet, runtime, version), runtime, Setting(intent, VALUES[intent])) == expected


def test_the_table_has_a_case_for_every_row_of_the_homes() -> None:
    """A version above covers each row of ``known.ROWS`` of these runtimes, except containerd before config_path and one CRI-O span."""
    met = {
        each
        for _, runtime, version, *_ in TABLE
        for each in ROWS
        if each.runtime is runtime and each.since <= tuple(int(part) for part in version.split(".")) < each.before
    }
    here = {runtime for _, runtime, *_ in TABLE}
    left = {(each.intent, each.runtime, each.since) for each in ROWS if each not in met and each.runtime in here}
    for runtime in set(Runtime) - here:
        assert (Path(__file__).parent / f"test_{runtime.name.lower()}.py").is_file(), "its own file has its rows"
    assert left == {
        (MIRRORS, Runtime.CONTAINERD, (0, 0, 0)),
        (DEADLINE, Runtime.CRIO, (1, 31, 9)),
        (DEADLINE, Runtime.CRIO, (1, 32, 0)),
    }


def test_the_rows_of_an_intent_and_runtime_leave_no_gap_and_do_not_overlap() -> None:
    for intent in INTENTS:
        for runtime in set(Runtime) - {Runtime.UNKNOWN}:
            rows = [row for row in ROWS if (row.intent, row.runtime) == (intent, runtime)]
            assert rows[0].since == (0, 0, 0)
            assert [row.before for row in rows[:-1]] == [row.since for row in rows[1:]]
