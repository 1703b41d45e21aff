"""No command has an option that does nothing: each option of reaching nodes and keeping state is read in a call."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from rollout.cli.main import run
from rollout.cli.proposals import REPEATED
from rollout.composition.wiring import Session
from tests.cli.test_plan import SOME_CHANGE, planned
from tests.command_counts import every_command

pytestmark = [pytest.mark.process, pytest.mark.drawn(8)]  # nodes and an API server at closed ports of this machine

INVENTORY = """\
cluster: small
apiServer: v1.23.17
racks: {a: 'n[1-3]'}
nodes: {'n[1-3]': {}}
endpoints: {kubeconfig: kubeconfig}
playbook: pulls
"""
KUBECONFIG = """\
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]
users: [{name: u, user: {token: secret}}]
"""

ONE = ("--cluster", "small")
OF_FIELD = {
    "ssh_config": ("ssh_config",),
    "accept_new": ("accept_new",),
    "sudo_password": ("ask_sudo_password", "sudo_password_file"),
    "engine": ("engine", "scheduler", "certificates"),
    "kubeconfig": ("kubeconfig",),
    "state": ("state",),
    "shared": ("journal",),
}
"""Field of a session → the options that set it."""

CALLS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "abort": (("abort",),),
    "apply": (("apply", *ONE, "--yes"), ("apply", "p.plan.json", "--yes")),
    "approve": (("approve", "p.plan.json", "--key", "key", "--yes"),),
    "cluster freeze": (("cluster", "freeze", *ONE, "--reason", "why"),),
    "cluster unfreeze": (("cluster", "unfreeze", *ONE, "--reason", "why", "--yes"),),
    "cluster unlock": (("cluster", "unlock", *ONE, "--reason", "why", "--yes"),),
    "continue": (("continue", "--yes"),),
    "diagnose": (("diagnose", *ONE),),
    "diagnose probe": (("diagnose", "probe", "image:1", *ONE, "--yes"),),
    "doctor": (("doctor", *ONE),),
    "exec": (("exec", "n1", "uptime", *ONE, "--yes"),),
    "explain": (("explain", "maxPods", "--node", "n1", *ONE),),
    "export kubeadm": (("export", "kubeadm", *ONE),),
    "export new-nodes": (("export", "new-nodes", "k3s", *ONE),),
    "newcomers": (("newcomers", *ONE, "--yes"),),
    "pause": (("pause",),),
    "plan": (("plan", *ONE), ("plan", "--cluster", "plain")),
    "prepull": (("prepull", "image:1", *ONE, "--yes"),),
    "regions workers": (("regions", "workers", *ONE, "--engine", "dask", "--scheduler", "tcp://127.0.0.1:1"),),
    "report": (("report",),),
    "rollback": (("rollback", *ONE, "--emergency", "--yes"),),
    "runs": (("runs",),),
    "show metrics": (("show", "metrics"),),
    "status": (("status",),),
    "uninstall": (("uninstall", *ONE, "--yes"),),
    "verify": (("verify", *ONE),),
}

ELSEWHERE = {
    "own": "of settings that are owned, the inventory",
    "resume": "what an apply reads",
    "watch": "with --late, what a rollback reads",
    "ssh": "what exec reads; it needs a terminal",
    "serve": "a server that reads a journal",
}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    plain = INVENTORY.replace("small", "plain").replace("endpoints: {kubeconfig: kubeconfig}\n", "")
    texts = {
        "inventories/small.yaml": INVENTORY,
        "inventories/plain.yaml": plain,
        "playbooks/pulls.yaml": "name: pulls\nsettings: {serializeImagePulls: false}\n",
        "kubeconfig": KUBECONFIG,
        "ssh_config": "Host n*\n  HostName 127.0.0.1\n  Port 1\n",
        "rollout.toml": 'ssh_config = "ssh_config"\n',
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    monkeypatch.chdir(tmp_path)
    planned(tmp_path, SOME_CHANGE)
    return tmp_path


def test_each_command_with_such_options_is_called() -> None:
    takes = {name for name, command in every_command() if REPEATED & {str(each.name) for each in command.params}}
    unsessioned = {"check", "diagnose pod", "init", "show config"}  # their code reads each option as an argument
    assert CALLS.keys() | ELSEWHERE.keys() == takes - unsessioned


@pytest.mark.parametrize("name", CALLS)
def test_a_command_has_the_options_that_it_reads_and_no_others(
    site: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert site
    read: set[str] = set()
    whole = Session.__getattribute__

    def noted(session: Session, field: str) -> object:
        if sys._getframe(1).f_code.co_name not in ("replace", "__eq__", "__hash__", "__repr__"):  # noqa: SLF001
            read.update(OF_FIELD.get(field, ()))
        return whole(session, field)

    monkeypatch.setattr(Session, "__getattribute__", noted)
    for words in CALLS[name]:
        run(list(words))
    command = dict(every_command())[name]
    assert REPEATED & {str(each.name) for each in command.params} == read
