"""Conversations with very many nodes, open and idle: what they cost the controller.

One real sshd on this machine answers on all addresses of 127.16.0.0/12; each address is a node. ``python -m
benchmarks.waiting_sessions COUNT`` prints JSON. Root only: the login is root's, with a key of its own.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from rollout.adapters.agent_program import agent_program
from rollout.adapters.ssh import SshLimits, SshNodes, within_files
from rollout.app.ports import Target
from rollout.kubelet.agent import agent_call

PORT = 2322
SECONDS = 30.0
TOGETHER = 100
DEADLINE = 300.0


def address(number: int) -> str:
    return f"127.{16 + number // 62500}.{number // 250 % 250}.{number % 250 + 1}"


def sshd(folder: Path) -> subprocess.Popen[bytes]:
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    shutil.copy(folder / "user.pub", folder / "keys")
    (folder / "sshd_config").write_text(
        f"Port {PORT}\nListenAddress 0.0.0.0\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/keys\nStrictModes no\n"
        f"PermitRootLogin yes\nUsePAM no\nMaxStartups 500\nUseDNS no\nPidFile none\n"
    )
    Path("/run/sshd").mkdir(exist_ok=True)
    return subprocess.Popen(
        ["/usr/sbin/sshd", "-D", "-e", "-r", "-f", folder / "sshd_config"], stderr=subprocess.DEVNULL
    )


def until_it_listens() -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with suppress(OSError), socket.create_connection((address(0), PORT), 1):
            return
    raise SystemExit("sshd does not listen")


def memory() -> float:
    """MB of this process."""
    found = re.search(r"^VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(found[1]) / 1000 if found else 0.0


def measure(folder: Path, count: int) -> dict[str, object]:
    key = " ".join((folder / "host.pub").read_text().split()[:2])
    (folder / "known").write_text(f"[127.*]:{PORT} {key}\n")
    (folder / "config").write_text(
        f"Host *\n  User root\n  Port {PORT}\n  IdentityFile {folder}/user\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {folder}/known\n  GlobalKnownHostsFile none\n"
    )
    nodes = SshNodes(ssh_config=folder / "config", limits=within_files(SshLimits()))
    asked = agent_call.status(agent_program(), sudo=False, deadline=DEADLINE)

    def ask(number: int) -> str:
        answer = nodes.run(Target(f"n{number}", address(number)), asked)
        return answer.reference or ("" if answer.status == 0 else f"exit {answer.status}")

    began, before = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(TOGETHER) as pool:
        said = Counter(filter(None, pool.map(ask, range(count))))
    opened, spent = time.perf_counter() - began, time.process_time() - before
    before = time.process_time()
    threading.Event().wait(SECONDS)
    idle = (time.process_time() - before) / SECONDS
    connections = sum(1 for _ in Path("/proc/self/fd").iterdir())
    with ThreadPoolExecutor(TOGETHER) as pool:
        said += Counter(filter(None, pool.map(ask, range(count))))
    most = memory()
    nodes.close()
    return {
        "sessions": count, "failed": dict(said), "memory": most, "idleCore": idle, "openSeconds": opened,
        "openCpuMs": 1000 * spent / count, "files": connections,
    }  # fmt: skip


def main() -> None:
    count = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = sshd(folder)
        try:
            until_it_listens()
            sys.stdout.write(json.dumps(measure(folder, count)) + "\n")
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
