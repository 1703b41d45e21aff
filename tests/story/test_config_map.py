"""kubeadm's ConfigMap, by the command line on the lab: planned, written, restored, and a controller that dies in between."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from rollout.adapters.kubernetes.client import ApiClient
from rollout.adapters.kubernetes.config_maps import ApiConfigMaps
from rollout.adapters.kubernetes.kubeconfig import load_kubeconfig
from tests.controllers import Done, finished
from tests.places import ROOT
from tests.story.conftest import Site, served
from tests.story.test_faults import policy, where

pytestmark = pytest.mark.process

PLACE = ("kube-system", "kubelet-config-1.23")
"""The lab's API server is of 1.23."""
APPLY = ("apply", "--cluster", "small", "--yes")


@pytest.fixture
def whole(tmp_path: Path) -> Iterator[Site]:
    """Two nodes, which are the whole cluster."""
    with served(tmp_path, "small-001,small-061") as made:
        path = made.folder / "inventories/small.yaml"
        text = (
            path.read_text()
            .replace("[001-060]", "001")
            .replace("[061-120]", "061")
            .replace("small-[001-120]", "small-[001,061]")
        )
        path.write_text(f"{text}endpoints: {{kubeconfig: {made.lab / 'kubeconfig'}}}\n")
        policy(made, "guard: 60s", "guard: 60s\nkubeadmConfigMap: true\nnewNodes: {formats: [kubespray]}")
        yield made


@contextmanager
def config_maps(site: Site) -> Iterator[ApiConfigMaps]:
    with closing(ApiClient(load_kubeconfig(str(site.lab / "kubeconfig")))) as client:
        yield ApiConfigMaps(client)


def text(site: Site) -> str:
    with config_maps(site) as there:
        found = there.read(*PLACE, 10.0)
    assert found is not None
    return found.data["kubelet"]


def overwrite(site: Site, theirs: str) -> None:
    with config_maps(site) as there:
        found = there.read(*PLACE, 10.0)
        assert found is not None
        there.write(found, "kubelet", theirs, 10.0)


def dying(site: Site, when: str) -> Done:
    command = [sys.executable, "-m", "tests.story.dying_at_config_map", *site.command(*APPLY)[3:]]
    done = finished(command, site.folder, environment={**os.environ, "DIE_WHEN": when, "PYTHONPATH": str(ROOT)})
    assert done.code == -signal.SIGKILL, done.out + done.err
    return done


def done(site: Site, *words: str, code: int = 0) -> Done:
    found = site.rollout(*words)
    assert found.code == code, found.out + found.err
    return found


def test_it_is_planned_written_and_restored_whatever_dies_in_between(whole: Site) -> None:
    old = text(whole)
    new = old.replace("serializeImagePulls: true", "serializeImagePulls: false")
    assert new != old

    planned = done(whole, "plan", "--cluster", "small", "--out", "p.json")
    assert "Nodes that join later: ConfigMap kube-system/kubelet-config-1.23, key kubelet" in planned.out
    assert "+serializeImagePulls: false" in planned.out
    assert "[config-map-in-part]" in planned.out, "the deadline is a flag"
    assert json.loads((whole.folder / "p.json").read_text())["config_map"]["after"] == new
    assert "`rollout export new-nodes kubespray PLAN` prints it" in planned.out
    assert "serializeImagePulls: false" in done(whole, "export", "new-nodes", "kubespray", "p.json").out

    # It dies before the request: the journal has it, the API server does not.
    dying(whole, "before")
    assert text(whole) == old
    resumed = done(whole, "resume", "--yes")
    assert "ConfigMap kube-system/kubelet-config-1.23: written, and read back" in resumed.out
    assert text(whole) == new
    back = done(whole, "rollback", where(whole)["run"], "--yes")
    assert "restored, and read back" in back.out
    assert text(whole) == old

    # It dies after the answer, which is in no journal. A rollback instead of a resume restores it.
    dying(whole, "after")
    assert text(whole) == new
    done(whole, "rollback", where(whole)["run"], "--yes")
    assert (text(whole), whole.is_new("small-001")) == (old, False)

    # The nodes have the change, the ConfigMap has not: a plan without nodes writes it, and has a rollback of its own.
    done(whole, *APPLY)
    changed = where(whole)["run"]
    overwrite(whole, old)
    planned = done(whole, "plan", "--cluster", "small", "--out", "q.json", "--exit-code", code=10)
    assert "0 nodes to change, 2 as wanted" in planned.out
    assert "apply it: rollout apply q.json" in planned.out
    assert "written, and read back" in done(whole, "apply", "q.json", "--yes").out
    assert text(whole) == new
    done(whole, "rollback", where(whole)["run"], "--yes")
    assert (text(whole), whole.is_new("small-001")) == (old, True)
    done(whole, "rollback", changed, "--yes")
    assert (text(whole), whole.is_new("small-001")) == (old, False)

    # An emergency asks no API server. What it leaves pending, `recover` does.
    done(whole, *APPLY)
    rescue = done(whole, "rollback", "--cluster", "small", "--emergency", "--yes", code=4)
    assert "pending recovery (ConfigMap kube-system/kubelet-config-1.23 is still to be restored)" in rescue.out
    assert text(whole) == new
    done(whole, "resume", "--recover-only", "--yes")
    assert text(whole) == old

    # Others write it while it is in force: it is left to them, and the rollback says what differs.
    done(whole, *APPLY)
    theirs = new.replace("maxPods: 110", "maxPods: 90")
    overwrite(whole, theirs)
    left = done(whole, "rollback", where(whole)["run"], "--yes", code=4)
    assert "maxPods: 110 → 90 [config-map-changed]" in left.out
    assert (text(whole), whole.is_new("small-001")) == (theirs, False)
