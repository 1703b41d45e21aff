"""The second cluster from its shipped files: new kubelets, containerd 1.7 and 2, CRI-O, GPUs, a control plane."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controllers import Done
from tests.documents import printed
from tests.places import ROOT
from tests.story.conftest import Site, in_memory, lab_up

pytestmark = [pytest.mark.process, pytest.mark.drawn(1)]

WORKERS = "iad-work-[001-010,031-033,189]"
DEVICES = [f"iad-gpu-{at:02d}" for at in range(1, 7)]
CONTROLLERS = ["iad-cp-1", "iad-cp-2", "iad-cp-3"]
FEW = f"{WORKERS},iad-gpu-[01-06],iad-cp-[1-3]"
HURRIED = {
    "soak: 60s": "soak: 600ms",
    "perRack: 10%": "perRack: 50%",
    "perZone: 5%": "perZone: 50%",
    "  pace: 5": "  pace: 20",
}


@pytest.fixture
def iad(tmp_path: Path) -> Iterator[Site]:
    """Twenty-three nodes of every kind that iad has, with its shipped files and a faster playbook."""
    for name in ("inventories", "templates"):
        (tmp_path / name).symlink_to(ROOT / name)
    text = (ROOT / "playbooks/parallel-pulls.yaml").read_text()
    for said, instead in HURRIED.items():
        assert said in text
        text = text.replace(said, instead)
    write_playbook(tmp_path, text)
    with in_memory(tmp_path) as room:
        site = Site(tmp_path, room / "lab")
        with lab_up(site, "--cluster", "iad", "--limit", FEW):
            yield site


def write_playbook(folder: Path, text: str) -> None:
    (folder / "playbooks").mkdir(exist_ok=True)
    (folder / "playbooks/parallel-pulls.yaml").write_text(text)


def plan(site: Site) -> Any:
    done = site.rollout("plan", "--cluster", "iad", "--limit", FEW, "--out", "p.json", "-o", "json")
    assert done.code == 0, done.err
    return done.json()


def apply(site: Site) -> Done:
    done = site.rollout("apply", "p.json", "--yes")
    assert done.code == 0, done.out + done.err
    return done


def names(site: Site) -> list[str]:
    return sorted(path.name for path in (site.lab / "nodes").iterdir())


def is_parallel(site: Site, name: str) -> bool:
    """Whether the node has the new configuration, in the files of its layout. A half change fails the test."""
    paths = [site.node(name) / place for place in ("var/lib/kubelet/config.yaml", "etc/kubernetes/kubelet-config.yaml")]
    (text,) = [path.read_text() for path in paths if path.exists()]
    said = {
        bool(re.search(line, text, re.MULTILINE))
        for line in ("^serializeImagePulls: false", "^maxParallelImagePulls: 5$", "^registryPullQPS: 20$")
    }
    assert len(said) == 1, text
    return said.pop()


def test_plan_apply_plan_again_and_an_emergency_on_every_kind_of_node(iad: Site) -> None:
    before = iad.everything(*names(iad))
    made = plan(iad)
    labels = {group["label"] for group in made["groups"]}
    for word in ("1.33.5", "1.34.2", "1.35.1", "1.36.1", "containerd", "CRI-O", "(deb)", "(rpm)", "plain unit"):
        assert any(word in label for label in labels), (word, labels)
    (skipped,) = made["left"]
    assert (skipped["standing"], skipped["reference"], skipped["nodes"]) == ("skipped", "control-plane", "iad-cp-[1-3]")
    assert "canary" in made["waves"][0]["name"]
    assert made["waves"][-1]["name"] == "devices"
    assert made["waves"][-1]["nodes"] == "iad-gpu-[02-06]", "one of them is a canary"

    apply(iad)
    assert [name for name in names(iad) if not is_parallel(iad, name)] == CONTROLLERS

    again = plan(iad)
    assert (again["changed"], [entry["standing"] for entry in again["left"]]) == (0, ["as-wanted", "skipped"])
    assert apply(iad).out.startswith("nothing to do, as the nodes were at ")

    back = iad.rollout("rollback", "--cluster", "iad", "--emergency", "--limit", FEW, "--yes")
    assert back.code == 0, back.out + back.err
    assert iad.everything(*names(iad)) == before


def test_the_other_clusters_playbook_finds_the_home_of_its_intent_on_each_runtime_here(iad: Site) -> None:
    """``imagePullProgressDeadline: 5m`` is containerd's default from 1.7.10 on; this CRI-O's default is off, so it gets a new file."""
    (iad.folder / "playbooks/image-pulls.yaml").write_text((ROOT / "playbooks/image-pulls.yaml").read_text())
    asked = ("--cluster", "iad", "--playbook", "image-pulls", "--limit", "iad-work-[001-010]", "--out", "p.json")
    made = iad.rollout("plan", *asked, "-o", "json").json()
    assert made["changed"] == 10
    for group in made["groups"]:
        said, crio = json.dumps(group, ensure_ascii=False), "CRI-O" in group["label"]
        assert ("/etc/crio/crio.conf.d/99-rollout.conf" in said, "tightens: off" in said) == (crio, crio), said
        assert ("5m0s is already containerd's default and not written" in said) == (not crio), said
        assert [unit for unit in group["units"] if unit != "kubelet.service"] == (["crio.service"] if crio else [])


def test_the_control_plane_is_last_and_one_node_at_a_time_if_the_playbook_includes_it(iad: Site) -> None:
    text = (iad.folder / "playbooks/parallel-pulls.yaml").read_text()
    write_playbook(iad.folder, text.replace("controlPlane: false", "controlPlane: true"))
    made = plan(iad)
    assert [wave["name"] for wave in made["waves"]][-2:] == ["devices", "control plane"]
    assert (made["waves"][-1]["nodes"], made["waves"][-1]["atOnce"]) == ("iad-cp-[1-3]", 1)
    done = iad.rollout("apply", "p.json", "--yes", "-o", "json")
    assert done.code == 0, done.out + done.err
    lines = printed(done.out)
    states = dict.fromkeys(names(iad), "pending")
    most = 0
    for line in lines:
        if line.get("node") in states and line.get("state"):
            states[line["node"]] = line["state"]
        most = max(most, sum(states[name] in ("applying", "applied") for name in CONTROLLERS))
    assert most == 1
    assert all(is_parallel(iad, name) for name in names(iad))
