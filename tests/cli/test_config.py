"""``rollout.toml``: found upwards, under variables and options, strict; and ``rollout show config``."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollout.cli.main import run
from rollout.core.reading.project_file import PROJECT_KEYS
from tests.documents import only

INVENTORY = "cluster: c\napiServer: v1.23.17\nnodes: {n1: }\n"
TOML = 'cluster = "c"\nstate = "kept"\nssh_config = "ssh/config"\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project; the current folder is two folders below it."""
    for key in PROJECT_KEYS.values():
        monkeypatch.delenv(key.variable, raising=False)
    (tmp_path / "rollout.toml").write_text(TOML)
    (tmp_path / "inventories").mkdir()
    (tmp_path / "inventories/c.yaml").write_text(INVENTORY)
    (tmp_path / "a/b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a/b")
    return tmp_path


def settings(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, tuple[str | None, str, str | None]]:
    assert run(["show", "config", "-o", "json", *words]) == 0
    document = only(capsys.readouterr().out)
    return {each["key"]: (each["value"], each["source"], each["where"]) for each in document["settings"]}


def test_the_option_wins_then_the_variable_then_the_file_then_the_default(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = project / "rollout.toml"
    assert settings(capsys) == {
        "cluster": ("c", "file", f"{file}:1:1"),
        "state": (str(project / "kept"), "file", f"{file}:2:1"),
        "journal": (None, "default", None),
        "ssh_config": (str(project / "ssh/config"), "file", f"{file}:3:1"),
        "engine": ("embedded", "default", None),
        "scheduler": (None, "default", None),
        "certificates": (None, "default", None),
        "kubeconfig": (None, "default", None),
        "output": ("json", "option", "-o"),
    }
    monkeypatch.setenv("ROLLOUT_CLUSTER", "d")
    monkeypatch.setenv("ROLLOUT_STATE", "here")
    found = settings(capsys, "--cluster", "e")
    assert found["cluster"] == ("e", "option", "--cluster")
    assert found["state"] == ("here", "variable", "ROLLOUT_STATE")


def test_the_state_folder_belongs_to_the_project_and_not_to_the_current_folder(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "rollout.toml").write_text("")
    assert settings(capsys)["state"] == (str(project / ".rollout"), "default", None)
    assert run(["status"]) == 2
    assert str(project / ".rollout") in capsys.readouterr().err


def test_check_reads_the_project_from_any_folder_of_it(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "ssh").mkdir()
    (project / "ssh/config").write_text("")
    assert run(["check"]) == 0
    assert capsys.readouterr().out == "ok: c (1 node), 0 playbooks, 0 templates\n"


def test_without_the_file_the_current_folder_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert settings(capsys)["state"] == (".rollout", "default", None)
    assert run(["show", "config"]) == 0
    assert "there is no rollout.toml here or above" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('cluster = "c"\n\n  kubeconfg = "k"\n', ":3:3: unknown key `kubeconfg` (did you mean `kubeconfig`?) [unknown-key]"),
        ("cluster = 3\n", ":1:1: `cluster` must be a text in quotes [wrong-type]"),
        ('output = "yaml"\n', ":1:1: `output` must be one of text, json [bad-value]"),
        ('state = ""\n', ":1:1: `state` must be a text of printable characters, and not empty [bad-value]"),
        ('state = "\\u001b[2J"\n', "[bad-value]"),
        ('[ssh]\nuser = "x"\n', ":1:1: unknown key `ssh` ("),
        ('cluster = "c"\ncluster = "d"\n', ":2:"),
        ("cluster = \n", "[not-toml]"),
        ("cluster = edge\n", ':1:11: Invalid value (a text is in quotes: key = "text") [not-toml]'),
        ("cluster: edge\n", "[not-toml]"),
        ('cluster = "c', "[not-toml]"),
        ("a = " + "[" * 5000, "[not-toml]"),
        ("#" * 20000, "[file-too-large]"),
    ],
)  # fmt: skip
def test_a_mistake_has_its_place(project: Path, text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "rollout.toml").write_text(text)
    assert run(["show", "config"]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert "\x1b" not in told


def test_a_byte_order_mark_is_no_mistake(project: Path) -> None:
    path = project / "rollout.toml"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert run(["show", "config"]) == 0


def test_a_cluster_without_an_inventory_is_found_by_check(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "rollout.toml").write_text('cluster = "nowhere"\n')
    assert run(["check"]) == 2
    said = capsys.readouterr().err
    assert "rollout.toml:1:1: there is no cluster `nowhere` (" in said
    assert "[unknown-cluster]" in said


def test_a_file_that_everybody_can_write_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "rollout.toml").chmod(0o666)
    assert run(["show", "config"]) == 2
    assert "[project-not-yours]" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["plan"], ["status"], ["show", "config"]])
def test_help_shows_the_variables(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*words, "--help"]) == 0
    assert "ROLLOUT_STATE" in capsys.readouterr().out


def test_the_home_of_an_unknown_user_stays_as_written(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "rollout.toml").write_text('state = "~nobody-of-this-name/kept"\n')
    assert settings(capsys)["state"][0] == str(project / "~nobody-of-this-name/kept")
