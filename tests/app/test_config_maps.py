"""The ConfigMap of a run: what a plan writes into it, that it is never written over others, and that a rollback restores it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.after_run import afterwards
from rollout.app.backends import Backends
from rollout.app.config_map_restores import (
    ReadRuns,
    RestoreOfRuns,
    to_restore,
    to_restore_of,
    to_restore_together,
)
from rollout.app.config_maps import put, with_config_map
from rollout.app.following import has_acted, replay
from rollout.app.plan import build_plan
from rollout.app.ports import Journal, Worker
from rollout.app.rollbacks import NOTHING_SINCE, rollback_order
from rollout.app.run_changes import change_of
from rollout.app.run_list import listed_runs
from rollout.app.runs import Tools, resume, start_apply, start_revert, with_pending_recovery
from rollout.core.model.config_map import ConfigMapChange, ConfigMapOutcome
from rollout.core.model.plan import ExcludedNode, Plan, Standing, WantedSetting
from rollout.core.model.settings import Value
from rollout.core.plans import plan_codec
from rollout.core.plans.plan_json import PlanDocument
from rollout.core.plans.plan_markdown import plan_markdown
from rollout.core.plans.plan_text import plan_text
from rollout.core.presentation.run_list import run_lines
from rollout.core.presentation.summary import exit_code, summarize
from rollout.core.presentation.summary_text import summary_lines
from rollout.core.run.commands import Command, PutConfigMap
from rollout.core.run.state import Ending, RunState
from rollout.errors import Place, StateError
from rollout.features.approvals.rules import ApprovalRule
from tests.app.fake_config_maps import KUBELET, FakeConfigMaps
from tests.app.site import ACCESS, SMALL, KilledError, Site, fleet
from tests.documents import as_printed
from tests.features.export.test_kubeadm_patches import FOUND, NAMES, plan
from tests.kubelet.nodes import POLICY, kubeadm, settings
from tests.kubelet.nodes import fleet as fleet_of

NEW = KUBELET.replace("serializeImagePulls: true", "serializeImagePulls: false")
CHANGE = ConfigMapChange("kube-system", "kubelet-config", "kubelet", KUBELET, NEW, "uid-1")


@dataclass
class Time:
    at: float = 0.0

    def now(self) -> float:
        self.at += 0.1
        return self.at

    def wall(self) -> str:
        return ""

    def wait(self, seconds: float) -> None:
        self.at += seconds


def done(
    config_maps: FakeConfigMaps,
    change: ConfigMapChange = CHANGE,
    *,
    void: bool = False,
    holds: Callable[[], bool] = lambda: True,
) -> Any:
    clock = Time()
    return put(change, config_maps, clock, clock.wait, holds, void=void)


# The write.


def test_it_is_written_and_read_back() -> None:
    found = FakeConfigMaps()
    answer = done(found)
    assert (answer.outcome, answer.digest) == (ConfigMapOutcome.WRITTEN, CHANGE.digest_after)
    assert (found.text, found.writes) == (NEW, [NEW])


def test_a_write_of_others_in_between_is_met_by_its_version_and_left_alone() -> None:
    found = FakeConfigMaps()
    theirs = KUBELET.replace("110", "90")

    def others() -> None:
        found.before_write = lambda: None
        found.text = theirs

    found.before_write = others
    answer = done(found)
    assert (answer.outcome, answer.reference, found.text) == (ConfigMapOutcome.CHANGED, "config-map-changed", theirs)
    assert "it differs in maxPods: 110 → 90" in answer.message


def test_a_write_beside_the_text_does_not_keep_it_from_being_written() -> None:
    found = FakeConfigMaps()

    def others() -> None:
        found.before_write = lambda: None
        found.version += 1

    found.before_write = others
    assert done(found).outcome is ConfigMapOutcome.WRITTEN
    assert found.writes == [NEW]


def test_one_that_has_the_new_text_is_not_written_again() -> None:
    found = FakeConfigMaps()
    found.text = NEW
    assert (done(found).outcome, found.writes) == (ConfigMapOutcome.WRITTEN, [])


def test_a_deleted_one_is_not_made_again() -> None:
    found = FakeConfigMaps()
    del found.data["kubelet-config"]
    answer = done(found)
    assert (answer.outcome, answer.message) == (ConfigMapOutcome.CHANGED, "it does not exist any more")


def test_an_api_server_that_answers_late_is_asked_again_for_a_bounded_time() -> None:
    assert done(FakeConfigMaps(away=3)).outcome is ConfigMapOutcome.WRITTEN
    clock, found = Time(), FakeConfigMaps(away=1000)
    answer = put(CHANGE, found, clock, clock.wait, lambda: True)
    assert (answer.outcome, answer.reference) == (ConfigMapOutcome.UNANSWERED, "timeout")
    assert clock.at < 30


def test_a_missing_right_is_not_asked_for_again() -> None:
    clock, found = Time(), FakeConfigMaps(forbidden=True)
    assert put(CHANGE, found, clock, clock.wait, lambda: True).reference == "forbidden"
    assert clock.at < 1


def test_a_frozen_controller_cannot_write_after_the_rollback() -> None:
    """It has read the old text. The rollback finds that text too, so it has nothing to write; the late write must fail."""
    found = FakeConfigMaps()
    read = found.read("kube-system", "kubelet-config", 1.0)
    assert read is not None
    assert done(found, CHANGE.undone, void=True).outcome is ConfigMapOutcome.WRITTEN
    with pytest.raises(Exception, match="modified"):
        found.write(read, "kubelet", NEW, 1.0)
    assert found.text == KUBELET


@pytest.mark.parametrize("frozen", ["before its read", "between read and write"])
def test_a_frozen_controller_that_wakes_up_after_the_rollback_writes_nothing(frozen: str) -> None:
    """It reads again after the conflict, and finds the old text. Its lease is another controller's by then."""
    found, leases = FakeConfigMaps(), ["r1"]

    def roll_back() -> None:
        found.before_write = lambda: None
        leases[:] = ["r2"]
        assert done(found, CHANGE.undone, void=True).outcome is ConfigMapOutcome.WRITTEN

    if frozen == "before its read":
        roll_back()
    found.before_write = roll_back
    answer = done(found, holds=lambda: leases == ["r1"])
    assert (answer.outcome, answer.reference, found.text) == (ConfigMapOutcome.UNANSWERED, "lease-lost", KUBELET)
    assert found.writes == []


@pytest.mark.parametrize("void", [False, True])
@pytest.mark.parametrize("text", [KUBELET, NEW])
def test_the_same_text_in_another_cluster_is_left_alone(text: str, void: bool) -> None:
    found = FakeConfigMaps(uid="of another cluster")
    found.text = text
    answer = done(found, CHANGE.undone if void else CHANGE, void=void)
    assert (answer.outcome, answer.reference) == (ConfigMapOutcome.CHANGED, "config-map-changed")
    assert "another cluster" in answer.message
    assert (found.text, found.version) == (text, 8)


@pytest.mark.parametrize("why", ["forbidden", "http-422"])
def test_one_that_may_be_read_only_is_refused_at_once_with_its_text(why: str) -> None:
    """A missing right to patch, and an immutable one."""
    clock, found = Time(), FakeConfigMaps(refuses=why)
    answer = put(CHANGE, found, clock, clock.wait, lambda: True)
    assert (answer.outcome, answer.digest) == (ConfigMapOutcome.REFUSED, CHANGE.digest_before)
    assert answer.reference == "config-map-refused"
    assert answer.message == f"it could not be written: not so [{why}]"
    assert clock.at < 1


@pytest.mark.parametrize("why", ["forbidden", "http-422"])
def test_one_that_has_the_old_text_is_restored_though_nobody_may_write_it(why: str) -> None:
    """What an apply could not write, a rollback need not restore: no write of that apply can come later."""
    found = FakeConfigMaps(refuses=why)
    answer = done(found, CHANGE.undone, void=True)
    assert (answer.outcome, answer.digest) == (ConfigMapOutcome.WRITTEN, CHANGE.digest_before)


UPGRADED = "apiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\nkubernetesVersion: v1.24.17\n"
OLDER = replace(CHANGE, name="kubelet-config-1.23")


def upgraded(text: str) -> FakeConfigMaps:
    """kubeadm has upgraded the control plane from 1.23: it made a ConfigMap of the new name and left the old one."""
    data = {"kubeadm-config": {"ClusterConfiguration": UPGRADED}, "kubelet-config": {"kubelet": text}}
    return FakeConfigMaps({**data, OLDER.name: {"kubelet": text}})


def test_after_an_upgrade_that_renames_it_nothing_is_written_under_the_old_name() -> None:
    found = upgraded(KUBELET)
    answer = done(found, OLDER)
    assert (answer.outcome, answer.reference) == (ConfigMapOutcome.CHANGED, "config-map-renamed")
    assert "kubeadm reads kubelet-config now: the control plane is of v1.24.17" in answer.message
    assert (found.writes, found.text) == ([], KUBELET)


def test_a_renamed_one_is_said_so_without_the_right_to_read_the_new_one() -> None:
    """The rights are for the name of the plan."""
    found = upgraded(KUBELET)
    found.unreadable = frozenset({"kubelet-config"})
    answer = done(found, OLDER)
    assert (answer.outcome, answer.reference) == (ConfigMapOutcome.CHANGED, "config-map-renamed")
    assert "kubeadm reads kubelet-config now" in answer.message


def test_a_rollback_after_such_an_upgrade_restores_it_and_says_what_the_new_one_has() -> None:
    """kubeadm has made the new one of the old one, with the settings of the run."""
    found = upgraded(NEW)
    answer = done(found, OLDER.undone, void=True)
    assert (answer.outcome, answer.reference) == (ConfigMapOutcome.CHANGED, "config-map-renamed")
    assert "it is restored, but kubeadm reads kubelet-config now" in answer.message
    assert "serializeImagePulls: true → false" in answer.message
    assert (found.writes, found.text) == ([KUBELET], NEW)


def test_a_cluster_without_a_known_version_is_not_written_and_stays_pending() -> None:
    found = upgraded(KUBELET)
    found.data["kubeadm-config"]["ClusterConfiguration"] = "a: [1"
    answer = done(found, OLDER)
    assert (answer.outcome, found.writes) == (ConfigMapOutcome.UNANSWERED, [])
    assert "kubeadm-config" in answer.message


def test_without_an_answer_to_the_write_it_is_not_said_to_be_unread() -> None:
    clock, found = Time(), FakeConfigMaps(refuses="timeout")
    answer = put(CHANGE, found, clock, clock.wait, lambda: True)
    assert (answer.outcome, answer.reference) == (ConfigMapOutcome.UNANSWERED, "timeout")
    assert "could not be written" in answer.message


# The plan.


def planned(config_maps: FakeConfigMaps | None = None, made: Plan | None = None, **words: Any) -> Plan:
    made = made or plan(serializeImagePulls=False)
    given = words.get("given") or dict.fromkeys(FOUND.nodes, settings(skip=(), serializeImagePulls=False))
    live = words.get("live", [Named(name) for name in NAMES])
    return with_config_map(made, FOUND, given, live, config_maps or FakeConfigMaps())


@dataclass(frozen=True)
class Named:
    name: str


def old_plan(**wanted: Value) -> Plan:
    """For dockershim, where the deadline is a flag of the kubelet."""
    nodes = {name: kubeadm(name, "1.20.15") for name in NAMES}
    return build_plan(
        FOUND, POLICY, fleet_of(FOUND, nodes), dict.fromkeys(NAMES, settings(skip=(), **wanted)), NAMES, ""
    )


def left_out(found: Plan) -> str:
    assert found.config_map is None
    return next(each.text for each in found.remarks if each.reference == "config-map-left-out")


def test_a_plan_has_its_bytes_under_its_digest_and_shows_its_diff() -> None:
    found = planned()
    assert found.config_map == CHANGE
    assert "kubeadm-rewrites" not in {each.reference for each in found.remarks}, "the next upgrade keeps the change"
    again = plan_codec.decode(plan_codec.encode(found), "p.json")
    assert again.config_map == CHANGE
    assert plan_codec.digest(found) != plan_codec.digest(replace(found, config_map=None))
    for text in (plan_text(found), plan_markdown(found, "d")):
        assert "+serializeImagePulls: false" in text
        assert "ConfigMap kube-system/kubelet-config, key kubelet" in text
    assert as_printed(PlanDocument("p.json", found))["configMap"]["after"] == CHANGE.digest_after


def test_only_the_whole_cluster_with_one_value_has_one() -> None:
    made = plan(serializeImagePulls=False)
    assert "a part of the cluster" in left_out(planned(made=replace(made, limit="@rack1")))
    assert "does not list 1 Node" in left_out(planned(live=[Named(name) for name in (*NAMES, "stranger")]))
    assert "did not list its Nodes" in left_out(planned(live=None))
    differ = {name: settings(skip=(), maxPods=60 + at) for at, name in enumerate(FOUND.nodes)}
    assert "different settings" in left_out(planned(given=differ))
    flag = old_plan(imagePullProgressDeadline="5m")
    assert "no field of a KubeletConfiguration" in left_out(planned(made=flag))


def test_a_plan_that_leaves_out_a_node_has_none_because_that_node_gets_the_text_too() -> None:
    """The old kubelet of one node would not start with the gate."""
    versions = dict(zip(NAMES, ("1.20.15", "1.23.17", "1.23.17"), strict=True))
    nodes = {name: kubeadm(name, version) for name, version in versions.items()}
    given = dict.fromkeys(NAMES, settings(skip=(), featureGates={"MemoryQoS": True}))
    made = build_plan(FOUND, POLICY, fleet_of(FOUND, nodes), given, NAMES, "")
    said = left_out(planned(made=made, given=given))
    assert (
        f"the plan leaves out nodes, and kubeadm gives the same text to them: {NAMES[0]} [kubelet-would-not-start]"
        in said
    )
    away = replace(plan(serializeImagePulls=False), left=tuple(ExcludedNode(name, "", standing, reference, "") for name, standing, reference in (
        ("n1", Standing.UNREACHABLE, "timeout"), ("n2", Standing.UNREACHABLE, "timeout"), ("n3", Standing.SKIPPED, "cordoned"),
        ("n4", Standing.AS_WANTED, "unchanged"),
    )))  # fmt: skip
    assert left_out(planned(made=away)).endswith("n[1-2] [timeout], n3 [cordoned]")


def test_a_cluster_that_kubeadm_did_not_make_has_none() -> None:
    assert "kubeadm did not make it" in left_out(planned(FakeConfigMaps(data={})))
    assert "[forbidden]" in left_out(planned(FakeConfigMaps(forbidden=True)))
    unsafe = FakeConfigMaps()
    unsafe.text = "a: 1\n"
    assert "not a KubeletConfiguration" in left_out(planned(unsafe))


def test_a_setting_without_a_place_there_is_named() -> None:
    made = old_plan(imagePullProgressDeadline="5m", serializeImagePulls=False)
    given = dict.fromkeys(FOUND.nodes, settings(skip=(), imagePullProgressDeadline="5m", serializeImagePulls=False))
    found = planned(made=made, given=given)
    assert found.config_map is not None
    said = next(each.text for each in found.remarks if each.reference == "config-map-in-part")
    assert "no place for imagePullProgressDeadline" in said


RULE = ApprovalRule(Place("p.yaml", 1, 1), 2, "keys/signers")


def as_wanted(**wanted: Value) -> tuple[Plan, dict[str, Any]]:
    """A plan that changes no node: each has the settings."""
    config = KUBELET.replace("serializeImagePulls: true", "serializeImagePulls: false\nnodeStatusUpdateFrequency: 60s")
    nodes = {name: kubeadm(name, "1.33.4", "containerd", config=config) for name in NAMES}
    given = dict.fromkeys(NAMES, settings(skip=(), **wanted))
    made = build_plan(FOUND, POLICY, fleet_of(FOUND, nodes), given, NAMES, "")
    assert {each.standing for each in made.left} == {Standing.AS_WANTED}
    return made, {"given": given}


def test_where_each_node_has_the_settings_and_the_config_map_has_not_it_is_planned() -> None:
    made, words = as_wanted(serializeImagePulls=False)
    found = planned(made=made, **words)
    assert (found.nodes, found.config_map, found.has_work) == ({}, CHANGE, True)
    for text in (plan_text(found), plan_markdown(found, "d")):
        assert "+serializeImagePulls: false" in text
    assert "Only the ConfigMap is written." in plan_text(found)
    assert "needs 2 approvals" in plan_text(replace(found, conditions=(RULE,)))


def test_where_both_have_them_already_there_is_nothing_to_do() -> None:
    """Also in other words: a kubelet reads 60s and 1m0s as the same."""
    made, words = as_wanted(serializeImagePulls=False, nodeStatusUpdateFrequency="60s")
    already = FakeConfigMaps()
    already.text = f"{NEW}nodeStatusUpdateFrequency: 1m0s\n"
    found = planned(already, made, **words)
    assert (found.config_map, found.has_work) == (None, False)


def test_a_setting_that_some_node_may_have_skipped_is_not_planned_without_a_changed_node() -> None:
    made, _ = as_wanted(serializeImagePulls=False)
    given = dict.fromkeys(NAMES, settings(skip=("serializeImagePulls",), serializeImagePulls=False))
    assert "`ifUnsupported: skip`" in left_out(planned(made=made, given=given))


def test_one_that_has_the_values_already_is_not_part_of_the_plan() -> None:
    already = FakeConfigMaps()
    already.text = NEW
    found = planned(already)
    assert (found.config_map, {each.reference for each in found.remarks} & {"config-map-left-out"}) == (None, set())


# Whole runs over agents in memory, with a real journal.


@dataclass
class Here(Site):
    """A site with an API server. ``dies``: the controller is killed before its request, or after it."""

    config_maps: FakeConfigMaps = field(default_factory=FakeConfigMaps)
    dies: str = ""

    def submit(self, worker: Worker, command: Command) -> None:
        if isinstance(command, PutConfigMap) and self.dies == "before":
            raise KilledError
        super().submit(worker, command)
        if isinstance(command, PutConfigMap) and self.dies == "after":
            raise KilledError

    def tools(self) -> Tools:
        return replace(super().tools(), backends=Backends(config_maps=self.config_maps, wait=lambda _: None))

    def apply(self) -> RunState:
        return start_apply(replace(SMALL, config_map=CHANGE), ACCESS, self.tools())

    def roll_back(self, run: str, names: object = None) -> RunState:
        state = replay(self.journal, run)
        since = replace(NOTHING_SINCE, config_map=to_restore(self.journal, state))
        order = rollback_order(state, self._new_run(), None, fleet(), SMALL.limits, since, force=False)
        return start_revert(order, state.counter + 1, ACCESS, self.tools())


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    journal = SqlJournal(tmp_path)
    yield Here(journal)
    journal.close()


def test_a_run_writes_it_and_its_rollback_restores_it(here: Here) -> None:
    assert exit_code(here.apply()) == 0
    assert here.config_maps.text == NEW
    assert exit_code(here.roll_back("r1")) == 0
    assert here.config_maps.text == KUBELET
    assert to_restore(here.journal, replay(here.journal, "r1")) is None, "once is enough"


def test_a_run_without_nodes_writes_it_and_its_rollback_restores_it(here: Here) -> None:
    """The fleet is right already."""
    made = replace(SMALL, nodes={}, waves=(), groups=(), config_map=CHANGE)
    state = start_apply(made, ACCESS, here.tools())
    assert (exit_code(state), here.config_maps.text) == (0, NEW)
    assert has_acted(here.journal, "r1"), "its approvals are used"
    assert exit_code(here.roll_back("r1")) == 0
    assert here.config_maps.text == KUBELET


def test_an_emergency_restores_what_a_newer_run_without_nodes_wrote(here: Here) -> None:
    """No node has a receipt of it. What came before the oldest run that is reverted stays."""
    start_apply(replace(SMALL, config_map=CHANGE), ACCESS, here.tools())
    later = replace(CHANGE, before=NEW, after="later")
    start_apply(replace(SMALL, nodes={}, waves=(), groups=(), config_map=later), ACCESS, here.tools())
    cluster = SMALL.cluster
    both = to_restore_of(here.journal, cluster, ("r1",))
    assert both == RestoreOfRuns(replace(CHANGE, before="later", after=KUBELET), ())
    assert to_restore_of(here.journal, cluster, ("r2",)).change == later.undone
    assert to_restore_of(here.journal, cluster, ("r9",)) == RestoreOfRuns(None, ("r9",))


def nodeless(change: ConfigMapChange) -> Plan:
    return replace(SMALL, nodes={}, waves=(), groups=(), config_map=change)


LATER = replace(CHANGE, before=NEW, after=NEW.replace("110", "200"))


def test_a_rollback_restores_what_newer_runs_without_nodes_wrote_over_it(here: Here) -> None:
    here.apply()
    start_apply(nodeless(LATER), ACCESS, here.tools())
    assert here.config_maps.text == LATER.after
    assert (exit_code(here.roll_back("r1")), here.config_maps.text) == (0, KUBELET)
    for run in ("r1", "r2"):
        assert to_restore(here.journal, replay(here.journal, run)) is None, "both are restored"


def test_the_newer_run_alone_can_be_restored_first(here: Here) -> None:
    here.apply()
    start_apply(nodeless(LATER), ACCESS, here.tools())
    assert (exit_code(here.roll_back("r2")), here.config_maps.text) == (0, NEW)
    assert (exit_code(here.roll_back("r1")), here.config_maps.text) == (0, KUBELET)


def test_what_a_newer_run_with_nodes_wrote_over_it_is_not_undone(here: Here) -> None:
    """That run is rolled back by itself. Nor is a run without nodes on top of it."""
    here.apply()
    start_apply(replace(SMALL, config_map=LATER), ACCESS, here.tools())
    top = replace(LATER, before=LATER.after, after="top")
    start_apply(nodeless(top), ACCESS, here.tools())
    assert to_restore(here.journal, replay(here.journal, "r1")) == CHANGE.undone


def told(here: Here, run: str) -> str:
    state = replay(here.journal, run)
    return "\n".join(summary_lines(summarize(state), afterwards(here.journal, state, 10.0)))


def test_a_run_and_the_list_of_runs_say_that_its_config_map_is_restored(here: Here) -> None:
    wanted = (WantedSetting("serializeImagePulls", "false", ""),)
    start_apply(replace(nodeless(CHANGE), wanted=wanted), ACCESS, here.tools())
    assert "kubelet-config: written, and read back" in told(here, "r1")
    here.roll_back("r1")
    assert "kubelet-config: since then run r2 restored it" in told(here, "r1")
    assert "written" not in told(here, "r1")
    listed = "\n".join(run_lines(tuple(listed_runs(here.journal)), 10.0))
    assert "run r1 on c by me@here: done, rolled back" in listed
    assert "changes: serializeImagePulls: false (playbook p)" in listed
    assert "rolled back by run r2\n" in f"{listed}\n"
    assert "changes: serializeImagePulls (rolls back run r1)" in listed
    assert "not recorded" not in listed


def test_a_rollback_over_several_runs_without_nodes_names_them_and_no_restored_one(here: Here) -> None:
    start_apply(nodeless(CHANGE), ACCESS, here.tools())
    start_apply(nodeless(LATER), ACCESS, here.tools())
    here.roll_back("r2")
    start_apply(nodeless(LATER), ACCESS, here.tools())
    here.roll_back("r1")
    reverts = {run: change_of(here.journal, here.journal.header(run)).reverts for run in ("r3", "r5")}
    assert reverts == {"r3": ("r2",), "r5": ("r4", "r1")}


def test_one_that_is_restored_under_its_old_name_is_not_told_as_still_to_be_restored(here: Here) -> None:
    """Nor does each later rollback carry it again. The exit code stays: kubeadm reads another one, which has the settings."""
    older = {
        "kubeadm-config": {"ClusterConfiguration": UPGRADED.replace("1.24", "1.23")},
        OLDER.name: {"kubelet": KUBELET},
    }
    here.config_maps = FakeConfigMaps(older)
    start_apply(replace(SMALL, config_map=OLDER), ACCESS, here.tools())
    here.config_maps.data |= upgraded(NEW).data
    assert exit_code(here.roll_back("r1")) == 4
    assert older[OLDER.name]["kubelet"] == KUBELET
    assert "kubelet-config-1.23: it is restored, but kubeadm reads kubelet-config now" in told(here, "r2")
    assert "not restored" not in told(here, "r2")
    assert to_restore(here.journal, replay(here.journal, "r1")) is None


@dataclass
class Counted:
    """A journal that counts how often the events of each run are read."""

    journal: Journal
    read: Counter[str] = field(default_factory=Counter)

    def events(self, run: str, after: int = 0) -> tuple[str, ...]:
        self.read[run] += 1
        return self.journal.events(run, after)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.journal, name)


def counted(here: Here) -> Any:
    return Counted(here.journal)


def test_a_run_with_a_config_map_is_replayed_once_if_its_summary_leaves_its_end_open(here: Here) -> None:
    """A replay takes long with thousands of nodes, and an emergency waits for this for seconds only."""
    here.apply()
    start_apply(nodeless(LATER), ACCESS, here.tools())
    start_apply(SMALL, ACCESS, here.tools())
    here.config_maps.forbidden = True
    start_apply(nodeless(replace(LATER, before=LATER.after, after="top")), ACCESS, here.tools())
    journal = counted(here)
    known = ReadRuns()
    for _ in range(3):
        found = to_restore_of(journal, SMALL.cluster, ("r1", "r3"), known)
        assert found == RestoreOfRuns(replace(CHANGE, before="top", after=KUBELET), ())
    assert journal.read == {"r4": 1}


def test_a_status_replays_no_other_run(here: Here) -> None:
    """Neither the rollbacks of a run nor newer runs with a ConfigMap: thousands of nodes each would take seconds."""
    here.apply()
    start_apply(nodeless(LATER), ACCESS, here.tools())
    here.roll_back("r1")
    here.apply()
    halted = here.config_maps.forbidden = True
    start_apply(replace(SMALL, config_map=LATER), ACCESS, here.tools())
    here.config_maps.forbidden = not halted
    for run in ("r1", "r2", "r4", "r5"):
        state, journal = replay(here.journal, run), counted(here)
        after = afterwards(journal, state, 10.0)
        assert after.config_map_restored_by == ("r3" if run in ("r1", "r2") else "")
        assert after.rolled_back == ({"r3": ("n1", "n2", "n3")} if run == "r1" else {"r3": ()} if run == "r2" else {})
        assert after.followed_by == ("" if run == "r5" else "r5")
        assert journal.read == {}


def test_a_list_of_runs_replays_no_run_that_ended(here: Here) -> None:
    """Also where runs without nodes have a ConfigMap that a later rollback has restored."""
    start_apply(nodeless(CHANGE), ACCESS, here.tools())
    start_apply(nodeless(LATER), ACCESS, here.tools())
    here.roll_back("r1")
    here.apply()
    journal = counted(here)
    back = {each.run: each.rolled_back for each in listed_runs(journal)}
    assert {run: bool(each) for run, each in back.items()} == {"r1": True, "r2": True, "r3": False, "r4": False}
    assert journal.read == {}


def test_a_rollback_leaves_what_others_wrote_since_and_says_how_it_differs(here: Here) -> None:
    here.apply()
    here.config_maps.text = theirs = NEW.replace("110", "90")
    state = here.roll_back("r1")
    assert (exit_code(state), here.config_maps.text) == (4, theirs)
    assert "maxPods: 110 → 90" in state.config_map.message


@pytest.mark.parametrize("dies", ["before", "after"])
def test_kill_9_between_the_journal_and_the_write(here: Here, dies: str) -> None:
    """The journal says that it was asked for. What the API server has then is read, and counts."""
    here.dies = dies
    with pytest.raises(KilledError):
        here.apply()
    here.answers, here.dies = [], ""
    state = replay(here.journal, "r1")
    assert (state.config_map.sent, state.config_map.outcome) == (True, None)
    assert (here.config_maps.text == NEW) is (dies == "after")
    assert exit_code(here.resume("r1")) == 0
    assert (here.config_maps.text, here.config_maps.writes) == (NEW, [NEW])


@pytest.mark.parametrize("dies", ["before", "after"])
def test_a_rollback_instead_of_a_resume_has_the_old_text_in_the_end(here: Here, dies: str) -> None:
    here.dies = dies
    with pytest.raises(KilledError):
        here.apply()
    here.answers, here.dies = [], ""
    assert exit_code(here.roll_back("r1")) == 0
    assert here.config_maps.text == KUBELET


def test_what_an_emergency_leaves_pending_is_done_by_recover(here: Here) -> None:
    """An emergency asks no API server: ``Backends()`` has none."""
    here.apply()
    state = replay(here.journal, "r1")
    order = rollback_order(state, "r2", None, fleet(), SMALL.limits, force=False)
    order = replace(order, config_map=to_restore(here.journal, state))
    ended = start_revert(order, state.counter + 1, ACCESS, replace(here.tools(), backends=Backends()))
    assert (ended.ending, exit_code(ended), here.config_maps.text) == (Ending.DONE, 4, NEW)
    assert ended.config_map.reference == "no-endpoint"
    assert exit_code(resume(with_pending_recovery(here.journal, "r2"), ACCESS, here.tools())) == 0
    assert here.config_maps.text == KUBELET
    with pytest.raises(StateError, match="no pending recovery"):
        with_pending_recovery(here.journal, "r2")


def test_several_runs_are_restored_together_as_far_as_they_follow_one_another() -> None:
    first, second = CHANGE, replace(CHANGE, before=NEW, after="newest")
    assert to_restore_together([second.undone, first.undone]) == replace(CHANGE, before="newest", after=KUBELET)
    apart = replace(CHANGE, after="another")
    assert to_restore_together([second.undone, apart.undone]) == second.undone
    assert to_restore_together([]) is None
