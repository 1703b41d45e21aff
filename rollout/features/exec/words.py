"""What people are shown of a command on many nodes, and what the journal records of it.

Nodes with the same exit status and the same output stand together once. Output of nodes is indented, so that none of it
looks like a line of ours.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from rollout.core.model.report import CommandResult
from rollout.core.text.documents import Inline, PrintedKey, Shown
from rollout.core.text.message_folding import for_all, nameless
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable, printable_lines

NOT_STARTED = "not-started"
_LONGEST = 2_000
_CUT = "  … output cut: a node's output is kept up to {limit} KiB"


def command_lines(results: Sequence[CommandResult], unstarted: Sequence[str], limit: int) -> Iterator[str]:
    """Groups of nodes with the same exit status and output, the largest first; then nodes without an answer.

    ``unstarted``: nodes that were not started. ``limit``: the bytes that are kept of each stream.
    """
    answered = [result for result in results if result.status is not None]
    for group in _groups(answered, lambda one: (one.status, one.stdout, one.stderr, one.cut, _why(one))):
        yield f"{_nodes(group)}: exit status {group[0].status}{_besides(group)}"
        yield from _output(group[0], limit)
    silent = [result for result in results if result.status is None]
    for group in _groups(silent, lambda one: (_why(one), one.stdout, one.stderr, one.cut)):
        yield f"{_nodes(group)}: no answer: {_reason(group)}"
        yield from _output(group[0], limit)
    if unstarted:
        yield f"{_named(unstarted)}: not started [{NOT_STARTED}]"
    yield _counts(results, unstarted)


def _text(stream: bytes) -> str:
    return stream.decode("utf-8", "replace")


def _message(message: str) -> str:
    return printable(message, _LONGEST)


_RESULT = Shown(
    "",
    (
        "node", PrintedKey("status", "exit_status"), PrintedKey("stdout", write=_text), PrintedKey("stderr", write=_text),
        "started", "cut", "reference", PrintedKey("message", write=_message),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CommandResultDocument:
    """One node's result of ``exec``. ``exit_status`` is ``None`` without an answer; ``cut``: its output was longer."""

    result: Inline[Annotated[CommandResult, _RESULT]]


def not_started(node: str) -> CommandResult:
    """A node that an interrupt left out."""
    return CommandResult(node, None, started=False, reference=NOT_STARTED, message="interrupted before its start")


def given_up(node: str) -> CommandResult:
    """A node that the second interrupt did not wait for."""
    message = "interrupted; the command may still run on the node"
    return CommandResult(node, None, reference="not-waited-for", message=message)


def recorded_start(run: str, nodes: Sequence[str], command: str, *, sudo: bool, seconds: float, reason: str) -> str:
    """For the journal, before the first node is reached. The command is quoted as in JSON."""
    elevation = " through sudo" if sudo else ""
    why = f"; reason: {reason}" if reason else ""
    quoted = json.dumps(command, ensure_ascii=False)
    return f"{run}: command on {_named(nodes)}{elevation}, at most {seconds:g} s each: {quoted}{why}"


def recorded_end(run: str, results: Iterable[CommandResult], unstarted: Sequence[str]) -> str:
    """For the journal: the exit statuses, the references, and the nodes that were not started."""
    ends: dict[str, list[str]] = {}
    for result in results:
        end = result.reference if result.status is None else f"exit status {result.status}"
        ends.setdefault(end, []).append(result.node)
    if unstarted:
        ends[NOT_STARTED] = list(unstarted)
    return f"{run} ended: " + "; ".join(f"{end} on {_named(names)}" for end, names in sorted(ends.items()))


def _groups(
    results: Sequence[CommandResult], same: Callable[[CommandResult], object]
) -> list[tuple[CommandResult, ...]]:
    together: dict[object, list[CommandResult]] = {}
    for result in results:
        together.setdefault(same(result), []).append(result)
    return sorted(map(tuple, together.values()), key=len, reverse=True)


def _nodes(group: Sequence[CommandResult]) -> str:
    return _named([result.node for result in group])


def _named(names: Sequence[str]) -> str:
    return f"{fold(names)} ({counted(len(names), 'node')})"


def _why(result: CommandResult) -> str:
    """Why a node did not answer in full, without its own name and address. Empty: it did."""
    return f"{nameless(result.message, result.node)} [{result.reference}]" if result.reference else ""


def _reason(group: Sequence[CommandResult]) -> str:
    return printable(for_all(_why(group[0]), [result.node for result in group]), _LONGEST)


def _besides(group: Sequence[CommandResult]) -> str:
    return f"; {_reason(group)}" if group[0].reference else ""


def _output(result: CommandResult, limit: int) -> Iterator[str]:
    for sign, stream in (("  ", result.stdout), ("  stderr: ", result.stderr)):
        for line in printable_lines(_text(stream), _LONGEST):
            yield f"{sign}{line}".rstrip()
    if result.cut:
        yield _CUT.format(limit=limit // 1024)


def _counts(results: Sequence[CommandResult], unstarted: Sequence[str]) -> str:
    done = sum(result.status == 0 for result in results)
    silent = sum(result.status is None for result in results)
    parts = [f"{done:,} with exit status 0"]
    for number, words in (
        (len(results) - done - silent, "with another exit status"),
        (silent, "without an answer"),
        (len(unstarted), "not started"),
    ):
        parts += [f"{number:,} {words}"] if number else []
    return f"{counted(len(results) + len(unstarted), 'node')}: {', '.join(parts)}"
