"""SSH signatures, made and checked by ``ssh-keygen -Y`` of OpenSSH 8.2 or newer: keys in files, agents and hardware."""

from __future__ import annotations

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from rollout.adapters.owners import check_ours
from rollout.core.text.terminal import printable
from rollout.errors import UsageError
from rollout.features.approvals.rules import NAMESPACE

SECONDS = 30.0
SIGNING_SECONDS = 300.0
"""A person may have to type a passphrase or touch a key."""


class SshSignatures:
    """See ``Signatures``."""

    def sign(self, key: str, text: bytes) -> str:
        """With the private key in a file, or the public key of one that an agent holds. ``UsageError`` if that fails."""
        done = _ssh_keygen(["-Y", "sign", "-f", key, "-n", NAMESPACE], text, SIGNING_SECONDS)
        if done.returncode != 0:
            why = printable(done.stderr.decode(errors="replace").strip(), 400)
            raise UsageError("not-signed", f"ssh-keygen did not sign with {printable(key, 200)}: {why}")
        return done.stdout.decode()

    def people(self, signature: str, signers: str) -> tuple[tuple[str, ...], str]:
        """See the port. ``InputError``: another user decides who may approve."""
        check_ours(Path(signers))
        with TemporaryDirectory() as folder:
            path = _written(folder, signature)
            done = _ssh_keygen(["-Y", "find-principals", "-s", path, "-f", signers], b"", SECONDS)
        lines = done.stdout.decode(errors="replace").split("\n") if done.returncode == 0 else []
        return tuple(line for line in lines if line), printable(done.stderr.decode(errors="replace").strip(), 300)

    def why_not(self, signature: str, signers: str, person: str, text: bytes) -> str:
        with TemporaryDirectory() as folder:
            path = _written(folder, signature)
            words = ["-Y", "verify", "-f", signers, "-I", person, "-n", NAMESPACE, "-s", path]
            done = _ssh_keygen(words, text, SECONDS)
        if done.returncode == 0:
            return ""
        return printable(done.stderr.decode(errors="replace").strip(), 300) or "the signature is not good"


def _written(folder: str, signature: str) -> str:
    path = Path(folder) / "signature"
    path.write_text(signature)
    return str(path)


def _ssh_keygen(words: list[str], text: bytes, seconds: float) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["ssh-keygen", *words], input=text, capture_output=True, timeout=seconds, check=False)
    except FileNotFoundError as exc:
        raise UsageError("no-ssh-keygen", "approvals need ssh-keygen of OpenSSH, which is not installed") from exc
    except subprocess.TimeoutExpired as exc:
        raise UsageError("not-signed", f"ssh-keygen did not end in {seconds:g} s") from exc
