"""A cluster that owns what a run brought: nodes that join later are named, planned and changed like the others."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controllers import finished
from tests.features.notices.test_delivery import serving
from tests.story.conftest import Site, served
from tests.story.test_faults import policy

pytestmark = [pytest.mark.process, pytest.mark.drawn(2)]

HERE = "small-[001-003]"
JOINED = "small-061"
APPLY = ("apply", "--cluster", "small", "--yes")


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Site]:
    """Four nodes, of which the inventory has three."""
    with served(tmp_path, f"{HERE},{JOINED}") as site:
        policy(site, "perRack: 25%", "perRack: 100%")
        joins(site, HERE)
        yield site


def joins(site: Site, *nodes: str, endpoints: str = "") -> None:
    """The nodes that the inventory has from now on."""
    listed = "\n".join(
        f"  {each}: {{labels: {{kubeletVersion: v1.20.15, containerRuntime: dockershim}}}}" for each in nodes
    )
    (site.folder / "inventories/small.yaml").write_text(
        f"cluster: small\napiServer: v1.23.17\n{endpoints}nodes:\n{listed}\n"
    )


def verified(site: Site, code: int) -> Any:
    done = site.rollout("verify", "--cluster", "small", "-o", "json")
    assert done.code == code, done.all
    return done.json()["owned"]


def standings(owned: Any) -> dict[str, str]:
    return {node["name"]: node["standing"] for node in owned["nodes"]}


def test_a_node_that_joins_after_the_run_is_named_planned_and_changed(small: Site) -> None:
    assert small.rollout(*APPLY).code == 0
    run = small.rollout("status", "-o", "json").json()["run"]
    done = small.rollout("own", run)
    assert (done.code, "serializeImagePulls: false" in done.out) == (0, True), done.all
    assert set(standings(verified(small, 0)).values()) == {"as-wanted"}
    joins(small, HERE, JOINED)
    with serving() as server:
        address = {"ROLLOUT_NOTICES": f"json://127.0.0.1:{server.port}/"}
        command = small.command("verify", "--cluster", "small")
        text = finished(command, small.folder, environment=os.environ | address)
        assert finished(command, small.folder, environment=os.environ | address).code == 10
    assert standings(verified(small, 10))[JOINED] == "never-changed"
    assert [each["message"].partition("\n")[0] for each in server.heard] == [
        f"1 node without an owned setting: {JOINED}"
    ]
    assert "3 nodes as wanted, 1 without an owned setting, 0 not compared" in text.out, text.all
    assert f"never changed by rollout: 1 node {JOINED}" in text.out, text.all
    planned = small.rollout("plan", "--cluster", "small", "--newcomers", "--out", "p.json")
    assert (planned.code, "playbook pulls" in planned.out) == (0, True), planned.all
    applied = small.rollout("apply", "p.json", "--yes")
    assert (applied.code, small.is_new(JOINED)) == (0, True), applied.all
    assert set(standings(verified(small, 0)).values()) == {"as-wanted"}
    again = small.rollout("plan", "--cluster", "small", "--newcomers")
    assert (again.code, "nothing to plan: " in again.out) == (0, True), again.all


RULE = "newcomers: {then: apply, readyFor: 0s}\n"
FREEZE = 'changeWindows: {zone: UTC, freezes: [{first: "2020-01-01", last: "2199-12-31", reason: year end}]}\n'
APPROVALS = "approvals: {count: 1, allowedSigners: allowed_signers}\n"


def test_a_timer_does_for_new_nodes_what_the_playbook_says(small: Site) -> None:
    api = f"endpoints: {{kubeconfig: {small.lab / 'kubeconfig'}}}\n"
    gates = "gates: {without: [nodeReady, podsKept, devicesKept, nodesSteady]}\nguard: 60s"
    policy(small, "guard: 60s", gates)
    timer = ("newcomers", "--cluster", "small", "--yes")
    assert small.rollout(*timer).code == 2, "nothing is owned"
    assert small.rollout(*APPLY).code == 0
    assert small.rollout("own").code == 0
    assert small.rollout(*timer).code == 0
    joins(small, HERE, JOINED)
    reported = small.rollout(*timer)
    assert (reported.code, f"never changed by rollout: 1 node {JOINED}" in reported.out) == (10, True), reported.all
    status = small.rollout("status").out
    assert f"1 node without them: {JOINED}" in status, status
    playbook = small.folder / "playbooks/pulls.yaml"
    playbook.write_text(playbook.read_text() + RULE.replace("apply", "plan"))
    planned = small.rollout(*timer)
    file = small.folder / "small-newcomers.plan.json"
    before = file.read_bytes()
    assert (planned.code, small.is_new(JOINED)) == (10, False), planned.all
    assert small.rollout(*timer).code == 10
    assert file.read_bytes() == before, "it may have been approved"
    playbook.write_text(playbook.read_text().replace("then: plan", "then: apply"))
    unknown = small.rollout(*timer)
    assert (unknown.code, "[readiness-unknown]" in unknown.err) == (2, True), unknown.all
    joins(small, HERE, JOINED, endpoints=api)
    playbook.write_text(playbook.read_text().replace("readyFor: 0s", "readyFor: 100h"))
    early = small.rollout(*timer)
    assert (early.code, "its Node has been Ready for" in early.err, small.is_new(JOINED)) == (10, True, False), (
        early.all
    )
    playbook.write_text(playbook.read_text().replace("readyFor: 100h", "readyFor: 0s") + FREEZE)
    closed = small.rollout(*timer)
    assert (closed.code, "not applied now: " in closed.out, "year end" in closed.out) == (10, True, True), closed.all
    playbook.write_text(playbook.read_text().replace(FREEZE, APPROVALS))
    unapproved = small.rollout(*timer)
    assert (unapproved.code, "[approval-missing]" in unapproved.err) == (2, True), unapproved.all
    assert not small.is_new(JOINED)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "alice"], cwd=small.folder, check=True)
    (small.folder / "allowed_signers").write_text(f"alice@x {(small.folder / 'alice.pub').read_text()}")
    approved = small.rollout("approve", "small-newcomers.plan.json", "--key", "alice", "--yes")
    assert approved.code == 0, approved.all
    applied = small.rollout(*timer)
    assert (applied.code, small.is_new(JOINED)) == (0, True), applied.all
    assert small.rollout(*timer).code == 0
