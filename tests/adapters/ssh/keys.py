"""Certificates signed by ssh-keygen, and an agent with a simulated hardware key."""

from __future__ import annotations

import base64
import hashlib
import socket
import struct
import subprocess
import threading
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.adapters.ssh.sshd import make_key

APPLICATION = b"ssh:"
SK = b"sk-ssh-ed25519@openssh.com"


def sign(authority: Path, key: Path, *options: str) -> Path:
    """A certificate for ``key`` (its ``.pub``), in the same folder."""
    subprocess.run(
        ["ssh-keygen", "-q", "-s", authority, "-I", "test", *options, f"{key}.pub"], check=True, capture_output=True
    )
    return key.with_name(f"{key.name}-cert.pub")


def authority(folder: Path, kind: str = "ed25519") -> Path:
    return make_key(folder / "ca", kind)


def _string(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


class HardwareAgent:
    """Implements the agent's protocol. Its one key signs like a security key, with flags and a counter."""

    def __init__(self, path: Path, *, touched: bool = True) -> None:
        self._key = Ed25519PrivateKey.generate()
        raw = self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.blob = _string(SK) + _string(raw) + _string(APPLICATION)
        self._flags = 1 if touched else 0
        self.signed = 0
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen(8)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def public(self) -> str:
        return f"{SK.decode()} {base64.b64encode(self.blob).decode()} my-key"

    def stop(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join(60)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            with connection:
                while request := self._read(connection):
                    answer = self._answer(request)
                    connection.sendall(_string(answer))

    @staticmethod
    def _read(connection: socket.socket) -> bytes:
        head = connection.recv(4, socket.MSG_WAITALL)
        return connection.recv(struct.unpack(">I", head)[0], socket.MSG_WAITALL) if len(head) == 4 else b""

    def _answer(self, request: bytes) -> bytes:
        if request[0] == 11:
            return b"\x0c" + struct.pack(">I", 1) + _string(self.blob) + _string(b"my-key")
        size = struct.unpack(">I", request[1:5])[0]
        rest = request[5 + size :]
        data = rest[4 : 4 + struct.unpack(">I", rest[:4])[0]]
        self.signed += 1
        tail = struct.pack(">BI", self._flags, self.signed)
        message = hashlib.sha256(APPLICATION).digest() + tail + hashlib.sha256(data).digest()
        return b"\x0e" + _string(_string(SK) + _string(self._key.sign(message)) + tail)
