"""The inside of a room: namespaces of its own, in which one kubelet after the other is started and measured.

Runs as a program of its own (``python -m tests.kubelet.real_kubelet.room KUBELET CRI``) in new network, mount, PID,
UTS, IPC and cgroup namespaces. It reads cases as JSON lines and prints results as JSON lines. All changes of a kubelet
stay in here: the system's directories are file systems in memory. The kernel switches that it would set are files of
ours that already contain the wanted values.
"""

from __future__ import annotations

import json
import re
import shutil
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.kubelet.real_kubelet.cases import CONFIG, HERE, RUNTIME, Case, case_of

STARTED = "Starting Kubelet Plugin Manager"
"""The last line of a start: cAdvisor, container manager and eviction manager are up (kubelet.go, 1.20,
initializeRuntimeDependentModules). The server listens before that, and what fails after it is fatal too."""

PATIENCE = 120.0
"""Seconds to wait for a kubelet that neither starts nor ends: these machines are shared."""

IN_MEMORY = (HERE, "/var/lib", "/var/log", "/run", "/usr/libexec", "/sys/fs/cgroup")
SWITCHES = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
"""The values that a kubelet 1.20 sets, or expects with protectKernelDefaults.

Source: container_manager_linux.go, setupKernelTunables."""


def furnish(hierarchies: list[str]) -> None:
    """Turns the namespaces into a node: loopback, a name, directories in memory, no swap, cgroups of its own."""
    _run("ip", "link", "set", "lo", "up")
    _run("hostname", "node")
    _run("mount", "--make-rprivate", "/")
    for directory in IN_MEMORY:
        _run("mount", "-t", "tmpfs", "room", directory)
    for name, value in SWITCHES.items():
        switch = Path(HERE, name.replace("/", "-"))
        switch.write_text(f"{value}\n")
        _run("mount", "--bind", str(switch), f"/proc/sys/{name}")
    _run("mount", "--bind", "/dev/null", "/proc/swaps")
    for hierarchy in hierarchies:
        path = Path("/sys/fs/cgroup", hierarchy)
        path.mkdir()
        options = "none,name=systemd" if hierarchy == "systemd" else hierarchy
        _run("mount", "-t", "cgroup", "-o", options, "cgroup", str(path))


def start_runtime(program: str) -> subprocess.Popen[str]:
    """The empty runtime; it ends with its input, that is with this process."""
    runtime = subprocess.Popen(
        [program, RUNTIME, "/run/docker.sock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert runtime.stdout is not None
    assert runtime.stdout.readline() == "ready\n"
    return runtime


def tried(kubelet: str, case: Case) -> dict[str, Any]:
    """Starts one kubelet and waits until it has ended, or is up and has printed its configuration."""
    _sweep()
    if case.config is not None:
        Path(CONFIG).write_bytes(case.config)
    log = Path(HERE, "log")
    with log.open("wb") as out:
        process = subprocess.Popen([kubelet, *case.words], stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=HERE)
    try:
        effective = _watched(process, log)
        return {"ended": process.poll(), "log": _text(log), "effective": effective}
    finally:
        process.kill()
        process.wait()


def _watched(process: subprocess.Popen[bytes], log: Path) -> dict[str, Any] | None:
    until = time.monotonic() + PATIENCE
    while process.poll() is None:
        text = _text(log)
        if STARTED in text:
            return _configz(text, process)
        if time.monotonic() > until:
            raise TimeoutError(f"neither started nor ended: {text[-2000:]}")
        time.sleep(0.05)
    return None


def _configz(log: str, process: subprocess.Popen[bytes]) -> dict[str, Any] | None:
    """``None``: it has no server, or the server does not answer."""
    listens = re.search(r"Starting to listen on (.*):(\d+)$", log, re.MULTILINE)
    if not listens:
        return None
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(listens[1], listens[1])  # noqa: S104 - what it may say
    url = f"https://{f'[{host}]' if ':' in host.strip('[]') and '[' not in host else host}:{listens[2]}/configz"
    until = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < until:
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE, context=_TRUSTING) as answer:
                told: dict[str, Any] = json.load(answer)["kubeletconfig"]
                return told
        except urllib.error.HTTPError as error:
            error.close()
            return None
        except OSError:
            time.sleep(0.05)
    return None


_TRUSTING = ssl.create_default_context()
_TRUSTING.check_hostname = False
_TRUSTING.verify_mode = ssl.CERT_NONE


def _sweep() -> None:
    Path(CONFIG).unlink(missing_ok=True)
    shutil.rmtree("/var/lib/kubelet", ignore_errors=True)


def _text(log: Path) -> str:
    return log.read_text("utf-8", "surrogateescape")


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


def _cases() -> Iterator[Case]:
    for line in sys.stdin:
        yield case_of(json.loads(line))


def main() -> None:
    kubelet, runtime, *hierarchies = sys.argv[1:]
    furnish(hierarchies)
    with start_runtime(runtime):
        for case in _cases():
            sys.stdout.write(json.dumps(tried(kubelet, case)) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
