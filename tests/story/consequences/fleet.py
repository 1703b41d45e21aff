"""The fleet of the table: one lab node for each case, brought into its present state, and one plan for all of them."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.story.conftest import Site, in_memory, lab_up, make_site
from tests.story.consequences.table import Case

PLAYBOOK = """\
name: pulls
settings: {registryBurst: 10}
waves: [canary, rest]
limits: {perRack: 100%, pace: 20}
budgets: {wave: 2, rack: 2, fleet: 2}
soak: 600ms
rehearsal: false
"""

ANY_LOG = "accept: [log-unreadable]\n"
"""The journal of a node that is slow on a busy machine is not what a case is about."""


@dataclass(frozen=True)
class Answer:
    """What the plan has about one node: ``text`` is everything that it says of it."""

    changed: bool
    text: str


def name_of(number: int) -> str:
    return f"case-{number:03}"


@contextmanager
def made(folder: Path, cases: Mapping[str, Case]) -> Iterator[Site]:
    """The fleet, running."""
    with in_memory(folder) as room:
        site = replace(make_site(folder), lab=room / "lab")
        (folder / "inventories/small.yaml").write_text(inventory(cases, str(site.lab / "kubeconfig")))
        (folder / "playbooks/pulls.yaml").write_text(PLAYBOOK + ANY_LOG)
        with lab_up(site, "--cluster", "small"):
            for number, case in enumerate(cases.values(), 1):
                bring_about(site, name_of(number), case)
            yield site


def inventory(cases: Mapping[str, Case], kubeconfig: str) -> str:
    nodes = [
        {
            "name": name_of(number),
            "rack": "a",
            "labels": {"kubeletVersion": case.version, "containerRuntime": case.runtime, **case.labels},
            "settings": dict(case.settings),
        }
        for number, case in enumerate(cases.values(), 1)
    ]
    whole = {"cluster": "small", "apiServer": "v1.35.0", "endpoints": {"kubeconfig": kubeconfig}, "nodes": nodes}
    return json.dumps(whole)  # JSON is YAML


def bring_about(site: Site, name: str, case: Case) -> None:
    """The node's present state; its kubelet is started anew where its file changed."""
    top = site.node(name)
    for path, text in case.files.items():
        place = top / path.strip("/")
        (place if path.endswith("/") else place.parent).mkdir(parents=True, exist_ok=True)
        if not path.endswith("/"):
            place.write_text(text)
    for path, target in case.links.items():
        (top / path.strip("/")).parent.mkdir(parents=True, exist_ok=True)
        (top / path.strip("/")).symlink_to(target)
    for path in case.gone:
        (top / path.strip("/")).unlink()
    for number, path in enumerate(case.listens, 900):
        place = top / path.strip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        os.mknod(place, stat.S_IFSOCK | 0o600)
        with (top / "proc/net/unix").open("a") as table:
            table.write(f"0000000000000000: 00000002 00000000 00010000 0001 01 {number} {path}\n")
    config = top / "var/lib/kubelet/config.yaml"
    if case.config:
        config.write_text(config.read_text() + case.config)
        asked = ("ssh", "-F", str(site.lab / "ssh_config"), name, "systemctl restart kubelet")
        assert subprocess.run(asked, capture_output=True, check=False).returncode == 0
    if case.edited:
        config.write_text(config.read_text() + case.edited)


def answers(site: Site, cases: Mapping[str, Case]) -> Mapping[str, Answer]:
    """Case → what one plan of the whole fleet says of its node."""
    done = site.rollout("plan", "--cluster", "small", "--out", "p.json")
    assert (site.folder / "p.json").exists(), done.all
    plan = json.loads((site.folder / "p.json").read_text())
    return {case: _answer(plan, name_of(number)) for number, case in enumerate(cases, 1)}


def _answer(plan: Mapping[str, Any], name: str) -> Answer:
    left = [f"{each['reason']} [{each['reference']}]" for each in plan["left"] if each["name"] == name]
    if name not in plan["nodes"]:
        return Answer(changed=False, text="\n".join(left))
    group = plan["nodes"][name]["group"]
    (notes,) = [each["change"]["notes"] for each in plan["groups"] if each["name"] == group]
    said = [
        f"{each['text']} [{each['reference']}]"
        for each in plan["consequences"]
        if each["group"] == group and (not each["nodes"] or name in each["nodes"])
    ]
    remarks = [f"{each['text']} [{each['reference']}]" for each in plan["remarks"] if name in each["nodes"]]
    return Answer(changed=True, text="\n".join([*notes, *said, *remarks]))
