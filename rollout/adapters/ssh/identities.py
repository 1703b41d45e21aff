"""Our keys and certificates: files, each read once, and what an ssh-agent holds."""

from __future__ import annotations

import base64
import copy
import os
import threading
import time
from pathlib import Path

from paramiko.agent import Agent
from paramiko.pkey import PKey, PublicBlob, UnknownKeyType
from paramiko.ssh_exception import SSHException

from rollout.adapters.ssh.agent_keys import HARDWARE, Held, Touch, held_keys
from rollout.adapters.ssh.call_with_timeout import aside
from rollout.adapters.ssh.certificates import Certificate, parse, read
from rollout.adapters.ssh.foreign import unless_exhausted
from rollout.adapters.ssh.resolve import DEFAULT_KEYS, Endpoint
from rollout.errors import RemoteError

AGENT_SECONDS = 5.0
USUAL = frozenset(Path(name).expanduser() for name in DEFAULT_KEYS)
"""Nobody expects to have all of these."""


class Identities:
    """The keys to offer a node, in OpenSSH's spirit: named keys first, then what else the agent holds; of each key its
    certificates first. Thread-safe.
    """

    def __init__(self, touch: Touch = lambda _: None) -> None:
        """``touch`` is told, once a key, that a hardware key may wait for a finger."""
        self._lock = threading.Lock()
        self._touch = touch
        self._told: set[str] = set()
        self._files: dict[Path, PKey | str] = {}
        self._publics: dict[Path, bytes] = {}
        self._certificates: dict[Path, Certificate | str] = {}
        self._agent: Agent | None = None
        self._agent_keys: tuple[Held, ...] | None = None
        self._agent_note = ""

    def keys(self, endpoint: Endpoint) -> tuple[tuple[PKey, ...], tuple[str, ...]]:
        """The keys, and in words why others could not be used."""
        with self._lock:
            notes: list[str] = []
            certificates = self._given(endpoint, notes)
            keys: dict[bytes, PKey] = {}
            for key in self._plain(endpoint, notes):
                for certificate in certificates:
                    if certificate.key == _own(key):
                        keys[certificate.blob] = _showing(key, certificate)
                keys.setdefault(_shown(key), key)
            return tuple(keys.values()), tuple(dict.fromkeys(note for note in notes if note))

    def close(self) -> None:
        with self._lock:
            if self._agent is not None:
                self._agent.close()
            self._agent, self._agent_keys = None, None

    def _plain(self, endpoint: Endpoint, notes: list[str]) -> list[PKey]:
        held = self._held()
        by_blob: dict[bytes, PKey] = {key.asbytes(): key for key in held if key.public_blob is None}
        notes.append(self._agent_note)
        keys: list[PKey] = []
        for path in endpoint.identities:
            found = by_blob.get(self._public(path)) or self._file(path)
            if found == "" and path not in USUAL:
                found = f"there is no {path}"
            if isinstance(found, str):
                notes.append(found)
            else:
                keys.append(found)
        return keys if endpoint.identities_only else [*keys, *held]

    def _given(self, endpoint: Endpoint, notes: list[str]) -> list[Certificate]:
        """Those of ssh_config, those that lie beside an identity, and the agent's for the keys that are named."""
        beside = [path.with_name(path.name.removesuffix(".pub") + "-cert.pub") for path in endpoint.identities]
        found = [self._certificate(path) for path in dict.fromkeys((*endpoint.certificates, *beside))]
        notes.extend(note for note in found if isinstance(note, str))
        given = [certificate for certificate in found if isinstance(certificate, Certificate)]
        given += [parse(_shown(key)) for key in self._held() if key.public_blob is not None]
        notes.extend(
            f"the certificate {_name(certificate)} {why}"
            for certificate in given
            if (why := certificate.not_now(time.time()))
        )
        return given

    def _held(self) -> tuple[Held, ...]:
        """The agent's keys, asked for once."""
        if self._agent_keys is None:
            self._agent_keys = ()
            if os.environ.get("SSH_AUTH_SOCK"):
                late = RemoteError("auth-failed", "the ssh-agent does not answer")
                try:
                    self._agent, self._agent_keys = aside(lambda: held_keys(self._finger), AGENT_SECONDS, late)
                except RemoteError as error:
                    self._agent_note = error.message
        return self._agent_keys

    def _finger(self, name: str) -> None:
        with self._lock:
            new = name not in self._told
            self._told.add(name)
        if new:
            self._touch(name)

    def _public(self, path: Path) -> bytes:
        if path not in self._publics:
            self._publics[path] = _public_blob(path)
        return self._publics[path]

    def _file(self, path: Path) -> PKey | str:
        if path not in self._files:
            self._files[path] = _load(path, self._public(path))
        return self._files[path]

    def _certificate(self, path: Path) -> Certificate | str:
        """``""`` for a file that is not there: most keys have none beside them."""
        if path not in self._certificates:
            try:
                self._certificates[path] = read(path)
            except FileNotFoundError:
                self._certificates[path] = ""
            except (OSError, ValueError, SSHException) as error:
                if isinstance(error, OSError):
                    unless_exhausted(error)
                self._certificates[path] = f"{path} is no certificate that can be used: {type(error).__name__}"
        return self._certificates[path]


def _own(key: PKey) -> bytes:
    """The public key itself, whatever is shown in its stead."""
    return b"" if key.public_blob is not None else key.asbytes()


def _shown(key: PKey) -> bytes:
    return key.public_blob.key_blob if key.public_blob is not None else key.asbytes()


def _showing(key: PKey, certificate: Certificate) -> PKey:
    if isinstance(key, Held):
        return key.showing(certificate)
    double = copy.copy(key)
    double.public_blob = PublicBlob(certificate.kind, certificate.blob)
    return double


def _name(certificate: Certificate) -> str:
    return f"{certificate.kind} for {', '.join(certificate.principals) or 'nobody'}"


def _load(path: Path, public: bytes) -> PKey | str:
    """A private key, or in words why not ("" for a file that is not there, as the default ones often are not)."""
    try:
        return PKey.from_path(path)
    except FileNotFoundError:
        return ""
    except TypeError:  # cryptography: "Password was not given but private key is encrypted"
        return f"{path} needs a passphrase; add it to an agent"
    except (OSError, ValueError, SSHException, UnknownKeyType) as error:
        if isinstance(error, OSError):
            unless_exhausted(error)
        if public[4:7] == HARDWARE.encode():
            return f"{path} is a hardware key; add it to an agent"
        return f"{path} cannot be used: {type(error).__name__}"


def _public_blob(path: Path) -> bytes:
    """The public half that lies beside a private key (or is named itself), to find it in the agent."""
    beside = path if path.suffix == ".pub" else path.with_name(path.name + ".pub")
    try:
        return base64.b64decode(beside.read_text(encoding="ascii").split()[1], validate=True)
    except OSError as error:
        unless_exhausted(error)
        return b""
    except (ValueError, IndexError):
        return b""
