"""Turns answers of nodes into values. An answer that rollout itself fails on is an error of that node only."""

from __future__ import annotations

from rollout.app.isolation import Keep, attempt
from rollout.core.model.report import Outcome, RemoteAnswer, Report
from rollout.core.model.snapshot import Snapshot, Unread
from rollout.kubelet.agent.agent_answer import parse_report, parse_snapshot

FAILED = "reading-failed"


def snapshot_of(node: str, answer: RemoteAnswer, keep: Keep) -> Snapshot | Unread:
    return attempt(node, lambda: parse_snapshot(node, answer), lambda why: Unread(node, FAILED, why), keep)


def report_of(node: str, verb: str, answer: RemoteAnswer, seconds: float, keep: Keep) -> Report:
    """An answer that cannot be read counts as lost: the verb may have been carried out."""
    return attempt(
        node,
        lambda: parse_report(node, verb, answer, seconds),
        lambda why: Report(node, verb, Outcome.LOST, FAILED, why, seconds=seconds),
        keep,
    )
