"""With ``-o json`` every command prints documents on standard output and nothing else, also where it is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import pytest

from rollout.cli.command_table import COMMANDS
from rollout.cli.errors import ErrorDocument
from rollout.cli.main import run
from rollout.cli.options import echo_lines
from rollout.cli.project import output_option
from rollout.cli.proposals import say
from rollout.cli.table_group import called
from rollout.core.text.documents import kind_of
from tests.app.site import SMALL
from tests.cli.rollback_model import captured, said
from tests.cli.test_leavers import Fleet, made, write_plan
from tests.command_counts import every_command

OTHERWISE = {
    "serve": "a server",
    "show metrics": "its format is that of Prometheus",
    "ssh": "a shell",
}
"""Commands that print no documents: why."""


def takes_json(command: click.Command) -> bool:
    return any(each.name == "output" for each in command.params)


WITH_JSON = {name: command for name, command in every_command() if takes_json(command) and name not in OTHERWISE}


def documents_in(text: str) -> Iterator[Mapping[str, Any]]:
    """Raises ``ValueError`` for anything between them."""
    rest = text.lstrip()
    while rest:
        found, end = json.JSONDecoder().raw_decode(rest)
        yield found
        rest = rest[end:].lstrip()


def check(words: list[str], code: int, out: str, err: str) -> int:
    try:
        found = list(documents_in(out))
    except ValueError:
        pytest.fail(f"{words}: standard output is {out[:2000]!r}")
    assert all("kind" in each for each in found), (words, out[:400])
    if code and not found:
        *_, last = err.splitlines() or [""]
        assert last.startswith("{"), (words, code, err[-2000:])
        assert json.loads(last)["kind"] == kind_of(ErrorDocument), (words, err)
    return code


@pytest.mark.parametrize(("output", "beside"), [("text", False), ("json", True)])
def test_a_text_for_people_goes_beside_documents(output: str, beside: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where a command forgets that it prints documents: one line of text makes all of them unreadable."""

    @click.command()
    @output_option
    def any_command(output: str) -> None:
        say(f"as {output}")
        echo_lines(["a line"])

    any_command(["-o", output], standalone_mode=False)
    told = capsys.readouterr()
    assert (told.err if beside else told.out) == f"as {output}\na line\n"
    assert (told.out if beside else told.err) == ""


def test_each_command_that_prints_documents_is_tried() -> None:
    assert {called(name.split()) for name in WITH_JSON} <= COMMANDS.keys()
    assert len(WITH_JSON) > 30


@pytest.mark.process
@pytest.mark.parametrize("name", sorted(WITH_JSON))
def test_where_there_is_nothing_yet(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No project, no journal, no run."""
    monkeypatch.chdir(tmp_path)
    for arguments in ([], ["--cluster", "c"], ["x"], ["x", "--cluster", "c"]):
        words = [*name.split(), "-o", "json", *arguments]
        with captured() as (out, err):
            code = run(words)
        check(words, code, said(out), said(err))


WITH_A_VERB_OF_THEIR_OWN = frozenset({"cluster freeze", "cluster unfreeze", "exec", "prepull", "diagnose probe"})
"""What the nodes of this test do not know."""

GIVEN = {
    "plan_file": "PLAN", "file": "PLAN", "plan": "PLAN", "run": "RUN", "runs": "RUN", "nodeset": "n1", "command": "true",
    "images": "registry.example/pause:3", "form": "k3s", "setting": "maxPods", "pod": "shop/web-0",
}  # fmt: skip
"""A value of each argument."""


def calls_of(name: str, plan: str, newest: str) -> Iterator[list[str]]:
    """With and without its optional arguments, on the cluster or without it; confirmed by nobody, then by ``--yes``."""
    command = WITH_JSON[name]
    values = {"PLAN": plan, "RUN": newest}
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    options = {each.name for each in command.params if isinstance(each, click.Option)}
    words = [values.get(GIVEN.get(str(each.name), ""), GIVEN.get(str(each.name), "")) for each in arguments]
    needed = [word for word, each in zip(words, arguments, strict=True) if each.required]
    cluster = ["--cluster", SMALL.cluster] if "cluster" in options else []
    reason = ["--reason", "why"] if "reason" in options else []
    key = ["--key", "no-key"] if "key" in options else []
    for given in ([], needed, list(filter(None, words))):
        for chosen in ([], cluster):
            for yes in ([], ["--yes"] if "yes" in options else []):
                yield [*name.split(), "-o", "json", *chosen, *reason, *key, *yes, *given]


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.chdir(tmp_path)
    return made(tmp_path, monkeypatch)


@pytest.mark.process
@pytest.mark.parametrize("standing", ["a plan", "half a run", "a halted run", "an ended run", "a rollback"])
def test_every_command_prints_documents_alone(fleet: Fleet, standing: str) -> None:
    plan = write_plan(fleet.folder)
    state = ["--state", str(fleet.folder / "state")]
    if standing != "a plan":
        fleet.type("apply", plan, "--yes", dies_at=6 if standing == "half a run" else -1)
    if standing == "a rollback":
        fleet.type("rollback", fleet.newest(), "--yes")
    newest = fleet.newest() if standing != "a plan" else ""
    refused = 0
    for name in sorted(WITH_JSON.keys() - WITH_A_VERB_OF_THEIR_OWN):
        takes_state = any(each.name == "state" for each in WITH_JSON[name].params)
        for words in calls_of(name, plan, newest):
            if "--yes" in words and standing != "a plan":
                continue
            with captured() as (out, err):
                code = run([*words, *(state if takes_state else ())] if "--" not in words else words)
            refused += check(words, code, said(out), said(err)) != 0
    assert refused > 30
