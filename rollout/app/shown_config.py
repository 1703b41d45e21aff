"""What a node's kubelet shows of its configuration through the API server, where that can be asked.

The effective-config gate goes by the node's files and the kubelet's command line. Where there is a kubeconfig that may read
``nodes/proxy``, ``/configz`` must show what was planned, too. Where it cannot be read the gate stands without it, and its
evidence says so: not everybody may be given nodes/proxy, which allows to run commands in every pod of the node.
"""

from __future__ import annotations

from dataclasses import dataclass

from rollout.app.backends import Backends
from rollout.core.model.plan import Change
from rollout.core.model.verdict import Verdict
from rollout.errors import AwayError, RemoteError
from rollout.kubelet.gates.expectations import Judged, shown_as_planned

_FOR_GOOD = frozenset({"unauthorized", "forbidden", "no-endpoint"})
"""Answers that stay what they are for the whole run."""

MOST_FAILURES = 3
"""So often an API server may not answer before it is no longer asked: this gate can do without, and each try takes time."""


@dataclass(slots=True)
class ShownConfig:
    """Of one run. Called on many threads; who may not ask does not ask again."""

    backends: Backends
    refused: str = ""
    failures: int = 0

    def judged(self, node: str, change: Change, timeout: float, found: Judged) -> Judged:
        """``found`` is what the gate says without ``/configz``; what it shows counts besides."""
        verdict, evidence = found
        if verdict is not Verdict.PASS or not change.effective:
            return found
        if self.refused:
            return verdict, f"{evidence}; configz was not read: {self.refused}"
        try:
            shown = self.backends.cluster.configz(node, timeout)
        except RemoteError as error:
            self._note(error)
            return verdict, f"{evidence}; configz was not read: {error.message}"
        verdict, said = shown_as_planned(change, shown)
        return verdict, f"{evidence}; {said}"

    def _note(self, error: RemoteError) -> None:
        of_the_node = error.reference.startswith("http-5")
        self.failures += not of_the_node
        for_good = error.reference in _FOR_GOOD and not isinstance(error, AwayError)
        if for_good or self.failures >= MOST_FAILURES:
            self.refused = error.message
