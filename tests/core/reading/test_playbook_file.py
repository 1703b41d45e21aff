"""The playbook file: its defaults, its meaning, and every mistake with its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.core.model.gates import Gate, GateScope
from rollout.core.model.playbook import (
    DEFAULT_BUDGETS,
    DEFAULT_DRAIN,
    Budget,
    Busy,
    Cause,
    Disruption,
    Drain,
    EvictToo,
    Limits,
    Policy,
    PullsInFlight,
    RegistryCap,
    RevertScope,
    Scope,
    Shadowed,
    Share,
    WaveKind,
    WaveRule,
)
from rollout.core.model.settings import IfUnsupported, Setting
from rollout.core.reading.playbook_file import DEFAULT_WAVES, load_playbook
from rollout.errors import InputError
from rollout.gates.agent_checks.query import AgentCheck
from rollout.gates.command.query import CommandQuery
from rollout.gates.table import DEFAULT_GATES
from tests.places import ROOT
from tests.sampling import examples

TEMPLATES: Mapping[str, str] = {path.name: path.read_text() for path in (ROOT / "templates").glob("*.j2")}
IMAGE_PULLS = (ROOT / "playbooks" / "image-pulls.yaml").read_text()
BARE = "name: p\nsettings: {maxPods: 30}\n"


def load(text: str, templates: Mapping[str, str] = TEMPLATES) -> Policy:
    return load_playbook(text, "p.yaml", templates)


def complaints(text: str, templates: Mapping[str, str] = TEMPLATES) -> list[str]:
    with pytest.raises(InputError) as caught:
        load(text, templates)
    return [str(problem) for problem in caught.value.problems]


def test_the_defaults() -> None:
    policy = load(BARE)
    assert policy.settings == {"maxPods": Setting("maxPods", 30, source="playbook p")}
    assert policy.waves == DEFAULT_WAVES
    assert policy.limits == Limits(Share(percent=5.0), None, 100, 10.0, Share(percent=5.0))
    assert policy.budgets == DEFAULT_BUDGETS
    assert policy.gates == DEFAULT_GATES
    assert (policy.on_failure, policy.soak, policy.passes, policy.guard, policy.keep) == (
        RevertScope.WAVE,
        60.0,
        3,
        120.0,
        3,
    )
    assert policy.templates.flags_env == TEMPLATES["kubelet-flags.env.j2"]
    assert policy.templates.flags_env_name == "templates/kubelet-flags.env.j2"


def test_image_pulls_lists_the_defaults() -> None:
    policy = load(IMAGE_PULLS)
    assert policy.settings == {
        "imagePullProgressDeadline": Setting("imagePullProgressDeadline", "5m", source="playbook image-pulls"),
        "serializeImagePulls": Setting("serializeImagePulls", value=False, source="playbook image-pulls"),
        "maxParallelImagePulls": Setting("maxParallelImagePulls", 5, IfUnsupported.SKIP, "playbook image-pulls"),
    }
    bare = load(BARE)
    assert replace(policy, name="p", settings=bare.settings, digest=bare.digest) == bare


def test_default_gates_are_switched_off_by_name() -> None:
    policy = load(f"{BARE}gates: {{without: [healthz, podsKept, healthz]}}\n")
    assert [gate.name for gate in policy.gates] == ["unit", "process", "effectiveConfig"]
    assert policy.without == ("healthz", "podsKept")


def test_every_key_set() -> None:
    policy = load(
        BARE
        + """\
waves:
  - {canary: true, soak: 5m}
  - {perRack: 2, soak: 0s}
  - upTo: 12.5%
  - rest
limits: {perRack: 2, inFlight: 7, pace: 0.5, preflight: 1 %}
budgets:
  wave: 3
  causes:
    unreachable: {wave: 10%, fleet: 5%}
gates:
  node:
    - healthz
    - {command: [/usr/bin/check, --fast], timeout: 20s}
  wave:
    - {name: graphs, command: [sh, -c, "curl …"]}
onFailure: {revert: run}
soak: 1m30s
passes: 5
guard: 5s
keep: 1
"""
    )
    assert policy.waves == (
        WaveRule(WaveKind.CANARY, soak=300.0),
        WaveRule(WaveKind.PER_RACK, count=2, soak=0.0),
        WaveRule(WaveKind.UP_TO, percent=12.5),
        WaveRule(WaveKind.REST),
    )
    assert policy.limits == Limits(Share(count=2), None, 7, 0.5, Share(percent=1.0))
    assert policy.gates == (
        Gate(AgentCheck("healthz"), GateScope.NODE, "healthz"),
        Gate(CommandQuery(("/usr/bin/check", "--fast")), GateScope.NODE, "check", 20.0),
        Gate(CommandQuery(("sh", "-c", "curl …")), GateScope.WAVE, "graphs", 10.0),
    )
    assert (policy.on_failure, policy.soak, policy.passes, policy.guard, policy.keep) == (
        RevertScope.RUN,
        90.0,
        5,
        5.0,
        1,
    )


def test_what_a_change_may_do_to_a_node() -> None:
    bare = load(BARE)
    assert (bare.disruption, bare.pulls, bare.shadowed) == (
        Disruption.RESTART_KUBELET,
        PullsInFlight(600.0, Busy.SKIP),
        Shadowed.REFUSE,
    )
    assert (bare.accepted, bare.caps) == ({}, ())
    said = load(
        BARE
        + """\
disruption: restart-runtime
pullsInFlight: {within: 3m, then: override}
shadowedByFlag: move
accept: [readOnlyPort, {setting: maxPods, reason: ours}, {setting: /etc/containerd/config.toml}]
registryCaps:
  - {qps: 500}
  - {registry: "mirror.example.net:5000", perZone: true, parallelPulls: 300, qps: 200}
"""
    )
    assert (said.disruption, said.pulls, said.shadowed) == (
        Disruption.RESTART_RUNTIME,
        PullsInFlight(180.0, Busy.OVERRIDE),
        Shadowed.MOVE,
    )
    assert said.accepted == {"readOnlyPort": "", "maxPods": "ours", "/etc/containerd/config.toml": ""}
    assert said.caps == (RegistryCap(qps=500), RegistryCap("mirror.example.net:5000", True, 300, 200))  # noqa: FBT003


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("override", PullsInFlight(0.0, Busy.OVERRIDE)),
        ("skip", PullsInFlight(0.0, Busy.SKIP)),
        ("{}", PullsInFlight(600.0, Busy.SKIP)),
        ("{within: 90s}", PullsInFlight(90.0, Busy.SKIP)),
        ("{then: override}", PullsInFlight(600.0, Busy.OVERRIDE)),
    ],
)
def test_pulls_in_flight_and_their_short_forms(written: str, meant: PullsInFlight) -> None:
    assert load(f"{BARE}pullsInFlight: {written}\n").pulls == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("{}", DEFAULT_DRAIN),
        ("90s", Drain(90.0)),
        ("{within: 90s}", Drain(90.0)),
        ("{evictToo: [bare]}", Drain(900.0, frozenset({EvictToo.BARE}))),
        ("{within: 1h, evictToo: [local, bare]}", Drain(3600.0, frozenset(EvictToo))),
    ],
)
def test_how_nodes_are_drained_and_the_short_form(written: str, meant: Drain) -> None:
    policy = load(f"{BARE}disruption: drain-and-restart\ndrain: {written}\n")
    assert (policy.disruption, policy.drain) == (Disruption.DRAIN_AND_RESTART, meant)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("30", Setting("a", 30)),
        ("{value: 30}", Setting("a", 30)),
        ("{value: 30, pin: true}", Setting("a", 30, pin=True)),
        ("{value: 30, pin: false, ifUnsupported: skip}", Setting("a", 30, IfUnsupported.SKIP)),
        ("{docker.io: [mirror.example.net]}", Setting("a", {"docker.io": ["mirror.example.net"]})),
        (
            "{value: {docker.io: [mirror.example.net]}, pin: true}",
            Setting("a", {"docker.io": ["mirror.example.net"]}, pin=True),
        ),
    ],
)
def test_a_setting_s_long_form(written: str, meant: Setting) -> None:
    assert load(f"name: p\nsettings: {{a: {written}}}\n").settings["a"] == replace(meant, source="playbook p")


def test_a_cause_with_its_own_budget_does_not_count_in_the_common_one_of_that_scope() -> None:
    budgets = load(BARE + "budgets: {wave: 3, causes: {unreachable: {wave: 10%, fleet: 5%}}}\n").budgets
    others = frozenset({Cause.FAILED, Cause.UNHEALTHY})
    assert budgets == (
        Budget(Scope.WAVE, others, Share(count=3)),
        Budget(Scope.WAVE, frozenset({Cause.UNREACHABLE}), Share(percent=10.0)),
        Budget(Scope.RACK, frozenset(Cause), Share(count=2)),
        Budget(Scope.FLEET, others, Share(percent=1.0)),
        Budget(Scope.FLEET, frozenset({Cause.UNREACHABLE}), Share(percent=5.0)),
    )


def test_no_common_budget_remains_when_every_cause_has_its_own() -> None:
    own = "{unreachable: {rack: 1}, failed: {rack: 2}, unhealthy: {rack: 3}}"
    budgets = [budget for budget in load(f"{BARE}budgets: {{causes: {own}}}\n").budgets if budget.scope is Scope.RACK]
    assert [len(budget.causes) for budget in budgets] == [1, 1, 1]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("limit: {}", "p.yaml:3:1: unknown key `limit` (did you mean `limits`?) [unknown-key]"),
        ("limits: {perrack: 3}", "p.yaml:3:10: unknown key `perrack` (did you mean `perRack`?) [unknown-key]"),
        ("limits: {perRack: 0}", "p.yaml:3:19: `perRack` must be at least 1 node, not 0 [bad-share]"),
        ("limits: {perRack: 0%}", "p.yaml:3:19: `perRack`: `0%` is not a percentage; write for example 5%, over 0% and up to 100% [bad-share]"),
        ("limits: {perRack: 101%}", "p.yaml:3:19: `perRack`: `101%` is not a percentage; write for example 5%, over 0% and up to 100% [bad-share]"),
        ("limits: {perRack: few}", "p.yaml:3:19: `perRack`: `few` is not a percentage; write for example 5%, over 0% and up to 100% [bad-share]"),
        ("limits: {perRack: 2.5}", "p.yaml:3:19: `perRack` must be a count of nodes or a percentage such as 5%, not a number [bad-share]"),
        ("limits: {perRack: true}", "p.yaml:3:19: `perRack` must be a count of nodes or a percentage such as 5%, not a boolean [bad-share]"),
        ("limits: {inFlight: '5'}", "p.yaml:3:20: `inFlight` must be a whole number, not text [wrong-type]"),
        ("limits: {pace: 0}", "p.yaml:3:16: `pace` must be more than 0, not 0 [out-of-range]"),
        ("limits: {pace: 10/s}", "p.yaml:3:16: `pace` must be a number, not text [wrong-type]"),
        ("budgets: {causes: {failing: {}}}", "p.yaml:3:20: `failing` must be unreachable, failed or unhealthy, not `failing` (did you mean `failed`?) [bad-choice]"),
        ("budgets: {causes: {failed: {waves: 1}}}", "p.yaml:3:29: unknown key `waves` (did you mean `wave`?) [unknown-key]"),
        ("waves: []", "p.yaml:3:8: `waves` must not be empty [empty-list]"),
        ("waves: canary", "p.yaml:3:8: `waves` must be a list, not text [wrong-type]"),
        ("waves: [canaray, rest]", "p.yaml:3:9: `waves[0]` must be canary, perRack, upTo or rest, not `canaray` (did you mean `canary`?) [bad-choice]"),
        ("waves: [perRack, rest]", "p.yaml:3:9: `perRack` needs a value (perRack: 1) [bad-wave]"),
        ("waves: [upTo, rest]", "p.yaml:3:9: `upTo` needs a value (upTo: 5%) [bad-wave]"),
        ("waves: [{upTo: 5}, rest]", "p.yaml:3:16: `upTo`: `5` is not a percentage; write for example 5%, over 0% and up to 100% [bad-share]"),
        ("waves: [{perRack: 0}, rest]", "p.yaml:3:19: `perRack` must be at least 1, not 0 [out-of-range]"),
        ("waves: [{soak: 1m}, rest]", "p.yaml:3:9: `waves[0]` must be one of canary, perRack, upTo or rest [bad-wave]"),
        ("waves: [{canary: true, upTo: 5%}, rest]", "p.yaml:3:9: `waves[0]` must be one of canary, perRack, upTo or rest [bad-wave]"),
        ("waves: [{canary: 3}, rest]", "p.yaml:3:18: `canary` takes no value but true [wrong-type]"),
        ("waves: [{upTo: 5%, soak: 5}, rest]", "p.yaml:3:26: `soak` is a number without a unit (write 5s for seconds) [bad-duration]"),
        ("waves: [{upTo: 5%}, {upTo: 5%}, rest]", "p.yaml:3:21: upTo: 5% after 5% adds no node (waves grow) [bad-wave]"),
        ("waves: [rest, {upTo: 100%}]", "p.yaml:3:9: `rest` leaves nothing for the waves after it (put it last) [bad-wave]"),
        ("waves: [canary, {upTo: 5%}]", "p.yaml:3:17: the waves end before they include every node (end with `rest`; to change fewer nodes, use --limit) [bad-wave]"),
        ("gates: {node: []}", "p.yaml:3:15: `node` must not be empty [empty-list]"),
        ("gates: {node: [helthz]}", "p.yaml:3:16: `node[0]` must be unit, process, healthz, effectiveConfig, nodeReady, podsKept, devicesKept, containersKept, imagePulls or {command: […]}, not `helthz` (did you mean `healthz`?) [bad-choice]"),
        ("gates: {node: [unit, unit]}", "p.yaml:3:22: duplicate gate `unit` [duplicate-gate]"),
        ("gates: {node: [{timeout: 3s}]}", "p.yaml:3:16: `node[0]` must be a gate's name or have a `command` [bad-gate]"),
        ("gates: {node: [{command: []}]}", "p.yaml:3:26: `command` must not be empty [empty-list]"),
        ("gates: {node: [{command: [a, 1]}]}", "p.yaml:3:30: `command[1]` must be text, not a number [wrong-type]"),
        ("gates: {node: [{command: ls -l}]}", "p.yaml:3:26: `command` must be a list, not text [wrong-type]"),
        ("gates: {wave: [{command: [a], timeout: 1h}]}", "p.yaml:3:40: `timeout` must be between 100ms and 10m, not 3600s [out-of-range]"),
        ("gates: {wave: [{command: [/a/x]}, {command: [/b/x]}]}", "p.yaml:3:35: duplicate gate `x` (give it a `name` of its own) [duplicate-gate]"),
        ("gates: {wave: [unit]}", "p.yaml:3:16: `unit` is a gate of each node, not of a wave (put it under `node`) [bad-gate]"),
        ("gates: {wave: [{prometeus: up, atMost: 1}]}", "p.yaml:3:17: unknown key `prometeus` (did you mean `prometheus`?) [unknown-key]"),
        ("gates: {wave: [{prometheus: up}]}", "p.yaml:3:16: `wave[0]` has no threshold (set atMost, atLeast, or worse: higher) [bad-gate]"),
        ("gates: {wave: [{prometheus: up, worse: higher}]}", "p.yaml:3:16: `wave[0]` compares nodes, but its query has no $nodes (write {node=~\"$nodes\"}) [bad-gate]"),
        ("gates: {wave: [{prometheus: up, worse: hihger}]}", "p.yaml:3:40: `worse` must be higher or lower, not `hihger` (did you mean `higher`?) [bad-choice]"),
        ("gates: {wave: [{prometheus: up, atMost: 1, tolerance: 0.2}]}", "p.yaml:3:55: `tolerance`: `0.2` is not a percentage; write for example 20% [bad-share]"),
        ("gates: {wave: [{prometheus: up, atMost: 1, status: 200}]}", "p.yaml:3:16: `wave[0]`: `status` goes with `http`, not with `prometheus` [bad-gate]"),
        ("gates: {wave: [{http: example.net}]}", "p.yaml:3:23: `http`: `example.net` is not a URL; write for example https://prometheus.example.net [bad-url]"),
        ("gates: {wave: [{http: 'https://me:secret@example.net'}]}", "p.yaml:3:23: `http` must not contain a user or password: plans and journals store the URL (use tokenFile) [secret-in-url]"),
        ("gates: {wave: [{alertmanager: [critical]}]}", "p.yaml:3:32: `critical` is not a matcher (write for example 'severity=\"critical\"') [bad-matcher]"),
        ("gates: {wave: [{alertmanager: [], silence: 5s}]}", "p.yaml:3:44: `silence` must be between 1m and 24h, not 5s [out-of-range]"),
        ("gates: {node: [{prometheus: up, atMost: 1}]}", "p.yaml:3:16: `prometheus` is a gate of a wave, not of each node (put it under `wave`) [bad-gate]"),
        ("gates: {wave: [{command: [a], name: a b}]}", "p.yaml:3:37: `a b` is not a name; names are letters, digits, `-`, `_` and `.` [bad-name]"),
        ("onFailure: {revert: all}", "p.yaml:3:21: `revert` must be node, wave or run, not `all` [bad-choice]"),
        ("onFailure: wave", "p.yaml:3:12: `onFailure` must be a map, not text [wrong-type]"),
        ("soak: 60", "p.yaml:3:7: `soak` is a number without a unit (write 60s for seconds) [bad-duration]"),
        ("soak: [1s]", "p.yaml:3:7: `soak` must be a duration such as 90s, not a list [wrong-type]"),
        ("soak: 1d", "p.yaml:3:7: `soak`: `1d` is not a duration: a duration is numbers with units (ns, us, ms, s, m, h), for example 90s or 1m30s [bad-duration]"),
        ("soak: -1s", "p.yaml:3:7: `soak` must be between 0s and 24h, not -1s [out-of-range]"),
        ("guard: 4.9s", "p.yaml:3:8: `guard` must be between 5s and 180s, not 4.9s [out-of-range]"),
        ("guard: 3m1s", "p.yaml:3:8: `guard` must be between 5s and 180s, not 181s [out-of-range]"),
        ("passes: 0", "p.yaml:3:9: `passes` must be at least 1, not 0 [out-of-range]"),
        ("keep: 0", "p.yaml:3:7: `keep` must be at least 1, not 0 [out-of-range]"),
        ("keep: 1.5", "p.yaml:3:7: `keep` must be a whole number, not 1.5 [wrong-type]"),
        ("gates: {without: [podKept]}", "p.yaml:3:19: `without[0]` must be unit, process, healthz, effectiveConfig, nodeReady, podsKept, devicesKept or nodesSteady, not `podKept` (did you mean `podsKept`?) [bad-choice]"),
        ("gates: {without: [1]}", "p.yaml:3:19: `without[0]` must be the name of a gate that is on by default, not a number [wrong-type]"),
        ("gates: {node: [unit, podsKept], without: [podsKept]}", "p.yaml:3:43: gate `podsKept` is switched off, and is listed under `node` [duplicate-gate]"),
        ("gates: {wave: [{command: ['true'], name: nodeReady}]}", "p.yaml:3:16: duplicate gate `nodeReady` (give it a `name` of its own) [duplicate-gate]"),
        ("templates: {flagsEnv: kubelet-flag.env.j2}", "p.yaml:3:23: there is no template templates/kubelet-flag.env.j2 (did you mean `kubelet-flags.env.j2`?) [unknown-template]"),
        ("drain: 15", "p.yaml:3:8: `drain` must be a map, not a number [wrong-type]"),
        ("drain: soon", "p.yaml:3:8: `within`: `soon` is not a duration: a duration is numbers with units (ns, us, ms, s, m, h), for example 90s or 1m30s [bad-duration]"),
        ("drain: {within: 0s}", "p.yaml:3:17: `within` must be between 1s and 24h, not 0s [out-of-range]"),
        ("drain: {evictToo: [bear]}", "p.yaml:3:20: `evictToo[0]` must be bare or local, not `bear` (did you mean `bare`?) [bad-choice]"),
        ("drain: {evict: [bare]}", "p.yaml:3:9: unknown key `evict` (did you mean `evictToo`?) [unknown-key]"),
        ("disruption: restart-kublet", "p.yaml:3:13: `disruption` must be none, reload, restart-runtime, restart-kubelet or drain-and-restart, not `restart-kublet` (did you mean `restart-kubelet`?) [bad-choice]"),
        ("pullsInFlight: overide", "p.yaml:3:16: `pullsInFlight` must be skip or override, not `overide` (did you mean `override`?) [bad-choice]"),
        ("pullsInFlight: {then: wait}", "p.yaml:3:23: `then` must be skip or override, not `wait` [bad-choice]"),
        ("pullsInFlight: {within: 10}", "p.yaml:3:25: `within` is a number without a unit (write 10s for seconds) [bad-duration]"),
        ("pullsInFlight: {within: 25h}", "p.yaml:3:25: `within` must be between 0s and 24h, not 90000s [out-of-range]"),
        ("pullsInFlight: {until: 1m}", "p.yaml:3:17: unknown key `until` [unknown-key]"),
        ("pullsInFlights: skip", "p.yaml:3:1: unknown key `pullsInFlights` (did you mean `pullsInFlight`?) [unknown-key]"),
        ("shadowedByFlag: mvoe", "p.yaml:3:17: `shadowedByFlag` must be refuse or move, not `mvoe` (did you mean `move`?) [bad-choice]"),
        ("accept: readOnlyPort", "p.yaml:3:9: `accept` must be a list, not text [wrong-type]"),
        ("accept: [Drift]", "p.yaml:3:10: `setting` names nothing that can be accepted (name a setting, a file, a known defect, or one of log-unreadable, gpu-lost-at-reload, containers-killed) [bad-accept]"),
        ("registryCaps: {qps: 3}", "p.yaml:3:15: `registryCaps` must be a list, not a map [wrong-type]"),
        ("registryCaps: [{perZone: true}]", "p.yaml:3:16: `registryCaps[0]` caps nothing (set parallelPulls, qps or both) [bad-cap]"),
        ("registryCaps: [{qps: 0}]", "p.yaml:3:22: `qps` must be at least 1, not 0 [out-of-range]"),
        ("registryCaps: [{parallelPull: 3, qps: 1}]", "p.yaml:3:17: unknown key `parallelPull` (did you mean `parallelPulls`?) [unknown-key]"),
        ("registryCaps: [{registry: https://r, qps: 3}]", "p.yaml:3:27: `registry`: `https://r` is not a registry; write its host, with port and path if needed, without a scheme [bad-registry]"),
        ("registryCaps: [{registry: r, qps: 3}, {registry: r, parallelPulls: 9}]", "p.yaml:3:39: registry `r` is capped twice for the fleet (put both caps into one entry) [duplicate-cap]"),
        ("registryCaps: [{perZone: true, qps: 3}, {perZone: true, qps: 4}]", "p.yaml:3:41: each registry is capped twice per zone (put both caps into one entry) [duplicate-cap]"),
        ("templates: {dropin: x}", "p.yaml:3:13: unknown key `dropin` (did you mean `dropIn`?) [unknown-key]"),
    ],
)  # fmt: skip
def test_refused(line: str, complaint: str) -> None:
    assert complaints(f"{BARE}{line}\n") == [complaint]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: p", ["p.yaml:1:1: `settings` is missing [missing-key]"]),
        ("settings: {a: 1}", ["p.yaml:1:1: `name` is missing [missing-key]"]),
        ("name: p\nsettings: {}", ["p.yaml:2:11: the playbook has no settings (name at least one) [no-settings]"]),
        ("name: p\nsettings: [a]", ["p.yaml:2:11: `settings` must be a map, not a list [wrong-type]"]),
        ("name: p\nsettings: {a.b: 1}", ["p.yaml:2:12: `a.b` is not a setting's name; names are letters and digits, flags also have `-` [bad-setting]"]),
        ("name: p\nsettings: {a: {pin: true}}", ["p.yaml:2:15: `a` has no value (write one, or remove the line) [bad-setting]"]),
        ("name: p\nsettings: {a: {value: 1, pin: 1}}", ["p.yaml:2:31: `pin` must be true or false, not a number [wrong-type]"]),
        ("name: p\nsettings: {a: {value: 1, pinn: true}}", ["p.yaml:2:26: unknown key `pinn` (did you mean `pin`?) [unknown-key]"]),
        ("name: 3\nsettings: {a: 1}\nsoak: 1", [
            "p.yaml:1:7: `name` must be a name, not a number [wrong-type]",
            "p.yaml:3:7: `soak` is a number without a unit (write 1s for seconds) [bad-duration]",
        ]),
        ("name: p\nsettings: {a: yes}\nwaves: [canary, bad]\nkeep: 0\n", [
            'p.yaml:2:15: `yes` is a boolean to some readers and text to others; write true or "yes" [yaml-ambiguous]',
            "p.yaml:3:17: `waves[1]` must be canary, perRack, upTo or rest, not `bad` [bad-choice]",
            "p.yaml:4:7: `keep` must be at least 1, not 0 [out-of-range]",
        ]),
    ],
)  # fmt: skip
def test_refused_as_a_whole(text: str, expected: list[str]) -> None:
    assert complaints(text) == expected


def test_a_missing_template_is_named_even_when_the_playbook_does_not_choose_it() -> None:
    without = {name: text for name, text in TEMPLATES.items() if name != "kubelet-drop-in.conf.j2"}
    assert complaints(BARE, without) == [
        "p.yaml:1:1: there is no template templates/kubelet-drop-in.conf.j2 (did you mean `kubelet-config.yaml.j2`?) [unknown-template]"
    ]


def test_undefined_template_variables_are_found_without_a_node() -> None:
    wrong = {**TEMPLATES, "kubelet-flags.env.j2": "{{ variable }}=\n{{ argments }} {{ node.rak }}\n"}
    assert complaints(BARE, wrong) == [
        "templates/kubelet-flags.env.j2:2:4: undefined variable `argments` (did you mean `arguments`?) [undefined-variable]",
        "templates/kubelet-flags.env.j2:2:24: undefined variable `node.rak` (did you mean `rack`?) [undefined-variable]",
    ]


def test_the_digest_is_over_playbook_and_templates() -> None:
    changed = {**TEMPLATES, "kubelet-flags.env.j2": TEMPLATES["kubelet-flags.env.j2"] + "# more\n"}
    digests = {load(BARE).digest, load(BARE + "keep: 3\n").digest, load(BARE, changed).digest}
    assert len(digests) == 3
    assert load(BARE).digest == load(BARE).digest


@settings(max_examples=examples(300))
@given(st.data())
def test_any_file_is_a_policy_or_a_list_of_mistakes(data: st.DataObject) -> None:
    text = "\n".join(line for line in IMAGE_PULLS.splitlines() if line and not line.startswith("#"))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 12)))
        piece = data.draw(
            st.sampled_from(["", text[start:end] * 2, "[", "]", "{", "}", ": ", "\n", "- ", "~", "3", "5%", "1m", '"'])
        )
        text = text[:start] + piece + text[end:]
    try:
        load(text)
    except InputError as error:
        assert error.problems  # noqa: PT017 - either is right
