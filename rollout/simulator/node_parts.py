"""What a model node consists of: its files, receipts, kubelet, the verbs under way on it, and its restarts."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass

from rollout.core.model.report import Report
from rollout.core.model.snapshot import ReceiptState

Work = Generator[float, None, Report]

OLD, NEW, MIXED, FOREIGN = "old", "new", "mixed", "foreign"


class RefusedError(Exception):
    """The agent declines; nothing was touched."""


@dataclass
class Transaction:
    """A receipt as the node has it. ``deadline`` is on the node's own clock of the boot ``boot``."""

    tx: str
    run: str
    counter: int
    boot: int
    deadline: float
    state: ReceiptState = ReceiptState.ARMED
    cause: str = ""
    finished: bool = False
    stuck: str = ""  # why it cannot come to its end in this boot, as a reference


@dataclass
class Kubelet:
    """``start`` is how long it takes to be healthy after a restart (``back``: when taken back); sick with which files, if any."""

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
class Process:
    """A verb under way on the node, in one boot."""

    name: str
    work: Work
    done: Callable[[Report | None], None]
    asked_at: float = 0.0
    killed: bool = False


@dataclass(frozen=True, slots=True)
class Restart:
    """Why the kubelet was restarted, and by which asking of which controller (``0``: by the node itself)."""

    at: float
    why: str
    token: tuple[int, str] = (0, "")
    asked_at: float = 0.0
