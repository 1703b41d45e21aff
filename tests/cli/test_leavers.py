"""Commands on a fleet that nodes leave and join between any two of them: drawn, through the command line.

The law: no command fails inside rollout, no node is asked anything while it is not in the fleet, and what is there of a plan
gets the plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.cli.main import INTERNAL
from rollout.cli.main import run as command
from rollout.core.model.inventory import Inventory, Node
from rollout.core.model.plan import ChangeGroup, FileChange, PlannedNode, Wave
from rollout.core.plans import plan_codec
from tests.app.agents import CONFIG, MACHINE
from tests.app.site import SMALL, KilledError
from tests.app.stacked_agents import StackedAgents, StackedNode
from tests.app.test_node_worker import CHANGE
from tests.cli.rollback_model import Outside, captured, content, put_behind_the_commands, said
from tests.sampling import examples

NAMES = tuple(f"n{at}" for at in range(1, 7))
PLANNED = NAMES[:5]
OLD, NEW = content(1), content(2)
FILE = FileChange(CONFIG, OLD, NEW, ("why",))
GROUP = ChangeGroup("g1", "all", replace(CHANGE, files=(FILE,), effective=(("maxPods", "2"),)))


@dataclass
class Fleet:
    """``now``: the nodes that the inventory lists; machines that left still exist, and answer if they are asked."""

    folder: Path
    outside: Outside
    now: set[str] = field(default_factory=lambda: set(NAMES))
    done: list[str] = field(default_factory=list)
    codes: Counter[str] = field(default_factory=Counter)

    def inventory(self) -> Inventory:
        nodes = {name: Node(name, name, "r", "z") for name in NAMES if name in self.now}
        return Inventory(SMALL.cluster, "v1.34.2", nodes, {}, (), SMALL.inventory_digest)

    def machine(self, name: str) -> StackedNode:
        return self.outside.nodes.nodes[name]

    def type(self, *words: str, dies_at: int = -1) -> tuple[int | None, str]:
        """The exit code (``None``: the controller was killed) and what was printed."""
        self.done.append(" ".join(words) + (f" (killed at {dies_at})" if dies_at > 0 else ""))
        self.outside.nodes.asked.clear()
        self.outside.dies_at = dies_at
        with captured() as (out, err):
            try:
                code: int | None = command([*words, "--state", str(self.folder / "state")])
            except KilledError:
                code = None
        self.outside.dies_at = -1
        told = said(out) + said(err)
        assert code != INTERNAL, (self.done, told[-4000:])
        assert "Traceback" not in told, (self.done, told[-4000:])
        strangers = {name for name, *_ in self.outside.nodes.asked} - self.now
        assert not strangers, (self.done, strangers)
        self.codes[f"{words[0]} {code}"] += 1
        return code, told

    def changes(self, *left: str, joined: Sequence[str] = ()) -> None:
        self.now = (self.now - set(left)) | set(joined)
        self.done.append(f"now: {sorted(self.now)}")

    def did(self, *words: str) -> str:
        """What a command printed that ended well."""
        code, told = self.type(*words)
        assert code == 0, (self.done, told)
        return told

    def newest(self) -> str:
        """The newest run; ``""``: there is none."""
        journal = SqlJournal(self.folder / "state")
        try:
            return next((header.run for header in journal.listed()), "")
        finally:
            journal.close()


def write_plan(folder: Path, canary: int = 1, *, rehearsal: bool = False) -> str:
    waves = (Wave("canary", PLANNED[:canary], 1.0), Wave("rest", PLANNED[canary:], 1.0))
    nodes = {
        name: PlannedNode(name, name, "r", "z", "g1", int(at >= canary), MACHINE) for at, name in enumerate(PLANNED)
    }
    plan = replace(
        SMALL,
        groups=(GROUP,),
        nodes=nodes,
        waves=waves,
        racks={"r": len(NAMES)},
        zones={"z": len(NAMES)},
        gates=(),
        rehearsal=rehearsal,
    )
    path = folder / "p.json"
    path.write_bytes(plan_codec.encode(plan))
    return str(path)


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    return made(tmp_path, monkeypatch)


def made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    outside = Outside(StackedAgents({name: StackedNode({CONFIG: OLD}) for name in NAMES}))
    found = Fleet(folder, outside)
    put_behind_the_commands(outside, found.inventory, monkeypatch)
    return found


@pytest.mark.parametrize("left", PLANNED)
def test_a_plan_is_applied_and_known_as_applied_without_a_node_that_left(fleet: Fleet, left: str) -> None:
    file = write_plan(fleet.folder)
    fleet.changes(left)
    if left != "n1":
        fleet.did("apply", file, "--yes")
        assert fleet.machine(left).files[CONFIG] == OLD
    else:
        fleet.changes(joined=(left,))
        fleet.did("apply", file, "--yes")
        fleet.changes(left)
    assert "already" in fleet.did("apply", file, "--yes")


@pytest.mark.parametrize("dies_at", [4, 5])
def test_a_rollback_goes_on_after_a_node_that_it_reverted_has_left(fleet: Fleet, dies_at: int) -> None:
    file = write_plan(fleet.folder)
    fleet.did("apply", file, "--yes")
    if fleet.type("rollback", fleet.newest(), "--yes", dies_at=dies_at)[0] is None:
        fleet.changes("n1")
        code, told = fleet.type("resume", "--yes")
        assert code in (0, 4), told
    assert all(fleet.machine(name).files[CONFIG] == OLD for name in PLANNED[1:])


def one_day(dice: Random, fleet: Fleet) -> Counter[str]:
    file = write_plan(fleet.folder, dice.randint(1, 3), rehearsal=dice.random() < 0.3)
    for _ in range(8):
        left = [name for name in NAMES if name in fleet.now and dice.random() < 0.2]
        back = [name for name in NAMES if name not in fleet.now and dice.random() < 0.4]
        if len(fleet.now) - len(left) >= 2:
            fleet.changes(*left, joined=back)
        newest = [fleet.newest()] if (fleet.folder / "state").exists() else []
        dies_at = dice.choice((-1, -1, dice.randint(1, 12)))
        cluster = ("--cluster", SMALL.cluster)
        every: list[tuple[str, ...]] = [
            ("apply", file, "--yes"), ("apply", file, "--yes"), ("resume", "--yes"), ("resume", "--recover-only", "--yes"),
            *(("rollback", run, "--yes") for run in newest if run), ("rollback", *cluster, "--emergency", "--yes"),
            ("cluster", "unlock", *cluster, "--yes", "--reason", "why"),
        ]  # fmt: skip
        fleet.type(*dice.choice(every), dies_at=dies_at)
        fleet.type(
            *dice.choice((("verify", *cluster), ("status",), ("report",), ("runs",), ("export", "kubeadm", *cluster)))
        )
    return fleet.codes


def test_no_command_fails_or_asks_a_node_that_is_not_there(tmp_path: Path) -> None:
    told: Counter[str] = Counter()
    for seed in range(examples(12)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            try:
                told += one_day(Random(seed), made(folder, patch))  # noqa: S311 - reproducible
            except AssertionError as error:
                raise AssertionError(f"seed {seed}: {error}") from error
    wanted = ("apply 0", "apply None", "resume 0", "rollback 0", "rollback None", "verify 0")
    assert examples(12) < 120 or all(told[each] for each in wanted), told
