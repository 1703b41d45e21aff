"""A fleet that grows, shrinks and gets other machines, as a model: what owned settings must be told of each node."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random


@dataclass
class Machine:
    """``number``: which machine has the name now; ``changed``: the one that a run changed last (``None``: none)."""

    number: int = 0
    is_new: bool = False
    changed: int | None = None
    listed: bool = False

    @property
    def standing(self) -> str:
        if not self.listed:
            return "gone" if self.changed is not None else ""
        if self.is_new:
            return "as-wanted"
        if self.changed is None:
            return "never-changed"
        return "drifted" if self.changed == self.number else "replaced"

    @property
    def is_newcomer(self) -> bool:
        return self.standing in ("never-changed", "replaced")

    def apply(self) -> None:
        self.is_new, self.changed = True, self.number


class GrowingFleet(ABC):
    """``model``: a machine for each name. ``least``: at least so many nodes stay in the fleet."""

    model: Mapping[str, Machine]
    least = 1

    def listed(self) -> list[str]:
        return [name for name, machine in self.model.items() if machine.listed]

    def step(self, draw: Random) -> str:
        """One step that is possible now, by its name."""
        out = [name for name, machine in self.model.items() if not machine.listed]
        new = [name for name in self.listed() if self.model[name].is_new]
        possible = [
            *(("join", name) for name in out),
            *(("leave", name) for name in self.listed() if len(self.listed()) > self.least),
            *(("replace", name) for name in self.model),
            *(("edit", name) for name in new),
            *[("newcomers", "")] * 4,
            ("everything", ""),
        ]
        what, name = draw.choice(possible)
        match what:
            case "join" | "leave":
                self.list(name, listed=what == "join")
            case "replace":
                self.replace(name)
            case "edit":
                self.edit(name)
            case "newcomers":
                self.newcomers()
            case _:
                self.everything()
        return f"{what} {name}"

    @abstractmethod
    def list(self, name: str, *, listed: bool) -> None: ...

    @abstractmethod
    def replace(self, name: str) -> None:
        """Another machine comes under the same name."""

    @abstractmethod
    def edit(self, name: str) -> None:
        """Somebody restores an old value by hand."""

    @abstractmethod
    def newcomers(self) -> None:
        """What lacks the setting is planned and applied."""

    @abstractmethod
    def everything(self) -> None:
        """An ordinary run over all that differ."""
