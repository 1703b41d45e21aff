"""A call imports only what it needs: looking at a run, or halting it, does not wait for the import of the SSH stack."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.ports import RunHeader
from rollout.cli.command_table import COMMANDS
from rollout.cli.from_table import FromTable
from rollout.cli.main import cli, run
from rollout.cli.old_names import OLD_NAMES
from rollout.cli.parameter_table import PARAMETERS
from rollout.cli.registry import SECTIONS, registered
from rollout.cli.table_group import COMPLETE
from rollout.core.run.journal_codec import encode_order
from tests.command_table import FILE, PARAMETERS_FILE, declared, parameters_text, text, with_parameters
from tests.orders import make_order

REACHES_NODES = ("paramiko", "fabric")
DATABASES = ("sqlalchemy", "alembic", "psycopg")
SCREENS = ("rich", "httpcore")
READS_INVENTORIES = ("pydantic", "jinja2", "ruamel.yaml")
PLANS = ("jinja2", "rollout.app.plan", "rollout.kubelet.changes.changes", "rollout.core.reading.playbook_schema")
OF_THE_LIST = (
    "command_table", "from_table", "main", "old_names", "parameter_table", "proposals", "registry", "table_group",
)  # fmt: skip
LISTS = "import sys; from rollout.cli.main import run; run(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"


@pytest.mark.process
@pytest.mark.parametrize(
    "words", [["--version"], ["status"], ["watch"], ["pause"], ["abort"], ["continue"], ["report"]]
)
def test_commands_that_look_at_a_run_import_no_ssh_and_no_inventory_reader(tmp_path: Path, words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LISTS, *words], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    loaded = done.stderr.split()
    assert "rollout.cli.main" in loaded
    assert [name for name in (*REACHES_NODES, *READS_INVENTORIES) if name in loaded] == []


@pytest.mark.process
def test_the_list_of_commands_imports_none_of_them(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LISTS, "--help"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    found = [name for name in done.stderr.split() if name.startswith("rollout.cli.")]
    assert sorted(found) == [f"rollout.cli.{name}" for name in OF_THE_LIST]
    at_the_top = [name for names in SECTIONS.values() for name in names]
    width = max(map(len, at_the_top)) + 2
    for name in at_the_top:
        assert f"  {name:<{width}}{COMMANDS[name].line}\n" in done.stdout, "on one line, whole"
    places = [done.stdout.index(f"{title}:\n") for title in SECTIONS]
    assert places == sorted(places)


@pytest.mark.process
@pytest.mark.parametrize("group", ["cluster", "show", "diagnose"])
def test_the_help_of_a_group_has_each_of_its_commands_on_a_line(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([group, "--help"]) == 0
    shown = capsys.readouterr().out
    inner = {name.partition(" ")[2]: listed for name, listed in COMMANDS.items() if name.startswith(f"{group} ")}
    assert inner
    for name, listed in inner.items():
        assert re.search(rf"^  {name} +{re.escape(listed.line)}$", shown, re.MULTILINE)


@pytest.mark.process
def test_to_complete_the_name_of_a_command_imports_none_of_them(tmp_path: Path) -> None:
    asked = {**os.environ, COMPLETE: "bash_complete", "COMP_WORDS": "rollout pl"}
    done = subprocess.run(
        [sys.executable, "-c", LISTS], cwd=tmp_path, env=asked, capture_output=True, text=True, check=True
    )
    assert done.stdout == "plain,plan\n"
    loaded = done.stderr.split()
    modules = {listed.where.partition(":")[0] for listed in COMMANDS.values()} - {"cli.completion", "cli.groups"}
    assert [name for name in loaded if name.removeprefix("rollout.") in modules] == []


@pytest.mark.parametrize("columns", [60, 100])
@pytest.mark.parametrize("name", PARAMETERS)
def test_the_help_from_the_table_is_that_of_the_command(
    name: str, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but the line of ``--help`` itself: click keeps that as the first call of this process has asked for it."""

    def text(command: click.Command) -> str:
        monkeypatch.setattr(command, "add_help_option", False)
        return command.get_help(click.Context(command, info_name=f"rollout {name}", terminal_width=columns))

    assert text(with_parameters()[name]) == text(FromTable().command(name))


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--help", "--bogus"], "Usage: rollout plan [OPTIONS] [COMMAND] [ARGS]...\nTry "),
        (["--limit", "--help"], "error: no cluster was named"),
        (["--limit", "a", "-h"], "Usage: rollout plan [OPTIONS] [COMMAND] [ARGS]...\n\n  Read the nodes"),
    ],
)
def test_a_call_with_help_is_read_as_one_without(
    words: list[str], shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run(["plan", *words])
    told = capsys.readouterr()
    assert (told.err + told.out).startswith(shown)


HELPS_OF_ALL = """\
import sys
from rollout.cli.main import run
for name in {names}:
    run([*name.split(), "--help"])
print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.process
def test_the_help_of_any_command_imports_none_of_them(tmp_path: Path) -> None:
    names = list(PARAMETERS)
    done = subprocess.run(
        [sys.executable, "-c", HELPS_OF_ALL.format(names=names)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    found = {name for name in done.stderr.split() if name.startswith("rollout.")}
    ours = {"rollout.core", "rollout.core.text", "rollout.core.text.suggest", "rollout.core.text.terminal"}
    assert found == ours | {"rollout.cli", "rollout.errors", *(f"rollout.cli.{name}" for name in OF_THE_LIST)}
    assert done.stdout.count("Usage: rollout ") == len(names)


COMPLETES = """\
import os, sys
from rollout.cli.main import run
for name in {names}:
    os.environ["COMP_WORDS"] = f"rollout {{name}} --"
    run([])
print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.process
def test_to_complete_the_options_of_any_command_imports_none_of_them(tmp_path: Path) -> None:
    """Only modules that the completion of a command's name imports, too: a shell waits for it at each Tab."""
    first = loaded_to_complete([""], tmp_path)
    assert "rollout.cli.completion" in first
    assert loaded_to_complete(list(PARAMETERS), tmp_path) - first == set()


def loaded_to_complete(names: list[str], folder: Path) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", COMPLETES.format(names=names)],
        cwd=folder,
        env={**os.environ, COMPLETE: "bash_complete"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count("plain,--help") == len(names)
    return set(done.stderr.split())


@pytest.mark.process
@pytest.mark.parametrize("words", [["status"], ["watch"], ["report"], ["runs"]])
def test_commands_that_look_at_a_run_know_the_kinds_of_gates_and_import_nothing_about_runtimes(
    tmp_path: Path, words: list[str]
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LISTS, *words], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    loaded = done.stderr.split()
    assert "rollout.gates.table" in loaded
    assert [name for name in loaded if name.startswith(("rollout.kubelet.runtimes", "rollout.kubelet.restarts"))] == []


@pytest.mark.process
@pytest.mark.parametrize(
    "words", [["--version"], ["--help"], ["status"], ["report"], ["plan", "--cluster", "a", "--snapshot", "s"]]
)
def test_a_command_without_a_journal_imports_no_database(tmp_path: Path, words: list[str]) -> None:
    """``plan`` ends at the missing inventory; ``test_a_plan_from_a_snapshot_imports_no_database`` has a whole one."""
    done = subprocess.run(
        [sys.executable, "-c", LISTS, *words], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert [name for name in (*DATABASES, *SCREENS) if name in done.stderr.split()] == []


@pytest.mark.process
def test_a_look_at_a_run_in_a_file_imports_no_database(tmp_path: Path) -> None:
    journal = SqlJournal(tmp_path / ".rollout")
    journal.begin(RunHeader("r1", "rno", "apply", encode_order(make_order({"r1": 2})), 1, b"", 1.0, "me", ""))
    done = subprocess.run(
        [sys.executable, "-c", LISTS, "status"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("run r1 on test: opening")
    assert [name for name in (*DATABASES, "rollout.app.node_worker") if name in done.stderr.split()] == []


@pytest.mark.process
def test_a_text_that_proposes_commands_imports_none_of_them(tmp_path: Path) -> None:
    """Its options are added to each of them: this is what takes the imports, if a command is looked up for it."""
    state = tmp_path / "state"
    journal = SqlJournal(state)
    journal.begin(RunHeader("r1", "rno", "apply", encode_order(make_order({"r1": 2})), 1, b"", 1.0, "me", ""))
    words = ["status", "--state", str(state)]
    done = subprocess.run(
        [sys.executable, "-c", LISTS, *words], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert f"rollout resume --state {state} r1" in done.stdout
    modules = {f"rollout.{listed.where.partition(':')[0]}" for listed in COMMANDS.values()}
    assert modules.intersection(done.stderr.split()) == {"rollout.cli.status"}


@pytest.mark.process
@pytest.mark.parametrize("words", [["apply", "p.json"], ["rollback", "--cluster", "a", "--emergency"]])
def test_a_run_imports_nothing_that_makes_plans(tmp_path: Path, words: list[str]) -> None:
    """An import costs a run as much CPU as some nodes."""
    done = subprocess.run(
        [sys.executable, "-c", LISTS, *words], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert [name for name in (*PLANS, "invoke") if name in done.stderr.split()] == []


def test_the_table_of_commands_is_that_of_their_declarations() -> None:
    assert FILE.read_text() == text(declared()), "python -m tests.command_table"
    assert PARAMETERS_FILE.read_text() == parameters_text(with_parameters()), "python -m tests.command_table"
    assert not COMMANDS.keys() & OLD_NAMES.keys()


def test_two_commands_of_one_name_are_refused() -> None:
    declared()

    @click.command()
    def status() -> None: ...

    with pytest.raises(TypeError, match="status is registered twice"):
        registered("Show something else.")(status)


@pytest.mark.process
@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_of_commands_is_right(name: str) -> None:
    command: click.Command = cli
    for word in name.split():
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None
        command = found
    assert command.name == name.rsplit(maxsplit=1)[-1]


HELPS = "from rollout.cli.main import run; print([run([*words, '-h']) for words in {words}])"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_refuses_words_that_are_no_text(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A terminal with another encoding sends such bytes. A journal could not store them."""
    assert run([*name.split(), "--reason", "gr\udcfcnde"]) == 2
    assert "[command-not-text]" in capsys.readouterr().err


@pytest.mark.process
def test_h_is_help(tmp_path: Path) -> None:
    words = [[], ["check"], ["lab"], ["lab", "up"], ["export", "kubeadm"]]
    command = [sys.executable, "-c", HELPS.format(words=words)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[0, 0, 0, 0, 0]\n")
    assert done.stdout.count("-h, --help") == len(words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["aply", "p.json"], "there is no command `aply`; did you mean `apply`?"),
        (["xyzzy"], "there is no command `xyzzy` (`rollout --help` lists the commands) [no-such-command]\n"),
        (["a\x1b[2Jply"], "there is no command"),
    ],
)
def test_a_misspelt_command_gets_a_suggestion(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 2
    told = capsys.readouterr().err
    assert said in told
    assert "\x1b" not in told


def test_on_windows_it_says_to_use_wsl(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    assert run(["check"]) == 2
    assert "install and run it in WSL" in capsys.readouterr().err


@pytest.mark.process
def test_only_exec_and_ssh_import_fabric() -> None:
    script = (
        "from rollout.adapters.ssh import SshNodes; import sys, rollout.features.exec.command, rollout.composition.wiring; "
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "paramiko" in loaded
    assert "fabric" not in loaded
    assert "invoke" not in loaded, "paramiko would import it"
