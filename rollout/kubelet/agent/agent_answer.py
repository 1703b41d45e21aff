"""The agent's output as a value: a snapshot, a verification, or the report of a verb.

Nothing here trusts a node: an incomplete answer, or one with an unreadable line, counts as unread.
"""

from __future__ import annotations

import re

from rollout.core.model.freeze import FROZEN, of_fact, told
from rollout.core.model.report import Outcome, RemoteAnswer, Report
from rollout.core.model.snapshot import Measurement, Snapshot, Token, Unread
from rollout.core.model.verification import Verification
from rollout.kubelet.agent import sudo
from rollout.kubelet.agent.agent_lines import MAX_TEXT, BadLineError, printable, read
from rollout.kubelet.agent.agent_reading import AgentReading
from rollout.kubelet.node import rancher_secrets

BAD_ANSWER = "bad-answer"
"""The answer has a line that no agent prints."""

RAN_NOTHING = frozenset({"torn-program", "shell-not-supported", "program-failed"})
"""The node ran nothing of the program: no verb began, so none ends."""
_HOW_TO_GIVE_IT = "`--ask-sudo-password` asks you for it, `--sudo-password-file` reads it"
_SUDO = re.compile(r"no-sudo|sudo-[a-z-]+")


def parse_snapshot(node: str, answer: RemoteAnswer) -> Snapshot | Unread:
    """A node as it reported itself, or why that is unknown."""
    reading = _whole(node, "snapshot", answer)
    if isinstance(reading, Unread):
        return reading
    facts = dict(reading.facts)
    snapshot = Snapshot(
        node=node,
        machine_id=facts.pop("machine-id", ""),
        boot_id=facts.pop("boot-id", ""),
        kubelet_version=_kubelet_version(facts.pop("kubelet-version", "")),
        runtimes={key.removeprefix("runtime-"): facts.pop(key) for key in sorted(facts) if key.startswith("runtime-")},
        measurement=reading.measurement() or Measurement(),
        files=dict(reading.files),
        token=reading.token or Token(),
        receipts=tuple(reading.history),
        stale=tuple(reading.stale),
        facts=facts,
        surroundings=reading.surroundings,
    )
    return rancher_secrets.without_secrets(snapshot)


def parse_verification(node: str, answer: RemoteAnswer) -> Verification | Unread:
    """What a node should contain and does contain, or why that is unknown."""
    reading = _whole(node, "verify", answer)
    if isinstance(reading, Unread):
        return reading
    facts = dict(reading.facts)
    return Verification(
        node=node,
        machine_id=facts.pop("machine-id", ""),
        token=reading.token or Token(),
        receipts=tuple(reading.history),
        transactions=tuple(reading.transactions.values()),
        files=dict(reading.files),
        measurement=reading.measurement() or Measurement(),
        stale=tuple(reading.stale),
        binary=reading.binary,
        age=reading.age,
        facts=facts,
    )


def _whole(node: str, verb: str, answer: RemoteAnswer) -> AgentReading | Unread:
    """The answer to a verb that only reads: complete, or nothing."""
    if (trouble := _not_run(answer)) is not None:
        return Unread(node, trouble[1], trouble[2])
    try:
        reading = read(answer)
    except BadLineError as error:
        return Unread(node, BAD_ANSWER, str(error))
    if reading.refused:
        return Unread(node, *reading.refused)
    if reading.ended != verb:
        return Unread(node, *_cut_off(answer))
    return reading


def parse_report(node: str, verb: str, answer: RemoteAnswer, seconds: float) -> Report:
    """How a verb ended, as far as its answer shows."""
    if (trouble := _not_run(answer)) is not None:
        return Report(node, verb, *trouble, seconds=seconds)
    try:
        reading = read(answer)
    except BadLineError as error:
        return Report(node, verb, Outcome.LOST, BAD_ANSWER, str(error), seconds=seconds)
    outcome, reference, message = _outcome(verb, answer, reading)
    return Report(
        node=node,
        verb=verb,
        outcome=outcome,
        reference=reference,
        message=message,
        receipt=reading.receipt,
        receipts=tuple(reading.history),
        token=reading.token,
        healthy=reading.healthy[0] if reading.healthy else None,
        measurement=reading.measurement(),
        log=reading.log,
        leftovers=tuple(reading.left),
        seconds=seconds,
        took=reading.took,
        frozen=of_fact(reading.facts),
        voided=reading.voided,
        static_pods=reading.surroundings.manifests if reading.surroundings else (),
        kubelet_unit=reading.facts.get("kubelet-unit", ""),
    )


def _not_run(answer: RemoteAnswer) -> tuple[Outcome, str, str] | None:
    """Why the agent's program never ran, if that is certain."""
    if not answer.started and _SUDO.fullmatch(answer.reference):  # the node answers, and sudo refused
        return Outcome.REFUSED, answer.reference, printable(answer.message)
    if not answer.started:
        return Outcome.UNREACHED, answer.reference or "unreachable", printable(answer.message)
    begun = b"\nbegin " in b"\n" + answer.stdout  # a login shell may print before
    if not begun and answer.status and (refused := sudo.refused_quietly(answer.stderr, answer.status)):
        reference, message = refused
        return Outcome.REFUSED, reference, message + (f"; {_HOW_TO_GIVE_IT}" if reference == "no-sudo" else "")
    return None


def _outcome(verb: str, answer: RemoteAnswer, reading: AgentReading) -> tuple[Outcome, str, str]:
    if reading.refused and not reading.ended and reading.refused[0] in RAN_NOTHING:
        return Outcome.REFUSED, *reading.refused
    if reading.ended != verb or answer.status is None:
        return Outcome.LOST, *_cut_off(answer)
    if reading.refused:
        frozen = of_fact(reading.facts) if reading.refused[0] == FROZEN else None
        return Outcome.REFUSED, reading.refused[0], told(frozen) if frozen else reading.refused[1]
    if reading.failed:
        return Outcome.DONE, *reading.failed
    message = reading.healthy[1] if reading.healthy else "; ".join(reading.said)[:MAX_TEXT]
    return Outcome.DONE, "", message


def _cut_off(answer: RemoteAnswer) -> tuple[str, str]:
    """Why an answer that began has no end: the connection's reason comes before the command's output."""
    return answer.reference or "answer-cut-off", printable(answer.message) or _evidence(answer)


def _evidence(answer: RemoteAnswer) -> str:
    """The last line of standard error, or how the command ended."""
    lines = [line for line in answer.stderr[-4096:].decode("ascii", "replace").splitlines() if line.strip()]
    if lines:
        return printable(lines[-1])
    return "exit status unknown" if answer.status is None else f"exit status {answer.status}"


def _kubelet_version(text: str) -> str:
    """``Kubernetes v1.20.15`` → ``1.20.15``."""
    last = text.rsplit(" ", maxsplit=1)[-1]
    return last.removeprefix("v") if re.fullmatch(r"v[0-9]+\.[0-9]+\.[0-9][0-9A-Za-z.+-]*", last) else ""
