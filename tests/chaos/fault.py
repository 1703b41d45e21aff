"""A fault: how it begins, how long it lasts, how it is healed, and which references of an affected node it explains."""

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
    """``prepare`` is called before the run, ``strike`` at the instant, ``heal`` after so many seconds.

    By default they do nothing.
    """

    site: Site
    draw: Draw
    controller: Process | None = None

    throughout: ClassVar[bool] = False
    """Whether it is healed only after the controller has ended."""
    explains: ClassVar[frozenset[str] | None] = None
    """The references that a run may give for an affected node; ``None``: they are not checked."""
    keeps: ClassVar[re.Pattern[str]] = re.compile(r"(?!)")
    """Additional files that a transaction's folder may contain."""

    @property
    def nodes(self) -> Sequence[Node]:
        return [self.site.nodes[number] for number in self.draw.struck]

    def makes_unhealthy(self) -> bool:
        """Whether the health checks can see it on an affected node."""
        references = self.explains or frozenset()
        return any(reference == "unhealthy" or reference.startswith("gate-") for reference in references)

    def prepare(self) -> None:
        """Prepare the fault."""

    def strike(self) -> None:
        """Begin the fault, at the instant."""

    def heal(self) -> None:
        """End the fault. Only what the run itself must recover remains."""

    def mend(self) -> None:
        """Do what the run's messages tell an operator to do after the fault. Repeated until no node is under way."""

    def left(self) -> Sequence[str]:
        """What the run left outside of the nodes."""
        return ()

    def end(self) -> None:
        """Called when the run is over and everything was judged."""

    def own(self, seen: Seen, known: Known) -> Seen:
        """The node without the leftovers of the fault, for comparison."""
        state = {tx: frozenset(n for n in names if not self.keeps.fullmatch(n)) for tx, names in seen.state.items()}
        return replace(seen, state=state)

    def unexplained(self, record: NodeRecord) -> str:
        """A reference of an affected node that the fault does not explain; empty: none."""
        if self.explains is None or record.state not in AS_IT_WAS or record.reference in self.explains | FOR_OTHERS:
            return ""
        return f"{record.state} [{record.reference}], which the fault does not explain: {record.message}"
