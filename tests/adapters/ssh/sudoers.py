"""Users of this machine with a password and a line in sudoers, for the time of a test. Needs root."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.adapters.ssh.sshd import Sshd

PASSWORD = "correct horse $(touch /tmp/x) ü"  # noqa: S105 - of a user that lives for one test


@dataclass(frozen=True)
class User:
    name: str
    home: Path

    def sudoers(self, *lines: str) -> None:
        """Replaces this user's entry in sudoers."""
        path = _sudoers(self.name)
        path.write_text("".join(f"{line.format(user=self.name)}\n" for line in lines), encoding="utf-8")
        path.chmod(0o440)
        subprocess.run(["visudo", "-cqf", path], check=True)

    def lets_in(self, server: Sshd) -> None:
        """Call before the server starts: the user gets the key that the server accepts."""
        (self.home / ".ssh").mkdir(exist_ok=True)
        shutil.copy(f"{server.user_key}.pub", self.home / ".ssh" / "authorized_keys")
        server.options += f"\nAuthorizedKeysFile {self.home}/.ssh/authorized_keys"
        server.write_ssh_config(f"User {self.name}")


@contextmanager
def sudoer() -> Iterator[User]:
    if os.geteuid() != 0 or shutil.which("sudo") is None:
        pytest.skip("NOT TESTED: sudo with a password needs root (to make a user) and sudo (apt-get install sudo)")
    name = f"rollout-{secrets.token_hex(4)}"
    home = Path("/home") / name
    subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", name], check=True)
    try:
        subprocess.run(["chpasswd"], input=f"{name}:{PASSWORD}\n".encode(), check=True)
        user = User(name, home)
        user.sudoers("{user} ALL=(ALL) ALL")
        yield user
    finally:
        _sudoers(name).unlink(missing_ok=True)
        subprocess.run(["userdel", "--remove", "--force", name], check=False, capture_output=True)


def _sudoers(name: str) -> Path:
    return Path("/etc/sudoers.d") / name
