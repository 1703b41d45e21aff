"""A fault: how it strikes, how long it lasts, how it is healed, and which results of a struck node it explains."""

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
    """``prepare`` runs before the run, ``strike`` at the instant, ``heal`` after some seconds. By default they do nothing."""

    site: Site
    draw: Draw
    controller: Process | None = None

    throughout: ClassVar[bool] = False
    """Not healed until the controller has ended."""
    explains: ClassVar[frozenset[str] | None] = None
    """The references that a run may give for a struck node; ``None``: they are not checked."""
    keeps: ClassVar[re.Pattern[str]] = re.compile(r"(?!)")
    """Names that a transaction's folder may contain in addition to those without a fault."""

    @property
    def nodes(self) -> Sequence[Node]:
        return [self.site.nodes[number] for number in self.draw.struck]

    def prepare(self) -> None:
        """Make ``strike`` possible."""

    def strike(self) -> None:
        """At the instant."""

    def heal(self) -> None:
        """Remove the fault; the run itself must fix the rest."""

    def mend(self) -> None:
        """What the run's messages ask an operator to do after the fault is healed. Repeated until no node is under way."""

    def end(self) -> None:
        """Called after the run, when everything was judged."""

    def own(self, seen: Seen, known: Known) -> Seen:
        """The node without the remains of the fault itself."""
        state = {tx: frozenset(n for n in names if not self.keeps.fullmatch(n)) for tx, names in seen.state.items()}
        return replace(seen, state=state)

    def unexplained(self, record: NodeRecord) -> str:
        """A result of a struck node that the fault does not explain; empty if there is none."""
        if self.explains is None or record.state not in AS_IT_WAS or record.reference in self.explains | FOR_OTHERS:
            return ""
        return f"{record.state} [{record.reference}], which the fault does not explain: {record.message}"
