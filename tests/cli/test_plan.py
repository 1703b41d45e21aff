"""The exit code and the output of `rollout plan` when there is nothing to change."""

from __future__ import annotations

import hashlib
import os
import pty
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import click
import pytest

from rollout.adapters.journal import SqlJournal
from rollout.cli.main import run
from rollout.cli.options import session_options
from rollout.cli.runs import apply
from rollout.composition.wiring import Session
from rollout.core.model.snapshot import FleetSnapshot, Snapshot, Unread
from rollout.core.plans import snapshot_codec
from rollout.kubelet.node import sources
from tests.app.test_isolation import poison
from tests.cli.test_start import DATABASES, LISTS, REACHES_NODES, SCREENS
from tests.documents import only
from tests.kubelet.nodes import CONFIG_TEXT, kubeadm

INVENTORY = "cluster: small\napiServer: v1.23.17\nracks: {a: 'n[1-3]'}\nnodes: {'n[1-3]': {}}\n"
PLAYBOOK = "name: pulls\nsettings: {serializeImagePulls: false}\n"
AWAY = Unread("n1", "ssh-timeout", "no banner within 10 s")


def as_wanted(name: str) -> Snapshot:
    return kubeadm(name, config=CONFIG_TEXT.replace("serializeImagePulls: true", "serializeImagePulls: false"))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in (("inventories/small.yaml", INVENTORY), ("playbooks/pulls.yaml", PLAYBOOK)):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def planned(site: Path, nodes: Mapping[str, Snapshot | Unread], *words: str) -> int:
    digest = hashlib.sha256((site / "inventories/small.yaml").read_bytes()).hexdigest()
    fleet = FleetSnapshot("small", digest, "2026-11-20T16:00:00Z", nodes)
    (site / "fleet.snapshot.json").write_bytes(snapshot_codec.encode(fleet))
    return run(["plan", "--cluster", "small", "--snapshot", "fleet.snapshot.json", "--out", "p.plan.json", *words])


def unread(name: str) -> Unread:
    return replace(AWAY, node=name)


NAMES = ("n1", "n2", "n3")
ALL_AWAY = {name: unread(name) for name in NAMES}
ALL_WANTED = {name: as_wanted(name) for name in NAMES}
SOME_CHANGE: Mapping[str, Snapshot | Unread] = {**ALL_AWAY, "n2": kubeadm("n2"), "n3": as_wanted("n3")}
SOME_AWAY = {**ALL_WANTED, "n1": unread("n1")}


@pytest.mark.parametrize(
    ("nodes", "words", "code", "said"),
    [
        (ALL_WANTED, (), 0, "Nothing to do."),
        (ALL_WANTED, ("--exit-code",), 0, "Nothing to do."),
        (SOME_CHANGE, (), 0, "1 node to change"),
        (SOME_CHANGE, ("--exit-code",), 10, "1 node to change"),
        (ALL_AWAY, (), 4, "No node can be changed: 3 nodes could not be read."),
        (ALL_AWAY, ("--exit-code",), 4, "No node can be changed: 3 nodes could not be read."),
        (SOME_AWAY, (), 4, "No node can be changed: 1 node could not be read."),
        (ALL_WANTED, ("--set", "maxParallelImagePulls=5"), 4, "No node can be changed: 3 nodes were refused."),
    ],
)
def test_a_plan_without_changes_succeeds_only_if_every_node_was_read_and_is_as_wanted(
    site: Path,
    capsys: pytest.CaptureFixture[str],
    nodes: Mapping[str, Snapshot | Unread],
    words: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    assert planned(site, nodes, *words) == code
    assert said in capsys.readouterr().out


def test_a_fleet_with_one_failing_node_is_planned_and_its_trace_is_stored(
    site: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failure is injected where the change of a node is computed."""
    poisonous = CONFIG_TEXT.replace("cluster.local", "s3cret.local")
    nodes = {name: kubeadm(name, config=poisonous if name == "n2" else CONFIG_TEXT) for name in NAMES}
    poison(monkeypatch, sources, "find")
    assert planned(site, nodes) == 0
    shown = capsys.readouterr().out
    assert "2 nodes to change" in shown
    assert "  n2" in shown
    assert "[planning-failed]" in shown
    assert "s3cret" not in shown
    (file,) = site.glob("**/failed-on-nodes.txt")
    assert f"The trace is in {file.relative_to(site)}" in shown
    assert "ValueError: s3cret" in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.process
def test_a_plan_from_a_snapshot_imports_no_database_and_no_ssh(site: Path) -> None:
    assert planned(site, SOME_CHANGE) == 0
    words = ("plan", "--cluster", "small", "--snapshot", "fleet.snapshot.json", "--out", "q.plan.json")
    done = subprocess.run([sys.executable, "-c", LISTS, *words], capture_output=True, text=True, check=True)
    assert (site / "q.plan.json").exists()
    loaded = done.stderr.split()
    assert [name for name in (*DATABASES, *SCREENS, *REACHES_NODES) if name in loaded] == []


def test_a_saved_plan_is_shown_as_text_json_and_markdown(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    planned(site, {name: kubeadm(name) for name in NAMES})
    printed = capsys.readouterr().out
    digest = printed.partition("digest: ")[2].partition("\n")[0]
    assert run(["plan", "show", "p.plan.json", "--context", "0"]) == 0
    text = capsys.readouterr().out
    assert f"digest: {digest}\n" in text
    assert "rotateCertificates" not in text
    assert "rotateCertificates" in printed
    assert run(["plan", "show", "p.plan.json", "-o", "json"]) == 0
    assert only(capsys.readouterr().out)["digest"] == digest
    assert run(["plan", "show", "p.plan.json", "-o", "markdown"]) == 0
    assert capsys.readouterr().out.startswith("### Plan for `small`: 3 nodes to change\n")
    assert planned(site, {name: kubeadm(name) for name in NAMES}, "-o", "markdown") == 0
    assert capsys.readouterr().out.startswith("### Plan for `small`: 3 nodes to change\n")
    assert run(["plan", "show", "inventories/small.yaml"]) == 2


@pytest.mark.parametrize(("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_a_plan_has_colours_only_on_a_terminal_that_may_have_them(
    site: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], *, coloured: bool
) -> None:
    planned(site, {name: kubeadm(name) for name in NAMES})
    for name, value in {"TERM": "xterm", "NO_COLOR": "", **variables}.items():
        monkeypatch.setenv(name, value)
    person, terminal = pty.openpty()
    try:
        with os.fdopen(terminal, "w") as out:
            monkeypatch.setattr(sys, "stdout", out)
            assert run(["plan", "show", "p.plan.json"]) == 0
            out.flush()
            said = os.read(person, 65536)
    finally:
        os.close(person)
    assert (b"\x1b[32m" in said) == coloured


def test_a_plan_of_no_cluster_names_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan"]) == 2
    assert "no cluster was named (`--cluster " in capsys.readouterr().err


OPTIONS = {
    "ssh_config": "my ssh_config",
    "accept_new": "",
    "sudo_password_file": "sudo password",
    "engine": "dask",
    "scheduler": "tls://scheduler.example.net:8786",
    "certificates": "certs",
    "kubeconfig": "kube config",
    "state": "my state",
    "journal": "postgresql://me@db.example.net/rollout?sslmode=verify-full",
}
KUBECONFIG = """\
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: 'https://api.example.net'}}]
users: [{name: u, user: {token: secret}}]
"""
NOT_WRITTEN = {"ask_sudo_password", "output"}
"""Options with a terminal, and the form of the output."""


def test_the_command_that_applies_a_plan_has_every_option_of_the_plan(
    site: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without one of them it would reach the nodes in another way, or write another journal, outside the shared lease."""
    monkeypatch.setattr(
        Session, "past", lambda _session: SqlJournal(site)
    )  # the shared journal's freezes, without a server
    (site / "sudo password").write_text("secret\n")
    (site / "sudo password").chmod(0o600)
    (site / "kube config").write_text(KUBECONFIG)
    (site / "kube config").chmod(0o600)
    both = {option.name: option for option in click.command()(session_options(lambda _session: 0)).params}
    assert both.keys() - NOT_WRITTEN == OPTIONS.keys(), "a new shared option: give it a value here"
    words = [word for name, value in OPTIONS.items() for word in (both[name].opts[0], value) if word]
    assert planned(site, SOME_CHANGE, *words) == 0, capsys.readouterr().err
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("apply it: rollout apply "))
    context = apply.make_context("apply", shlex.split(line)[4:], resilient_parsing=True)
    assert {name: str(context.params[name]) for name in OPTIONS} == {
        name: value or "True" for name, value in OPTIONS.items()
    }


def test_the_command_that_applies_a_plan_repeats_nothing_that_was_not_given(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planned(site, SOME_CHANGE)
    assert "apply it: rollout apply p.plan.json\n" in capsys.readouterr().out


def test_the_command_that_applies_a_plan_repeats_nothing_that_holds_anyway(
    site: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value of rollout.toml, or a default. What a variable says is repeated: another shell does not have it."""
    (site / "rollout.toml").write_text('state = "runs"\nssh_config = "ssh_config"\n')
    (site / "ssh_config").write_text("")
    monkeypatch.setenv("ROLLOUT_KUBECONFIG", "kubeconfig")
    (site / "kubeconfig").write_text(KUBECONFIG)
    (site / "kubeconfig").chmod(0o600)
    same = (
        "--state",
        "./runs",
        "--ssh-config",
        str(site / "ssh_config"),
        "--kubeconfig",
        "kubeconfig",
        "--engine",
        "embedded",
    )
    assert planned(site, SOME_CHANGE, *same) == 0
    assert "apply it: rollout apply --kubeconfig kubeconfig p.plan.json\n" in capsys.readouterr().out
    monkeypatch.delenv("ROLLOUT_KUBECONFIG")
    (site / "rollout.toml").write_text('state = "runs"\nssh_config = "ssh_config"\nkubeconfig = "kubeconfig"\n')
    assert planned(site, SOME_CHANGE, *same) == 0
    assert "apply it: rollout apply p.plan.json\n" in capsys.readouterr().out
    assert planned(site, SOME_CHANGE, *same, "--state", "other") == 0
    assert "apply it: rollout apply --state other p.plan.json\n" in capsys.readouterr().out


def test_a_plan_that_can_never_be_applied_leaves_no_file(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert planned(site, {name: unread(name) for name in NAMES}) == 4
    assert "written: p.plan.json" in capsys.readouterr().out, "a file that was asked for is there"
    words = ["plan", "--cluster", "small", "--snapshot", "fleet.snapshot.json"]
    assert run(words) == 4
    said = capsys.readouterr().out
    assert "no plan file is written: there is nothing to apply" in said
    assert not list(site.glob("small-*"))
    assert run([*words, "-o", "json"]) == 4
    assert only(capsys.readouterr().out)["file"] == ""
