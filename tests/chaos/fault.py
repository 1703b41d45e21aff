"""A fault: how it strikes, how long it lasts, how it is healed, and which words of a run about a struck node it explains."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from rollout.core.run.state import NodeRecord, NodeState
from tests.bed.node import Node
from tests.chaos.draws import Draw
from tests.chaos.findings import Known, Seen
from tests.chaos.site import Site
from tests.controllers import Process

AS_IT_WAS = frozenset({NodeState.REFUSED, NodeState.REVERTED, NodeState.FAILED, NodeState.UNREACHABLE})
FOR_OTHERS = frozenset({"taken-back-with-others"})


@dataclass
class Fault:
    """``prepare`` comes before the run, ``strike`` at the instant, ``heal`` after so many seconds. By default nothing happens."""

    site: Site
    draw: Draw
    controller: Process | None = None

    throughout: ClassVar[bool] = False
    """Not healed until the controller has ended."""
    explains: ClassVar[frozenset[str] | None] = None
    """The references that a run may give for a struck node; ``None``: they are not looked at."""
    keeps: ClassVar[re.Pattern[str]] = re.compile(r"(?!)")
    """What a transaction's folder may hold besides what it holds without a fault."""

    @property
    def nodes(self) -> Sequence[Node]:
        return [self.site.nodes[number] for number in self.draw.struck]

    def prepare(self) -> None:
        """So that it can strike."""

    def strike(self) -> None:
        """At the instant."""

    def heal(self) -> None:
        """Everything is well again, but for what the run itself must mend."""

    def mend(self) -> None:
        """What the run's own words ask an operator to do once the fault is healed. Done again and again until no node is under way."""

    def end(self) -> None:
        """The run is over and everything was judged."""

    def own(self, seen: Seen, known: Known) -> Seen:
        """The node without what the fault has left there, as its makers would see it."""
        state = {tx: frozenset(n for n in names if not self.keeps.fullmatch(n)) for tx, names in seen.state.items()}
        return replace(seen, state=state)

    def unexplained(self, record: NodeRecord) -> str:
        """What a run says of a struck node although the fault is no reason for it; empty if there is nothing."""
        if self.explains is None or record.state not in AS_IT_WAS or record.reference in self.explains | FOR_OTHERS:
            return ""
        return f"{record.state} [{record.reference}], which the fault does not explain: {record.message}"
