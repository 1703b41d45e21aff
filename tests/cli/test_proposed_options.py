"""Each command that a text proposes has the options of the command line that printed it, and parses with them."""

from __future__ import annotations

import ast
import asyncio
import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import click
import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.ports import Journal
from rollout.cli.command_table import COMMANDS
from rollout.cli.main import cli
from rollout.cli.proposals import REPEATED, Proposals
from rollout.composition.wiring import Session
from rollout.core.model.plan import Plan
from rollout.core.presentation.pages.markup import with_texts
from rollout.core.presentation.waiting_plans import WaitingPlan
from rollout.core.run.state import Phase
from rollout.errors import StateError
from rollout.features.serve.client.pages import Site
from tests.app.site import SMALL
from tests.cli.test_leavers import Fleet, made, write_plan
from tests.cli.test_plan import KUBECONFIG, OPTIONS
from tests.core.presentation import journals
from tests.core.presentation.journals import Told
from tests.features.diagnose.test_command import LOG
from tests.features.serve.serving import keep
from tests.places import ROOT

SOURCE = ROOT / "rollout"
PROPOSED = re.compile(r"(?<![\w/.-])rollout ([a-z](?:(?! rollout )[^`;)\n])*)")


def words_of(options: dict[str, str]) -> list[str]:
    return [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value) if word]


def typed(proposed: str) -> tuple[click.Command, click.Context] | None:
    """The command that these words call, parsed by click; ``None``: they are no command."""
    try:
        words = shlex.split(proposed)
    except ValueError:  # an apostrophe in the sentence around it
        words = shlex.split(proposed.rpartition("'")[0])
    command: click.Command = cli
    while isinstance(command, click.Group) and words:
        below = command.get_command(click.Context(command), words[0])
        if below is None:
            break
        command, words = below, words[1:]
    if command is cli:
        return None
    return command, command.make_context(command.name, words, resilient_parsing=True)


def check(text: str, options: dict[str, str]) -> int:
    """How many commands ``text`` proposes. Each has each of the options that it accepts, once, with the value given."""
    count = 0
    for sentence in PROPOSED.findall(text):
        proposed = sentence.rstrip(".,")
        found = typed(proposed)
        if found is None:
            continue
        command, context = found
        takes = {option.name: option for option in command.params if option.name in options}
        for name, option in takes.items():
            assert str(context.params[name]) == (options[name] or "True"), (name, proposed)
            assert len(re.findall(rf"(?<!\S){option.opts[0]}(?!\S)", proposed)) == 1, (name, proposed)
        count += 1
    return count


ALL = Proposals(cli, ["verify", *words_of(OPTIONS)])


def texts() -> Iterator[str]:
    """Every text in the program that may propose a command; what is put into it is ``X``."""
    for file in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(file.read_text())
        inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                yield "".join(part.value if isinstance(part, ast.Constant) else "X" for part in node.values)  # type: ignore[misc]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
                yield node.value


def test_each_text_of_the_program_proposes_commands_with_the_options_that_were_given() -> None:
    found = Counter(
        check(
            ALL.carried(line),
            {name: value for name, value in OPTIONS.items() if f"--{name.replace('_', '-')}" not in line},
        )
        for text in texts()
        for line in text.splitlines()
        if "rollout " in line and "rollout runs on " not in line
    )
    assert sum(count * times for count, times in found.items()) > 150


PLANS = {"core/plans/again.py", "features/diagnose/rules/finding.py", "features/lab/command.py"}
"""Where a text proposes to plan a cluster: as it was planned before, for a finding, or for the first time."""


def test_a_plan_is_proposed_again_in_one_place_with_its_playbook_and_limit() -> None:
    found = {
        str(file.relative_to(SOURCE))
        for file in SOURCE.rglob("*.py")
        if re.search(r"rollout plan --cluster \{", file.read_text())
    }
    assert found == PLANS, "call `plan_again`: a command without playbook and limit plans another change"


def test_every_command_is_proposed_with_what_it_accepts() -> None:
    proposed = "\n".join(f"next: `rollout {name}`" for name in COMMANDS)
    assert check(ALL.carried(proposed), OPTIONS) == len(COMMANDS)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("To undo: rollout rollback r1", "To undo: rollout rollback --state 'my two' r1"),
        ("`rollout resume r1` or `rollout runs`", "`rollout resume --state 'my two' r1` or `rollout runs --state 'my two'`"),
        ("rollout status --state other r1", "rollout status --state other r1"),
        ("rollout plan show p.json", "rollout plan show p.json"),
        ("see rollout status and rollout verify --cluster c", "see rollout status --state 'my two' and rollout verify --state 'my two' --cluster c"),
        ("no rollout here, and no rollout of it", "no rollout here, and no rollout of it"),
        ("use that rollout version, or: rollout runs", "use that rollout version, or: rollout runs --state 'my two'"),
        ("/var/lib/rollout status", "/var/lib/rollout status"),
    ],
)  # fmt: skip
def test_where_the_options_stand(text: str, wanted: str) -> None:
    assert Proposals(cli, ["apply", "p.json", "--state", "my two"]).carried(text) == wanted


def test_a_command_for_another_shell_says_what_variables_say_here_and_where_a_folder_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page of ``serve`` is read by a person whose shell has another folder and no variables of the server."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROLLOUT_STATE", "of a variable")
    monkeypatch.setenv("ROLLOUT_SSH_CONFIG", "ssh")
    elsewhere = Proposals(cli, ["serve"], elsewhere=True)
    assert elsewhere.carried("rollout runs") == f"rollout runs --state '{tmp_path}/of a variable'"
    assert f"--ssh-config {tmp_path}/ssh" in elsewhere.carried("rollout resume r1")
    typed = Proposals(cli, ["serve", "--state", "typed"], elsewhere=True)
    assert typed.carried("rollout runs") == f"rollout runs --state {tmp_path}/typed"
    Path("rollout.toml").write_text('state = "of a variable"\nssh_config = "other"\n')
    assert Proposals(cli, ["serve"], elsewhere=True).carried("rollout runs") == "rollout runs"


def test_a_command_works_in_another_shell_of_this_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as after a reconnect, or by a colleague: that shell has no variables of this one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROLLOUT_STATE", "the folder")
    monkeypatch.setenv("ROLLOUT_KUBECONFIG", "kube")
    for words in (["status"], ["status", "--no-such-option"], ["no-such-command", "--state", "two"], []):
        there = Proposals(cli, words).carried("rollout resume r1")
        assert there in (
            "rollout resume --state 'the folder' --kubeconfig kube r1",
            "rollout resume --kubeconfig kube --state 'the folder' r1",
        )
    assert Proposals(cli, ["status", "--state", "typed"]).carried("rollout runs") == "rollout runs --state typed"
    default = ["status", "--state", ".rollout"]
    assert Proposals(cli, default).carried("rollout runs") == "rollout runs --state .rollout", "not this shell's"
    monkeypatch.delenv("ROLLOUT_STATE")
    assert Proposals(cli, default).carried("rollout runs") == "rollout runs"
    monkeypatch.setenv("ROLLOUT_STATE", "the folder")
    Path("rollout.toml").write_text('state = "the folder"\n')
    assert Proposals(cli, ["status"]).carried("rollout runs") == "rollout runs"


def accepted(words: Sequence[str], options: dict[str, str]) -> dict[str, str]:
    """Of these options, those of the command that the words call."""
    found = typed(shlex.join(words))
    assert found is not None, words
    return {name: value for name, value in options.items() if name in {option.name for option in found[0].params}}


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """Its journal is a file in the place of the shared one."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("my ssh_config", ""), ("sudo password", "secret\n"), ("kube config", KUBECONFIG)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    monkeypatch.setattr(Session, "_journal", lambda _session, _doubt=None: SqlJournal(tmp_path / "shared"))
    monkeypatch.setattr(Session, "_is_there", lambda _session: True)
    return made(tmp_path, monkeypatch)


def test_what_is_proposed_can_be_typed(fleet: Fleet) -> None:
    """Each command that prints proposals, with every option of it that says how nodes are reached and where the journal is."""
    options = {**OPTIONS, "state": str(fleet.folder / "state")}
    file = write_plan(fleet.folder)
    cluster = ("--cluster", SMALL.cluster)
    found: Counter[str] = Counter()

    def types(*words: str, dies_at: int = -1) -> None:
        mine = accepted(words, options)
        given = words_of({name: value for name, value in mine.items() if name != "state"})
        _, told = fleet.type(*words, *given, dies_at=dies_at)
        found[words[0]] += check(told, mine)

    types("status")
    types("apply", file, "--yes", dies_at=6)
    types("apply", file, "--yes")
    fleet.changes("n3")
    for words in (
        ("status",),
        ("report",),
        ("runs",),
        ("resume", "--recover-only", "--yes"),
        ("resume", "--yes"),
        ("resume", "--yes"),
    ):
        types(*words)
    types("apply", file, "--yes")
    fleet.machine("n2").files.clear()
    types("rollback", "no-such-run")
    types("rollback", *cluster, "--emergency", "--yes")
    types("status")
    types("cluster", "unlock", *cluster, "--yes", "--reason", "why")
    types("diagnose", "--html", str(fleet.folder / "diagnosis.html"), "--logs", str(LOG))
    types("report", "--html", str(fleet.folder / "report.html"))
    pages = {
        file.stem: proposed_on(
            file.read_text(), accepted(("report" if file.stem == "report" else "diagnose",), options)
        )
        for file in sorted(fleet.folder.glob("*.html"))
    }
    assert [name for name, count in pages.items() if count] == ["diagnosis", "report"]
    assert {name for name, count in found.items() if count} >= {"apply", "status", "report", "resume", "rollback"}, (
        found
    )


class Texts(HTMLParser):
    """Every text of a page, as a browser shows it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_data(self, data: str) -> None:
        self.found.append(data)


def proposed_on(page: str, options: dict[str, str] = OPTIONS) -> int:
    """How many commands this page proposes, each with ``options``."""
    assert with_texts(page, str) == page
    return sum(check(text, options) for text in Texts(page).found)


async def answered(site: Site, path: str) -> str:
    """The body that a browser gets; of a stream the first snapshot."""
    parts: list[str] = []

    async def receive() -> dict[str, object]:
        await asyncio.sleep(0)
        return {"type": "http.request", "body": b"reason=why", "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        parts.append(message.get("body", b"").decode())

    method = "POST" if path.endswith("/pause") else "GET"
    scope = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(), "root_path": "", "headers": [],
        "query_string": b"", "http_version": "1.1", "asgi": {"version": "3.0", "spec_version": "2.4"},
    }  # fmt: skip
    site.stopping = lambda: any("data: " in part for part in parts)
    await site.application()(scope, receive, send)
    return "".join(parts)


RUN = "r20261120-160000-ab12"
ASKED = {
    "/": "/",
    "/runs/{run}": f"/runs/{RUN}",
    "/runs/{run}/stream": f"/runs/{RUN}/stream",
    "/runs/{run}/plan": f"/runs/{RUN}/plan",
    "/runs/{run}/nodes/{node}": f"/runs/{RUN}/nodes/NODE",
    "/runs/{run}/{word}": f"/runs/{RUN}/pause",
}
"""Each route of the page that shows texts for people → an address of it."""


@pytest.mark.process
@pytest.mark.parametrize("made", [journals.halted, partial(journals.stopped, lambda state: state.wave == 2)])
def test_each_page_proposes_commands_with_the_options_that_were_given(
    tmp_path: Path, made: Callable[[], tuple[Plan, Told]]
) -> None:
    plan, play = made()
    journal = keep(tmp_path, RUN, plan, play, None if play.state.phase is Phase.ENDED else len(play.journal))
    waits = WaitingPlan("p & q.json", plan.cluster, "d", ("one approval",))
    lost = StateError("journal-away", "the server is starting up", hint="`rollout status` tells when it is back")

    def away() -> Journal:
        raise lost

    def asked(address: str, journal: Callable[[], Journal]) -> str:
        site = Site(journal, "here", lambda: False, "ann@ops", lambda _: (waits,), ALL.carried)
        routes = {str(getattr(route, "path", "")) for route in site.application().routes}
        assert routes - {"/static/{name}", "/metrics"} == ASKED.keys(), "a new page: ask for it here"
        return asyncio.run(answered(site, ASKED[address].replace("NODE", next(iter(plan.nodes)))))

    found = {address: proposed_on(asked(address, lambda: journal)) for address in ASKED}
    assert {address for address, count in found.items() if count} >= {"/", "/runs/{run}", "/runs/{run}/nodes/{node}"}
    snapshot = json.loads(asked("/runs/{run}/stream", lambda: journal).rpartition("data: ")[2])
    assert sum(map(proposed_on, snapshot["parts"].values())) >= found["/runs/{run}"] > 2
    for address in ASKED.keys() - {"/runs/{run}/{word}"}:
        assert proposed_on(asked(address, away)) == 1, address
    journal.close()


RAW = {
    "proposals.py": 1,
    "metrics.py": 1,
    "schema.py": 1,
    "plan.py": 2,
    "main.py": 2,
    "errors.py": 3,
}
"""Where ``click.echo`` prints what is neither a document nor a text for people: how often."""


def test_texts_for_people_are_printed_in_one_place() -> None:
    """``click.echo`` prints documents; ``say`` and ``echo_lines`` print texts."""
    found: Counter[str] = Counter()
    for file in sorted((SOURCE / "cli").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "click.echo":
                printed = node.args[0]
                document = isinstance(printed, ast.Call) and ast.unparse(printed.func).startswith("documents.")
                found[file.name] += not document
    assert +found == Counter({**RAW, "options.py": 1}), "print a text with `say`, so that its proposals can be typed"


def test_the_options_are_those_of_the_command_line() -> None:
    apply = cli.get_command(click.Context(cli), "apply")
    assert apply is not None
    assert {option.name for option in apply.params} >= REPEATED
