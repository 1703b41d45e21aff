"""Completions: in a real bash, quick, from files alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from rollout.cli.completion import BY_NAME
from rollout.cli.from_table import FromTable
from rollout.cli.main import run
from rollout.cli.parameter_table import PARAMETERS
from rollout.cli.registry import SECTIONS
from rollout.cli.table_group import COMPLETE, FirstWordGroup
from tests.command_table import with_parameters
from tests.places import ROOT

INVENTORY = """\
cluster: small
apiServer: v1.34.2
nodes:
  n[001-300]:
racks: {rack01: "n[001-150]", rack02: "n[151-300]"}
groups: {gpu: {nodes: "n[001-010]"}}
"""
FROM_API = """\
cluster: live
apiServer: v1.34.2
nodesFrom: {kubernetes: {kubeconfig: kubeconfig}}
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in (("inventories/small.yaml", INVENTORY), ("rollout.toml", 'cluster = "small"\n')):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "playbooks").mkdir()
    (tmp_path / "playbooks/pulls.yaml").write_text("name: pulls\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def completed(line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What the script of bash is given for ``rollout LINE``."""
    monkeypatch.setenv(COMPLETE, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"rollout {line}")
    assert run([]) == 0
    return [row.partition(",")[2] for row in capsys.readouterr().out.splitlines() if row]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("docto", ["doctor"]),
        ("plan --cluster ", ["small"]),
        ("plan --playbook p", ["pulls"]),
        ("plan --limit @", ["@all", "@gpu", "@rack01", "@rack02"]),
        ("plan --limit @rack01&@g", ["@rack01&@gpu"]),
        ("plan --limit '@rack01!n00", [f"@rack01!n00{digit}" for digit in range(1, 10)]),
        ("exec n01", [f"n01{digit}" for digit in range(10)]),
        ("plan --limit @nothing", []),
        ("plan --set serializeIm", ["serializeImagePulls="]),
        ("explain imagePullProg", ["imagePullProgressDeadline"]),
        ("report r", []),
        ("lab fault n001 refus", ["refuse"]),
        ("doctor --al", ["--all"]),
        ("show completion z", ["zsh"]),
        ("completion z", ["zsh"]),
        ("cluster fr", ["freeze"]),
        ("cluster freeze --cl", ["--cluster"]),
        ("freeze --cl", ["--cluster"]),
        ("diagnose pr", ["probe", "pr"]),
        ("diagnose probe --nodes", ["--nodes-per-kind"]),
        ("diagnose x.log --sin", ["--since"]),
        ("plan --cluster nowhere --limit @", []),
    ],
)
def test_what_is_completed(
    line: str, found: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert completed(line, monkeypatch, capsys) == found


def test_every_command_is_completed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert completed("", monkeypatch, capsys) == [name for names in SECTIONS.values() for name in names]


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_command_from_the_table_completes_as_itself(name: str) -> None:
    real, listed = with_parameters()[name], FromTable().command(name)
    assert suggestions(listed, listed, "-") == suggestions(real, real, "-")
    values = {parameter.name: suggestions(real, parameter, "") for parameter in real.params}
    of_table = {parameter.name: suggestions(listed, parameter, "") for parameter in listed.params}
    words = {each.name for each in real.params if isinstance(real, FirstWordGroup) and isinstance(each, click.Argument)}
    for parameter in values.keys() - BY_NAME.keys() - words:
        assert of_table[parameter] == values[parameter]
    assert of_table.keys() == values.keys()
    assert isinstance(listed, FirstWordGroup) == isinstance(real, FirstWordGroup)
    assert isinstance(listed, click.Group) == isinstance(real, click.Group)


HELP = ("-h", "--help")
Completes = click.Command | click.Parameter


def suggestions(command: click.Command, of: Completes, typed: str) -> list[tuple[object, str, str | None]]:
    found = of.shell_complete(click.Context(command, info_name="x", help_option_names=list(HELP)), typed)
    return [(item.value, item.type, item.help) for item in found if item.value not in HELP]  # as an earlier call set it


@pytest.mark.parametrize("broken", ["cluster = [\n", "cluser = 'x'\n"])
def test_a_broken_project_completes_nothing_and_prints_no_error(
    project: Path, broken: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "rollout.toml").write_text(broken)
    assert completed("plan --cluster ", monkeypatch, capsys) == []
    assert capsys.readouterr().err == ""


def test_nodes_of_an_api_server_are_not_asked_for(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A socket would fail this test: it has no marker. The kubeconfig does not even exist."""
    (project / "inventories/live.yaml").write_text(FROM_API)
    assert completed("plan --cluster live --limit n", monkeypatch, capsys) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.process
def test_each_script_is_for_rollout(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", "completion", shell]) == 0
    text = capsys.readouterr().out
    assert f"{COMPLETE}={shell}_complete" in text
    assert "rollout" in text


@pytest.fixture
def bash(tmp_path: Path) -> list[str]:
    """A bash that has sourced the script, with ``rollout`` on its path."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/rollout"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m rollout.cli "$@"\n')
    program.chmod(0o755)
    return ["bash", "--norc", "-c"]


REPLY = """\
source <(rollout show completion bash)
COMP_LINE=$1 COMP_POINT=${#1} COMPREPLY=()
_rollout_completion rollout 2>/dev/null
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("line", "replies"),
    [
        ("rollout plan --limit @rack0", ["rack01", "rack02"]),
        ("rollout plan --limit=@g", ["gpu"]),
        ("rollout plan --limit '@g", ["@gpu"]),
        ("rollout plan --cluster=", ["small"]),
    ],
)
def test_bash_replaces_only_what_stands_after_its_own_break(
    tmp_path: Path, bash: list[str], line: str, replies: list[str]
) -> None:
    environment = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    done = subprocess.run(
        [*bash, REPLY, "bash", line], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == replies
