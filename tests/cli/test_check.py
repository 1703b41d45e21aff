"""``rollout check`` as typed: lines on stderr, exit codes, JSON."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from rollout.cli.check import check
from tests.documents import only
from tests.places import ROOT


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "inventories").mkdir()
    (tmp_path / "inventories" / "c.yaml").write_text("cluster: c\napiServer: v1.23.17\nnodes: {n1: }\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_shipped_files_have_no_mistakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(check)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "rno (2,000 nodes)" in result.stdout


def test_one_line_reports_success(folder: Path) -> None:
    result = CliRunner().invoke(check)
    assert (result.exit_code, result.stdout) == (0, "ok: c (1 node), 0 playbooks, 0 templates\n")


def test_a_playbook_of_three_lines_needs_no_templates_in_the_project(folder: Path) -> None:
    (folder / "playbooks").mkdir()
    (folder / "playbooks" / "pulls.yaml").write_text("name: pulls\nsettings:\n  serializeImagePulls: false\n")
    result = CliRunner().invoke(check)
    assert (result.exit_code, result.output) == (0, "ok: c (1 node), 1 playbook, 0 templates\n")


def test_each_mistake_is_one_line_on_stderr_and_exit_2(folder: Path) -> None:
    (folder / "inventories" / "c.yaml").write_text("clusster: c\napiServer: v1.23.17\nnodes: {n1: }\n")
    result = CliRunner().invoke(check)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "inventories/c.yaml:1:1: `cluster` is missing [missing-key]\n"
        "inventories/c.yaml:1:1: unknown key `clusster` (did you mean `cluster`?) [unknown-key]\n"
        "2 mistakes\n"
    )


def test_no_escape_sequence_reaches_the_terminal(folder: Path) -> None:
    (folder / "inventories" / "c.yaml").write_text('"cl\\e[2J": c\n')
    (folder / "inventories" / "x\x1b[2Jy.yaml").write_text("")
    result = CliRunner().invoke(check)
    assert result.exit_code == 2
    assert "\x1b" not in result.output


def test_json(folder: Path) -> None:
    (folder / "inventories" / "d.yaml").write_text("cluster: d\napiServer: v1.23.17\nnodes: {'n[': }\n")
    (folder / "inventories" / "a b.yaml").write_text("")
    result = CliRunner().invoke(check, ["-o", "json"])
    document = only(result.stdout)
    assert (result.exit_code, result.stderr) == (2, "")
    assert (document["kind"], document["ok"]) == ("Check", False)
    assert document["inventories"] == [{"cluster": "c", "nodes": 1}]
    assert document["problems"][1] == {
        "file": "inventories/d.yaml",
        "line": 3,
        "column": 9,
        "reference": "bad-nodeset",
        "message": "`n[`: a `[` without its partner",
        "hint": "",
    }
    assert document["problems"][0]["file"] is None


@pytest.mark.parametrize("version", ["v1.99.0", "v1.19.3"])
def test_an_api_server_of_no_known_kubelet_is_a_mistake(folder: Path, version: str) -> None:
    (folder / "inventories" / "c.yaml").write_text(f"cluster: c\napiServer: {version}\nnodes: {{n1: }}\n")
    result = CliRunner().invoke(check)
    assert result.exit_code == 2
    assert (
        f"inventories/c.yaml: `apiServer`: no kubelet that rollout knows (1.20 to 1.37) may run under an API server {version}"
        in result.stderr
    )
    assert "[api-server-unsupported]" in result.stderr


def test_a_server_that_is_newer_than_its_kubelets_may_be_is_none(folder: Path) -> None:
    (folder / "inventories" / "c.yaml").write_text("cluster: c\napiServer: v1.40.0\nnodes: {n1: }\n")
    assert CliRunner().invoke(check).exit_code == 0


def test_a_file_of_allowed_signers_that_is_not_there_is_a_mistake(folder: Path) -> None:
    inventory = folder / "inventories" / "c.yaml"
    rule = "approvals: {count: 1, allowedSigners: signers}\n"
    inventory.write_text(f"cluster: c\napiServer: v1.23.17\nnodes: {{n1: }}\n{rule}")
    result = CliRunner().invoke(check)
    assert (
        result.stderr == "inventories/c.yaml:4:20: `approvals` needs signers: no such file [file-missing]\n1 mistake\n"
    )
    (folder / "signers").write_text("")
    assert CliRunner().invoke(check).exit_code == 0


SSH = """\
Host east-*
  ProxyJump bastion-east
Host west-*
  ProxyJump bastion-west
Host *-db
  HostName 10.0.0.5
"""


def test_one_machine_in_two_clusters_is_a_warning_with_both_places(folder: Path) -> None:
    """Whether it is one is decided by the SSH configuration: two names of one address, not one address behind two bastions."""
    for name in ("east", "west"):
        nodes = f"nodes:\n  {name}-db: {{}}\n  {name}-1: {{address: c-{name[0]}.example}}\n  both: {{port: 22}}\n"
        (folder / "inventories" / f"{name}.yaml").write_text(f"cluster: {name}\napiServer: v1.33.0\n{nodes}")
    (folder / "ssh_config").write_text(SSH)
    result = CliRunner().invoke(check, ["--ssh-config", "ssh_config"])
    assert result.exit_code == 0, "each file is right"
    (line,) = result.stderr.splitlines()
    assert line.startswith(
        "warning: one machine in two clusters: both of east (inventories/east.yaml:6:3) and both of west (inventories/west.yaml:6:3): "
    )
    document = only(CliRunner().invoke(check, ["--ssh-config", "ssh_config", "-o", "json"]).stdout)
    assert document["shared"] == [
        {
            "count": 1,
            "one": {
                "cluster": "east",
                "nodes": "both",
                "place": {"file": "inventories/east.yaml", "line": 6, "column": 3},
            },
            "other": {
                "cluster": "west",
                "nodes": "both",
                "place": {"file": "inventories/west.yaml", "line": 6, "column": 3},
            },
        }
    ]
    (folder / "ssh_config").write_text(SSH.replace("bastion-west", "bastion-east"))
    result = CliRunner().invoke(check, ["--ssh-config", "ssh_config"])
    assert (
        "east-db of east (inventories/east.yaml:4:3) and west-db of west (inventories/west.yaml:4:3)" in result.stderr
    )
