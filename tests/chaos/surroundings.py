"""Faults around a node: its sshd's sessions, a proxy in its users' environment, a bastion before it."""

from __future__ import annotations

import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path

from rollout.core.run.state import NodeRecord
from tests.adapters.ssh.sshd import Sshd
from tests.chaos.fault import Fault

SSHD = "/etc/ssh/sshd_config.d/00-bed-sessions.conf"
"""Read before the bed's own file: sshd uses the first value."""
NOWHERE = "http://127.0.0.1:9"
"""A port without a listener."""
VARIABLES = f"http_proxy={NOWHERE} all_proxy={NOWHERE}"
PROXY_FILES = {
    "etc/ssh/sshd_config.d/00-bed-proxy.conf": f"SetEnv {VARIABLES}\n",
    "etc/sudoers.d/bed-proxy": 'Defaults env_keep += "http_proxy all_proxy"\n',
}
HERE = Path(__file__).parent
CURL = "usr/local/bin/curl"


class OneSession(Fault):
    """A connection to its sshd accepts one session at a time."""

    throughout = True
    explains = frozenset()

    def prepare(self) -> None:
        for node in self.nodes:
            node.exec("sh", "-c", f"echo MaxSessions 1 >{SSHD} && systemctl reload ssh")

    def heal(self) -> None:
        for node in self.nodes:
            node.exec("sh", "-c", f"rm {SSHD} && systemctl reload ssh")


class Proxy(Fault):
    """Logins and services get a proxy that does not exist. A curl of /healthz uses it."""

    throughout = True
    explains = frozenset()

    def prepare(self) -> None:
        for node in self.nodes:
            shutil.copy(HERE / "curl", node.root / CURL)
            for path, text in PROXY_FILES.items():
                (node.root / path).write_text(text, encoding="utf-8")
            node.exec("sh", "-c", f"systemctl set-environment {VARIABLES} && systemctl reload ssh")

    def heal(self) -> None:
        for node in self.nodes:
            for path in (*PROXY_FILES, CURL):
                (node.root / path).unlink()
            names = " ".join(word.partition("=")[0] for word in VARIABLES.split())
            node.exec("sh", "-c", f"systemctl unset-environment {names} && systemctl reload ssh")


class Bastion(Fault):
    """The nodes are behind a real sshd that only forwards.

    In one variant it is killed at the instant, and another one is started.
    """

    explains = frozenset()
    _bastion: Sshd | None = None

    def unexplained(self, record: NodeRecord) -> str:
        """Nodes behind a killed bastion revert themselves."""
        return "" if self.draw.variant == "killed" else super().unexplained(record)

    def prepare(self) -> None:
        folder = self.site.folder / f"bastion-{self.draw.number}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        bastion = self._bastion = Sshd(folder, "MaxSessions 0")
        bastion.start()
        self.site.ssh_config = folder / "behind"
        self.site.ssh_config.write_text(
            f"Host bastion\n  HostName 127.0.0.1\n  Port {bastion.port}\n  User root\n  ProxyJump none\n"
            f"  IdentityFile {bastion.user_key}\n  UserKnownHostsFile {bastion.known_hosts}\n"
            f"Host {' '.join(node.name for node in self.site.nodes)}\n  ProxyJump bastion\n{self.site.bed.ssh_config.read_text()}",
            encoding="utf-8",
        )
        self.site.plan()  # a plan holds the way to each node, too

    def strike(self) -> None:
        if self._bastion and self.draw.variant == "killed":
            for pid in (self._bastion.pid, *_children(self._bastion.pid)):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._bastion.stop()

    def heal(self) -> None:
        if self._bastion and self.draw.variant == "killed":
            self._bastion.start()

    def end(self) -> None:
        self.site.ssh_config = None
        if self._bastion:
            self._bastion.stop()
        self.site.plan()  # the way of the runs that follow


def _children(pid: int) -> list[int]:
    """The process's children and their children, listed before any of them is killed."""
    found = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]
    return [*found, *(grandchild for child in found for grandchild in _children(child))]
