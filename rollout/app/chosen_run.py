"""Which run a command means."""

from __future__ import annotations

from rollout.app.call import CallPorts
from rollout.app.following import runs_at_work
from rollout.app.ports import PastRuns
from rollout.core.text.suggest import did_you_mean
from rollout.core.text.terminal import printable
from rollout.errors import UsageError


def chosen_run(call: CallPorts, journal: PastRuns, run: str) -> str:
    """The named run; without a name, the newest. ``UsageError`` ``no-runs``, ``no-such-run``."""
    names = [header.run for header in journal.listed()]
    if not names:
        hint = "run it in the project's folder; `rollout show config` shows which journal is read; `rollout rollback --cluster CLUSTER --emergency` needs none"
        raise UsageError("no-runs", f"the journal in {call.place} holds no run yet", hint=hint)
    if run and run not in names:
        hint = did_you_mean(run, names) or f"the newest is {names[0]}"
        raise UsageError("no-such-run", f"the journal in {call.place} has no run `{printable(run, 60)}`", hint=hint)
    return run or names[0]


def chosen_run_at_work(call: CallPorts, journal: PastRuns, run: str) -> str:
    """The named run; without a name, the run in progress, or else the newest.

    A newer run of another cluster must not get its requests. ``UsageError`` ``which-run``: several are in progress.
    """
    at_work = () if run else runs_at_work(journal)
    if len(at_work) > 1:
        raise UsageError("which-run", f"several runs are in progress: {', '.join(sorted(at_work))}", hint="name one")
    return chosen_run(call, journal, run or "".join(at_work))
