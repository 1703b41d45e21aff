"""Our keys and certificates: from files, each read once, and from an ssh-agent."""

from __future__ import annotations

import base64
import copy
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from paramiko.agent import ALGORITHM_FLAG_MAP, Agent, AgentKey, AgentSSH, cSSH2_AGENTC_SIGN_REQUEST
from paramiko.message import Message
from paramiko.pkey import PKey, PublicBlob, UnknownKeyType
from paramiko.ssh_exception import SSHException

from rollout.adapters.files import MOST_KEY_BYTES, content_of, opened
from rollout.adapters.owners import others_hold
from rollout.adapters.ssh.certificates import SUFFIX, Certificate, parse, read
from rollout.adapters.ssh.resolve import DEFAULT_KEYS, Endpoint
from rollout.adapters.ssh.troubles import unless_exhausted
from rollout.adapters.ssh.watchdog import aside
from rollout.errors import RemoteError

# Keys in an ssh-agent: plain keys, certificates, and hardware keys without a class in paramiko.


SIGNED = 14  # SSH2_AGENT_SIGN_RESPONSE
HARDWARE = "sk-"

Touch = Callable[[str], None]


class SharedAgentKey(AgentKey):
    """A key of the agent that many threads may sign with: the agent handles one request at a time.

    ``certificate`` is presented instead of the key. ``touch`` is called before a hardware key signs.
    """

    def __init__(
        self, agent: AgentSSH, blob: bytes, comment: str, lock: threading.Lock, touch: Touch, certificate: bytes = b""
    ) -> None:
        super().__init__(agent, blob, comment)
        self._lock = lock
        self._touch = touch
        if certificate:
            self.name = Message(certificate).get_text()
            self.public_blob = PublicBlob(self.name, certificate)  # type: ignore[assignment]  # the stubs say None

    def showing(self, certificate: Certificate) -> SharedAgentKey:
        """The same key with a certificate."""
        return SharedAgentKey(self.agent, self.blob, self.comment, self._lock, self._touch, certificate.blob)

    def asbytes(self) -> bytes:
        return self.blob

    def sign_ssh_data(self, data: bytes, algorithm: str | None = None) -> bytes:  # type: ignore[override]
        request = Message()
        request.add_byte(cSSH2_AGENTC_SIGN_REQUEST)
        request.add_string(self.blob)
        request.add_string(data)
        request.add_int(ALGORITHM_FLAG_MAP.get((algorithm or "").removesuffix(SUFFIX), 0))
        if self.get_name().startswith(HARDWARE):
            self._touch(self.comment or self.get_name())
        with self._lock:
            kind, answer = self.agent._send_message(request)  # type: ignore[attr-defined]  # noqa: SLF001 - as AgentKey itself does
        if kind != SIGNED:
            raise SSHException("the ssh-agent did not sign")
        return bytes(answer.get_binary())


def held_keys(touch: Touch) -> tuple[Agent, tuple[SharedAgentKey, ...]]:
    """Asks the agent, without a deadline. A certificate signs with its own key, if the agent has it."""
    agent, lock = Agent(), threading.Lock()
    keys = [SharedAgentKey(agent, key.blob, key.comment, lock, touch) for key in agent.get_keys()]
    plain = {key.blob: key for key in keys}
    return agent, tuple(_certified(key, plain) for key in keys)


def _certified(key: SharedAgentKey, plain: dict[bytes, SharedAgentKey]) -> SharedAgentKey:
    if not key.get_name().endswith(SUFFIX):
        return key
    try:
        certificate = parse(key.blob)
    except ValueError:
        return key
    return plain.get(certificate.key, key).showing(certificate)


AGENT_SECONDS = 5.0
USUAL = frozenset(Path(name).expanduser() for name in DEFAULT_KEYS)
"""Default files, most of which do not exist."""


class Identities:
    """The keys to offer to a node, in OpenSSH's order: named keys, then the agent's other keys. The certificates of a key
    come before it. Thread-safe.
    """

    def __init__(self, touch: Touch = lambda _: None) -> None:
        """``touch`` is called once per hardware key that may wait for a touch."""
        self._lock = threading.Lock()
        self._touch = touch
        self._told: set[str] = set()
        self._files: dict[Path, PKey | str] = {}
        self._publics: dict[Path, bytes] = {}
        self._certificates: dict[Path, Certificate | str] = {}
        self._agent: Agent | None = None
        self._agent_keys: tuple[SharedAgentKey, ...] | None = None
        self._agent_note = ""

    def keys(self, endpoint: Endpoint) -> tuple[tuple[PKey, ...], tuple[str, ...]]:
        """The keys, and the reasons why others could not be used."""
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
        """Certificates of ssh_config, those beside an identity file, and the agent's for the named keys."""
        beside = [path.with_name(path.name.removesuffix(".pub") + "-cert.pub") for path in endpoint.identities]
        certificates = [self._certificate(path) for path in dict.fromkeys((*endpoint.certificates, *beside))]
        notes.extend(note for note in certificates if isinstance(note, str))
        given = [certificate for certificate in certificates if isinstance(certificate, Certificate)]
        given += [parse(_shown(key)) for key in self._held() if key.public_blob is not None]
        notes.extend(
            f"the certificate {_name(certificate)} {why}"
            for certificate in given
            if (why := certificate.not_now(time.time()))
        )
        return given

    def _held(self) -> tuple[SharedAgentKey, ...]:
        """The agent's keys, requested once."""
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
        """``""`` for a missing file: most keys have no certificate beside them."""
        if path not in self._certificates:
            try:
                self._certificates[path] = read(path)
            except FileNotFoundError:
                self._certificates[path] = ""
            except (OSError, ValueError, SSHException) as error:
                if isinstance(error, OSError):
                    unless_exhausted(error)
                self._certificates[path] = f"{path} is not a usable certificate: {type(error).__name__}"
        return self._certificates[path]


def _own(key: PKey) -> bytes:
    """The public key itself, even if a certificate is presented instead."""
    return b"" if key.public_blob is not None else key.asbytes()


def _shown(key: PKey) -> bytes:
    return key.public_blob.key_blob if key.public_blob is not None else key.asbytes()


def _showing(key: PKey, certificate: Certificate) -> PKey:
    if isinstance(key, SharedAgentKey):
        return key.showing(certificate)
    double = copy.copy(key)
    double.public_blob = PublicBlob(certificate.kind, certificate.blob)
    return double


def _name(certificate: Certificate) -> str:
    return f"{certificate.kind} for {', '.join(certificate.principals) or 'nobody'}"


def _load(path: Path, public: bytes) -> PKey | str:
    """A private key, or the reason why not ("" for a missing file: default files are often missing)."""
    try:
        if why := others_hold(path) or (path.suffix != ".pub" and _seen_by_others(path)):
            return why
        with opened(path) as file:  # paramiko would read a pipe or a device without an end
            if os.fstat(file.fileno()).st_size > MOST_KEY_BYTES:
                return f"{path} is larger than any key"
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
        if _blob_in(path):
            return (
                f"{path} is a public key, and no agent has its private key; name the private key, or add it to an agent"
            )
        return f"{path} cannot be used: {type(error).__name__}"


def _seen_by_others(path: Path) -> str:
    """As OpenSSH checks a private key: if it is ours, nobody else may read it."""
    status = path.stat()
    if status.st_uid == os.getuid() and status.st_mode & 0o077:
        return f"{path} is a private key that others may read; OpenSSH refuses it, too: run `chmod 600 {path}`"
    return ""


def _public_blob(path: Path) -> bytes:
    """The public key file beside a private key (or the named file itself), to find the key in the agent."""
    return _blob_in(path if path.suffix == ".pub" else path.with_name(path.name + ".pub"))


def _blob_in(path: Path) -> bytes:
    """``b""``: it is no public key, or cannot be read."""
    try:
        return base64.b64decode(content_of(path, MOST_KEY_BYTES).decode("ascii").split()[1], validate=True)
    except OSError as error:
        unless_exhausted(error)
        return b""
    except (ValueError, IndexError):
        return b""
