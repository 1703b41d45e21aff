"""The agent's answer to one verb, as values. The driver turns these into events; nothing here decides."""

from __future__ import annotations

from enum import StrEnum

from rollout.core.model.freeze import NodeFreeze
from rollout.core.model.frozen import dataclass
from rollout.core.model.snapshot import Measurement, Receipt, Token
from rollout.core.model.surroundings import Manifests

# A command for a node and how it ended, as values.


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """One verb for the agent: the text of its ``program``, the verb and its arguments, and the payload."""

    program: str
    words: str
    payload: bytes = b""


@dataclass(frozen=True, slots=True)
class RemoteCommand:
    """One exec on a node: a POSIX shell command line, its standard input, and its deadline in seconds.

    ``line`` is complete and never prompts. ``bare`` is the simple command in it that sudo runs (``""``: no sudo):
    a caller with a password may put another sudo in front of it. With a ``request``, ``line`` starts a conversation
    with the agent, which may serve many requests, and ``stdin`` is the input of a conversation of this one.
    """

    line: str
    stdin: bytes
    deadline: float
    bare: str = ""
    request: AgentRequest | None = None


@dataclass(frozen=True, slots=True)
class RemoteAnswer:
    """How an exec ended.

    ``status`` is the exit status, or ``None`` when the end was not seen. ``started`` is false when the command certainly
    never began on the node (refused, no banner, authentication, host key): then ``reference`` and ``message`` are the reason.
    Output is bytes, capped; ``truncated``: the cap was reached.
    """

    status: int | None
    stdout: bytes
    stderr: bytes
    started: bool
    truncated: bool = False
    reference: str = ""
    message: str = ""


class Outcome(StrEnum):
    """How a verb ended, as far as is known.

    ``DONE``: the verb ended and answered in full. ``REFUSED``: the node refused before changing anything, with a
    reference. ``UNREACHED``: no command was started on the node. ``LOST``: a command was started and its end was not
    seen; the node must be read.
    """

    DONE = "done"
    REFUSED = "refused"
    UNREACHED = "unreached"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class LastLog:
    """The last lines of a kubelet, or of the runtime that failed, before its change was reverted: the oldest first, without secrets.

    ``exited`` is how systemd reported the last exit of its process in them (``code=exited, status=1/FAILURE``); ``""``: none.
    """

    exited: str = ""
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """The answer to ``apply``, ``confirm``, ``revert``, ``status``, ``freeze``, ``unfreeze``, ``cleanup`` or ``forget``.

    ``receipt`` is the receipt of the transaction asked about (``None``: the node has none: untouched).
    ``healthy`` is what the agent itself found after a restart: true, false, or ``None`` for not checked.
    ``reference`` with ``DONE``: why a revert cannot complete; ``message`` is the text.
    ``log`` (apply, revert) is the log before a revert; ``None``: not reverted, not requested, or not readable.
    ``leftovers`` (cleanup, forget) are paths and units of ours that still exist outside ``/var/lib/rollout``.
    ``seconds``: until the answer came; ``took`` (apply with a measurement): how many of them the node needed, by its own clock.
    ``frozen``: the freeze of the node, in answers to ``status`` and the two verbs for it, and in a refusal because of it.
    ``static_pods`` and ``kubelet_unit`` (status, if asked for): what shows a node of the control plane.
    ``voided`` (status): the transaction that the node has no receipt of, and refuses from now on.
    """

    node: str
    verb: str
    outcome: Outcome
    reference: str = ""
    message: str = ""
    receipt: Receipt | None = None
    receipts: tuple[Receipt, ...] = ()
    token: Token | None = None
    healthy: bool | None = None
    measurement: Measurement | None = None
    log: LastLog | None = None
    leftovers: tuple[str, ...] = ()
    seconds: float = 0.0
    took: float | None = None
    frozen: NodeFreeze | None = None
    voided: str = ""
    static_pods: tuple[Manifests, ...] = ()
    kubelet_unit: str = ""

    @property
    def why(self) -> str:
        """Its message with its reference."""
        return f"{self.message} [{self.reference}]" if self.message else self.reference


# How an operator's command ended on one node.


@dataclass(frozen=True, slots=True)
class CommandResult:
    """``status`` ``None``: its end was not seen, for the reason ``message`` with its ``reference``.

    ``started`` is false when the command certainly never began. ``cut``: the output is longer than what is kept of it.
    """

    node: str
    status: int | None
    stdout: bytes = b""
    stderr: bytes = b""
    started: bool = True
    cut: bool = False
    reference: str = ""
    message: str = ""


def result_of(node: str, answer: RemoteAnswer) -> CommandResult:
    return CommandResult(
        node, answer.status, answer.stdout, answer.stderr, answer.started, answer.truncated, answer.reference,
        answer.message,
    )  # fmt: skip
