"""The machine under a model node: its clock, power and freezes, its processes, and their lock.

A process releases the lock when it ends, is killed, or loses power, as in the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field

from rollout.core.model.report import Report
from rollout.core.model.snapshot import ReceiptState
from rollout.simulator.timeline import Timeline

# The parts of a model node: its files, receipts, kubelet, current verbs, and restarts.


Work = Generator[float, None, Report]

OLD, NEW, MIXED, FOREIGN = "old", "new", "mixed", "foreign"


class AgentRefusedError(Exception):
    """The agent refuses; nothing was touched."""


@dataclass
class Transaction:
    """A receipt on the node. ``deadline`` is on the node's own clock of the boot ``boot``."""

    tx: str
    run: str
    counter: int
    boot: int
    deadline: float
    state: ReceiptState = ReceiptState.ARMED
    cause: str = ""
    finished: bool = False
    stuck: str = ""  # why it cannot end in this boot, as a reference


@dataclass
class Kubelet:
    """``start``: seconds until healthy after a restart (``back``: after a revert); ``sick_with``: unhealthy with these files."""

    start: float = 6.0
    back: float | None = None
    sick_with: frozenset[str] = frozenset()
    falls_sick: float | None = None  # with the new files, at this time
    heals: float = float("inf")
    up_at: float = 0.0
    sick_once_restarted: bool = False  # with whatever files
    stays_until: float = 0.0  # until then no restart with the old files is seen

    def sick(self, files: str, now: float) -> bool:
        late = self.falls_sick is not None and self.falls_sick <= now < self.heals and files == NEW
        return late or (files in self.sick_with and now < self.heals)


@dataclass
class ModelProcess:
    """A verb under way on the node, in one boot."""

    name: str
    work: Work
    done: Callable[[Report | None], None]
    asked_at: float = 0.0
    killed: bool = False


@dataclass(frozen=True, slots=True)
class Restart:
    """Why the kubelet was restarted, and by which request of which controller (``0``: by the node itself)."""

    at: float
    why: str
    token: tuple[int, str] = (0, "")
    asked_at: float = 0.0


@dataclass
class ModelMachine:
    """``told`` is called with a text for each change on it."""

    name: str
    timeline: Timeline
    told: Callable[[str], None] = lambda _words: None
    rate: float = 1.0  # of its clock
    pace: float = 1.0  # how slow it is: 3.0 takes three times as long
    boot: int = 1
    booted_at: float = 0.0
    powered: bool = True
    frozen_until: float = 0.0
    holder: ModelProcess | None = None  # of the lock
    processes: list[ModelProcess] = field(default_factory=list)
    kills: int = 0  # number of processes to kill at their next pause
    struck: Callable[[ModelProcess], bool] = lambda _process: (
        False
    )  # called at each pause of a verb: whether it is killed there
    _acting: ModelProcess | None = None

    @property
    def uptime(self) -> float:
        return (self.timeline.now - self.booted_at) * self.rate

    def begin(
        self, name: str, work: Work, done: Callable[[Report | None], None], asked_at: float | None = None
    ) -> None:
        """Start a verb that was requested a while ago; ``done`` gets its report, or ``None`` when it was killed."""
        process = ModelProcess(name, work, done, self.timeline.now if asked_at is None else asked_at)
        self.processes.append(process)
        self._go_on(process)

    def _go_on(self, process: ModelProcess) -> None:
        if process.killed:
            return
        if self.timeline.now < self.frozen_until:
            self.timeline.at(self.frozen_until, lambda: self._go_on(process))
            return
        self._acting = process
        try:
            nap = next(process.work)
        except StopIteration as end:
            self.processes.remove(process)
            process.done(end.value)
        else:
            if self.kills or self.struck(process):
                self.kills = max(0, self.kills - 1)
                self.kill(process)
            else:
                self.timeline.after(nap * self.pace, lambda: self._go_on(process))

    def hang(self) -> None:
        """A verb hangs with the lock, and keeps it until it is killed."""
        self.begin("stuck", self._stuck(), lambda _report: None)

    def _stuck(self) -> Work:
        yield from self._lock(0.0)
        while True:
            yield 3600.0

    def kill(self, process: ModelProcess) -> None:
        process.killed = True
        process.work.close()
        if self.holder is process:
            self.holder = None
        self.processes.remove(process)
        process.done(None)

    def kill_next(self) -> None:
        """Kill the running verbs, or else the next one; the machine keeps running."""
        self.told("has its agent killed")
        if not self.processes:
            self.kills += 1
        for process in tuple(self.processes):
            self.kill(process)

    def lose_power(self, back_after: float) -> None:
        """A power cut now; it boots ``back_after`` seconds later."""
        if not self.powered:
            return
        self.powered = False
        for process in tuple(self.processes):
            self.kill(process)
        self.told("loses its power")
        if back_after != float("inf"):
            self.timeline.after(back_after, self._boot)

    def _boot(self) -> None:
        self.powered, self.boot, self.booted_at = True, self.boot + 1, self.timeline.now

    def freeze(self, lasting: float) -> None:
        self.frozen_until = self.timeline.now + lasting
        self.told(f"freezes for {lasting:g} s")

    def _lock(self, patience: float) -> Generator[float, None, None]:
        me, waited = self._acting, 0.0
        while self.holder is not None:
            if waited >= patience:
                self._acting = me
                raise AgentRefusedError("locked", "another verb is at work")
            yield 0.5
            waited += 0.5 * self.pace
        self.holder = me

    def _unlock(self) -> None:
        if self.holder is self._acting:
            self.holder = None
