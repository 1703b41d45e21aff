"""The healthz port of a kubelet: its flag's, else that of the last file that sets it, else the default."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.snapshot import FileState, Process, Snapshot
from rollout.kubelet.node.served import healthz_port
from tests.kubelet.nodes import kubeadm

CONFIG, DROP_IN = "/var/lib/kubelet/config.yaml", "/etc/kubernetes/kubelet.conf.d/10-port.conf"


def running(*flags: str, **files: bytes) -> Snapshot:
    found = kubeadm()
    process = Process(1, ("/usr/bin/kubelet", f"--config={CONFIG}", *flags))
    states = {path: FileState(path, "regular", content=content) for path, content in files.items()}
    return replace(found, measurement=replace(found.measurement, process=process), files=states)


@pytest.mark.parametrize(
    ("flags", "port"),
    [
        (("--healthz-port=1",), 1),
        (("--healthz-port", "1"), 1),
        (("--healthz_port=1",), 1),
        (("--healthz-port=2", "--healthz-port=1"), 1),
        (("--healthz-port=words",), 5),
        ((), 5),
    ],
)
def test_the_flag_overrides_the_file(flags: tuple[str, ...], port: int) -> None:
    assert healthz_port(running(*flags, **{CONFIG: b"healthzPort: 5\n"})) == port


def test_a_drop_in_overrides_the_file_where_the_kubelet_reads_drop_ins() -> None:
    files = {CONFIG: b"healthzPort: 5\n", DROP_IN: b"healthzPort: 7\n"}
    assert healthz_port(running("--config-dir=/etc/kubernetes/kubelet.conf.d/", **files)) == 7
    assert healthz_port(running(**files)) == 5


def test_without_a_setting_it_is_the_default() -> None:
    assert healthz_port(running()) == 10248
