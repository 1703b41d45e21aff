"""Which run is meant, where a command may leave it out."""

from __future__ import annotations

from collections.abc import Sequence

from rollout.app.ports import RunHeader
from rollout.cli.wiring import Session
from rollout.core.text.suggest import did_you_mean
from rollout.core.text.terminal import printable
from rollout.errors import UsageError


def known_run(session: Session, headers: Sequence[RunHeader], run: str) -> str:
    """The run that is meant: the newest, where none is named."""
    if not headers:
        raise UsageError("no-runs", f"the journal in {session.place} holds no run yet")
    names = [header.run for header in headers]
    if run and run not in names:
        hint = did_you_mean(run, names) or f"the newest is {names[0]}"
        raise UsageError("no-such-run", f"the journal in {session.place} has no run `{printable(run, 60)}`", hint=hint)
    return run or names[0]
