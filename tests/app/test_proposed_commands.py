"""Every command that a text proposes after a run is accepted by the use case behind it, for each ending that a run can have."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.after_run import afterwards
from rollout.app.following import replay
from rollout.app.rollbacks import rollback_order, since_run
from rollout.app.run_list import listed_runs
from rollout.app.runs import resumable, start_apply, with_pending_recovery
from rollout.core.model.playbook import ALL_CAUSES, Budget, Scope, Share
from rollout.core.presentation.pages.sections import next_steps
from rollout.core.presentation.run_list import run_lines
from rollout.core.presentation.summary import summarize
from rollout.core.presentation.summary_text import afterwards_lines, summary_lines
from rollout.core.run.state import Ending, NodeState, RunState, Verb
from rollout.core.text.nodesets import select
from rollout.errors import InputError, StateError
from rollout.features.approvals.asking import check_not_used
from tests.app.agents import SILENT, answer
from tests.app.site import ACCESS, NAMES, SMALL, KilledError, Site, fleet

FOREIGN = "/var/lib/kubelet/config.yaml"


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


def _apply_strictly(site: Site, failed: int = 1) -> None:
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
    found = []
    for at in range(1, site.runs + 1):
        state = replay(site.journal, f"r{at}")
        for text in texts(site, state):
            found += [f"{why}, proposed by: {text}" for each in commands(text) if (why := refused(site, each))]
    assert not found, "\n".join(found)


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
    try:
        check_not_used(SMALL, site.journal, {})
    except InputError as error:
        yield error.problems[0].hint


def commands(text: str) -> Iterator[list[str]]:
    """The commands of rollout in a text: in backquotes, or to the end of the line."""
    quoted = re.findall(r"`(rollout [^`]+)`", text)
    for command in quoted or re.findall(r"(rollout [a-z].*)", text):
        yield shlex.split(command)


def said(site: Site, run: str) -> str:
    state = replay(site.journal, run)
    return "\n".join(texts(site, state))


def test_nodes_with_the_bytes_of_others_are_told_apart_from_those_that_did_not_answer(site: Site) -> None:
    foreign_bytes_and_silent(site)
    text = said(site, "r2")
    assert "others wrote files of run r1 on n2, so its revert is refused there [foreign-bytes]" in text
    assert "rollout rollback r1 --cluster c --emergency --force --limit n2" in text
    assert "  To recover n3, once the nodes answer: rollout resume --recover-only r2" in text


def test_only_nodes_with_the_bytes_of_others_are_not_recovered(site: Site) -> None:
    foreign_bytes(site)
    assert "rollout resume --recover-only" not in said(site, "r2")


def test_a_pending_recovery_ends_with_the_later_rollback_that_reverts_its_nodes(site: Site) -> None:
    rollback_with_pending_recovery(site)
    assert "  pending recovery: n2" in list(run_lines(tuple(listed_runs(site.journal)), 0.0))
    assert "pending recovery (" in said(site, "r2")
    site.roll_back("r1", ("n2",))
    assert "pending recovery" not in "\n".join(run_lines(tuple(listed_runs(site.journal)), 0.0))
    assert "pending recovery (" not in said(site, "r2")
    assert "rollout resume --recover-only r2" not in said(site, "r2")


def test_a_run_that_was_fenced_names_no_claim_and_is_resumed_with_a_higher_token(site: Site) -> None:
    fenced(site)
    assert replay(site.journal, "r1").ending is Ending.CLAIMED
    text = said(site, "r1")
    assert "has claimed the nodes" not in text
    assert "rollout cluster unlock" not in text
    assert "  To continue: rollout resume r1" in text
    assert site.resume("r1").ending is Ending.DONE


def test_a_node_that_was_only_claimed_is_not_called_reverted(site: Site) -> None:
    site.apply()
    site.dies_at = ("n1", Verb.READ)
    with pytest.raises(KilledError):
        site.roll_back("r1")
    assert "unknown (3)" in said(site, "r2")
    assert "reverted with the run" not in said(site, "r2")


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


_FLAGS = frozenset({"--force", "--emergency", "--promote", "--once", "--late", "--recover-only"})


def _is_value(words: list[str], at: int) -> bool:
    return at > 0 and words[at - 1].startswith("--") and words[at - 1] not in _FLAGS


def _resume(site: Site, named: list[str], words: list[str], _chosen: frozenset[str] | None) -> str:
    if "--recover-only" in words:
        return _recover(site, named)
    state = resumable(site.journal, named[0])
    before = {name: record.state for name, record in state.nodes.items()}
    settled = {NodeState.FAILED, NodeState.REFUSED, NodeState.SKIPPED}
    return "it does nothing" if set(before.values()) <= settled else ""


def _recover(site: Site, named: list[str]) -> str:
    state = with_pending_recovery(site.journal, named[0])
    owed = {record.reference for record in state.nodes.values() if record.owed}
    return "it is refused again" if owed == {"foreign-bytes"} else ""


def _rollback(site: Site, named: list[str], words: list[str], chosen: frozenset[str] | None) -> str:
    order = rollback_order(
        replay(site.journal, named[0]), "new", chosen, fleet(), SMALL.limits,
        since_run(site.journal, named[0]), force="--force" in words,
    )  # fmt: skip
    names_the_newer = any(each.what == "below a newer run" for each in order.left_out)
    return "" if order.nodes or names_the_newer else "nothing to revert"


def _plan(_site: Site, _named: list[str], words: list[str], chosen: frozenset[str] | None) -> str:
    is_same = "--playbook" in words and words[words.index("--playbook") + 1] == SMALL.playbook
    return "" if is_same else "it plans another change"


def _accepted(_site: Site, _named: list[str], _words: list[str], _chosen: frozenset[str] | None) -> str:
    return ""


_USE_CASES = {
    "resume": _resume, "rollback": _rollback, "plan": _plan, "verify": _accepted,
    "watch": _accepted, "cluster": _accepted, "report": _accepted, "status": _accepted,
}  # fmt: skip
