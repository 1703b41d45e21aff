"""Keys held by an ssh-agent: plain ones, certificates, and hardware keys that paramiko has no class for."""

from __future__ import annotations

import threading
from collections.abc import Callable

from paramiko.agent import ALGORITHM_FLAG_MAP, Agent, AgentKey, AgentSSH, cSSH2_AGENTC_SIGN_REQUEST
from paramiko.message import Message
from paramiko.pkey import PublicBlob
from paramiko.ssh_exception import SSHException

from rollout.adapters.ssh.certificates import SUFFIX, Certificate, parse

SIGNED = 14  # SSH2_AGENT_SIGN_RESPONSE
HARDWARE = "sk-"

Touch = Callable[[str], None]


class Held(AgentKey):
    """A key of the agent that many threads may sign with: the agent's protocol is one question at a time.

    ``certificate`` is what is shown in its stead. ``touch`` is told of a hardware key before it signs.
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

    def showing(self, certificate: Certificate) -> Held:
        """The same key with a certificate."""
        return Held(self.agent, self.blob, self.comment, self._lock, self._touch, certificate.blob)

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


def held_keys(touch: Touch) -> tuple[Agent, tuple[Held, ...]]:
    """Asks the agent, without a deadline. A certificate is signed for by the key it belongs to, where that is held."""
    agent, lock = Agent(), threading.Lock()
    found = [Held(agent, key.blob, key.comment, lock, touch) for key in agent.get_keys()]
    plain = {key.blob: key for key in found}
    return agent, tuple(_certified(key, plain) for key in found)


def _certified(key: Held, plain: dict[bytes, Held]) -> Held:
    if not key.get_name().endswith(SUFFIX):
        return key
    try:
        certificate = parse(key.blob)
    except ValueError:
        return key
    return plain.get(certificate.key, key).showing(certificate)
