"""``apply --sequence`` and ``status --sequence``: clusters in sequence, each with its own plan and run."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import click

from rollout.adapters.files import FolderFiles
from rollout.cli.proposals import say
from rollout.cli.terminal import Terminal
from rollout.composition.plan_files import plan_in
from rollout.composition.wiring import Session
from rollout.core.text import documents
from rollout.core.text.terminal import LONGEST_PATH, printable
from rollout.features.sequence import asking
from rollout.features.sequence.asking import PlanFiles, PlanRuns, sequence_state
from rollout.features.sequence.rules import ClusterSequence
from rollout.features.sequence.words import SequenceDocument, sequence_lines
from rollout.features.sequence.written import load_sequence


def apply_sequence(session: Session, file: Path, runs: PlanRuns[Session], *, yes: bool) -> int:
    """The exit code of a whole sequence."""
    state = asking.apply_sequence(session, Terminal(session, yes), *_files(file), runs, time.sleep)
    _show(session, state.document, documents.line)  # after the events of its runs
    if state.is_unfinished and session.output == "text":
        say(f"To continue: rollout apply --sequence {printable(str(file), LONGEST_PATH)}")
    return state.exit_code


def show_sequence(session: Session, file: Path) -> int:
    """Show where a sequence is, from the journals alone."""
    _show(session, sequence_state(session, *_files(file)).document, documents.page)
    return 0


def _files(file: Path) -> tuple[ClusterSequence, PlanFiles]:
    return load_sequence(FolderFiles(Path()).read(str(file)), str(file)), PlanFiles(file.parent, plan_in)


def _show(session: Session, document: SequenceDocument, as_json: Callable[[SequenceDocument], str]) -> None:
    if session.output == "json":
        click.echo(as_json(document))
    else:
        say("\n".join(sequence_lines(document)))
