"""What commands that change nodes print and ask: before the operator confirms, and of a run that has ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from rollout.app.call import CordonsResult
from rollout.cli.options import typed_confirmation
from rollout.cli.proposals import say
from rollout.cli.registry import Kinds
from rollout.composition.wiring import Session
from rollout.core.model.proof import NodeProof
from rollout.core.presentation.emergency_text import PROOF_DOCUMENTS, proof_documents, proof_lines
from rollout.core.presentation.nothing_to_do import NothingToDo, nothing_document, nothing_lines
from rollout.core.text import documents

if TYPE_CHECKING:
    from rollout.app.revert import NothingReverted, RunResult


@dataclass(frozen=True, slots=True)
class Terminal:
    """The operator. ``yes``: do not ask."""

    session: Session
    yes: bool = True

    def tell(self, lines: Iterable[str]) -> None:
        for line in lines:
            say(line)

    def show(self, lines: Iterable[str]) -> None:
        for line in lines if self.session.output == "text" else ():
            say(line)

    def confirm(self, cluster: str, what: str) -> None:
        typed_confirmation(cluster, what, yes=self.yes)

    # Results: a document for programs, or lines for people.

    def result(self, found: RunResult) -> int:
        """What the run itself has not printed; the exit code."""
        if found.cordons is not None:
            self.cordons(found.cordons)
        if found.proofs is not None:
            self.proofs(found.proofs)
        return found.exit_code

    def proofs(self, found: Sequence[NodeProof]) -> None:
        self.documents(proof_documents(found))
        self.show(proof_lines(found) if found else ())

    def cordons(self, found: CordonsResult) -> None:
        self.documents([found.document] if found.document is not None else ())
        self.show(found.lines)
        if found.unrecorded:
            say(found.unrecorded, err=True)

    def nothing_reverted(self, found: NothingReverted) -> int:
        """The exit code."""
        self.cordons(found.cordons)
        self.documents([found.document])
        self.show(["nothing to revert: no node was touched"])
        return found.document.exit_code

    def nothing_to_do(self, found: NothingToDo) -> int:
        """The exit code."""
        self.documents([nothing_document(found)])
        self.show(nothing_lines(found))
        return found.exit_code

    def documents(self, found: Iterable[object]) -> None:
        """A document a line, for programs."""
        for document in found if self.session.output == "json" else ():
            click.echo(documents.line(document))


def run_documents() -> Kinds:
    """What a run prints, also one that reverts."""
    from rollout.core.presentation.event_documents import RUN_DOCUMENTS  # noqa: PLC0415 - only `rollout show schema documents` needs it here
    from rollout.features.drain.asking.cordons import CordonsDocument  # noqa: PLC0415 - of calls that change nodes

    return (*RUN_DOCUMENTS, CordonsDocument, *PROOF_DOCUMENTS)
