"""What ``cluster freeze`` and ``cluster unfreeze`` report."""

from __future__ import annotations

from collections.abc import Iterator

from rollout.core.model.frozen import dataclass
from rollout.core.presentation.drift_text import NotAsked
from rollout.core.text.message_folding import folded, for_all
from rollout.core.text.nodesets import expand, fold
from rollout.core.text.terminal import counted, printable


@dataclass(frozen=True, slots=True)
class FreezeDocument:
    """What ``cluster freeze`` or ``cluster unfreeze`` did. ``marked``: the nodeset that took it; ``paused``: the run that was paused for it."""

    cluster: str
    frozen: bool
    name: str
    token: int
    marked: str
    paused: str
    failed: tuple[NotAsked, ...]

    @property
    def exit_code(self) -> int:
        return 4 if self.failed else 0


def freeze_lines(done: FreezeDocument) -> Iterator[str]:
    """The document for people."""
    word = "frozen" if done.frozen else "unfrozen"
    if done.paused:
        yield f"run {done.paused} is paused; after the unfreeze `rollout continue` continues it"
    for why, names in folded({each.node: f"{each.message} [{each.reference}]" for each in done.failed}).items():
        yield f"not {word}: {counted(len(names), 'node')} {printable(fold(names), 160)}: {printable(for_all(why, names), 300)}"
    yield f"{word}: {counted(len(expand(done.marked)) if done.marked else 0, 'node')} of {done.cluster}"
    if done.failed:
        command = f"rollout cluster {'freeze' if done.frozen else 'unfreeze'} --cluster {done.cluster}"
        yield f"once the other nodes answer, repeat: {command} --reason …"
    if done.frozen:
        yield f"to lift the freeze: rollout cluster unfreeze --cluster {done.cluster} --reason …"
