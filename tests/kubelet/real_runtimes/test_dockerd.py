"""Our configuration for dockerd, read by dockerd: it accepts the file, and reloads it on SIGHUP."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rollout.core.model.settings import Setting
from rollout.kubelet.node.layout import LayoutError
from rollout.kubelet.runtimes.description import Runtime
from tests.controllers import until
from tests.kubelet.nodes import regular
from tests.kubelet.real_runtimes.conftest import BINARIES, Program, need
from tests.kubelet.runtimes.nodes import DAEMON, changed, node, with_service

pytestmark = pytest.mark.process

need("dockerd")

WANTED = {"maxConcurrentDownloads": Setting("maxConcurrentDownloads", 6, source="playbook p")}
BEFORE = '{\n  "debug": false,\n  "log-opts": {"max-size": "10m"},\n  "userland-proxy": false\n}\n'


@pytest.fixture
def sockets() -> Iterator[Path]:
    """A folder with a short path: containerd accepts 104 characters at most for a socket; ``tmp_path`` may be more."""
    with tempfile.TemporaryDirectory(prefix="dockerd-") as folder:
        yield Path(folder)


def edited(dockerd: Program, text: str) -> str:
    (edit,) = changed(
        node(Runtime.DOCKERSHIM, dockerd.version, regular(DAEMON, text)), Runtime.DOCKERSHIM, WANTED
    ).files
    return edit.after.decode()


@pytest.mark.parametrize(
    "text", [BEFORE, '{"userland-proxy":false}', '{"userland-proxy": false, "max-concurrent-downloads": 3 }']
)
def test_dockerd_accepts_the_file(tmp_path: Path, dockerd: Program, text: str) -> None:
    if dockerd.version < "23":
        pytest.skip("dockerd 20.10 has no --validate")
    after = edited(dockerd, text)
    (tmp_path / "daemon.json").write_text(after)
    done = dockerd.run("--validate", "--config-file", str(tmp_path / "daemon.json"))
    assert done.returncode == 0, done.stderr
    assert json.loads(after) == {**json.loads(text), "max-concurrent-downloads": 6}


def test_dockerd_does_not_start_with_both_flag_and_file_so_the_node_is_refused(
    tmp_path: Path, dockerd: Program
) -> None:
    (tmp_path / "daemon.json").write_text('{"max-concurrent-downloads": 6}')
    flag = "--max-concurrent-downloads=3"
    done = dockerd.run(flag, "--config-file", str(tmp_path / "daemon.json"))
    assert done.returncode != 0
    assert "specified both as a flag and in the configuration file" in done.stderr
    command = f"/usr/bin/dockerd {flag}"
    found = with_service(
        node(Runtime.DOCKERSHIM, dockerd.version), "docker.service", f"[Service]\nExecStart={command}\n", command
    )
    with pytest.raises(LayoutError, match="max-concurrent-downloads"):
        changed(found, Runtime.DOCKERSHIM, WANTED)


@pytest.mark.root  # a dockerd needs namespaces of its own
def test_a_running_dockerd_reloads_it_at_sighup(tmp_path: Path, sockets: Path, dockerd: Program) -> None:
    config, log, pid = tmp_path / "daemon.json", tmp_path / "log", tmp_path / "pid"
    config.write_text(BEFORE)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "containerd").symlink_to(BINARIES / f"containerd-{dockerd.path.name.partition('-')[2]}")
    (programs / "runc").write_text("#!/bin/sh\n")  # it only has to exist: no container is run
    (programs / "runc").chmod(0o755)
    options = ["--bridge=none", "--iptables=false", "--ip6tables=false", "--storage-driver=vfs"]
    places = [
        "--data-root",
        f"{tmp_path}/data",
        "--exec-root",
        f"{sockets}/run",
        "-p",
        str(pid),
        "-H",
        f"unix://{sockets}/sock",
    ]
    with log.open("w") as out:
        process = subprocess.Popen(
            [
                "unshare",
                "--net",
                "--mount",
                "--pid",
                "--fork",
                "--kill-child",
                str(dockerd.path),
                "--config-file",
                str(config),
                *options,
                *places,
            ],
            stdout=out,
            stderr=out,
            env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
        )
    try:
        until(lambda: "API listen on" in log.read_text(), 300, "dockerd listens")
        config.write_text(edited(dockerd, BEFORE))
        _signal_inside(process.pid, signal.SIGHUP)
        until(lambda: "Reloaded configuration" in log.read_text(), 300, "dockerd has read its file again")
    finally:
        process.kill()
        process.wait()
    found = re.search(r'Reloaded configuration.*?max-concurrent-downloads[\\"]*:(\d+)', log.read_text())
    assert found, log.read_text()[-2000:]
    assert int(found[1]) == WANTED["maxConcurrentDownloads"].value


def _signal_inside(unshare: int, number: int) -> None:
    """To dockerd, the only child of ``unshare``: its pid file contains the pid inside the namespace."""
    child = Path(f"/proc/{unshare}/task/{unshare}/children").read_text().split()[0]
    os.kill(int(child), number)
