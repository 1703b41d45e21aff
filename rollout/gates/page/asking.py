"""The gate that reads an HTTP page."""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

from rollout.app.asked_gate import AskedGate, WaveRun
from rollout.core.model.frozen import dataclass
from rollout.core.model.verdict import Judged, Verdict
from rollout.core.run.commands import JudgeWave, OpenWave
from rollout.gates.page.query import HttpQuery, Page, judge_page


class Pages(Protocol):
    """Plain HTTP GET. A redirect is an answer like any other. ``RemoteError`` without one; ``AwayError`` if a retry may succeed."""

    def get(self, url: str, timeout: float) -> Page: ...


@dataclass(frozen=True, slots=True)
class PageGate(AskedGate):
    """One gate of a wave. ``timeout`` is seconds for the page, retries included."""

    pages: Pages
    query: HttpQuery
    timeout: float
    run: WaveRun

    def before(self, command: OpenWave) -> tuple[Verdict, str, Any]:  # noqa: ARG002 - the page is not about nodes
        """Whether the page is as wanted already. There is no baseline."""
        return *self._judged(), None

    def now(self, command: JudgeWave, before: Any) -> Judged:  # noqa: ARG002
        """In a round of the soak."""
        return self._judged()

    def _judged(self) -> Judged:
        page = self.run.answer(partial(self.pages.get, self.query.url), self.timeout)
        return judge_page(self.query, page)
