"""The lab's keys and the files an SSH client needs: generated for one lab, gone with it."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import paramiko
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from rollout.lab.spec import NodeSpec

USER = "ops"

_COMMON = """\
Host *
  Port {port}
  User {user}
  IdentityFile "{directory}/id_ed25519"
  IdentitiesOnly yes
  UserKnownHostsFile "{directory}/known_hosts"
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  PasswordAuthentication no
  KbdInteractiveAuthentication no
  BatchMode yes
"""


@dataclass(frozen=True, slots=True)
class Key:
    """An ed25519 key as the files have it."""

    private: str
    public: str

    @classmethod
    def generate(cls) -> Key:
        key = Ed25519PrivateKey.generate()
        private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
        return cls(private, key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode())

    def loaded(self) -> paramiko.PKey:
        """As paramiko wants it."""
        return paramiko.Ed25519Key(file_obj=io.StringIO(self.private))


def write_client_files(directory: Path, nodes: Iterable[NodeSpec], hosts: dict[str, Key], port: int) -> Key:
    """``id_ed25519``, ``known_hosts`` and ``ssh_config`` in ``directory``; the user's key comes back."""
    user = Key.generate()
    _private(directory / "id_ed25519", user.private)
    (directory / "id_ed25519.pub").write_text(f"{user.public} rollout-lab\n", encoding="utf-8")
    known, blocks = [], []
    for node in nodes:
        names = " ".join(dict.fromkeys((node.name, node.known_as)))
        known.append(f"{node.name},[{node.address}]:{port} {hosts[node.name].public}\n")
        blocks.append(f"Host {names}\n  HostName {node.address}\n")
    (directory / "known_hosts").write_text("".join(known), encoding="utf-8")
    common = _COMMON.format(port=port, user=USER, directory=directory)
    (directory / "ssh_config").write_text("".join([*blocks, common]), encoding="utf-8")
    return user


def _private(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
