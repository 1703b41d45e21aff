"""Runs of a plan: what is journaled first, which runs may start, be resumed or be rolled back, and what remains."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.following import (
    EndedRuns,
    has_acted,
    last_revert_times,
    plan_of,
    replay,
)
from rollout.app.node_histories import plans_in_force, rolled_back_since
from rollout.app.ports import RunHeader
from rollout.app.rollbacks import SinceRun, rollback_order, since_run
from rollout.app.runs import (
    check_nothing_unfinished,
    check_plan,
    highest_counter,
    leased,
    needs_of_run,
    resumable,
    with_pending_recovery,
)
from rollout.app.verify import Known, last_confirmed
from rollout.core.model.fleet_changes import UNCHANGED
from rollout.core.model.inventory import Node
from rollout.core.plans import plan_codec
from rollout.core.plans.required_back_ends import Needs
from rollout.core.presentation.summary_text import since_lines
from rollout.core.run.events import Answered, Trigger
from rollout.core.run.journal_codec import encode_event, encode_order
from rollout.core.run.state import RULES, Ending, Goal, NodeState, RunState, Verb
from rollout.errors import InputError, StateError, UsageError
from tests.app.agents import MACHINE, SILENT, answer
from tests.app.site import NAMES, SMALL, KilledError, Site, fleet

CLUSTER = SMALL.cluster
FILE = SMALL.groups[0].change.files[0]


@pytest.fixture
def journal(tmp_path: Path) -> SqlJournal:
    return SqlJournal(tmp_path)


@pytest.fixture
def site(journal: SqlJournal) -> Site:
    return Site(journal)


def states(state: RunState) -> set[NodeState]:
    return {record.state for record in state.nodes.values()}


# ---------------------------------------------------------------------------------------------------- begin


def test_a_plan_is_applied_and_the_report_matches_the_nodes(site: Site) -> None:
    end = site.apply()
    assert (end.ending, states(end)) == (Ending.DONE, {NodeState.CONFIRMED})
    assert {agent.state for agent in site.nodes.agents.values()} == {"confirmed"}
    assert {agent.claim for agent in site.nodes.agents.values()} == {"1 r1 ended"}, "cleaned up"
    known = replay(site.journal, "r1")
    assert known == replace(end, now=known.now), "a replay gives the same run"
    assert site.journal.holder(CLUSTER) is None


def test_a_run_is_journaled_with_its_plan_and_its_reason(site: Site) -> None:
    site.apply()
    header = site.journal.header("r1")
    assert (header.who, header.reason, header.goal) == ("me@here", "slow pulls", Goal.APPLY)
    assert plan_of(header) == SMALL
    ((plan, names),) = plans_in_force(site.journal, CLUSTER)
    assert (plan, set(names)) == (SMALL, set(NAMES))


def test_a_plan_is_only_for_the_inventory_that_it_was_made_for() -> None:
    plan = replace(SMALL, nodes={name: replace(node, settings="") for name, node in SMALL.nodes.items()})
    same = {name: Node(name, name, "r", "z") for name in NAMES}
    found = replace(fleet(), nodes=same)
    assert check_plan(plan, found, "p.json", {}) == UNCHANGED
    for other in (replace(found, cluster="d"), replace(found, nodes={**same, "n2": Node("n2", "n2", "r2", "z")})):
        with pytest.raises(InputError) as raised:
            check_plan(plan, other, "p.json", {})
        assert raised.value.problems[0].reference == "plan-for-another-inventory"


def test_each_run_has_a_higher_token_than_all_earlier_runs_and_the_planned_nodes(site: Site) -> None:
    assert highest_counter(site.journal, CLUSTER) == 0
    site.killed("n1", Verb.APPLY)
    site.resume("r1")
    assert highest_counter(site.journal, CLUSTER) == 2, "a resume also raises the token"
    assert site.apply().counter == 3


def test_a_cluster_without_runs_has_nothing_unfinished_and_no_plan(site: Site) -> None:
    check_nothing_unfinished(site.journal, CLUSTER)
    with pytest.raises(UsageError) as raised:
        plans_in_force(site.journal, CLUSTER)
    assert raised.value.reference == "no-plan"


def test_a_run_that_cannot_be_read_is_not_reported_as_a_cluster_without_plans(site: Site) -> None:
    """It may have reverted any run before it."""
    site.apply()
    header = site.journal.header("r1")
    order = header.order.replace(f'"rules": {RULES}', f'"rules": {RULES - 1}', 1)
    site.journal.begin(replace(header, run="r2", order=order, at=header.at + 1))
    with pytest.raises(
        UsageError, match="run r2 of c and what it did cannot be read, so no plan is known to be in force"
    ):
        plans_in_force(site.journal, CLUSTER)


def test_no_run_starts_and_nothing_is_written_while_another_has_not_ended(site: Site) -> None:
    site.killed("n2", Verb.APPLY)
    with pytest.raises(StateError) as raised:
        site.apply()
    assert (raised.value.reference, raised.value.hint) == (
        "run-unfinished",
        "`rollout resume r1` or `rollout rollback r1`",
    )
    assert [header.run for header in site.journal.runs(CLUSTER)] == ["r1"]
    assert site.journal.holder(CLUSTER) is None, "the lease is released again"


class Locked(SqlJournal):
    """Another living controller has the lease."""

    def acquire(self, cluster: str, run: str) -> None:
        raise StateError("locked", f"run {run} of {cluster} is at work")


def test_a_cluster_is_locked_while_a_controller_is_alive(site: Site, tmp_path: Path) -> None:
    """``locked`` is more precise than ``run-unfinished``: it names the holder, and the run is in progress."""
    site.killed("n2", Verb.APPLY)
    with pytest.raises(StateError) as raised:
        Site(Locked(tmp_path)).apply()
    assert raised.value.reference == "locked"
    assert [header.run for header in site.journal.runs(CLUSTER)] == ["r1"]


def test_a_run_of_another_version_does_not_block_a_new_run(site: Site) -> None:
    """This version cannot know whether it has ended. The claims on the nodes show it."""
    site.killed("n1", Verb.READ)
    elsewhere = Answered(1.0, "n1", 1, Verb.READ, Trigger.GATES_PASSED)
    with leased(site.journal, CLUSTER, "r1"):
        site.journal.append("r1", [encode_event(elsewhere)])
    check_nothing_unfinished(site.journal, CLUSTER)


class Broken(SqlJournal):
    """The journal was changed, or it cannot be read now."""

    def events(self, run: str, after: int = 0) -> tuple[str, ...]:
        raise StateError("journal-broken", "event 3 is not as it was written")


def test_no_run_starts_with_a_broken_journal(site: Site, tmp_path: Path) -> None:
    site.apply()
    with pytest.raises(StateError) as raised:
        check_nothing_unfinished(Broken(tmp_path), CLUSTER)
    assert raised.value.reference == "journal-broken"


class Counting(SqlJournal):
    """``replays``: how often a header was read to replay a run."""

    replays = 0

    def header(self, run: str) -> RunHeader:
        self.replays += 1
        return super().header(run)


def test_runs_with_a_summary_are_not_replayed_before_a_new_one(tmp_path: Path) -> None:
    """A cluster has large runs, and an emergency waits for this, too."""
    journal = Counting(tmp_path)
    Site(journal).apply()
    journal.replays = 0
    check_nothing_unfinished(journal, CLUSTER)
    assert highest_counter(journal, CLUSTER) == 1
    assert EndedRuns(journal, CLUSTER)("r1")
    assert last_revert_times(journal, CLUSTER) is None, "no event of it can have measured one"
    assert journal.replays == 0


class Unreleasing(SqlJournal):
    """The lease cannot be released."""

    def __init__(self, folder: Path, reference: str) -> None:
        super().__init__(folder)
        self.reference = reference
        self.release = self._refuse

    def _refuse(self, cluster: str, run: str) -> None:
        raise StateError(self.reference, f"{run} of {cluster} keeps its lease")


def test_a_lease_that_cannot_be_released_is_no_failure(tmp_path: Path) -> None:
    """It expires without heartbeats."""
    assert Site(Unreleasing(tmp_path, "journal-away")).apply().ending is Ending.DONE


def test_a_lease_that_another_controller_took_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StateError) as raised:
        Site(Unreleasing(tmp_path, "lease-lost")).apply()
    assert raised.value.reference == "lease-lost"


def test_too_many_unreachable_nodes_stop_a_run_before_it_starts(site: Site) -> None:
    site.nodes.says |= {(name, "status"): SILENT for name in NAMES}
    end = site.apply()
    assert (end.ending, has_acted(site.journal, "r1")) == (Ending.PREFLIGHT, False)
    with pytest.raises(StateError) as raised:
        resumable(site.journal, "r1")
    assert (raised.value.reference, raised.value.hint) == ("nothing-to-resume", "plan again")
    with pytest.raises(StateError) as raised:
        with_pending_recovery(site.journal, "r1")
    assert (raised.value.reference, raised.value.hint) == ("nothing-owed", "plan again")
    site.nodes.says.clear()
    assert site.apply().ending is Ending.DONE, "it blocks no other run"


# --------------------------------------------------------------------------------------------------- resume


@pytest.mark.parametrize(
    ("node", "verb"), [("n1", Verb.READ), ("n1", Verb.APPLY), ("n1", Verb.CONFIRM), ("n3", Verb.APPLY)]
)
def test_a_killed_run_is_resumed_with_a_new_token_from_the_state_of_the_nodes(
    site: Site, node: str, verb: Verb
) -> None:
    site.killed(node, verb)
    end = site.resume("r1")
    assert (end.ending, states(end), end.counter) == (Ending.DONE, {NodeState.CONFIRMED}, 2)
    assert {agent.claim for agent in site.nodes.agents.values()} == {"2 r1 ended"}
    assert all(site.nodes.verbs(name).count("apply") == 1 for name in NAMES), "completed changes are not repeated"


def test_a_run_that_has_ended_is_not_resumed(site: Site) -> None:
    site.apply()
    with pytest.raises(StateError) as raised:
        site.resume("r1")
    assert (raised.value.reference, raised.value.hint) == ("nothing-to-resume", "plan again")
    with pytest.raises(StateError) as raised:
        with_pending_recovery(site.journal, "r1")
    assert raised.value.reference == "nothing-owed"


def test_a_run_with_pending_recoveries_is_recovered_and_not_resumed(site: Site) -> None:
    site.nodes.says["n3", "status"] = SILENT
    assert site.apply().nodes["n3"].owed
    assert with_pending_recovery(site.journal, "r1").order.run == "r1"
    with pytest.raises(StateError) as raised:
        resumable(site.journal, "r1")
    assert raised.value.hint == "`rollout resume --recover-only r1` does its pending recoveries"


def test_a_run_that_has_not_ended_is_resumed_and_not_recovered(site: Site) -> None:
    site.killed("n2", Verb.APPLY)
    with pytest.raises(StateError) as raised:
        with_pending_recovery(site.journal, "r1")
    assert (raised.value.reference, raised.value.hint) == (
        "not-done",
        "`rollout resume r1` also does its pending recoveries",
    )


def test_a_request_to_a_node_counts_as_done_even_without_an_answer(site: Site) -> None:
    """The controller died during the request, and its successor was refused before it did anything."""
    site.killed("n1", Verb.APPLY)
    assert has_acted(site.journal, "r1")
    site.nodes.says |= {(name, "status"): answer("status", "refused fenced token 9 is newer") for name in NAMES}
    assert site.resume("r1").ending is Ending.CLAIMED
    assert has_acted(site.journal, "r1")


def test_a_run_that_only_read_has_not_acted(site: Site) -> None:
    site.killed("n1", Verb.READ)
    assert not has_acted(site.journal, "r1")


def test_a_resume_asks_back_ends_for_what_the_plan_needs_and_a_rollback_for_nothing(site: Site) -> None:
    site.apply()
    site.roll_back("r1")
    assert needs_of_run(site.journal, "r1") == Needs(SMALL.gates)
    assert needs_of_run(site.journal, "r2") == Needs()


def test_a_plan_of_another_version_is_refused_with_a_hint(site: Site) -> None:
    site.apply()
    header = replace(site.journal.header("r1"), run="r9", plan=b'{"version": 99}')
    site.journal.begin(header)
    with pytest.raises(StateError) as raised:
        needs_of_run(site.journal, "r9")
    assert raised.value.reference == "journal-unreadable"
    assert "`rollout rollback r9`" in str(raised.value.hint)
    assert plan_of(header) is None, "where the plan is optional, there is no error"


# ------------------------------------------------------------------------------------------------- roll back


def test_a_run_is_rolled_back_over_its_own_claims(site: Site) -> None:
    site.killed("n3", Verb.APPLY)
    end = site.roll_back("r1")
    assert (end.ending, states(end)) == (Ending.DONE, {NodeState.REVERTED})
    assert {agent.state for agent in site.nodes.agents.values()} == {"reverted"}
    assert {words.get("force") for _, words in site.nodes.asked if words.get("run") == "r2" and "claim" in words} == {
        "1"
    }
    assert plan_of(site.journal.header("r2")) is None, "it needs only what is stored on the nodes"
    assert plans_in_force(site.journal, CLUSTER) == ()


@pytest.mark.parametrize(("node", "verb"), [("n1", Verb.READ), ("n2", Verb.REVERT)])
def test_a_killed_rollback_is_resumed_and_still_takes_over_claims(site: Site, node: str, verb: Verb) -> None:
    """The run that it reverts still holds the nodes that the rollback had not reached."""
    site.killed("n3", Verb.APPLY)
    site.dies_at = (node, verb)
    with pytest.raises(KilledError):
        site.roll_back("r1")
    site.answers, site.dies_at = [], None
    end = site.resume("r2")
    assert (end.ending, states(end)) == (Ending.DONE, {NodeState.REVERTED})


# -------------------------------------------------------------------------------- what was confirmed last


def test_the_last_confirmed_state_includes_the_machine_and_the_replaced_content(site: Site) -> None:
    site.apply()
    at = site.journal.header("r1").at
    assert last_confirmed(site.journal, CLUSTER) == dict.fromkeys(
        NAMES, Known("r1", MACHINE, at, {FILE.path: FILE.digest_before}, frozenset({"r1"}))
    )


def test_a_node_that_was_reverted_since_has_no_confirmed_state(site: Site) -> None:
    site.apply()
    site.roll_back("r1", ("n2",))
    assert set(last_confirmed(site.journal, CLUSTER)) == {"n1", "n3"}


def test_a_node_that_a_later_run_did_not_touch_keeps_its_confirmed_state(site: Site) -> None:
    site.apply()
    site.nodes.says |= {(name, "apply"): answer("apply", "refused drifted /etc/a") for name in ("n2", "n3")}
    site.apply()
    found = last_confirmed(site.journal, CLUSTER)
    assert {name: known.run for name, known in found.items()} == {"n1": "r2", "n2": "r1", "n3": "r1"}


def test_nothing_older_than_an_unreadable_run_counts(site: Site) -> None:
    """It may have reverted any older change."""
    site.apply()
    header: RunHeader = replace(site.journal.header("r1"), run="r9", order="{}")
    site.journal.begin(header)
    assert last_confirmed(site.journal, CLUSTER) == {}


def test_a_node_that_the_plan_of_its_run_does_not_have_is_not_known(site: Site) -> None:
    """A plan and an order are of one run, but they come from a database that others can write to."""
    site.apply()
    less = replace(SMALL, nodes={"n1": SMALL.nodes["n1"]}, waves=SMALL.waves[:1])
    before = site.journal.header("r1")
    order = encode_order(replace(replay(site.journal, "r1").order, run="r9"))
    site.journal.begin(replace(before, run="r9", order=order, plan=plan_codec.encode(less)))
    with leased(site.journal, CLUSTER, "r9"):
        site.journal.append("r9", site.journal.events("r1"))
    assert {name: known.run for name, known in last_confirmed(site.journal, CLUSTER).items()} == {"n1": "r9"}


def test_later_rollbacks_of_a_run_are_known_with_their_nodes(site: Site) -> None:
    site.apply()
    assert rolled_back_since(site.journal, "r1") == {}
    site.roll_back("r1", ("n1",))
    site.roll_back("r1", ("n2", "n3"))
    since = rolled_back_since(site.journal, "r1")
    assert {run: sorted(names) for run, names in since.items()} == {"r2": ["n1"], "r3": ["n2", "n3"]}
    assert list(since) == ["r2", "r3"]
    assert rolled_back_since(site.journal, "r2") == {}
    assert next(iter(since_lines(since))) == "  since then run r2 rolled it back on 1 node (n1)"


def ordered(site: Site, run: str) -> set[str]:
    """The nodes that another rollback of the run would revert."""
    state, since = replay(site.journal, run), since_run(site.journal, run)
    return set(rollback_order(state, "r9", frozenset(NAMES), fleet(), SMALL.limits, since, force=False).nodes)


def test_nodes_that_are_rolled_back_are_in_no_later_order(site: Site) -> None:
    site.apply()
    assert ordered(site, "r1") == set(NAMES)
    site.roll_back("r1", ("n1",))
    assert ordered(site, "r1") == {"n2", "n3"}
    site.roll_back("r1", ("n2", "n3"))
    assert ordered(site, "r1") == set()


def test_nodes_that_a_rollback_would_meet_otherwise_are_left_out_with_the_reason(site: Site) -> None:
    site.apply()
    state = replay(site.journal, "r1")
    since = SinceRun(on_top={"r2": ("n1",)}, in_part=frozenset({"n1", "n2"}), restored=frozenset({"n3"}))

    def left_out(*, force: bool) -> list[tuple[str, str, str]]:
        order = rollback_order(state, "r9", None, fleet(), SMALL.limits, since, force=force)
        assert set(order.nodes) == ({"n1", "n2"} if force else set())
        return [(each.what, each.nodes, each.reason) for each in order.left_out]

    written = "it is reverted there, but the forced revert of a newer run wrote its files again; only a new plan can change them"
    below = "newer runs changed its files; first `rollout rollback r2`"
    in_part = "an older run was reverted under run r1; --force writes the bytes that r1 met into these files too"
    always = [("written again", "n3", written)]
    assert left_out(force=True) == always
    assert left_out(force=False) == [*always, ("below a newer run", "n1", below), ("reverted in part", "n2", in_part)]


def test_nodes_that_a_rollback_found_untouched_are_not_claimed_again(site: Site) -> None:
    """Of a run that lost its controller before it reached them: it claims them until a rollback has released them."""
    site.killed("n1", Verb.APPLY)
    assert ordered(site, "r1") == set(NAMES)
    site.roll_back("r1")
    assert ordered(site, "r1") == set()
