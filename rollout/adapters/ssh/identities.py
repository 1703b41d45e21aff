"""Our keys: private key files, each read once, and the keys of an ssh-agent."""

from __future__ import annotations

import base64
import os
import threading
from pathlib import Path

from paramiko.agent import Agent, AgentKey
from paramiko.message import Message
from paramiko.pkey import PKey, UnknownKeyType
from paramiko.ssh_exception import SSHException

from rollout.adapters.ssh.aside import aside
from rollout.adapters.ssh.resolve import Endpoint
from rollout.errors import RemoteError

AGENT_SECONDS = 5.0


class _SharedAgentKey(AgentKey):
    """A key of the agent that many threads may sign with: the agent's protocol is one question at a time."""

    def __init__(self, key: AgentKey, lock: threading.Lock) -> None:
        super().__init__(key.agent, key.blob, key.comment)
        self._lock = lock

    def sign_ssh_data(self, data: bytes, algorithm: str | None = None) -> Message:  # type: ignore[override]
        with self._lock:
            return super().sign_ssh_data(data, algorithm)


class Identities:
    """The keys to offer a node, in OpenSSH's spirit: named keys first, then what else the agent holds. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: dict[Path, PKey | str] = {}
        self._publics: dict[Path, bytes] = {}
        self._agent: Agent | None = None
        self._agent_keys: tuple[_SharedAgentKey, ...] | None = None
        self._agent_note = ""

    def keys(self, endpoint: Endpoint) -> tuple[tuple[PKey, ...], tuple[str, ...]]:
        """The keys, and in words why others could not be used."""
        with self._lock:
            held = self._held()
            by_blob = {key.asbytes(): key for key in held}
            keys: dict[bytes, PKey] = {}
            notes = [self._agent_note]
            for path in endpoint.identities:
                public = self._public(path)
                if public in by_blob:
                    keys[public] = by_blob[public]
                    continue
                key = self._file(path)
                if isinstance(key, str):
                    notes.append(key)
                else:
                    keys[key.asbytes()] = key
            if not endpoint.identities_only:
                keys.update((blob, key) for blob, key in by_blob.items() if blob not in keys)
            return tuple(keys.values()), tuple(note for note in notes if note)

    def close(self) -> None:
        with self._lock:
            if self._agent is not None:
                self._agent.close()
            self._agent, self._agent_keys = None, None

    def _held(self) -> tuple[_SharedAgentKey, ...]:
        """The agent's keys, asked for once."""
        if self._agent_keys is None:
            self._agent_keys = ()
            if os.environ.get("SSH_AUTH_SOCK"):
                late = RemoteError("auth-failed", "the ssh-agent does not answer")
                try:
                    self._agent, self._agent_keys = aside(_agent_keys, AGENT_SECONDS, late)
                except RemoteError as error:
                    self._agent_note = error.message
        return self._agent_keys

    def _public(self, path: Path) -> bytes:
        if path not in self._publics:
            self._publics[path] = _public_blob(path)
        return self._publics[path]

    def _file(self, path: Path) -> PKey | str:
        if path not in self._files:
            self._files[path] = _load(path)
        return self._files[path]


def _agent_keys() -> tuple[Agent, tuple[_SharedAgentKey, ...]]:
    agent, lock = Agent(), threading.Lock()
    return agent, tuple(_SharedAgentKey(key, lock) for key in agent.get_keys())


def _load(path: Path) -> PKey | str:
    """A private key, or in words why not ("" for a file that is not there, as the default ones often are not)."""
    try:
        return PKey.from_path(path)
    except FileNotFoundError:
        return ""
    except TypeError:  # cryptography: "Password was not given but private key is encrypted"
        return f"{path} needs a passphrase; add it to an agent"
    except (OSError, ValueError, SSHException, UnknownKeyType) as error:
        return f"{path} cannot be used: {type(error).__name__}"


def _public_blob(path: Path) -> bytes:
    """The public half that lies beside a private key (or is named itself), to find it in the agent."""
    beside = path if path.suffix == ".pub" else path.with_name(path.name + ".pub")
    try:
        kind, blob = beside.read_text(encoding="ascii").split()[:2]
        return PKey.from_type_string(kind, base64.b64decode(blob)).asbytes()
    except (OSError, ValueError, SSHException, UnknownKeyType):
        return b""
