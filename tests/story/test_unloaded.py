"""A file that was edited but not loaded: plan, verify and explain report it; it is loaded only if accepted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.controllers import Done
from tests.story.conftest import Site

pytestmark = [pytest.mark.process, pytest.mark.drawn(1)]

NODES = "small-[001-003]"
NAMES = ("small-001", "small-002", "small-003")


def plan(site: Site, *words: str) -> Done:
    done = site.rollout("plan", "--cluster", "small", "--limit", NODES, "--out", "p.json", *words)
    assert "planning-failed" not in done.all, done.all
    return done


def edit(site: Site, name: str, old: str, new: str) -> Path:
    path = site.node(name) / "var/lib/kubelet/config.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return path


def explained(site: Site, setting: str, name: str) -> str:
    words = ("explain", setting, "--cluster", "small", "--node", name, "--ssh-config", str(site.lab / "ssh_config"))
    done = site.rollout(*words, "--state", site.state)
    assert done.code == 0, done.all
    return done.out


def test_a_manual_edit_without_a_restart(site: Site) -> None:
    """Incident 3: a file was edited by hand on one node, and its kubelet was not restarted."""
    edit(site, "small-001", "serializeImagePulls: true", "serializeImagePulls: false")
    playbook = site.folder / "playbooks/pulls.yaml"
    playbook.write_text(playbook.read_text().replace("  imagePullProgressDeadline: 5m\n", ""))
    refused = plan(site)
    assert "[edited-not-loaded]" in refused.out, refused.all
    assert "serializeImagePulls: unknown → false" in explained(site, "serializeImagePulls", "small-001")
    drifted = site.rollout("verify", "--cluster", "small", "--limit", NODES)
    assert (drifted.code, "edited-after-start /var/lib/kubelet/config.yaml: 1 node  small-001" in drifted.out) == (
        10,
        True,
    )

    accepted = "accept: [{setting: /var/lib/kubelet/config.yaml, reason: our own fix by hand}]\n"
    playbook.write_text(playbook.read_text() + accepted)
    planned = plan(site)
    assert "this is not in force yet: serializeImagePulls: unknown → false" in planned.out, planned.all
    done = site.rollout("apply", "p.json", "--yes")
    assert done.code == 0, done.all
    assert site.rollout("verify", "--cluster", "small", "--limit", NODES).code == 0
    assert "in force: false" in explained(site, "serializeImagePulls", "small-001")
    again = site.rollout("apply", "p.json", "--yes")
    assert (again.code, "already applied by run" in again.all) == (0, True), again.all
    assert "Nothing to do." in plan(site).out


def test_an_edit_by_others_is_not_brought_into_force(site: Site) -> None:
    """What the kubelet has loaded is known, because a run started it."""
    assert site.rollout("apply", "--cluster", "small", "--limit", NODES, "--yes").code == 0
    edit(site, "small-002", "maxPods: 110", "maxPods: 1")
    told = plan(site, "--set", "registryPullQPS=9")
    assert "[edited-not-loaded]" in told.out, told.all
    assert "maxPods: 110 → 1" in told.out
    assert "maxPods: 110 → 1" in explained(site, "maxPods", "small-002")
    left_out = site.rollout("apply", "p.json", "--yes")
    assert left_out.code == 4, left_out.all
    assert "registryPullQPS: 9" not in site.config("small-002"), "it is not changed"

    with_reason = "accept: [{setting: maxPods, reason: ticket 7}]\n"
    playbook = site.folder / "playbooks/pulls.yaml"
    playbook.write_text(playbook.read_text() + with_reason)
    agreed = plan(site, "--set", "registryPullQPS=9")
    assert "takes effect with this restart: maxPods: 110 → 1 (accepted: ticket 7)" in agreed.out, agreed.all


def test_a_file_loaded_by_a_signal_stays_loaded_after_a_forget(site: Site) -> None:
    """dockerd reads daemon.json on SIGHUP. The node's own record of it goes with ``forget``; the journal still has the run."""
    playbook = site.folder / "playbooks/pulls.yaml"
    text = playbook.read_text()
    playbook.write_text(text.replace("  imagePullProgressDeadline: 5m\n", "  maxConcurrentDownloads: 7\n"))
    assert plan(site).code == 0
    done = site.rollout("apply", "p.json", "--yes")
    assert done.code == 0, done.all
    assert '"max-concurrent-downloads": 7' in (site.node("small-001") / "etc/docker/daemon.json").read_text()
    diagnose = ("diagnose", "--cluster", "small", "--limit", NODES)
    assert "No finding." in site.rollout(*diagnose).out
    forgotten = site.rollout("uninstall", "--cluster", "small", "--limit", NODES, "--yes", "--reason", "handed over")
    assert forgotten.code == 0, forgotten.all
    found = site.rollout(*diagnose)
    assert "No finding." in found.out, found.all
    elsewhere = site.apart("other-journal").rollout(*diagnose)
    assert "not-in-force" in elsewhere.out, "another journal cannot know it"
