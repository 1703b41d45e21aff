"""Names of commands that were merged or renamed: each works, says what to type instead, and stands in no list."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from rollout.cli.command_table import COMMANDS
from rollout.cli.main import cli, run
from rollout.cli.old_names import OLD_NAMES, renamed
from rollout.cli.table_group import called

TYPED = {
    "budget --pod shop/web-0 --cluster rno": "diagnose pod shop/web-0 --cluster rno",
    "budget --pod=pod.yaml --within 7s": "diagnose pod pod.yaml --within 7s",
    "catch-up r1 --yes": "resume --recover-only r1 --yes",
    "completion bash": "show completion bash",
    "config -o json": "show config -o json",
    "engine workers --cluster rno": "regions workers --cluster rno",
    "forget --cluster rno --yes": "uninstall --cluster rno --yes",
    "freeze rno --reason why": "cluster freeze --cluster rno --reason why",
    "freeze --reason rno --state s rno": "cluster freeze --reason rno --state s --cluster rno",
    "freeze": "cluster freeze",
    "freeze --cluster rno --reason why": "cluster freeze --cluster rno --reason why",
    "metrics --textfile m.prom": "show metrics --textfile m.prom",
    "recover": "resume --recover-only",
    "schema playbook": "show schema playbook",
    "unfreeze --yes rno --reason why": "cluster unfreeze --yes --cluster rno --reason why",
    "unlock --cluster rno --force": "cluster unlock --cluster rno --force",
    "watch-late r1 --once": "watch --late r1 --once",
}


@pytest.mark.parametrize("old", TYPED)
def test_what_was_typed_is_read_as_the_new_form(old: str) -> None:
    words = renamed(old.split())
    assert " ".join(words) == TYPED[old]
    with parsed(words):
        """It has each of these options and arguments."""


def parsed(words: list[str]) -> click.Context:
    command: click.Command = cli
    for word in called(words).split():
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None, words
        command, words = found, words[1:]
    return command.make_context(command.name, words, resilient_parsing=True)


def test_every_old_name_is_tried() -> None:
    assert {old.split()[0] for old in TYPED} == OLD_NAMES.keys()
    assert not OLD_NAMES.keys() & COMMANDS.keys()


def test_both_forms_end_alike_and_the_old_one_names_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def told(*words: str) -> tuple[int, str]:
        return run(list(words)), capsys.readouterr().err

    code, said = told("resume", "--recover-only", "--yes")
    assert (code, "[no-runs]" in said) == (2, True)
    for name in ("recover", "catch-up"):
        line = f"`rollout {name}` is now `rollout resume --recover-only`; the old name ends with the next version\n"
        assert told(name, "--yes") == (code, line + said)


def test_no_list_has_an_old_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    assert not set(first_words(capsys.readouterr().out)) & OLD_NAMES.keys()


def first_words(text: str) -> Iterator[str]:
    yield from (line.split()[0] for line in text.splitlines() if line.startswith("  "))


def test_recover_only_never_applies(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["resume", "--recover-only", "--promote"]) == 2
    assert "--recover-only applies nothing: it takes no --promote [recover-alone]" in capsys.readouterr().err


def test_options_of_the_late_watch_need_it(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--once"], ["--every", "5m"], ["--reason", "why"]):
        assert run(["watch", *words]) == 2
        assert "--once, --every and --reason need --late [only-late]" in capsys.readouterr().err


def test_a_misspelt_command_of_a_group_gets_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["cluster", "freze"]) == 2
    assert capsys.readouterr().err == (
        "error: there is no command `cluster freze`; did you mean `freeze`? (`rollout cluster --help` lists the commands) [no-such-command]\n"
    )


def test_a_file_with_the_name_of_a_command_is_read_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pod").write_text("I0101 10:00:00.000000       1 x.go:1] nothing\n")
    assert run(["diagnose", "pod"]) == 2
    assert "[missing-argument]" in capsys.readouterr().err
    assert run(["diagnose", "./pod", "--since", "1h"]) == 0
