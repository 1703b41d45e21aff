"""Real nodes of both layouts in two racks, and a folder to run ``rollout`` in. Many runs use them, one after the other."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from rollout.app.following import last_that_acted, replay
from rollout.app.ports import Journal
from rollout.composition.wiring import Session
from rollout.core.run.state import RunState
from tests.bed.bed import Bed
from tests.bed.node import Node
from tests.chaos.draws import DEFAULT_GUARD, GUARD, NODES, Draw
from tests.chaos.findings import Known, Limits, Seen
from tests.chaos.look import look
from tests.chaos.machine import prepare
from tests.chaos.region_engine import RegionEngine
from tests.controllers import Done, Process, anew, at_work, finished, until
from tests.places import ROOT

PLAYBOOK = """\
name: pulls
settings: {--v: 3, serializeImagePulls: false, maxPods: 1}
disruption: drain-and-restart
waves: [rest]
rehearsal: false
limits: {perRack: 1, inFlight: 2, pace: 20}
budgets: {wave: 3, rack: 3, fleet: 3}
soak: 600ms
passes: 2
guard: GUARDs
onFailure: {revert: wave}
pullsInFlight: override
"""
"""Kubelets of 1.36 keep their readiness over a restart. So there is no settle time, and a run takes seconds."""

API_GATES = "gates: {node: [unit, process, healthz, nodeReady, podsKept, containersKept]}\n"
"""Only where the cluster has an API server."""

CLUSTER = "chaos"
LEFT_ALONE = ("pending", "refused", "skipped")
PATIENCE = float(os.environ.get("ROLLOUT_CHAOS_PATIENCE", "600"))
"""Seconds; a whole wait of a run that does not end. `make mutants` waits less for what can never happen."""


@dataclass
class Site:
    """``state`` is the journal's folder: each run has its own."""

    folder: Path
    bed: Bed
    nodes: tuple[Node, ...]
    state: str = "state"
    known: dict[str, Known] = field(default_factory=dict)
    undisturbed: float = 0.0
    guard: int = GUARD
    """The guard's seconds."""
    brief: int = GUARD
    """The guard's seconds in short runs, on this machine."""
    ssh_config: Path | None = None
    """Another ssh_config than the bed's own."""
    kubeconfig: Path | None = None
    """Of the cluster's API server, if it has one."""
    engine: RegionEngine | None = None
    """What carries the verbs to the nodes, if the controller does not reach them itself."""

    @property
    def limits(self) -> Limits:
        racks = {rack: frozenset(names) for rack, names in racked(self.nodes).items()}
        return Limits(racks, per_rack=1, in_flight=2)

    # ------------------------------------------------------------------------------------------------ the command line

    def command(self, *words: str, state: str = "") -> list[str]:
        places = ["--ssh-config", str(self.ssh_config or self.bed.ssh_config), "--state", state or self.state]
        places += ["--kubeconfig", str(self.kubeconfig)] if self.kubeconfig else []
        return anew([sys.executable, "-m", "rollout.cli", *words, *places])

    def rollout(self, *words: str, state: str = "") -> Done:
        done = finished(self.command(*words, state=state), self.folder, PATIENCE)
        self._note(f"$ rollout {' '.join(words)}   # {done.code}\n{done.all}\n")
        return done

    def begun(self, *words: str, state: str = "", host: str = "") -> AbstractContextManager[Process]:
        """A running controller in its own process group. ``host``: the host name that it reports."""
        command = self.command(*words, state=state)
        if host:
            command = ["unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', host, *command]
        self._note(f"$ rollout {' '.join(words)} &\n")
        return at_work(command, self.folder, self.folder / "said")

    def _note(self, words: str) -> None:
        with (self.folder / "said").open("a") as log:
            log.write(words)

    def said(self) -> str:
        """All output of this run so far."""
        path = self.folder / "said"
        return path.read_text() if path.exists() else ""

    # ------------------------------------------------------------------------------------------------ by the journal

    def journal(self, state: str = "") -> Journal:
        return Session(self.folder / (state or self.state), None, accept_new=False, output="text").past()

    def newest(self) -> RunState | None:
        """The newest run, from its journal; ``None``: there is none."""
        journal = self.journal()
        headers = journal.runs(CLUSTER)
        return replay(journal, headers[0].run) if headers else None

    def acted(self) -> RunState | None:
        """The newest run that was not refused before it touched a node."""
        journal = self.journal()
        headers = journal.runs(CLUSTER)
        return last_that_acted(journal, CLUSTER, or_else=headers[-1].run) if headers else None

    def word(self, seen: Seen, others: Sequence[str]) -> str:
        """The state of a node by the journal of the run that it accepted last (``others``: folders of other journals).

        If that run left the node alone, its journal does not describe the node's files. Then the run with the node's
        newest transaction counts.
        """
        words = [self._word(run, seen.node, others) for run in runs_of(seen)]
        touched = [word for word in words if word not in ("", *LEFT_ALONE)]
        run = self.acted()
        return next(iter([*touched, *filter(None, words)]), str(run.nodes[seen.node].state) if run else "pending")

    def _word(self, run: str, node: str, others: Sequence[str]) -> str:
        """Empty if no journal has the run, or the run does not include the node."""
        for state in (self.state, *others):
            journal = self.journal(state)
            if any(header.run == run for header in journal.runs(CLUSTER)):
                record = replay(journal, run).nodes.get(node)
                return str(record.state) if record else ""
        return ""

    # ------------------------------------------------------------------------------------------------ the nodes

    def look(self) -> tuple[Seen, ...]:
        return tuple(look(node) for node in self.nodes)

    def fresh(self, state: str) -> None:
        """Remove all of rollout and all faults from the nodes, and start a new journal."""
        self.state = state
        (self.folder / "said").unlink(missing_ok=True)
        for folder in ("other", "emergency", state):
            shutil.rmtree(self.folder / folder, ignore_errors=True)
        for node in self.nodes:
            node.exec("sh", "-c", "rm -rf /var/lib/rollout /run/bed-*; systemctl reset-failed")

    def plan(self) -> None:
        done = self.rollout("plan", "--cluster", CLUSTER, "--out", "p.json", "--exit-code")
        if done.code != 10:
            raise RuntimeError(done.all)

    def targets(self, node: Node) -> frozenset[str]:
        plan = json.loads((self.folder / "p.json").read_text())
        group = plan["nodes"][node.name]["group"]
        change = next(entry["change"] for entry in plan["groups"] if entry["name"] == group)
        return frozenset(entry["path"] for entry in change["files"])

    def set_guard(self, seconds: int) -> None:
        """Write the playbook and make the plan."""
        self.guard = seconds
        gates = API_GATES if self.kubeconfig else ""
        (self.folder / "playbooks/pulls.yaml").write_text(PLAYBOOK.replace("GUARDs", f"{seconds}s") + gates)
        self.plan()

    def plan_with(self, kubeconfig: Path | None) -> None:
        """The plan of a cluster with this API server; ``None``: without one."""
        self.kubeconfig = kubeconfig
        self.load_files()
        self.set_guard(self.guard)

    def plan_for(self, draw: Draw) -> None:
        """Set the guard's time of the run."""
        wanted = self.brief if draw.guard == GUARD else draw.guard
        if wanted != self.guard:
            self.load_files()
            self.set_guard(wanted)

    def load_files(self) -> None:
        """Restart the kubelets: the fault of an earlier run may have touched their files since (chattr changes a time)."""
        for node in self.nodes:
            node.exec("systemctl", "restart", "kubelet")
        until(lambda: all(node.is_up() for node in self.nodes), PATIENCE, "every kubelet runs")

    def learn(self) -> None:
        """Learn the nodes with old and with new files, the duration of an undisturbed run, and from it how short a guard's time may be here."""
        self.fresh("undisturbed")
        self.set_guard(DEFAULT_GUARD)
        began = time.monotonic()
        self._well("apply", "p.json", "--yes")
        self.undisturbed = time.monotonic() - began
        self.brief = max(GUARD, round(2 * self.undisturbed * NODES / len(self.nodes)))
        new = self.look()
        run = self.newest()
        self._well("rollback", run.order.run if run else "", "--yes")
        self.known = {
            node.name: Known(old, then, self.targets(node))
            for node, old, then in zip(self.nodes, self.look(), new, strict=True)
        }

    def _well(self, *words: str) -> None:
        done = self.rollout(*words)
        if done.code != 0:
            raise RuntimeError(f"undisturbed: {done.all}")


def racked(nodes: Sequence[Node]) -> Mapping[str, Sequence[str]]:
    """Rack → names of its nodes."""
    names = [node.name for node in nodes]
    return {"a": names[::2], "b": names[1::2]}


@contextmanager
def make_site(
    folder: Path, count: int = NODES, around: Callable[[Site], AbstractContextManager[None]] | None = None
) -> Iterator[Site]:
    """A site with its own bed: booted, planned and learnt. ``around``: what its runs need in addition."""
    with Bed() as bed:
        site = site_on(bed, folder, count)
        with around(site) if around else nullcontext():
            site.learn()
            yield site


def site_on(bed: Bed, folder: Path, count: int = NODES) -> Site:
    """Boot so many more nodes."""
    nodes = bed.add(count)
    for node in nodes:
        prepare(node)
    shutil.rmtree(folder, ignore_errors=True)
    names = [node.name for node in nodes]
    racks = "racks:\n" + "".join(f"  {rack}: {','.join(of)}\n" for rack, of in racked(nodes).items())
    inventory = f"cluster: {CLUSTER}\napiServer: v1.36.1\n{racks}nodes:\n" + "".join(f"  {n}: {{}}\n" for n in names)
    for name in ("inventories", "playbooks"):
        (folder / name).mkdir(parents=True)
    (folder / f"inventories/{CLUSTER}.yaml").write_text(inventory)
    (folder / "templates").symlink_to(ROOT / "templates")
    until(lambda: all(node.is_up() for node in nodes), PATIENCE, "every kubelet runs")
    return Site(folder, bed, tuple(nodes))


def runs_of(seen: Seen) -> tuple[str, ...]:
    """The run that a node has accepted last, and the run that changed it last."""
    return (*seen.token[1:2], *(receipt["run"] for receipt in seen.receipts[-1:]))
