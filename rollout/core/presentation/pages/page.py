"""The report: one self-contained page that tells a run's story without its log. Pure: a story in, HTML out."""

from __future__ import annotations

from collections.abc import Iterator

from rollout.core.presentation.afterwards import NOTHING_SINCE, Afterwards
from rollout.core.presentation.pages import sections
from rollout.core.presentation.pages.changes import changes
from rollout.core.presentation.pages.gates import gates
from rollout.core.presentation.pages.markup import Html, raw, tag
from rollout.core.presentation.pages.racks import legend, racks
from rollout.core.presentation.pages.story import Story
from rollout.core.presentation.pages.style import STYLE
from rollout.core.presentation.pages.timeline import timeline
from rollout.core.run.state import Goal
from rollout.core.text.terminal import counted

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""Nothing is fetched and nothing runs, whatever text a node has sent."""


def page(story: Story, after: Afterwards = NOTHING_SINCE) -> str:
    """The whole document."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", _title(story)),
        tag("style", raw(STYLE)),
    )
    body = tag("body", *_header(story, after), *_sections(story), _footer(story))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _title(story: Story) -> str:
    order = story.past.order
    what = "rollback" if order.goal is Goal.REVERT else "rollout"
    return f"{what} {order.run} on {order.cluster}"


def _header(story: Story, after: Afterwards) -> Iterator[Html]:
    order = story.past.order
    what = "Rollback" if order.goal is Goal.REVERT else "Rollout"
    yield tag("h1", f"{what} of {counted(len(order.nodes), 'node')} on {order.cluster}")
    yield tag("p", f"run {order.run}", class_="dim")
    yield sections.banner(story, after)
    yield sections.numbers(story)
    yield sections.facts(story)


def _sections(story: Story) -> Iterator[Html]:
    yield _section("next", "What to do next", sections.steps(story))
    yield _section("story", "What happened", sections.narrative(story))
    yield _section("waves", "Waves over time", timeline(story), legend(), _spans())
    yield _section("racks", "Rack by rack", racks(story), legend(), _squares())
    if measured := gates(story):
        yield _section("gates", "What the gates measured", measured, sections.evidence(story))
    yield _section("failures", "Who went wrong or went back, and by what evidence", sections.failures(story))
    if story.past.order.budgets:
        yield _section("budgets", "Budgets", sections.budgets(story))
    if story.past.plan is not None:
        yield _section("changes", "What was to change", changes(story.past.plan))


def _section(name: str, title: str, *children: Html) -> Html:
    return tag("section", tag("h2", title), *children, id=name)


def _spans() -> Html:
    words = "A lane fills from below as its nodes arrive. Above it: when it was soaking, held, paused or halting."
    return tag("p", words, class_="dim")


def _squares() -> Html:
    return tag(
        "p",
        "A square is a node; one with a red edge went wrong itself and is charged to a budget. Point at it for its name and last word.",
        class_="dim",
    )


def _footer(story: Story) -> Html:
    words = f"Made from the journal of run {story.past.order.run}: {counted(story.events, 'event')}. Times are minutes and seconds into the run."
    return tag("footer", words)
