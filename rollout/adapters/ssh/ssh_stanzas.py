"""What an ssh_config holds once it is read: stanzas, with an index by the names on their ``Host`` lines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from rollout.adapters.ssh.ssh_conditions import Condition


@dataclass(frozen=True, slots=True)
class Setting:
    keyword: str
    values: tuple[str, ...]


@dataclass(slots=True)
class Stanza:
    condition: Condition
    lines: list[Setting | File] = field(default_factory=list)


@dataclass(slots=True)
class File:
    """``general``: the numbers of the stanzas that only a look can tell about; ``named``: those of each literal name."""

    stanzas: list[Stanza] = field(default_factory=list)
    general: list[int] = field(default_factory=list)
    named: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def begin(self, condition: Condition) -> None:
        names = condition.names
        for numbers in [self.general] if names is None else [self.named[name] for name in names]:
            numbers.append(len(self.stanzas))
        self.stanzas.append(Stanza(condition))

    def perhaps_for(self, name: str) -> Iterator[Stanza]:
        numbers = sorted([*self.general, *self.named.get(name, ())])
        return (self.stanzas[number] for number in numbers)
