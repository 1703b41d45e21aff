"""Clusters with nodes from another source: an Ansible inventory or the API server; and what the API server knows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.controllers import PATIENCE, Done, until
from tests.story.conftest import Site, in_memory, lab_up, make_site
from tests.story.test_faults import begun, policy

pytestmark = [pytest.mark.process, pytest.mark.drawn(2)]

NODES = ("small-001", "small-002", "small-003", "small-061")
LISTED = """\
cluster: small
apiServer: v1.23.17
endpoints: {kubeconfig: lab/kubeconfig}
groups:
  all-of-them:
    nodes: "@all"
    labels: {kubeletVersion: v1.20.15, containerRuntime: dockershim}
nodes:
  - {name: small-001, labels: {topology.kubernetes.io/zone: z1, example.net/rack: a}}
  - {name: small-002, labels: {topology.kubernetes.io/zone: z1, example.net/rack: a}}
  - {name: small-003, labels: {topology.kubernetes.io/zone: z1, example.net/rack: a}}
  - {name: small-061, labels: {topology.kubernetes.io/zone: z2, example.net/rack: b}}
"""
LIVE = """\
cluster: small
apiServer: v1.23.17
nodesFrom:
  kubernetes:
    kubeconfig: lab/kubeconfig
    rackLabel: example.net/rack
    selector: example.net/rack in (a, b)
"""
ANSIBLE = """\
cluster: small
apiServer: v1.23.17
nodesFrom:
  ansible: {path: hosts, rackGroups: rack_, labels: node_labels}
"""
LABELS = {"kubeletVersion": "v1.20.15", "containerRuntime": "dockershim"}
HOSTS = {
    "_meta": {"hostvars": {name: {"node_labels": LABELS} for name in NODES}},
    "rack_a": {"hosts": NODES[:3]},
    "rack_b": {"hosts": NODES[3:]},
}


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Site]:
    """Four nodes in two racks, served under an inventory that lists them."""
    with in_memory(tmp_path) as room:
        (tmp_path / "lab").symlink_to(room / "lab")
        site = replace(make_site(tmp_path), lab=room / "lab")
        describe(site, LISTED)
        policy(
            site, "perRack: 25%", "perRack: 100%"
        )  # of three nodes, so that no node waits until another is ready again
        with lab_up(site, "--cluster", "small"):
            yield site


NO_API_GATES = "gates: {without: [nodeReady, podsKept, devicesKept, nodesSteady]}\n"
"""Those that are on by default with a kubeconfig."""


def describe(site: Site, text: str) -> None:
    (site.folder / "inventories/small.yaml").write_text(text)


def plan(site: Site, *words: str) -> Done:
    return site.rollout("plan", "--cluster", "small", "--out", "p.json", *words)


def planned(site: Site) -> Any:
    done = plan(site, "-o", "json")
    assert done.code == 0, done.err
    return done.json()


def about_nodes(made: Any) -> list[Any]:
    """The plan's remarks, except those on the side effects of its changes."""
    return [each for each in made["remarks"] if each["reference"] not in ("kubeadm-rewrites", "pods-not-foreseen")]


def test_nodes_of_the_api_server_are_planned_and_changed(small: Site) -> None:
    describe(small, LIVE)
    made = planned(small)
    assert (made["changed"], about_nodes(made)) == (4, [])
    plan_file = json.loads((small.folder / "p.json").read_text())
    assert {(node["rack"], node["zone"]) for node in plan_file["nodes"].values()} == {("a", "z1"), ("b", "z2")}
    done = small.rollout("apply", "p.json", "--yes")
    assert done.code == 0, done.out + done.err
    assert all(small.is_new(name) for name in NODES)


def test_an_emergency_does_not_need_the_api_server_that_lists_the_nodes(small: Site) -> None:
    describe(small, LIVE)
    emergency = ("rollback", "--cluster", "small", "--emergency", "--yes")
    small.fault("api", "api-down")
    never = small.rollout(*emergency)
    assert (never.code, "[not-reached]" in never.err) == (2, True), "no nodes were ever listed"
    small.fault("api", "--clear")
    assert small.rollout("apply", "--cluster", "small", "--yes").code == 0
    small.fault("api", "api-down")
    done = small.rollout(*emergency)
    assert done.code == 0, done.out + done.err
    assert "using its node list of 20" in done.err
    assert not any(small.is_new(name) for name in NODES)
    kept = next((small.folder / ".rollout").glob("nodes-*.json"))
    assert kept.stat().st_mode & 0o777 == 0o600


def test_commands_that_finish_or_revert_a_run_do_not_need_the_api_server_that_lists_the_nodes(small: Site) -> None:
    """The API server may be down exactly then. A plan needs it, and so do gates that ask it: this run has none of them."""
    describe(small, LIVE)
    policy(
        small,
        "waves: [canary, rest]",
        f"{NO_API_GATES}waves: [{{canary: true, hold: true}}, rest]",
    )
    with begun(small, "apply", "--cluster", "small", "--yes") as run:
        until(lambda: "holds after wave canary" in small.rollout("status").out, PATIENCE, "the canary is held")
        assert small.rollout("abort", "--revert", "node", "--reason", "no night for it").code == 0
        assert run.wait(PATIENCE) == 3
    small.fault("api", "api-down")
    with begun(small, "resume", "--promote", "--yes") as again:
        until(lambda: "holds after wave canary" in small.rollout("status").out, PATIENCE, "the canary is held")
        assert small.rollout("continue", "--yes", "--reason", "on we go").code == 0
        assert again.wait(PATIENCE) == 0
    assert all(small.is_new(name) for name in NODES)
    looked = small.rollout("verify", "--cluster", "small")
    assert (looked.code, looked.err.count("using its node list of 20")) == (0, 1), looked.out + looked.err
    back = small.rollout("rollback", str(small.rollout("status", "-o", "json").json()["run"]), "--yes")
    assert (back.code, back.err.count("using its node list of 20")) == (0, 1), back.out + back.err
    assert not any(small.is_new(name) for name in NODES)
    assert small.rollout("plan", "--cluster", "small").code == 2


def test_a_plan_outlives_nodes_that_the_api_server_no_longer_has(small: Site) -> None:
    describe(small, LIVE)
    planned(small)
    describe(small, LIVE.replace("in (a, b)", "in (a)"))
    done = small.rollout("apply", "p.json", "--yes")
    assert (done.code, f"gone since the plan, left alone, not counted as failed: 1 node  {NODES[3]}" in done.all) == (
        0,
        True,
    ), done.all
    assert [small.is_new(name) for name in NODES] == [True, True, True, False]


@pytest.mark.parametrize(
    ("fault", "reference"),
    [("api-down", "[not-reached]"), ("api-forbidden", "[forbidden]")],
)
def test_an_api_server_that_does_not_list_its_nodes(small: Site, fault: str, reference: str) -> None:
    describe(small, LIVE)
    small.fault("api", fault)
    done = plan(small)
    assert (done.code, done.out) == (2, "")
    assert "small: nodes from the Kubernetes API of lab/kubeconfig: " in done.err
    assert reference in done.err
    checked = small.rollout("check")
    assert checked.code == 0, checked.err
    assert "small: its nodes were not read: " in checked.err


def test_an_api_server_without_such_nodes(small: Site) -> None:
    describe(small, LIVE.replace("in (a, b)", "in (c)"))
    done = plan(small)
    assert done.code == 2
    assert (
        done.err
        == "error: nodes from the Kubernetes API: none of 4 nodes matches `example.net/rack in (c)` [no-nodes]\n"
    )


def test_cordoned_nodes_are_skipped_unless_the_playbook_includes_them(small: Site) -> None:
    small.fault("small-002", "cordoned")
    made = planned(small)
    assert (made["changed"], about_nodes(made)) == (3, [])
    (left,) = made["left"]
    assert (left["standing"], left["reference"], left["nodes"]) == ("skipped", "cordoned", "small-002")
    done = small.rollout("apply", "p.json", "--yes")
    assert done.code == 0, "skipping on purpose is no failure"
    playbook = small.folder / "playbooks/pulls.yaml"
    playbook.write_text(playbook.read_text() + "cordoned: true\n")
    assert planned(small)["changed"] == 1


def test_nodes_missing_in_the_api_server_or_the_inventory_are_reported(small: Site) -> None:
    describe(
        small,
        LISTED.replace("  - {name: small-002, labels: {topology.kubernetes.io/zone: z1, example.net/rack: a}}\n", ""),
    )
    (remark,) = about_nodes(planned(small))
    assert (remark["reference"], remark["nodes"]) == ("not-in-inventory", "small-002")
    small.fault("api", "api-down")
    refused = plan(small)
    assert (refused.code, "api-not-reached" in refused.err) == (2, True), "its gates could not be asked"
    policy(small, "waves: [canary, rest]", f"{NO_API_GATES}waves: [canary, rest]")
    assert {remark["reference"] for remark in about_nodes(planned(small))} == {"api-not-asked", "gates-without"}


def test_new_and_replaced_nodes_are_reported(small: Site) -> None:
    describe(small, "\n".join(line for line in LISTED.splitlines() if "small-061" not in line) + "\n")
    planned(small)
    assert small.rollout("apply", "p.json", "--yes").code == 0
    describe(small, LISTED)
    identity = small.node("small-001") / "etc/machine-id"
    identity.chmod(0o644)
    identity.write_text("f" * 32 + "\n")
    found = {remark["reference"]: remark["nodes"] for remark in about_nodes(planned(small))}
    assert found == {"new-node": "small-061", "replaced-node": "small-001"}


def test_nodes_of_an_ansible_inventory_are_planned_and_changed(small: Site) -> None:
    script = small.folder / "inventories/hosts"
    script.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(HOSTS)}\nEND\n")
    describe(small, ANSIBLE)
    done = plan(small)
    assert (done.code, "script-not-executable" in done.err) == (2, True)
    assert small.rollout("check").code == 2, "a script that fails is a mistake in the files"
    script.chmod(0o755)
    assert small.rollout("check").code == 0
    assert planned(small)["changed"] == 4
    done = small.rollout("apply", "p.json", "--yes")
    assert done.code == 0, done.out + done.err
    assert all(small.is_new(name) for name in NODES)


def test_a_plan_outlives_a_node_that_left_and_one_that_joined(small: Site) -> None:
    """The selector decides which nodes of the API server are in the fleet."""
    describe(small, LIVE.replace("in (a, b)", "in (a)"))
    assert planned(small)["changed"] == 3
    describe(
        small,
        LIVE.replace("    selector: example.net/rack in (a, b)\n", "").replace(
            "    rackLabel: example.net/rack\n",
            "    rackLabel: example.net/rack\n    selector: kubernetes.io/hostname!=small-002\n",
        ),
    )
    done = small.rollout("apply", "p.json", "--yes")
    assert done.code == 0, done.out + done.err
    assert "gone since the plan, left alone, not counted as failed: 1 node  small-002" in done.out
    assert "joined since the plan, not part of it: 1 node  small-061" in done.out
    assert [small.is_new(name) for name in NODES] == [True, False, True, False]
