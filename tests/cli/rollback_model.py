"""Random sequences of apply, rollback, emergency, resume and verify, compared with a list of file versions kept here.

The commands are the real ones, called in this process, with a real journal. Behind the ports are nodes that answer in the
agent's protocol (``tests/app/stacked_agents.py``) and a virtual clock. ``python -m tests.cli.rollback_model 2000`` runs many.
"""

from __future__ import annotations

import io
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stderr, redirect_stdout
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from shutil import copytree, rmtree
from typing import Any

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.node_access import NodeAccess, access_to
from rollout.app.ports import Journal, Nodes, Ran, Worker
from rollout.app.runs import Tools
from rollout.cli.main import run as command
from rollout.composition import wiring
from rollout.composition.wiring import Session
from rollout.core.model.inventory import Inventory
from rollout.core.model.plan import ChangeGroup, FileChange, PlannedNode, Wave
from rollout.core.plans import plan_codec
from rollout.core.run.commands import Ask, Command
from rollout.core.run.events import Event
from rollout.core.run.state import Verb
from rollout.core.text.nodesets import expand
from rollout.kubelet.node import layout
from tests.app.agents import CONFIG, MACHINE
from tests.app.site import NAMES, SMALL, KilledError, fleet
from tests.app.stacked_agents import StackedAgents, StackedNode
from tests.app.test_node_worker import CHANGE
from tests.documents import only

OTHER = layout.DROP_IN
KINDS = {"A": (CONFIG,), "B": (OTHER,), "C": (CONFIG, OTHER)}
"""The files of three kinds of runs: two that have no file in common, and one that meets both."""


def content(number: int) -> bytes:
    return f"apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: {number}\n".encode()


def planned_fleet() -> Inventory:
    """The inventory, with addresses and racks as in the plan: a plan binds them."""
    found = fleet()
    nodes = {name: replace(node, address=name, rack="r", zone="z") for name, node in found.nodes.items()}
    return replace(found, nodes=nodes)


PROPOSED = re.compile(r"`rollout ((?:rollback|resume|recover|unlock) [^`A-Z]*)`")
"""A command that changes nodes, as it is printed. One with a word for the user to fill in is none."""

ALREADY_REVERTED = re.compile(r"already reverted by a run of another journal on \d nodes?: ([^\s;]+)")

ITS_NODES = re.compile(r"below a newer run: \d nodes? (\S+): ")
"""At the begin of a line with a proposed command: the nodes that the command is proposed for."""

STEPS = 7
"""Commands that change something in one sequence."""


# ------------------------------------------------------------------------------------------------ the list of versions


@dataclass
class Step:
    """One run's change of one node. ``versions``: path → bytes before and after. ``spent``: it is reverted by its own rollback."""

    run: str
    number: int
    versions: Mapping[str, tuple[bytes | None, bytes]]
    met: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    spent: bool = False
    back_by: str = ""


@dataclass
class KnownNode:
    """``layers``: path → the runs that the bytes of the file are of, the oldest first."""

    files: dict[str, bytes | None] = field(default_factory=lambda: {CONFIG: content(1), OTHER: None})
    steps: list[Step] = field(default_factory=list)
    layers: dict[str, tuple[str, ...]] = field(default_factory=lambda: {CONFIG: (), OTHER: ()})

    def of(self, run: str) -> Step | None:
        return next((step for step in self.steps if step.run == run), None)

    def is_on(self, step: Step) -> bool:
        return any(step.run in runs for runs in self.layers.values())

    def standing(self) -> list[Step]:
        return [step for step in self.steps if self.is_on(step)]

    def is_covered(self, step: Step) -> bool:
        """A newer change in force has other bytes in a file of this one."""
        later = {each.run for each in self.steps[self.steps.index(step) + 1 :]}
        return any(run in later for path in step.versions for run in self.layers[path])

    def is_whole(self, step: Step) -> bool:
        """No revert of an older change has restored a file of this one."""
        return all(step.run in self.layers[path] for path in step.versions)

    def is_foreign(self, step: Step) -> bool:
        """A file has neither the old nor the new bytes: the node refuses to revert it."""
        return any(self.files[path] not in versions for path, versions in step.versions.items())

    def put_on(self, step: Step) -> None:
        step.met = {path: self.layers[path] for path in step.versions}
        self.steps.append(step)
        for path, (_, after) in step.versions.items():
            self.files[path] = after
            self.layers[path] += (step.run,)

    def take_off(self, step: Step, by: str) -> None:
        """All later changes of a file are gone too."""
        there = self.standing()
        for path, (before, _) in step.versions.items():
            self.files[path] = before
            self.layers[path] = step.met[path]
        step.spent = True
        for each in there:
            if not self.is_on(each):
                each.back_by = by
        for each in self.steps:
            if self.is_on(each):
                each.back_by = ""


@contextmanager
def captured() -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
    """Standard output and standard error, with the bytes below them."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        yield out, err


def said(stream: io.TextIOWrapper) -> str:
    stream.flush()
    written = stream.buffer
    assert isinstance(written, io.BytesIO)
    return written.getvalue().decode()


# ------------------------------------------------------------------------------------------------ behind the ports


@dataclass
class Outside:
    """Engine and clock: one command after the other. ``dies_at``: the controller is killed after this many commands."""

    nodes: StackedAgents
    at: float = 1000.0
    answers: list[Event] = field(default_factory=list)
    dies_at: int = -1

    def submit(self, worker: Worker, what: Command) -> None:
        self.answers.append(worker(what))
        if isinstance(what, Ask) and what.verb in (Verb.APPLY, Verb.CONFIRM, Verb.REVERT):
            self.dies_at -= 1
            if self.dies_at == 0:
                self.answers = []
                raise KilledError

    def collect(self, timeout: float) -> tuple[Event, ...]:
        self.at += max(1.0, timeout)
        found, self.answers = tuple(self.answers), []
        return found

    def close(self) -> None: ...

    def now(self) -> float:
        return self.at

    def wall(self) -> str:
        return ""

    def run(self, *_words: object) -> Ran:
        raise AssertionError("nothing is run on the controller")

    @contextmanager
    def tools(self, session: Session, journal: Journal, nodes: Nodes | None) -> Iterator[Tools]:
        with session.observers(journal) as shown:
            yield Tools(
                journal=journal,
                engine=self,
                nodes=nodes or self.nodes,
                local=self,
                clock=self,
                observers=shown if session.output == "text" else (),
                interrupted=lambda: False,
                who="me@here",
                reason=session.reason,
                new_run_id=wiring.new_run_id,
            )


@dataclass
class Typed:
    """One sequence. ``done``: what was typed, for the message of a failure. ``state``: the folder of the journal in ``folder``."""

    dice: Random
    folder: Path
    outside: Outside
    known: dict[str, KnownNode] = field(default_factory=lambda: {name: KnownNode() for name in NAMES})
    runs: list[str] = field(default_factory=list)  # that applied a plan, the oldest first
    versions: int = 1
    keep: int = 9
    state: str = "state"
    done: list[str] = field(default_factory=list)
    proposed: set[tuple[str, str]] = field(default_factory=set)
    carried_out: int = 0
    elsewhere: set[str] = field(default_factory=set)  # rollbacks that the journal does not have

    # -- typing

    def type(self, *words: str, code: int = 0) -> str:
        self.done.append(" ".join(words))
        with captured() as (out, err):
            found = command([*words, "--state", str(self.folder / self.state)])
        assert found == code, (found, code, self.done, said(out)[-3000:], said(err)[-2000:])
        printed = said(out).replace(f"--state {self.folder / self.state} ", "")  # each proposed command has it
        self._collect(printed)
        return printed

    def _collect(self, out: str) -> None:
        for line in out.splitlines():
            nodes = ITS_NODES.search(line)
            self.proposed |= {(words, nodes[1] if nodes else "") for words in PROPOSED.findall(line)}

    def _on_a_copy(self, *words: str) -> tuple[set[str], str]:
        """The nodes that a command would change, and what it prints. Nodes and journal stay as they are."""
        there, copy = self.outside.nodes.nodes, self.folder / "copy"
        copytree(self.folder / self.state, copy)
        self.outside.nodes.nodes = deepcopy(there)
        self.outside.nodes.asked.clear()
        with captured() as (out, err):
            command([*words, "--yes", "--state", str(copy)])
        self.outside.nodes.nodes = there
        rmtree(copy)
        return {name for name, _ in self.outside.nodes.asked}, said(out) + said(err)

    def carry_out_proposals(self) -> None:
        """Each command that was printed as the way on changes all nodes that it was printed for, when it is typed next."""
        for proposed, names in sorted(self.proposed):
            limit = ["--limit", names] if names else []
            asked, out = self._on_a_copy(*shlex.split(proposed), *limit)
            self.carried_out += 1
            all_asked = asked == set(expand(names)) if names else bool(asked)
            assert all_asked, ("leads nowhere", proposed, names, asked, self.done, out)
        self.proposed.clear()

    def ask_for_each_run(self) -> None:
        """What a rollback of each run would propose."""
        for run in self.runs:
            names = [name for name, node in self.known.items() if (step := node.of(run)) and self.has(name, step)]
            if names:
                self._collect(self._on_a_copy("rollback", run, "--limit", ",".join(names))[1])
                self.carry_out_proposals()

    def newest(self) -> str:
        journal = SqlJournal(self.folder / self.state)
        try:
            return journal.listed()[0].run
        finally:
            journal.close()

    def has(self, name: str, step: Step) -> bool:
        """Whether the node still has the transaction: a confirm removes the oldest ones."""
        return any(each.run == step.run for each in self.outside.nodes.nodes[name].applied)

    def some(self, names: Sequence[str] = NAMES) -> tuple[str, ...]:
        return tuple(sorted(self.dice.sample(list(names), self.dice.randint(1, len(names))))) if names else ()

    # -- commands that change something

    def apply(self, kind: str = "", names: Sequence[str] = (), *, dies: bool = False) -> None:
        """``kind`` and ``names`` are drawn if they are not given."""
        changed = self.write_plan_of(kind or self.dice.choice("ABC"), names or self.some())
        run = self.killed("apply", "p.json", "--yes") if dies else ""
        if not run:
            self.type("apply", str(self.folder / "p.json"), "--yes")
            run = self.newest()
        elif self.dice.random() < 0.5:
            self.type("resume", "--yes")
        else:
            self._roll_back_killed(run, changed)
            return
        self.runs.append(run)
        for name, versions in changed.items():
            self.known[name].put_on(Step(run, self.versions, versions))

    def write_plan_of(self, kind: str, names: Sequence[str]) -> Mapping[str, Mapping[str, tuple[bytes | None, bytes]]]:
        """Write ``p.json``. Returns node → path → bytes before and after."""
        self.versions += 1
        changed = {name: self._new_files(name, KINDS[kind]) for name in names}
        self._write_plan(changed)
        return changed

    def _new_files(self, name: str, paths: Sequence[str]) -> dict[str, tuple[bytes | None, bytes]]:
        files = self.known[name].files
        return {path: (files[path], content(self.versions)) for path in paths}

    def _write_plan(self, changed: Mapping[str, Mapping[str, tuple[bytes | None, bytes]]]) -> None:
        groups = []
        for name, versions in changed.items():
            files = tuple(FileChange(path, before, after, ("why",)) for path, (before, after) in versions.items())
            effective = (("maxPods", str(self.versions)),) if CONFIG in versions else ()
            groups.append(ChangeGroup(f"g-{name}", name, replace(CHANGE, files=files, effective=effective)))
        names = tuple(changed)
        plan = replace(
            SMALL,
            groups=tuple(groups),
            nodes={name: PlannedNode(name, name, "r", "z", f"g-{name}", 0, MACHINE) for name in names},
            waves=(Wave("all", names, 1.0),),
            gates=(),
            keep=self.keep,
        )
        (self.folder / "p.json").write_bytes(plan_codec.encode(plan))

    def killed(self, *words: str, otherwise: int = 0, at: int = 0) -> str:
        """The run of a controller that was killed; ``""``: it had ended before. ``at`` 0: the moment is drawn."""
        self.outside.dies_at = at or self.dice.randint(1, 8)
        self.done.append(f"killed at {self.outside.dies_at}: {' '.join(words)}")
        words = tuple(str(self.folder / word) if word == "p.json" else word for word in words)
        try:
            with captured() as (out, err):
                code = command([*words, "--state", str(self.folder / self.state)])
        except KilledError:
            return self.newest()
        finally:
            self.outside.dies_at = -1
        assert code == otherwise, (code, self.done, said(out), said(err))
        self.done[-1] = f"not killed: {' '.join(words)}"
        return ""

    def _roll_back_killed(self, run: str, changed: Mapping[str, object]) -> None:
        """A run without a controller: its changed nodes are reverted, the others are released."""
        touched = [name for name in changed if self.outside.nodes.nodes[name].known(f"{run}-1") is not None]
        out = self.type("rollback", run, "--yes")
        assert f"proof: {len(touched)} of {len(touched)} node" in out, (out, self.done)
        for name in touched:
            node = self.known[name]
            applied = self.outside.nodes.nodes[name].known(f"{run}-1")
            assert applied is not None
            node.put_on(step := Step(run, self.versions, applied.versions))
            node.take_off(step, self.newest())
        self.runs.append(run)

    def roll_back(self, *, dies: bool = False, force: bool = False) -> None:
        run = self.dice.choice(self.runs)
        names = self.some(
            [name for name in NAMES if (step := self.known[name].of(run)) is None or self.has(name, step)]
        )
        if not names:
            return
        nodes = {name: self.known[name] for name in names}
        steps = {name: step for name, node in nodes.items() if (step := node.of(run)) is not None and node.is_on(step)}
        kept = {
            name
            for name, step in steps.items()
            if step.spent or (not force and (nodes[name].is_covered(step) or not nodes[name].is_whole(step)))
        }
        go = [name for name in steps if name not in kept]
        before = self._by(run)
        words = ("rollback", run, "--limit", ",".join(names), "--yes", *(["--force"] if force else []))
        self.outside.nodes.asked.clear()
        if not go:
            out = self.type(*words, code=4 if kept else 0)
            assert self.outside.nodes.asked == [], ("claimed or changed", self.outside.nodes.asked, out, self.done)
            assert "nothing to revert: no node was touched" in out
        elif dies and self.killed(*words, otherwise=4 if kept else 0):
            out = self.type("resume", "--yes", code=4 if kept else 0)
            assert f"proof: {len(go)} of {len(go)} node" in out, (out, self.done)
        else:
            out = ""
            if not dies:
                out = self.type(*words, code=4 if kept else 0)
                assert f"proof: {len(go)} of {len(go)} node" in out, (out, self.done)
            touched = {name for name, _ in self.outside.nodes.asked}
            assert touched == set(go), (touched, go, self.done)
        mine = {name for by, nodes in before.items() if by not in self.elsewhere for name in nodes}
        if not dies and (already := set(names) & mine):
            assert "already rolled back by run" in out, (already, out, self.done)
        theirs = {name for by in before.keys() & self.elsewhere for name in before[by]}
        if already := set(names) & theirs:
            told = {name for match in ALREADY_REVERTED.finditer(out) for name in expand(match[1])}
            assert told == already, (told, already, out, self.done)
        for name in go:
            self.known[name].take_off(steps[name], self.newest())

    def _by(self, run: str) -> dict[str, set[str]]:
        """Rollback → the nodes where it reverted a run, as the list of versions has it."""
        found: dict[str, set[str]] = {}
        for name, node in self.known.items():
            step = node.of(run)
            if step is not None and step.back_by and not node.is_on(step):
                found.setdefault(step.back_by, set()).add(name)
        return found

    def emergency(self) -> None:
        names = self.some()
        there = {name: [step for step in self.known[name].steps if self.has(name, step)] for name in names}
        tops = {name: steps[-1] for name, steps in there.items() if steps}
        words = ["rollback", "--cluster", SMALL.cluster, "--emergency", "--limit", ",".join(names), "--yes"]
        if not tops:
            self.type(*words, code=2)
            return
        picked = max((step.run for step in tops.values()), key=self.runs.index)
        if self.dice.random() < 0.3:
            picked = self.dice.choice([step.run for steps in there.values() for step in steps])
            words.insert(1, picked)
        every = ["--every-run"] if self.dice.random() < 0.3 and len(words) == 7 else []
        force = ["--force"] if self.dice.random() < 0.3 else []
        mine = {name: step for name, step in tops.items() if every or step.run == picked}
        todo = {name: step for name, step in mine.items() if not step.spent}
        refused = {name for name, step in todo.items() if not force and self.known[name].is_foreign(step)}
        wrong = refused | {name for name, step in mine.items() if step.spent and self.known[name].is_on(step)}
        out = self.type(*words, *every, *force, code=4 if wrong else 0)
        if mine:
            assert f"proof: {len(mine) - len(wrong)} of {len(mine)} node" in out, (out, self.done)
        for name, step in todo.items():
            if name not in refused:
                self.known[name].take_off(step, self.newest())
                if self.state != "state":
                    self.elsewhere.add(self.newest())

    # -- what is printed of it

    def look(self) -> None:
        self.check_files()
        self.verify()
        if not self.runs:
            return
        listed = {each["run"]: each for each in only(self.type("runs", "-o", "json"))["runs"]}
        for run in self.runs:
            self._check_since(run, listed[run])
        run = self.dice.choice(self.runs)
        self._check_since(run, only(self.type("status", run, "-o", "json")))
        self.report(run)
        self._export()

    def check_files(self) -> None:
        for name, node in self.outside.nodes.nodes.items():
            assert {path: node.at(path) for path in (CONFIG, OTHER)} == self.known[name].files, (name, self.done)

    def verify(self) -> None:
        found = only(self.type("verify", "--cluster", SMALL.cluster, "-o", "json"))
        on = [name for name, node in self.known.items() if node.standing()]
        back = [name for name, node in self.known.items() if node.steps and not node.standing()]
        never = [name for name, node in self.known.items() if not node.steps]
        told = (found["drifted"], found["changed"], found["reverted"], found["neverChanged"], found["asWanted"])
        assert told == ({}, on, back, never, sorted((*on, *back))), (told, self.done)

    def _check_since(self, run: str, document: Mapping[str, Any]) -> None:
        back = {each["run"]: set(expand(each["nodes"])) for each in document["rolledBack"]}
        assert back == self._by(run), (run, back, self._by(run), self.done)
        top: dict[str, set[str]] = {}
        for name, node in self.known.items():
            step = node.of(run)
            if step is not None and node.is_on(step) and node.standing()[-1] is not step:
                top.setdefault(node.standing()[-1].run, set()).add(name)
        said = {each["run"]: set(expand(each["nodes"])) for each in document["onTop"]}
        assert said == top, (run, said, top, self.done)

    def report(self, run: str) -> None:
        steps = [each["command"] for each in only(self.type("report", run, "-o", "json"))["next"]]
        steps_of = [(node, step) for node in self.known.values() if (step := node.of(run)) is not None]
        may_undo = any(node.is_on(step) and not step.spent for node, step in steps_of)
        assert (f"rollout rollback {run}" in steps) is may_undo, (run, steps, self.done)

    def _export(self) -> None:
        wanted: dict[int, set[str]] = {}
        for name, node in self.known.items():
            numbers = [step.number for step in node.steps if step.run in node.layers[CONFIG]]
            if numbers:
                wanted.setdefault(numbers[-1], set()).add(name)
        found = only(self.type("export", "kubeadm", "--cluster", SMALL.cluster, "-o", "json"))["patches"]
        told = {each["fields"]["maxPods"]: set(expand(each["nodes"])) for each in found}
        assert told == wanted, (told, wanted, self.done)


def put_behind_the_commands(outside: Outside, now: Callable[[], Inventory], monkeypatch: pytest.MonkeyPatch) -> None:
    """``now``: the inventory when a command reads it."""

    def access(_self: Session, inventory: Inventory, names: Sequence[str]) -> NodeAccess:
        return access_to(inventory, "program", tuple(names))

    def tools(session: Session, journal: Journal, *_rest: object, **more: Any) -> AbstractContextManager[Tools]:
        return outside.tools(session, journal, more.get("nodes"))

    monkeypatch.setattr(Session, "nodes", lambda _self: outside.nodes)
    monkeypatch.setattr(Session, "access", access)
    monkeypatch.setattr(Session, "inventory", lambda _self, _cluster: now())
    monkeypatch.setattr(Session, "inventory_or_remembered", lambda _self, _cluster: now())
    monkeypatch.setattr(Session, "tools", tools)


def at_start(seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """Nodes that no run has changed, and an empty journal in ``folder``."""
    dice = Random(seed)  # noqa: S311 - reproducible
    outside = Outside(StackedAgents({name: StackedNode({CONFIG: content(1)}) for name in NAMES}))
    put_behind_the_commands(outside, planned_fleet, monkeypatch)
    return Typed(dice, folder, outside, keep=dice.choice((1, 2, 3, 9)))


def play_with_another_journal(seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Runs of one journal, and emergencies from a machine with another one: ``verify`` and ``rollback`` believe the nodes."""
    sequence = at_start(seed, folder, monkeypatch)
    for _ in range(sequence.dice.randint(1, 4)):
        sequence.apply()
    for _ in range(STEPS - 1):
        match sequence.dice.choice(("emergency", "emergency", "rollback", "rollback", "forced", "apply")):
            case "emergency":
                sequence.state = "another"
                sequence.emergency()
                sequence.state = "state"
            case "apply":
                sequence.apply()
            case "rollback":
                sequence.roll_back()
            case "forced":
                sequence.roll_back(force=True)
        sequence.carry_out_proposals()
        sequence.check_files()
        sequence.verify()
    return len(sequence.done)


def play(seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """One sequence; the number of commands that were typed. Raises ``AssertionError`` with all of them."""
    sequence = at_start(seed, folder, monkeypatch)
    dice = sequence.dice
    sequence.apply()
    for _ in range(STEPS - 1):
        match dice.choice(
            ("apply", "apply", "rollback", "forced", "forced", "emergency", "killed apply", "killed rollback")
        ):
            case "apply":
                sequence.apply()
            case "killed apply":
                sequence.apply(dies=True)
            case "rollback":
                sequence.roll_back()
            case "forced":
                sequence.roll_back(force=True)
            case "killed rollback":
                sequence.roll_back(dies=True)
            case "emergency":
                sequence.emergency()
        sequence.carry_out_proposals()
        sequence.look()
    sequence.ask_for_each_run()
    return len(sequence.done)


def main(words: list[str]) -> int:
    count, first = int(words[0]) if words else 200, int(words[1]) if len(words) > 1 else 0
    typed = 0
    for seed in range(first, first + count):
        with tempfile.TemporaryDirectory(prefix="rollout-model-") as folder, pytest.MonkeyPatch.context() as patch:
            try:
                typed += play(seed, Path(folder), patch)
            except BaseException:
                print(f"seed {seed} failed", file=sys.stderr)  # noqa: T201 - a command of its own
                raise
    print(f"{count} sequences, {typed} commands")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
