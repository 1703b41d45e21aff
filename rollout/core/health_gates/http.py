"""An HTTP page as a value, its verdict with evidence, and how a plan shows the query."""

from __future__ import annotations

from collections.abc import Iterator

from rollout.core.model.frozen import dataclass
from rollout.core.model.gates import HttpQuery
from rollout.core.model.verdict import Judged, Verdict
from rollout.core.text.terminal import printable


@dataclass(frozen=True, slots=True)
class Page:
    """An HTTP answer; ``text`` is the beginning of its body."""

    status: int
    text: str


def words(query: HttpQuery) -> Iterator[str]:
    """The query as a plan shows it."""
    yield from (query.url, str(query.status))


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
