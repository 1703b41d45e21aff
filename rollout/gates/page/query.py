"""A page over HTTP has a status and a text. What is asked, the page as a value, and its verdict with evidence."""

from __future__ import annotations

from rollout.core.model.frozen import dataclass
from rollout.core.model.gates import GateQuery
from rollout.core.model.verdict import Judged, Verdict
from rollout.core.text.terminal import printable


@dataclass(frozen=True, slots=True)
class HttpQuery(GateQuery):
    """``GET url`` must answer with ``status`` and, if set, ``contains`` in the first MiB of its body."""

    url: str
    status: int = 200
    contains: str = ""

    kind = "http"
    asks_http = True

    def words(self) -> tuple[str, ...]:
        return (self.url, str(self.status))


@dataclass(frozen=True, slots=True)
class Page:
    """An HTTP answer; ``text`` is the beginning of its body."""

    status: int
    text: str


def judge_page(wanted: HttpQuery, page: Page) -> Judged:
    """Whether the page has the wanted status and content."""
    if page.status != wanted.status:
        return Verdict.FAIL, f"answered {page.status}, wanted {wanted.status}: {printable(page.text, 120)}".rstrip(": ")
    if wanted.contains and wanted.contains not in page.text:
        return (
            Verdict.FAIL,
            f"answered {page.status} without `{printable(wanted.contains, 60)}`: {printable(page.text, 120)}",
        )
    return Verdict.PASS, f"answered {page.status}"
