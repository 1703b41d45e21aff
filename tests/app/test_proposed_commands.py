"""Every command that a text proposes after a run is accepted by the use case behind it, for each ending that a run can have."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.after_run import afterwards
from rollout.app.following import replay
from rollout.app.rollbacks import rollback_order, since_run
from rollout.app.runs import resumable, start_apply, with_pending_recovery
from rollout.core.presentation.pages.sections import next_steps
from rollout.core.presentation.summary import summarize
from rollout.core.presentation.summary_text import afterwards_lines, summary_lines
from rollout.core.run.state import NodeState, RunState, Verb
from rollout.core.text.nodesets import select
from rollout.errors import StateError
from tests.app.agents import SILENT, answer
from tests.app.site import ACCESS, NAMES, SMALL, Site, fleet

FOREIGN = "/var/lib/kubelet/config.yaml"
CLAIMED = "7 r9 ended"


def refuses(site: Site, node: str, verb: str, reference: str, text: str) -> None:
    """The node refuses this verb, until it is deleted from ``says``."""
    site.nodes.says[node, verb] = answer(verb, f"refused {reference} {text}")


def done(site: Site) -> None:
    site.apply()


def done_with_failed(site: Site) -> None:
    refuses(site, "n2", "apply", "drifted", FOREIGN)
    site.apply()


def preflight(site: Site) -> None:
    for name in NAMES:
        site.nodes.says[name, "status"] = SILENT
    site.apply()


def halted(site: Site) -> None:
    """Its canary failed, so no node has the change, and others are pending."""
    _strict(site)
    refuses(site, "n1", "apply", "no-room", "/var")
    _apply_strictly(site)


def halted_at_the_end(site: Site) -> None:
    """No node is pending, none has the change."""
    for name in NAMES:
        refuses(site, name, "apply", "no-room", "/var")
    _apply_strictly(site, 3)


def killed(site: Site) -> None:
    site.killed("n2", Verb.CONFIRM)


def rolled_back(site: Site) -> None:
    site.apply()
    site.roll_back("r1")


def rolled_back_in_part(site: Site) -> None:
    site.apply()
    site.roll_back("r1", ("n1",))


def killed_and_rolled_back(site: Site) -> None:
    site.killed("n2", Verb.CONFIRM)
    site.roll_back("r1")


def followed(site: Site) -> None:
    done_with_failed(site)
    site.nodes.says.clear()
    site.apply()


def pending_recovery(site: Site) -> None:
    site.nodes.says["n2", "apply"] = answer("apply", "healthy no process 0")
    site.nodes.says["n2", "revert"] = SILENT
    site.apply()


def rollback_with_pending_recovery(site: Site) -> None:
    site.apply()
    site.nodes.says["n2", "revert"] = SILENT
    site.nodes.says["n2", "status"] = SILENT
    site.roll_back("r1")
    site.nodes.says.clear()


def rollback_recovered_by_another(site: Site) -> None:
    rollback_with_pending_recovery(site)
    site.roll_back("r1")


def foreign_bytes(site: Site) -> None:
    site.apply()
    refuses(site, "n2", "revert", "foreign-bytes", FOREIGN)
    site.roll_back("r1")


def foreign_bytes_and_silent(site: Site) -> None:
    site.apply()
    refuses(site, "n2", "revert", "foreign-bytes", FOREIGN)
    site.nodes.says["n3", "revert"] = SILENT
    site.nodes.says["n3", "status"] = SILENT
    site.roll_back("r1")


def fenced(site: Site) -> None:
    """Another journal's emergency had a higher token, and has ended."""
    site.killed("n2", Verb.APPLY)
    for name in NAMES:
        site.nodes.says[name, "status"] = answer(
            "status", "refused fenced this node has accepted token 90 of run r9", "token 90 r9 ended"
        )
    site.resume("r1")
    site.nodes.says.clear()


def _strict(_site: Site) -> None: ...


def _apply_strictly(site: Site, failed: int = 1) -> None:
    from dataclasses import replace

    from rollout.core.model.playbook import ALL_CAUSES, Budget, Scope, Share

    plan = replace(SMALL, budgets=(Budget(Scope.FLEET, ALL_CAUSES, Share(count=failed)),))
    start_apply(plan, ACCESS, site.tools())


ENDINGS: tuple[Callable[[Site], None], ...] = (
    done, done_with_failed, preflight, halted, halted_at_the_end, killed, rolled_back, rolled_back_in_part,
    killed_and_rolled_back, followed, pending_recovery, rollback_with_pending_recovery, rollback_recovered_by_another,
    foreign_bytes, foreign_bytes_and_silent, fenced,
)  # fmt: skip


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(SqlJournal(tmp_path))


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda each: each.__name__)
def test_no_proposed_command_would_be_refused(site: Site, ending: Callable[[Site], None]) -> None:
    ending(site)
    for at in range(1, site.runs + 1):
        state = replay(site.journal, f"r{at}")
        for text in texts(site, state):
            for command in commands(text):
                why = refused(site, command)
                print(f"r{at}: {shlex.join(command)}: {why or 'ok'}")
                assert not why, f"{text}\nproposes {shlex.join(command)}: {why}"


def texts(site: Site, state: RunState) -> Iterator[str]:
    """What ``status``, the report and errors of this run propose."""
    summary, after = summarize(state), afterwards(site.journal, state, site.at)
    yield from summary_lines(summary, after)
    yield from afterwards_lines(summary, after)
    yield from (command for command, _ in next_steps(state, after))
    for use_case in (resumable, with_pending_recovery):
        try:
            use_case(site.journal, state.order.run)
        except StateError as error:
            yield error.hint


def commands(text: str) -> Iterator[list[str]]:
    """The commands of rollout in a text: in backquotes, or to the end of the line."""
    quoted = re.findall(r"`(rollout [^`]+)`", text)
    for command in quoted or re.findall(r"(rollout [a-z].*)", text):
        yield shlex.split(command)


def refused(site: Site, command: list[str]) -> str:
    """Why a command would be refused, or do nothing; ``""``: it is accepted."""
    verb, words = command[1], command[2:]
    named = [word for at, word in enumerate(words) if not word.startswith("--") and not _is_value(words, at)]
    limit = words[words.index("--limit") + 1] if "--limit" in words else ""
    chosen = frozenset(select(limit, fleet())) if limit else None
    try:
        return _USE_CASES[verb](site, named, words, chosen)
    except StateError as error:
        return str(error)


_FLAGS = frozenset({"--force", "--emergency", "--promote", "--once"})


def _is_value(words: list[str], at: int) -> bool:
    return at > 0 and words[at - 1].startswith("--") and words[at - 1] not in _FLAGS


def _resume(site: Site, named: list[str], words: list[str], _chosen: frozenset[str] | None) -> str:
    state = resumable(site.journal, named[0])
    before = {name: record.state for name, record in state.nodes.items()}
    settled = {NodeState.FAILED, NodeState.REFUSED, NodeState.SKIPPED}
    return "it does nothing" if set(before.values()) <= settled else ""


def _recover(site: Site, named: list[str], _words: list[str], _chosen: frozenset[str] | None) -> str:
    state = with_pending_recovery(site.journal, named[0])
    owed = {record.reference for record in state.nodes.values() if record.owed}
    return "it is refused again" if owed == {"foreign-bytes"} else ""


def _rollback(site: Site, named: list[str], words: list[str], chosen: frozenset[str] | None) -> str:
    order = rollback_order(
        replay(site.journal, named[0]), "new", chosen, fleet(), SMALL.limits,
        since_run(site.journal, named[0]), force="--force" in words,
    )  # fmt: skip
    return "" if order.nodes else "nothing to revert"


def _plan(_site: Site, _named: list[str], words: list[str], chosen: frozenset[str] | None) -> str:
    is_same = "--playbook" in words and words[words.index("--playbook") + 1] == SMALL.playbook
    return "" if is_same else "it plans another change"


def _accepted(_site: Site, _named: list[str], _words: list[str], _chosen: frozenset[str] | None) -> str:
    return ""


_USE_CASES = {
    "resume": _resume, "recover": _recover, "rollback": _rollback, "plan": _plan, "verify": _accepted,
    "watch": _accepted, "unlock": _accepted, "status": _accepted,
}  # fmt: skip
