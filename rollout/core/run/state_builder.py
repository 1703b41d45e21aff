"""A run state during one step: changes are collected, then frozen again. Used only inside ``machine.step``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollout.core.run.budgets import may_count
from rollout.core.run.commands import Command
from rollout.core.run.replace import altered
from rollout.core.run.state import NodeRecord, RunState


class StateBuilder:
    """See the module. ``nodes`` is read-only for callers: all writes go through ``put``."""

    def __init__(self, state: RunState) -> None:
        self.state = state
        self.now = state.now
        self._began = (state.phase, state.wave)
        self._touched: set[str] = set()
        self._nodes: dict[str, NodeRecord] | None = None
        self.commands: list[Command] = []

    @property
    def nodes(self) -> Mapping[str, NodeRecord]:
        return self.state.nodes if self._nodes is None else self._nodes

    def finish(self) -> tuple[RunState, tuple[Command, ...]]:
        state = self.state if self._nodes is None else altered(self.state, nodes=self._nodes)
        return state, tuple(self.commands)

    def set(self, **changes: Any) -> None:
        self.state = altered(self.state, **changes)

    def put(self, name: str, **changes: Any) -> None:
        if self._nodes is None:
            self._nodes = dict(self.state.nodes)
        self._nodes[name] = altered(self._nodes[name], **changes)
        self._touched.add(name)

    def may_have_failed(self) -> bool:
        """Whether more may count against a budget than before this event. If not, budgets need no check."""
        moved = (self.state.phase, self.state.wave) != self._began
        return moved or any(may_count(self.nodes[name]) for name in self._touched)

    def seen_counter(self, counter: int) -> None:
        if counter > self.state.highest:
            self.set(highest=counter)
