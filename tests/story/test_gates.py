"""Gates as a user sees them: by the command line, with the real agent, the lab's API and servers of the test."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.adapters.web import NOW, Reply, Seen, nobody, web
from tests.controllers import PATIENCE, until
from tests.sampling import sample
from tests.story.conftest import Site
from tests.story.test_faults import FEW, begun, few, nothing_left, plan, policy, where
from tests.story.test_lab_faults import PLENTY, troubles

pytestmark = [pytest.mark.process, pytest.mark.drawn(2)]

__all__ = ["few"]  # the fixture

API = "gates: {node: [unit, process, healthz, nodeReady, podsKept, containersKept, imagePulls]}\nsoak: 600ms"


def vector(value: float) -> Reply:
    result = b'[{"metric":{"node":"small-001"},"value":[%b,"%g"]}]' % (NOW, value)
    return Reply(body=b'{"status":"success","data":{"resultType":"vector","result":%b}}' % result)


def endpoints(site: Site, **said: str) -> None:
    """Set the endpoints of the gates in the inventory."""
    path = site.folder / "inventories/small.yaml"
    path.write_text(path.read_text() + f"endpoints: {json.dumps(said)}\n")


def with_api(site: Site) -> None:
    policy(site, "soak: 600ms", API)
    policy(site, "budgets: {wave: 2, rack: 2, fleet: 2}", f"budgets: {PLENTY}")
    endpoints(site, kubeconfig=str(site.lab / "kubeconfig"))


def applied(site: Site, *words: str) -> tuple[int, str]:
    done = site.rollout("apply", "p.json", "--yes", *words)
    return done.code, done.out + done.err


def test_each_node_is_judged_by_what_the_api_reports_about_it(few: Site) -> None:
    with_api(few)
    plan(few, ",".join(FEW))
    few.fault("small-002", "pod-rejected")
    few.fault("small-003", "container-restarted")
    few.fault("small-061", "pull-failing")
    few.fault("small-062", "not-ready")
    code, said = applied(few)
    assert code == 4, said
    assert troubles(few) == {
        "small-002": ("reverted", "gate-podsKept"),
        "small-003": ("reverted", "gate-containersKept"),
        "small-061": ("reverted", "gate-imagePulls"),
        "small-062": ("refused", "not-ready-before"),
    }
    assert [few.is_new(name) for name in FEW] == [True, False, False, False, False, True]
    messages = " ".join(entry["message"] for entry in where(few)["troubles"])
    assert "1 pod rejected or ended: " in messages
    assert "(OutOfpods: " in messages
    assert "1 container restarted: " in messages
    assert "ImagePullBackOff" in messages
    nothing_left(few, *FEW)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("api-down", "nothing was touched: the request to the API server of KUBECONFIG failed: Connection refused [api-not-reached]"),
        ("api-forbidden", 'cannot create resource "selfsubjectaccessreviews" in API group "" at the cluster scope [api-forbidden]'),
    ],
)  # fmt: skip
def test_an_unusable_api_stops_a_run_before_it_starts(few: Site, fault: str, said: str) -> None:
    with_api(few)
    plan(few, ",".join(FEW))
    few.fault("api", fault)
    code, out = applied(few)
    assert code == 2
    assert said.replace("KUBECONFIG", str(few.lab / "kubeconfig")) in out
    planned = few.rollout("plan", "--cluster", "small", "--limit", ",".join(FEW))
    assert planned.code == 2, "it is detected before the night of the run"
    assert said.replace("KUBECONFIG", str(few.lab / "kubeconfig")) in planned.err
    assert not any(few.is_new(name) for name in FEW)
    few.fault("api", "--clear")
    assert applied(few)[0] == 0


def test_a_run_waits_for_an_api_that_becomes_unreachable(few: Site) -> None:
    """The canary has passed and is held. A node without a baseline is then not touched, not charged, and retried."""
    with_api(few)
    policy(few, f"budgets: {PLENTY}", "budgets: {wave: 1, rack: 1, fleet: 1}")
    policy(few, "waves: [canary, rest]", "waves: [{canary: true, hold: true}, rest]")
    policy(few, "revert: wave", "revert: node")
    plan(few, ",".join(FEW))
    with begun(few, "apply", "p.json", "--yes") as run:
        until(lambda: "holds after wave canary" in few.rollout("status").out, PATIENCE, "the canary is held")
        few.fault("api", "api-down")
        assert few.rollout("continue", "--yes", "--reason", "on we go").code == 0
        until(
            lambda: "no baseline from the API server" in few.rollout("status").out,
            PATIENCE,
            "nodes wait for their baseline",
        )
        assert [few.is_new(name) for name in FEW] == [True, False, False, False, False, False]
        few.fault("api", "--clear")
        assert run.wait(PATIENCE) == 0
    assert all(few.is_new(name) for name in FEW)
    nothing_left(few, *FEW)


def test_the_plan_prints_the_apply_command_with_its_kubeconfig(few: Site) -> None:
    policy(few, "soak: 600ms", API)
    kubeconfig = few.lab / "kubeconfig"
    done = few.rollout("plan", "--cluster", "small", "--limit", ",".join(FEW), "--kubeconfig", str(kubeconfig))
    assert f" --kubeconfig {kubeconfig} " in done.out.splitlines()[-1]


def test_gates_without_an_endpoint_are_refused_when_planning(few: Site) -> None:
    wave = "{prometheus: up, atLeast: 1}, {alertmanager: ['severity=\"critical\"']}"
    policy(few, "soak: 600ms", f"gates: {{node: [nodeReady], wave: [{wave}]}}\nsoak: 600ms")
    done = few.rollout("plan", "--cluster", "small", "--limit", "small-001")
    assert done.code == 2
    for word in ("[no-kubeconfig]", "[no-prometheus]", "[no-alertmanager]", "use --kubeconfig FILE"):
        assert word in done.err
    kubeconfig = few.folder / "nowhere"
    endpoints(few, prometheus="http://127.0.0.1:1", alertmanager="http://127.0.0.1:1")
    done = few.rollout("plan", "--cluster", "small", "--limit", "small-001", "--kubeconfig", str(kubeconfig))
    assert (done.code, done.err.strip().splitlines()[-1]) == (
        2,
        f"error: {kubeconfig}: No such file or directory [no-kubeconfig]",
    )


def measured(site: Site, stack: ExitStack, *replies: Reply, url: str = "") -> None:
    """A wave gate that allows at most 0.1; the back end gives these answers in turn."""
    gate = "{prometheus: 'rate(errors{node=~\"$nodes\"}[5m])', atMost: 0.1, timeout: 4s, name: errors}"
    policy(site, "soak: 600ms", f"gates: {{wave: [{gate}]}}\nsoak: 600ms")
    endpoints(site, prometheus=url or stack.enter_context(web(*replies)).url)


EMPTY = Reply(body=b'{"status":"success","data":{"resultType":"vector","result":[]}}')


MEASURED = [
    pytest.param([EMPTY], "before the wave: gate 'errors': the query's result is empty", False, id="nothing"),
    pytest.param(
        [vector(7)],
        "before the wave: gate 'errors': 1 of 1 sample beyond: {node=small-001} 7; at most 0.1",
        False,
        id="bad before",
    ),
    pytest.param(
        [vector(0), vector(7)],
        "gate 'errors': 1 of 1 sample beyond: {node=small-001} 7; at most 0.1",
        True,
        id="bad in the soak",
    ),
    pytest.param(
        [vector(0), vector(0), vector(7), vector(0)],
        "gate 'errors': 1 of 1 sample beyond",
        True,
        id="flapping in the soak",
    ),
    pytest.param(
        [vector(0), vector(0), EMPTY], "gate 'errors': the query's result is empty", True, id="nothing in the soak"
    ),
]


@pytest.mark.parametrize(("replies", "said", "touched"), sample("measurements", MEASURED, 2))
def test_a_measurement_that_does_not_pass_halts_the_run(
    few: Site, replies: list[Reply], said: str, touched: bool
) -> None:
    with ExitStack() as stack:
        measured(few, stack, *replies)
        plan(few, ",".join(FEW))
        code, out = applied(few)
    assert (code, said in out) == (3, True), out
    assert not any(few.is_new(name) for name in FEW)
    receipts = list((few.node("small-001") / "var/lib/rollout/tx").glob("*")) if touched else []
    assert bool(receipts) == touched
    nothing_left(few, *FEW)


def test_an_unreachable_prometheus_halts_the_run_before_any_node_is_touched(few: Site) -> None:
    with ExitStack() as stack:
        measured(few, stack, url=nobody())
        plan(few, ",".join(FEW))
        code, out = applied(few)
    assert (code, "request failed: Connection refused [not-reached]" in out) == (3, True), out


def test_a_silence_is_set_for_each_wave_and_lifted_at_the_end(few: Site) -> None:
    seen: list[Seen] = []
    states: dict[str, str] = {}

    def answer(request: Seen) -> Reply:
        seen.append(request)
        name = Path(request.path).name
        if request.method == "POST":
            states[f"id-{len(seen)}"] = "active"
            return Reply(body=json.dumps({"silenceID": f"id-{len(seen)}"}).encode())
        if request.method == "DELETE":
            states[name] = "expired"
            return Reply()
        if name.startswith("alerts"):
            return Reply(body=b"[]")
        shown = [{"id": each, "status": {"state": state}} for each, state in states.items()]
        return Reply(body=json.dumps(next((one for one in shown if one["id"] == name), shown)).encode())

    with web() as server:
        server.answer = answer
        policy(few, "soak: 600ms", "gates: {wave: [{alertmanager: [], silence: 30m}]}\nsoak: 600ms")
        endpoints(few, alertmanager=server.url)
        plan(few, ",".join(FEW))
        code, out = applied(few)
    assert code == 0, out
    silenced = [json.loads(request.body)["matchers"][0]["value"] for request in seen if request.method == "POST"]
    assert silenced == ["(?:small-001)", "(?:small-0(?:0[23]|6[1-3]))"]
    lifted = [Path(request.path).name for request in seen if request.method == "DELETE"]
    assert sorted(lifted) == sorted(states), "each once"
    assert Path(seen[-1].path).name == "silences", "and silences that were not journaled"


def test_harm_after_the_end_of_a_run_rolls_it_back(few: Site) -> None:
    healthy = few.folder / "healthy"
    healthy.touch()
    gate = f"gates: {{wave: [{{name: late, command: [/usr/bin/test, -e, {healthy}]}}]}}"
    policy(few, "soak: 600ms", f"soak: 600ms\n{gate}\nwatchFor: 1h\nonLateHarm: rollback")
    plan(few, ",".join(FEW))
    code, said = applied(few)
    assert code == 0, said
    assert few.rollout("watch", "--late", "--once").code == 0
    assert "its gates are watched until" in few.rollout("status").out
    healthy.unlink()
    codes = [few.rollout("watch", "--late", "--once").code for _ in range(2)]
    assert codes == [4, 3]
    assert not any(few.is_new(name) for name in FEW)
    run = json.loads(few.rollout("runs", "-o", "json").out)["runs"][-1]["run"]
    late = json.loads(few.rollout("status", run, "-o", "json").out)["late"]
    assert (late["harm"][:20], late["ended"].endswith("ended with exit code 0")) == (
        "2 failures in a row;",
        True,
    )
    nothing_left(few, *FEW)
