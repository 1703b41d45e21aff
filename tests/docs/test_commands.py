"""Every command on a page is run by a test, and none is mistyped."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from rollout.cli.command_table import COMMANDS
from rollout.cli.main import cli
from rollout.cli.table_group import FirstWordGroup
from tests.command_counts import every_command
from tests.docs.pages import FRONT, PAGES, RECORDS, Block, blocks, inline_code
from tests.docs.reading import steps
from tests.places import ROOT

TYPED = re.compile(r"^\s*(?:\$ )?(?:\S+=\S* )*(?:\S*/)?(?:rollout [a-z]|kubectl |ssh |curl |pip |jq ).*$", re.MULTILINE)
MADE = re.compile(r"\bmake ([a-z][a-z-]*)")
ADVISED = re.compile(r"`rollout ([a-z][^`\n]*)`")
"""A command in a text of the program itself."""
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def named(words: list[str]) -> tuple[str, click.Command]:
    """The command that the words after ``rollout`` begin with, such as ``lab fault``."""
    command: click.Command = cli
    name: list[str] = []
    while isinstance(command, click.Group) and words[len(name) :]:
        if command.invoke_without_command and words[len(name)].startswith("-"):
            break  # the group itself, such as `plan`
        found = command.get_command(click.Context(command), words[len(name)])
        if found is None and isinstance(command, FirstWordGroup):
            break  # a file, such as of `diagnose`
        name.append(words[len(name)])
        assert found is not None, f"there is no `rollout {' '.join(name)}`"
        command = found
    return " ".join(name), command


def mistyped(command: click.Command, words: list[str]) -> list[str]:
    """Options that the command does not have."""
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    known.add("--help")
    given = [word.strip("[],;").partition("=")[0] for word in words]
    return [word for word in given if re.fullmatch(r"-{1,2}[a-z][a-z-]*", word) and word not in known]


def calls(line: str) -> list[list[str]]:
    """The words after ``rollout`` of each call in a shell line, also of calls inside an argument of another command."""
    inner = re.findall(r"\$\(([^()]*)\)", line)
    words = shlex.split(re.sub(r"\$\([^()]*\)", "IT", line).replace(";", " ; "))
    found: list[list[str]] = []
    open_ = False
    for word in words:
        if word in ("|", "||", "&&", ";", ">", ">>", "&"):
            open_ = False
        elif word == "rollout" and not open_:
            found.append([])
            open_ = True
        elif open_:
            found[-1].append(word)
    return [*found, *(each for text in inner for each in calls(text))]


def misread(words: list[str]) -> str:
    """The error of the command for invalid words: an option, an argument too many or too few, a wrong choice."""
    name, command = named(words)
    try:
        with command.make_context(name, words[len(name.split()) :], resilient_parsing=False):
            return ""
    except click.UsageError as exc:
        return exc.format_message()
    except click.exceptions.Exit:  # --help, --version
        return ""


def unrun(block: Block) -> list[str]:
    """The commands of a block that is not run."""
    return [] if block.info == "console" else [found.strip() for found in TYPED.findall(block.text)]


@every_page
def test_commands_stand_in_blocks_that_are_run(page: Path) -> None:
    text = page.read_text()
    assert [line for block in blocks(text) for line in unrun(block)] == []
    assert not re.search(r"^ +```console", text, re.MULTILINE), "an indented console block is not run"


@every_page
def test_commands_that_are_run_have_valid_options_and_arguments(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All pages, including pages that are not in the sample."""
    if page.name in ("README.md", "project.md"):
        monkeypatch.setenv("ROLLOUT_CLUSTER", "edge")  # as its rollout.toml sets it
    for step in steps(page):
        for words in calls(step.command):
            assert misread(words) == "", f"{page.name}:{step.line}: {step.command}"


def test_a_call_is_found_wherever_it_stands_in_a_line() -> None:
    line = 'rollout watch && rollout rollback "$(rollout status -o json | jq -r .run)" --yes; echo rollout'
    assert calls(line) == [["watch"], ["rollback", "IT", "--yes"], [], ["status", "-o", "json"]]
    assert misread(["apply", "p.json", "q.json", "r.json"]) != ""
    assert misread(["status", "-o", "yamll"]) != ""
    assert misread(["lab", "fault", "@all", "--adds"]) != ""


def test_commands_that_the_program_advises_exist() -> None:
    files = (path for path in (ROOT / "rollout").rglob("*") if path.suffix in (".py", ".toml"))
    advised = {text for path in files for text in ADVISED.findall(path.read_text())}
    assert {"resume", "check"} <= advised
    for text in sorted(advised):
        name, command = named(text.split()[:1])
        if not isinstance(command, click.Group):
            assert mistyped(command, text.split()[1:]) == [], f"rollout {text}: {name} has no such option"


def test_the_help_of_every_command_has_an_example_that_is_right() -> None:
    seen = 0
    for name, command in every_command():
        text = command.help or ""
        examples = re.findall(rf"Example: `rollout ({name}[^`]*)`", text) or re.findall(rf"rollout ({name} \w+)", text)
        assert examples, f"rollout {name} -h has no example"
        for example in examples:
            assert misread(shlex.split(example)) == "", example
            seen += 1
    assert seen > len(COMMANDS)


def test_the_help_of_every_command_names_its_variables() -> None:
    for name, command in every_command():
        context = click.Context(command, info_name=name, help_option_names=["-h", "--help"])
        shown = re.sub(r"\s+", "", command.get_help(context))
        for parameter in command.params:
            if isinstance(parameter, click.Option) and parameter.envvar and not parameter.hidden:
                assert str(parameter.envvar) in shown, f"{name} {parameter.opts}"


@every_page
def test_commands_in_prose_exist_and_are_run_on_the_same_page(page: Path) -> None:
    run = " ; ".join(step.command for step in steps(page))
    for code in inline_code(page.read_text()):
        words = code.split()
        if words[0] != "rollout" or not words[1:]:
            continue
        name, command = named(words[1:])
        assert mistyped(command, words) == [], code
        assert f"rollout {name}" in run, f"`rollout {name}` is named on {page.name} and not run there"


@pytest.mark.parametrize("page", RECORDS, ids=lambda page: page.name)
def test_commands_of_a_record_are_right(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page.name == "first-hour.md":
        monkeypatch.setenv("ROLLOUT_CLUSTER", "prod")  # as its rollout.toml sets it
    for line in (line for block in blocks(page.read_text()) for line in unrun(block)):
        assert [misread(words) for words in calls(line.partition("  #")[0])] == [""], line


@pytest.mark.parametrize("page", FRONT, ids=lambda page: page.name)
def test_commands_that_a_front_page_names_exist(page: Path) -> None:
    for code in inline_code(page.read_text()):
        words = code.split()
        if words[0] == "rollout" and words[1:]:
            assert mistyped(named(words[1:])[1], words) == [], code


@pytest.mark.parametrize("page", [*PAGES, *FRONT], ids=lambda page: page.name)
def test_make_targets_that_a_page_names_exist(page: Path) -> None:
    assert unmakeable(page.read_text()) == set()


def unmakeable(text: str) -> set[str]:
    """Targets that a page names and the Makefile does not have."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    told = [*inline_code(text), *(line.strip() for block in blocks(text) for line in block.text.splitlines())]
    return {target for code in told if code.startswith("make ") for target in MADE.findall(code)} - targets


def test_make_help_explains_every_target() -> None:
    text = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    phony = re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    assert phony
    assert set(phony[1].split()) == set(re.findall(r"^([a-z-]+):.*## \S", text, re.MULTILINE))


def test_a_command_that_nothing_runs_is_found() -> None:
    text = "Say\n\n    rollout plan --cluster c\n\n```sh\n$ .venv/bin/rollout check\n```\n\n```console\n$ rollout check\n```\n"
    assert [line for block in blocks(text) for line in unrun(block)] == [
        "$ .venv/bin/rollout check",
        "rollout plan --cluster c",
    ]
    with pytest.raises(AssertionError, match="no `rollout plna`"):
        named(["plna"])
    assert mistyped(named(["lab", "fault"])[1], ["--ad", "--add", "-o"]) == ["--ad", "-o"]


def test_a_missing_make_target_is_found() -> None:
    assert unmakeable("Say `make help`, `make tset` or\n\n    make demon NODES=5\n") == {"tset", "demon"}
