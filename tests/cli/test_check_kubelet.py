"""``rollout check --kubelet-config`` as typed: one object per line, exit codes, no invented verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rollout.cli.check import check
from rollout.errors import UsageError
from tests.documents import only

HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
RIGHT, MISSPELT, BROKEN = "right.yaml", "misspelt.yaml", "broken.yaml"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / RIGHT).write_text(HEAD + "maxPods: 50\nruntimeRequestTimeout: 90s\n")
    (tmp_path / MISSPELT).write_text(HEAD + "serialiseImagePulls: false\n")
    (tmp_path / BROKEN).write_text(HEAD + "maxPods: fifty\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(check, [*words])


def documents(result: Result) -> list[dict[str, Any]]:
    return [only(line) for line in result.stdout.splitlines()]


def test_one_object_per_line_in_the_given_order() -> None:
    result = run("--kubelet-config", RIGHT, MISSPELT, BROKEN, "--kubelet", "1.31", "-o", "json")
    found = documents(result)
    assert result.exit_code == 2
    assert [(each["file"], each["verdict"], each["ignored"]) for each in found] == [
        (RIGHT, "starts", []),
        (MISSPELT, "starts", ["serialiseImagePulls"]),
        (BROKEN, "fails", []),
    ]
    assert (found[0]["effective"]["maxPods"], found[0]["effective"]["runtimeRequestTimeout"]) == (50, "1m30s")
    assert found[2]["effective"] == {}
    assert found[0]["messages"] == []


def test_a_message_has_level_reference_text_and_place() -> None:
    message = documents(run("--kubelet-config", BROKEN, "--kubelet", "v1.36.3", "-o", "json"))[0]["messages"][0]
    assert message == {
        "level": "fatal",
        "reference": "bad-value",
        "text": (
            f"failed to load kubelet config file, path: {BROKEN}, error: failed to load Kubelet config file {BROKEN}, error "
            "failed to decode: json: cannot unmarshal string into Go struct field KubeletConfiguration.maxPods of type int32"
        ),
        "file": BROKEN,
        "line": 3,
        "column": 1,
        "hint": "write a number without quotes",
    }


@pytest.mark.parametrize(("file", "code"), [(RIGHT, 0), (MISSPELT, 2), (BROKEN, 2)])
def test_the_exit_code_is_2_for_a_file_that_fails_and_for_a_policy_mistake(file: str, code: int) -> None:
    assert run("--kubelet-config", file, "--kubelet", "1.20.2").exit_code == code


def test_the_option_may_be_repeated() -> None:
    result = run("--kubelet-config", RIGHT, "--kubelet-config", MISSPELT, "--kubelet", "1.31", "-o", "json")
    assert [each["file"] for each in documents(result)] == [RIGHT, MISSPELT]


def test_a_file_that_cannot_be_read_has_no_verdict(folder: Path) -> None:
    result = run("--kubelet-config", "nowhere.yaml", str(folder), RIGHT, "--kubelet", "1.31", "-o", "json")
    found = documents(result)
    assert result.exit_code == 2
    assert [each["verdict"] for each in found] == [None, None, "starts"]
    assert [each["messages"][0]["reference"] for each in found[:2]] == ["file-missing", "file-unreadable"]


def test_text_output() -> None:
    result = run("--kubelet-config", RIGHT, MISSPELT, "--kubelet", "1.31")
    warning = (
        'Using lenient decoding as strict decoding failed: strict decoding error: unknown field "serialiseImagePulls"'
    )
    mistake = (
        "`serialiseImagePulls` is not a field of kubelet 1.31 and is ignored (did you mean `serializeImagePulls`?)"
    )
    assert result.stdout.splitlines() == [
        f"{RIGHT}: starts",
        f"{MISSPELT}: starts",
        f"  warning: {MISSPELT}:3:1: {warning} [unknown-field]",
        f"  mistake: {MISSPELT}:3:1: {mistake} [unknown-field]",
        "2 files, 1 with mistakes",
    ]


def test_no_escape_sequence_reaches_the_terminal(folder: Path) -> None:
    (folder / "x.yaml").write_text(HEAD + 'clusterDomain: a\nhairpinMode: "\\e[2J"\n"\\e[31mx": 1\n')
    assert "\x1b" not in run("--kubelet-config", "x.yaml", "--kubelet", "1.31").output


def test_flags_and_drop_ins_are_taken_into_account(folder: Path) -> None:
    (folder / "d").mkdir()
    (folder / "d" / "10.conf").write_text(HEAD + "maxPods: 60\n")
    (folder / "d" / "20.yaml").write_text(HEAD + "maxPods: 70\n")
    with_drop_in = run("--kubelet-config", RIGHT, "--kubelet", "1.31", "--config-dir", "d", "-o", "json")
    assert documents(with_drop_in)[0]["effective"]["maxPods"] == 60
    words = "--max-pods=80 --node-labels='a=b,c=d'"
    with_flags = run(
        "--kubelet-config", RIGHT, "--kubelet", "1.31", "--config-dir", "d", "--flags", words, "-o", "json"
    )
    assert documents(with_flags)[0]["effective"]["maxPods"] == 80


def test_the_environment_variable_of_1_28_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "d").mkdir()
    words = ("--kubelet-config", RIGHT, "--kubelet", "1.28", "--config-dir", "d")
    assert run(*words).exit_code == 2
    monkeypatch.setenv("KUBELET_CONFIG_DROPIN_DIR_ALPHA", "")
    assert run(*words).exit_code == 0


@pytest.mark.parametrize(
    ("words", "reference"),
    [
        (["--kubelet-config", RIGHT], "no-kubelet"),
        (["--kubelet-config", RIGHT, "--kubelet", "latest"], "bad-kubelet"),
        (["--kubelet-config", RIGHT, "--kubelet", "1.99"], "unknown-kubelet"),
        (["--kubelet-config", RIGHT, "--kubelet", "1.31", "--flags", "'"], "bad-flags"),
        (["--kubelet", "1.31"], "no-kubelet-config"),
        ([RIGHT], "no-kubelet-config"),
    ],
)
def test_invalid_options_are_refused(words: list[str], reference: str) -> None:
    error = run(*words).exception
    assert isinstance(error, UsageError)
    assert error.reference == reference


def test_a_missing_drop_in_folder() -> None:
    result = run("--kubelet-config", RIGHT, "--kubelet", "1.31", "--config-dir", "nowhere")
    assert "nowhere: No such file or directory" in str(result.exception)


def test_a_hint_is_a_line_of_its_own_and_notes_come_last() -> None:
    result = run("--kubelet-config", BROKEN, "--kubelet", "1.20", "--flags", "--docker-root=/x")
    lines = result.stdout.splitlines()
    assert lines[0] == f"{BROKEN}: does not start"
    assert lines[2] == "    write a number without quotes"
    with_notes = run("--kubelet-config", RIGHT, "--kubelet", "1.31", "--flags", "--max-pods=60")
    note = f"  note: {RIGHT}:3:1: `--max-pods=60` wins over `maxPods` of this file [flag-over-file]"
    assert (with_notes.exit_code, with_notes.stdout.splitlines()) == (0, [f"{RIGHT}: starts", note])


@pytest.mark.parametrize(
    "typed",
    [
        "--max-pods=60",
        "/usr/bin/kubelet --max-pods=60",
        "kubelet \\\n  --max-pods=60 \\\r\n  --v=2",
        "KUBELET_EXTRA_ARGS=--max-pods=60",
        'KUBELET_KUBEADM_ARGS="--max-pods=60 --node-labels=a=b"\n',
    ],
)
def test_flags_are_taken_as_units_and_environment_files_have_them(typed: str) -> None:
    found = documents(run("--kubelet-config", RIGHT, "--kubelet", "1.31", "--flags", typed, "-o", "json"))
    assert found[0]["effective"]["maxPods"] == 60


@pytest.mark.parametrize("typed", ["kubelet2 --max-pods=60", "--max-pods=60 kubelet", "lower=--max-pods=60"])
def test_any_other_word_is_the_kubelets_own_error(typed: str) -> None:
    found = documents(run("--kubelet-config", RIGHT, "--kubelet", "1.31", "--flags", typed, "-o", "json"))
    assert [message["reference"] for message in found[0]["messages"]] == ["stray-word"]
