"""How an operator's command ended on one node."""

from __future__ import annotations

from dataclasses import dataclass

from rollout.core.model.report import RemoteAnswer


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
