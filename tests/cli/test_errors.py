"""How errors are printed: a reference in each, and a document where programs read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollout.cli.errors import wants_json
from rollout.cli.main import run
from rollout.kubelet.explained.references import about
from tests.documents import only

USAGE = {
    "no-such-command": ["plna"],
    "no-such-option": ["status", "--bogus"],
    "missing-argument": ["exec"],
    "missing-option": ["approve", "p.json"],
    "option-misused": ["status", "--state"],
    "bad-value": ["rollback", "r1", "--pace", "fast"],
    "bad-usage": ["status", "r1", "r2"],
    "command-not-first": ["diagnose", "--since", "1h", "pod", "web.yaml"],
}


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is no project."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("reference", USAGE)
def test_a_command_line_that_does_not_fit_has_a_reference_that_explain_knows(
    reference: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(USAGE[reference]) == 2
    assert capsys.readouterr().err.endswith(f" [{reference}]\n")
    assert about(reference) is not None


def test_an_option_before_the_command_is_told_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--state", "s", "plan"]) == 2
    assert capsys.readouterr().err.endswith("(options follow the command: `rollout plan -o json`) [no-such-option]\n")
    assert run(["-o", "json", "plan"]) == 2
    assert only(capsys.readouterr().err)["problems"][0]["hint"] == "options follow the command: `rollout plan -o json`"


def test_no_words_show_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    run([])
    assert "Everyday:" in capsys.readouterr().err


@pytest.mark.parametrize("reference", USAGE)
def test_programs_get_it_as_a_document(reference: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = USAGE[reference]
    assert run([words[0], "-o", "json", *words[1:]]) == 2
    printed = capsys.readouterr()
    found = only(printed.err)
    assert printed.out == ""
    assert (found["kind"], found["exitCode"]) == ("Error", 2)
    assert [each["reference"] for each in found["problems"]] == [reference]


def test_every_mistake_of_a_file_has_its_place_in_the_document(
    nowhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (nowhere / "inventories").mkdir()
    (nowhere / "inventories/c.yaml").write_text("clusster: c\napiServer: v1.30.0\nnodes: {n1: }\n")
    assert run(["plan", "--cluster", "c", "-o", "json"]) == 2
    problems = only(capsys.readouterr().err)["problems"]
    assert [(each["file"], each["line"], each["reference"]) for each in problems] == [
        ("inventories/c.yaml", 1, "missing-key"),
        ("inventories/c.yaml", 1, "unknown-key"),
    ]
    assert problems[1]["hint"] == "did you mean `cluster`?"


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["status", "-o", "json"], True), (["status", "-ojson"], True), (["status", "--output", "json"], True),
        (["status", "--output=json"], True), (["status", "-o", "text"], False), (["status", "-o"], False), ([], False),
        (["exec", "n1", "--", "kubectl", "-o", "json"], False),
    ],
)  # fmt: skip
def test_json_is_wanted_by_the_words(words: list[str], wanted: bool) -> None:
    assert wants_json(words) is wanted


def test_json_is_wanted_by_the_variable_or_the_project_unless_the_words_say_otherwise(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (nowhere / "rollout.toml").write_text('output = "json"\n')
    assert wants_json(["status"])
    assert not wants_json(["status", "-o", "text"])
    monkeypatch.setenv("ROLLOUT_OUTPUT", "text")
    assert not wants_json(["status"])


def test_an_error_of_the_project_file_itself_is_printed(nowhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (nowhere / "rollout.toml").write_text("output = \n")
    assert run(["status"]) == 2
    assert "rollout.toml:1:" in capsys.readouterr().err


# The cluster that a command is about.


def test_the_wrong_folder_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan"]) == 2
    said = capsys.readouterr().err
    assert "no cluster was named (this folder has no inventory: run it in the folder of a project" in said


def test_the_folder_of_a_project_without_inventories_is_named(
    nowhere: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (nowhere / "rollout.toml").write_text("")
    (nowhere / "below").mkdir()
    monkeypatch.chdir(nowhere / "below")
    assert run(["verify"]) == 2
    assert f"{nowhere} has no inventory" in capsys.readouterr().err


def test_the_clusters_of_the_project_are_named(nowhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (nowhere / "inventories").mkdir()
    for name in ("rno", "iad"):
        (nowhere / f"inventories/{name}.yaml").write_text("")
    assert run(["verify"]) == 2
    assert (
        "(`--cluster iad` or one of rno; `cluster` in rollout.toml is that of commands that name none)"
        in capsys.readouterr().err
    )


ABOUT_A_CLUSTER = {
    "diagnose pod": ["diagnose", "pod", "shop/web-0"],
    "diagnose": ["diagnose"],
    "plan": ["plan"],
    "rollback": ["rollback", "--emergency"],
    "verify": ["verify"],
}


@pytest.mark.parametrize("name", ABOUT_A_CLUSTER)
def test_the_project_names_the_cluster_of_every_command(
    name: str, nowhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (nowhere / "rollout.toml").write_text('cluster = "nowhere"\n')
    assert run(ABOUT_A_CLUSTER[name]) == 2
    assert "there is no cluster `nowhere`" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["apply", "--yes"], ["rollback", "--emergency", "--yes"]])
def test_a_cluster_that_nobody_typed_is_not_changed_without_a_question(
    words: list[str], nowhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An empty variable in ``rollout apply $PLAN --yes`` must not plan and change the whole cluster of the project."""
    (nowhere / "rollout.toml").write_text('cluster = "rno"\n')
    assert run(words) == 2
    assert "--cluster" in capsys.readouterr().err


def test_a_plan_file_a_run_and_a_pod_in_a_file_need_no_cluster(
    nowhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (nowhere / "rollout.toml").write_text('cluster = "nowhere"\n')
    (nowhere / "pod.yaml").write_text(
        "kind: Pod\nmetadata: {name: a}\nspec: {terminationGracePeriodSeconds: 5, containers: [{name: a}]}\n"
    )
    assert run(["apply", "x.plan.json"]) == 2
    assert "x.plan.json: No such file or directory (a plan is" in capsys.readouterr().err
    assert run(["export", "kubeadm", "x.plan.json"]) == 2
    assert "x.plan.json: No such file or directory (a plan is" in capsys.readouterr().err
    assert run(["rollback", "r1", "--yes"]) == 2
    assert "[no-runs]" in capsys.readouterr().err
    assert run(["diagnose", "pod", "pod.yaml", "--kubelet", "1.30"]) == 0


def test_the_list_of_runs_says_that_it_is_of_one_cluster(nowhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (nowhere / "rollout.toml").write_text('cluster = "rno"\n')
    said = "only runs of rno, the cluster of this project; `rollout runs --cluster ''` lists all"
    run(["runs"])
    assert said in capsys.readouterr().out
    run(["runs", "--cluster", ""])
    assert said not in capsys.readouterr().out


def test_another_file_for_a_plan_is_told(nowhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (nowhere / "c.yaml").write_text("cluster: c\n")
    assert run(["apply", "c.yaml"]) == 2
    assert (
        "c.yaml is not JSON (a plan is a file that `rollout plan` writes) [plan-unreadable]" in capsys.readouterr().err
    )
