"""The gate that reads an HTTP page."""

from __future__ import annotations

from functools import partial
from typing import Any

from rollout.app.backends import Asking
from rollout.core.health_gates.http import judge_page
from rollout.core.model.frozen import dataclass
from rollout.core.model.gates import HttpQuery
from rollout.core.model.verdict import Judged, Verdict
from rollout.core.run.commands import JudgeWave, OpenWave


@dataclass(frozen=True, slots=True)
class PageGate:
    """One gate of a wave. ``timeout`` is seconds for the page, retries included."""

    query: HttpQuery
    timeout: float
    asking: Asking

    def before(self, command: OpenWave) -> tuple[Verdict, str, Any]:  # noqa: ARG002 - the page is not about nodes
        """Whether the page is as wanted already. There is no baseline."""
        return *self._judged(), None

    def now(self, command: JudgeWave, before: Any) -> Judged:  # noqa: ARG002
        """In a round of the soak."""
        return self._judged()

    def _judged(self) -> Judged:
        page = self.asking.answer(partial(self.asking.backends.pages.get, self.query.url), self.timeout)
        return judge_page(self.query, page)
