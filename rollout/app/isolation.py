"""Keeps an error with one node to that node: it becomes that node's result, and the other nodes continue.

Three kinds of error do not belong to a node and are raised unchanged:

* errors in a person's input (``RolloutError``: a playbook, a template);
* errors of this machine (``OSError``: a full disk);
* exceptions that end a program.

``MemoryError`` belongs to the node: one number in its text can ask for all memory of this machine.

Answers of nodes are made into values in the same way.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import PurePath
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar

from rollout.app.ports import Nodes, Target
from rollout.core.model.report import Outcome, RemoteAnswer, RemoteCommand, Report
from rollout.core.model.snapshot import Snapshot, Unread
from rollout.core.model.verification import Verification
from rollout.errors import RolloutError
from rollout.kubelet.agent.agent_answer import BAD_ANSWER, parse_report, parse_snapshot, parse_verification

T = TypeVar("T")
Keep = Callable[[str, str], str]
"""Stores a node's trace and returns where, in one sentence."""


def keep_nothing(_node: str, _trace: str) -> str:
    """For callers that have no place for a trace."""
    return ""


def attempt(node: str, work: Callable[[], T], on_failure: Callable[[str], T], keep: Keep = keep_nothing) -> T:
    """The result of ``work`` for one node, or of ``on_failure`` with the place where ``work`` failed."""
    try:
        return work()
    except (RolloutError, OSError):
        raise
    except Exception as error:  # noqa: BLE001 - one node's content must not stop the others
        return on_failure(_told(node, error, keep))


def estimate(work: Callable[[], T], seconds: float) -> T | None:
    """The result of ``work`` that only informs people. ``None``: it failed, with any error, or takes longer than this.

    It must not delay or end what it informs of. Late work goes on beside the caller, and its result is dropped.
    """
    found: SimpleQueue[T | None] = SimpleQueue()

    def run() -> None:
        try:
            found.put(work())
        except Exception:  # noqa: BLE001 - no error of an estimate may reach the caller
            found.put(None)

    Thread(target=run, name="estimate", daemon=True).start()
    try:
        return found.get(timeout=seconds)
    except Empty:
        return None


def _told(node: str, error: Exception, keep: Keep) -> str:
    """Reports the place of the failure, but not the error's text: that may contain a file of the node."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{type(error).__name__} in {PurePath(frame.filename).name}:{frame.lineno}"
    kept = keep(node, "".join(traceback.format_exception(error)))
    return f"rollout itself failed on the data of this node ({place}); please report it{kept and f'. {kept}'}"


# Turns answers of nodes into values. An answer that rollout itself fails on is an error of that node only.


READING_FAILED = "reading-failed"
_UNREADABLE = (BAD_ANSWER, READING_FAILED)


def run_snapshot(nodes: Nodes, target: Target, command: RemoteCommand, keep: Keep) -> Snapshot | Unread:
    """A node as it reports itself; the connection as with ``run_verb``."""
    return _read(nodes, target, command, parse_snapshot, keep)


def run_verification(nodes: Nodes, target: Target, command: RemoteCommand, keep: Keep) -> Verification | Unread:
    """What a node has of our transactions; the connection as with ``run_verb``."""
    return _read(nodes, target, command, parse_verification, keep)


def _read(
    nodes: Nodes, target: Target, command: RemoteCommand, parse: Callable[[str, RemoteAnswer], T | Unread], keep: Keep
) -> T | Unread:
    name, answer = target.name, nodes.run(target, command)
    read: T | Unread = attempt(name, lambda: parse(name, answer), lambda why: Unread(name, READING_FAILED, why), keep)
    if isinstance(read, Unread) and read.reference in _UNREADABLE:
        nodes.release(target)
    return read


def run_verb(nodes: Nodes, target: Target, verb: str, command: RemoteCommand, keep: Keep) -> Report:
    """The report of one verb on one node. An answer that cannot be read counts as lost: the verb may have been carried out.

    The connection ends after such an answer: what printed something else into it may do so again.
    """
    name, answer = target.name, nodes.run(target, command)
    report = attempt(
        name,
        lambda: parse_report(name, verb, answer, 0.0),
        lambda why: Report(name, verb, Outcome.LOST, READING_FAILED, why),
        keep,
    )
    if report.reference in _UNREADABLE:
        nodes.release(target)
    return report
