"""A real OpenSSH server on 127.0.0.1 with its own keys and files, run by the user of the tests; its limits and
commands.
"""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from rollout.adapters.ssh import SshLimits
from rollout.app.ports import Target
from rollout.core.model.report import RemoteCommand
from tests.controllers import until

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")

PATIENT = SshLimits(connect=300, banner=300, handshake=300, auth=300, channel=300)
"""For tests that are not about a limit: no limit applies, however slow the machine is."""

TRUE = RemoteCommand("true", b"", 600)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def make_key(path: Path, kind: str = "ed25519", passphrase: str = "") -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "test", "-f", path], check=True)
    return path


def public(path: Path) -> str:
    """``TYPE KEY`` of a key file."""
    return " ".join(path.with_name(path.name + ".pub").read_text(encoding="utf-8").split()[:2])


class Sshd:
    """A server with its files in a folder. ``nodes`` returns an ``SshNodes`` with its host key."""

    def __init__(self, folder: Path, options: str = "") -> None:
        folder.chmod(0o700)
        self.folder = folder
        self.port = free_port()
        self.host_key = make_key(folder / "host")
        self.user_key = make_key(folder / "id")
        shutil.copy(folder / "id.pub", folder / "authorized_keys")
        self.options = options
        self._process: subprocess.Popen[bytes] | None = None
        self.write_ssh_config()
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {public(self.host_key)}\n", encoding="utf-8")

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    @property
    def ssh_config(self) -> Path:
        return self.folder / "ssh_config"

    def write_ssh_config(self, more: str = "") -> None:
        self.ssh_config.write_text(
            f"{more}\nHost n*\n  HostName 127.0.0.1\n  Port {self.port}\nHost *\n  User {getpass.getuser()}\n"
            f"  IdentityFile {self.user_key}\n  IdentitiesOnly yes\n  UserKnownHostsFile {self.known_hosts}\n",
            encoding="utf-8",
        )

    def start(self) -> None:
        """Starts it and waits for its banner."""
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        config = self.folder / "sshd_config"
        config.write_text(
            f"{self.options}\nPort {self.port}\nListenAddress 127.0.0.1\nHostKey {self.host_key}\n"
            f"AuthorizedKeysFile {self.folder}/authorized_keys\nStrictModes no\nUsePAM no\nPidFile none\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\nUseDNS no\n"
            "MaxStartups 200\nMaxSessions 64\nLogLevel VERBOSE\n"
            "SetEnv SHLVL=2\n",  # so that bash does not read the .bashrc of who runs the tests, which may print
            encoding="utf-8",
        )
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(SSHD), "-D", "-e", "-f", config], stderr=log, stdin=subprocess.DEVNULL
            )
        until(self._answers, 120, "sshd answers")

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.folder / "log").read_text(encoding="utf-8")
        try:
            with socket.create_connection(("127.0.0.1", self.port), 60) as probe:
                return probe.recv(4) == b"SSH-"
        except OSError:
            return False

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def accepted(self) -> int:
        """The number of authenticated connections so far."""
        return (self.folder / "log").read_text(encoding="utf-8").count("Accepted publickey")

    def closed(self) -> int:
        """The sessions of which both sides have said that they are closed."""
        return (self.folder / "log").read_text(encoding="utf-8").count("Close session")


def patient(**limits: float) -> SshLimits:
    """Limits of which only the given ones can apply."""
    return replace(PATIENT, **limits)  # type: ignore[arg-type]  # some are whole numbers


@contextmanager
def lasting(folder: Path) -> Iterator[str]:
    """A shell command that ends with 0 when this block ends, and never before.

    It reads from an idle pipe, which is closed at the end of the block.
    """
    pipe = folder / "lasting"
    os.mkfifo(pipe)
    with pipe.open("r+b", buffering=0):
        yield f"{{ cat {pipe} 2>/dev/null || :; }}"
        pipe.unlink()


def target(name: str = "n1", *, address: str | None = None, port: int | None = None) -> Target:
    return Target(name=name, address=address or name, port=port)


def require() -> None:
    if SSHD is None:
        pytest.skip("NOT TESTED: sshd is not installed (apt-get install openssh-server)")
