"""What ``rollout plan`` prints: exact, folded, and short whatever the size of the fleet."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.app.plan import build_plan
from rollout.core.model.gates import Gate, GateScope
from rollout.core.model.plan import ExcludedNode, Plan, Standing
from rollout.core.model.playbook import Budget, Cause, Limits, RevertTimes, Scope, Share, SoakData
from rollout.core.plans import estimate, plan_codec
from rollout.core.plans.change_text import kinds
from rollout.core.plans.plan_json import PlanDocument
from rollout.core.plans.plan_text import folded_left, gates_text, plan_text
from rollout.gates.agent_checks.query import AgentCheck
from rollout.gates.alertmanager.query import AlertQuery
from rollout.gates.command.query import CommandQuery
from rollout.gates.page.query import HttpQuery
from rollout.gates.prometheus.query import PrometheusQuery, Worse
from tests.documents import as_printed
from tests.kubelet.nodes import IMAGE_PULLS, POLICY, fleet, inventory, kubeadm, mixed, settings


def plan_of(count: int, per_rack: int = 60) -> Plan:
    found = inventory(count, per_rack)
    return build_plan(found, POLICY, mixed(found), dict.fromkeys(found.nodes, IMAGE_PULLS), tuple(found.nodes), "")


def test_the_whole_text_of_a_small_plan() -> None:
    found = inventory(3)
    names = list(found.nodes)
    nodes = {
        names[0]: kubeadm(names[0]),
        names[1]: kubeadm(names[1]),
        names[2]: kubeadm(names[2], runtime="containerd"),
    }
    wanted = settings(imagePullProgressDeadline="5m", serializeImagePulls=False)
    plan = build_plan(found, POLICY, fleet(found, nodes), dict.fromkeys(names, wanted), tuple(names), "@rack01")
    assert (
        plan_text(plan)
        == """\
Plan for rno: playbook image-pulls, nodes read 2026-11-20 16:00:00 UTC, limit @rack01
2 nodes to change, 0 as wanted, 1 refused, 0 unreachable

g1  kubelet 1.20.15, dockershim, kubeadm layout (deb): 2 nodes  tess-node-[0001-0002]
    serializeImagePulls: true → false (playbook image-pulls)
      --- /var/lib/kubelet/config.yaml
      +++ /var/lib/kubelet/config.yaml
      @@ -21,4 +21,4 @@
       kind: KubeletConfiguration
       rotateCertificates: true
      -serializeImagePulls: true
      +serializeImagePulls: false
       staticPodPath: /etc/kubernetes/manifests
    --image-pull-progress-deadline: not set → 5m (playbook image-pulls)
      --- /dev/null
      +++ /etc/default/kubelet
      @@ -0,0 +1 @@
      +KUBELET_EXTRA_ARGS="--image-pull-progress-deadline=5m"
    then: restart kubelet.service (restart-kubelet)

Side effects
  g1: 2 nodes: any number of pulls may start at once on a node, and registryBurst is 10: pulls beyond it and 5 a second fail at once with `pull QPS exceeded`; they do not wait [pull-qps]
  g1: 2 nodes: pods with a readiness probe are NotReady until the probe passes again (kubernetes #78733); the node counts as unavailable for 20 s [readiness-flap]
  g1: 2 nodes: the Node can be NotReady for up to 10 s (kubernetes #122338) [not-ready-flip]
  g1: 2 nodes: image and crash back-offs are reset: all waiting images are pulled at once, within the kubelet's limits [back-offs-emptied]
  g1: 2 nodes: exec, attach, logs -f and port-forward through this kubelet end [sessions-break]
  known defects: dockershim-verify-cut no longer applies; kubelet-init-devices-rejected may apply (pods of the kind devices not known); kubelet-negative-grace-waits stays; `rollout explain NAME` describes each [known-defects-kept]

Registries, at most
  all registries: pulls at once 3 → no bound on 2 nodes, 1 for the others; pulls a second 15 (3 nodes)

Waves
  1  canary: 1 node, about 2 min 50 s including 60 s soak  tess-node-0001
     halts at the 1st failed node in this wave (budget 2 % of 1); smallest harm noticed: on 1 of 1 node by unit, process, healthz, effectiveConfig
  2  1 per rack: 1 node, about 1 min 35 s including 60 s soak  tess-node-0002
     halts at the 1st failed node in this wave (budget 2 % of 1); smallest harm noticed: on 1 of 1 node by unit, process, healthz, effectiveConfig

Limits
  halts at the 2nd failed node in a rack (budget 2)
  halts at the 1st failed node in the fleet (budget 1 % of 2)
  at most 1 node of a rack unavailable at once (limit 5 %); 100 in flight; 10 restarts/s
  gates of each node: unit, process, healthz, effectiveConfig; of each wave: none; each must pass 3 times in a row during the soak
  the first wave (canary) is reverted once for real, then changed again
  on a halt, reverts: wave; a node not confirmed within 2 min reverts itself

Warnings
  2 nodes  tess-node-[0001-0002]: the next `kubeadm upgrade node` rewrites /var/lib/kubelet/config.yaml from the ConfigMap, without this change; `rollout export kubeadm` prints the patch that keeps it [kubeadm-rewrites]
  pod re-admission not checked: no kubeconfig is named [pods-not-foreseen]

Left alone
  refused: 1 node  tess-node-0003
     imagePullProgressDeadline: image_pull_progress_timeout exists from containerd 1.7.0; an older one ignores it and pulls without a limit [setting-unsupported]

About 4 min 25 s in all. Each wave takes max(nodes ÷ pace, rounds × one node's time) + soak; one node takes 15 s and its settle window
Emergency rollback of all of it: about 45 s (20 s per node, not yet rehearsed)
"""
    )


@pytest.mark.no_cover
def test_two_thousand_nodes_fit_on_one_long_screen_and_the_text_says_what_is_left_out() -> None:
    made = plan_of(2000)
    text = plan_text(made)
    assert len(text.splitlines()) < 78
    assert "(playbook image-pulls)  /etc/default/kubelet (new): +1 −0 lines\n" in text
    assert "(playbook image-pulls)  /etc/sysconfig/kubelet: +1 −1 lines\n" in text
    assert "@@" not in text
    files = sum(len(kind.first.change.files) for kind in kinds(made))
    assert f"\n… {files} diffs not shown: see them with -v\n" in text


@pytest.mark.no_cover
def test_the_whole_text_of_two_thousand_nodes() -> None:
    text = plan_text(plan_of(2000), whole=True)
    assert "not shown" not in text
    assert len(text.splitlines()) < 120
    assert max(map(len, text.splitlines())) < 420
    assert "/var/lib/kubelet/config.yaml: the same lines as in g1" in text
    assert "halts at the 29th failed node in this wave (budget 2 % of 1497)" in text
    assert (
        "at most 1 to 3 nodes of a rack unavailable at once (limit 5 %), at most 1 to 2 in flight per rack (its failure budget);"
        in text
    )


@pytest.mark.no_cover
def test_hundreds_of_groups_that_differ_only_in_their_own_bytes_are_one() -> None:
    found = inventory(300)
    nodes = {
        name: kubeadm(name, extra=f"KUBELET_EXTRA_ARGS=--v={at}\n", words=f"--v={at}")
        for at, name in enumerate(found.nodes)
    }
    plan = build_plan(found, POLICY, fleet(found, nodes), dict.fromkeys(nodes, IMAGE_PULLS), tuple(nodes), "")
    assert len(plan.groups) == 300
    assert len(kinds(plan)) == 1
    text = plan_text(plan)
    assert "and 299 groups more that differ only in bytes that rollout does not change; shown for g1" in text
    assert len(text.splitlines()) < 61  # with the line of known defects


def test_many_kinds_and_many_reasons_are_bounded() -> None:
    found = inventory(40)
    nodes = {name: kubeadm(name, version=f"1.20.{at}") for at, name in enumerate(found.nodes)}
    plan = build_plan(found, POLICY, fleet(found, nodes), dict.fromkeys(nodes, IMAGE_PULLS), tuple(nodes), "")
    left = tuple(ExcludedNode(f"x{at}", "r", Standing.REFUSED, "layout-drifted", f"reason {at}") for at in range(20))
    text = plan_text(replace(plan, left=left))
    assert "… 28 more groups with 28 nodes: see them all with -o json" in text
    assert "… 8 more nodes for 8 other reasons: see them all with -o json" in text
    assert "    the same change as g1" in text
    assert len(text.splitlines()) < 120


def test_nodes_that_answer_but_refuse_the_login_are_not_called_unreachable() -> None:
    left = (
        ExcludedNode("n1", "r", Standing.UNREACHABLE, "auth-failed", "no (at 10.0.0.1:22)"),
        ExcludedNode("n2", "r", Standing.UNREACHABLE, "auth-failed", "no (at 10.0.0.2:22)"),
        ExcludedNode("n3", "r", Standing.UNREACHABLE, "host-unreachable", "no route"),
    )
    text = plan_text(replace(plan_of(6), left=left))
    assert "0 refused, 1 unreachable, 2 without login\n" in text
    assert "no login: 2 nodes  n[1-2]\n     no (at the address of NODE) [auth-failed]" in text
    assert "unreachable: 1 node  n3" in text


def test_reasons_that_differ_only_in_the_nodes_own_name_are_one() -> None:
    reasons = {f"x-{at}": f"x-{at} did not resolve in time" for at in range(1, 13)} | {"y": "y did not resolve"}
    left = tuple(
        ExcludedNode(name, "r", Standing.UNREACHABLE, "name-not-known", reason) for name, reason in reasons.items()
    )
    text = plan_text(replace(plan_of(6), left=left))
    assert "unreachable: 12 nodes  x-[1-12]\n     NODE did not resolve in time [name-not-known]" in text
    assert "unreachable: 1 node  y\n     y did not resolve [name-not-known]" in text


def test_a_budget_of_more_nodes_than_exist_is_marked() -> None:
    budgets = (Budget(Scope.WAVE, frozenset(Cause), Share(count=2)),)
    text = plan_text(replace(plan_of(6), budgets=budgets))
    assert "halts at the 1st failed node in this wave (budget 2; it has only 1 node)" in text
    assert "of 1)" not in text


def test_long_diffs_are_cut() -> None:
    plan = plan_of(6)
    first, *others = plan.groups
    file = replace(first.change.files[0], after="".join(f"line {at}\n" for at in range(90)).encode())
    longer = replace(first, change=replace(first.change, files=(file, *first.change.files[1:])))
    assert "more lines" in plan_text(replace(plan, groups=(longer, *others)), whole=True)


def test_nothing_to_do() -> None:
    found = inventory(1)
    plan = build_plan(found, POLICY, fleet(found, {}), {}, (), "")
    assert plan_text(plan) == (
        "Plan for rno: playbook image-pulls, nodes read 2026-11-20 16:00:00 UTC\n"
        "0 nodes to change, 0 as wanted, 0 refused, 0 unreachable\n\nNothing to do.\n"
    )
    assert estimate.total(plan) == 0


def test_left_alone_is_folded_by_reason() -> None:
    left = (
        ExcludedNode("n1", "r", Standing.UNREACHABLE, "ssh-timeout", "late"),
        ExcludedNode("n2", "r", Standing.REFUSED, "no-room", "full"),
        ExcludedNode("n3", "r", Standing.UNREACHABLE, "ssh-timeout", "late"),
    )
    assert [(entry.reference, names) for entry, names in folded_left(replace(plan_of(1), left=left))] == [
        ("no-room", ("n2",)),
        ("ssh-timeout", ("n1", "n3")),
    ]


def test_escapes_in_texts_from_a_node_do_not_reach_the_screen() -> None:
    left = (ExcludedNode("n1", "r", Standing.UNREACHABLE, "ssh-failed", "\x1b[2Jgone\r\nnow"),)
    text = plan_text(replace(plan_of(1), left=left))
    assert "\x1b" not in text
    assert "gone now [ssh-failed]" in text


def test_budgets_in_numbers() -> None:
    only = frozenset({Cause.UNREACHABLE})
    budgets = (Budget(Scope.RACK, only, Share(percent=50.0)), Budget(Scope.FLEET, only, Share(count=3)))
    text = plan_text(replace(plan_of(200), budgets=budgets))
    assert "halts at the 10th to 30th failed node in a rack (budget 50 %; unreachable)" in text
    assert "halts at the 3rd failed node in the fleet (budget 3 of 199; unreachable)" in text
    assert "halts at no budget of its own" in text


@pytest.mark.parametrize(
    ("limits", "seconds"),
    [
        (Limits(per_rack=Share(count=60)), 60 / 10 + 35 + 7),  # the pace decides
        (Limits(per_rack=Share(count=1)), 60 * 35 + 7),  # the rack's limit decides
        (Limits(per_rack=Share(count=60), in_flight=10), 6 * 35 + 7),  # the window decides
        (Limits(per_rack=Share(count=60), per_zone=Share(count=5)), 12 * 35 + 7),  # the zone's limit decides
    ],
)
def test_expected_time(limits: Limits, seconds: float) -> None:
    found = inventory(60, per_rack=60)
    nodes = {name: kubeadm(name) for name in found.nodes}
    policy = replace(POLICY, limits=limits, waves=(), budgets=(), soak=7.0)
    # inventory() counts from 0, so that all 60 are in one rack
    plan = build_plan(found, policy, fleet(found, nodes), dict.fromkeys(nodes, IMAGE_PULLS), tuple(nodes), "")
    assert estimate.total(replace(plan, rehearsal=False)) == seconds


def test_a_wave_with_a_limit_of_its_own_takes_as_many_rounds() -> None:
    plan = replace(plan_of(60), limits=Limits(per_rack=Share(count=60)), budgets=())
    last = replace(plan.waves[-1], at_once=1)
    assert estimate.rounds(plan, last) == len(last.nodes) > estimate.rounds(plan, plan.waves[-1])


def test_the_time_of_an_emergency_rollback_keeps_the_limits_of_zones() -> None:
    plan = plan_of(60)
    narrow = Limits(per_rack=Share(percent=50.0), per_zone=Share(count=1))
    assert estimate.all_back(plan, narrow) >= len(plan.nodes) * estimate.BACK_SECONDS


def test_a_rehearsal_lengthens_the_first_wave_and_measured_times_replace_assumed_ones() -> None:
    plan = plan_of(40)
    first, last = plan.waves[0], plan.waves[-1]
    settle = plan.groups[0].change.settle
    assert estimate.of_wave(plan, first) - estimate.of_wave(replace(plan, rehearsal=False), first) == pytest.approx(
        (15 + settle + 20 + settle) * estimate.rounds(plan, first), abs=1
    )
    known = replace(plan, way_back=RevertTimes("r1", 3, apply_seconds=30.0, revert_seconds=8.0))
    assert estimate.of_wave(known, last) > estimate.of_wave(plan, last)
    assert "8 s per node, measured by run r1" in plan_text(known)


def test_a_racks_budget_narrows_its_window() -> None:
    plan = plan_of(60)
    rack = next(iter(plan.racks))
    assert (estimate.rack_limit(plan, rack), estimate.rack_window(plan, rack, 60)) == (3, 2)


def test_json() -> None:
    plan = plan_of(20)
    found = as_printed(PlanDocument("rno.plan.json", plan))
    assert found["kind"] == "Plan"
    assert found["digest"] == plan_codec.digest(plan)
    assert sum(group["count"] for group in found["groups"]) == found["changed"] == len(plan.nodes)
    assert sum(wave["count"] for wave in found["waves"]) == len(plan.nodes)
    assert found["groups"][0]["files"][0]["diff"][0] == "--- /var/lib/kubelet/config.yaml"
    assert {file["before"] for group in found["groups"] for file in group["files"]} & {None}
    assert found["left"][0]["nodes"] == "tess-node-0008"


def test_waves_that_hold_and_limits_of_zones() -> None:
    plan = plan_of(200)
    waves = (replace(plan.waves[0], hold=True), *plan.waves[1:])
    limits = replace(plan.limits, per_zone=Share(percent=2.0))
    text = plan_text(replace(plan, waves=waves, limits=limits, rehearsal=False))
    assert "including 60 s soak, then waits for `rollout continue`  tess" in text
    assert ", 4 of a zone (limit 2 %); 100 in flight" in text
    assert "reverted once for real" not in text
    shown = as_printed(PlanDocument("p.json", replace(plan, waves=waves, limits=limits)))
    assert (shown["waves"][0]["hold"], shown["waves"][0]["atOnce"]) == (True, 0)
    assert shown["limits"]["perZone"] == {"count": None, "percent": 2.0}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (SoakData(5), "until 5 pods started, at most 30 min"),
        (SoakData(pulls=1), "until 1 image pull succeeded, at most 30 min"),
        (SoakData(20, 60.0, 4), "until 20 pods started and 4 image pulls succeeded, at most 60 s"),
    ],
)
def test_a_wave_shows_the_data_that_its_soak_waits_for(data: SoakData, said: str) -> None:
    plan = plan_of(6)
    needs = replace(plan, waves=(replace(plan.waves[0], data=data), *plan.waves[1:]))
    assert said in plan_text(needs)
    shown = as_printed(PlanDocument("p.json", needs))["waves"][0]["mustHaveData"]
    assert shown == {"podStarts": data.pod_starts, "pulls": data.pulls, "withinSeconds": data.within}


def test_gates_show_what_they_will_ask() -> None:
    query = PrometheusQuery("sum(rate(errors[5m]))", "https://p.example.net", at_most=5.0, worse=Worse.HIGHER)
    gates = (
        Gate(AgentCheck("unit"), GateScope.NODE, "unit"),
        Gate(CommandQuery(("check", "a b")), GateScope.NODE, "pulls"),
        Gate(query, GateScope.WAVE, "errors"),
        Gate(AlertQuery(('severity="critical"',)), GateScope.WAVE, "alerts"),
        Gate(HttpQuery("https://x.example.net/"), GateScope.WAVE, "page"),
    )
    assert gates_text(gates, GateScope.NODE) == "unit, pulls (check 'a b')"
    assert gates_text(gates, GateScope.WAVE) == (
        "errors (sum(rate(errors[5m])) ≤ 5 not 20 % higher than nodes not changed yet at https://p.example.net), "
        'alerts (severity="critical"), page (https://x.example.net/ 200)'
    )
    assert gates_text((), GateScope.WAVE) == "none"
