"""The page of a run while it goes on: the report's sections in the order in which an operator needs them.

A part is replaced whole when its text changes. The map and the table of nodes are drawn by the page's own script.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from rollout.core.plans import estimate
from rollout.core.presentation.pages import sections
from rollout.core.presentation.pages.charts import legend, timeline
from rollout.core.presentation.pages.controls import controls
from rollout.core.presentation.pages.health_gates import gates
from rollout.core.presentation.pages.markup import Html, Idle, raw, tag
from rollout.core.presentation.pages.shell import END, html_page
from rollout.core.presentation.pages.story import Story
from rollout.core.presentation.summary import summarize
from rollout.core.presentation.summary_text import Afterwards
from rollout.core.presentation.waiting import silences, waits_for
from rollout.core.run.state import Goal, NodeState, Phase, RunState
from rollout.core.text.terminal import printable, seconds_text

# The time axis: stretches in which no node changed are folded.


FOLDED_FROM = 120.0
"""Seconds without a change of a node from which a stretch is folded."""

_SHARE = 0.06
"""How wide a folded stretch is, of the time that is not folded."""


def idle(story: Story) -> tuple[Idle, ...]:
    """The stretches of soaks, holds and absent controllers that the time axis folds."""
    moved = {sample.at for sample in story.samples} | {said.at for said in story.said}
    times = sorted({story.began, story.ended, *moved, *(at for at, _ in story.halts)})
    long = [(began, ended) for began, ended in pairwise(times) if ended - began > FOLDED_FROM]
    busy = story.ended - story.began - sum(ended - began for began, ended in long)
    shown = min(max(busy * _SHARE, 5.0), FOLDED_FROM / 2)
    return tuple(Idle(began, ended, shown) for began, ended in long)


# The parts of the page.


_TITLES = {
    "distance": "Distance to halt",
    "failures": "Failed and reverted nodes, the culprit first",
    "gates": "What the gates measured",
    "time": "Waves over time",
    "predicted": "Predicted and actual times",
    "waits": "Waits for you",
}


def now_parts(story: Story, after: Afterwards, now: float, secret: str = "") -> dict[str, Html]:
    """What changes with time alone. ``now``: seconds since the epoch; ``secret``: see ``controls``."""
    return {
        "now": _now(story, after, now),
        "control": controls(story.state, after, secret),
        "waits": _waits(story.state),
    }


def story_parts(story: Story) -> dict[str, Html]:
    """What changes only with the run's events."""
    measured = gates(story)
    return {
        "distance": sections.budgets(story),
        "failures": sections.failures(story),
        "gates": raw(measured, sections.evidence(story)) if measured else tag("p", "Nothing was measured yet."),
        "time": raw(timeline(story, idle(story)), legend()),
        "predicted": _predicted(story),
    }


def _now(story: Story, after: Afterwards, now: float) -> Html:
    state = story.state
    said = () if state.phase is Phase.ENDED else (waits_for(state, max(now, state.now)), *silences(state, now))
    waiting = [tag("p", f"Waits for: {printable(each, 400)}", class_="waiting") for each in said[:1]]
    quiet = [tag("p", printable(each, 400), class_="waiting") for each in said[1:]]
    return raw(sections.banner(story, after), *waiting, *quiet, sections.numbers(story), sections.facts(story))


def _predicted(story: Story) -> Html:
    """Each wave's time: the plan's estimate, and what it took."""
    plan = story.past.plan
    if plan is None or story.past.order.goal is Goal.REVERT:
        return tag("p", "Only a run of a plan that this version can read has a prediction.")
    actual = [sum(span.ended - span.began for span in story.spans if span.wave == at) for at in range(len(plan.waves))]
    rows = [
        _time_row(wave.name, len(wave.nodes), estimate.of_wave(plan, wave), took)
        for wave, took in zip(plan.waves, actual, strict=False)
    ]
    total = _time_row("all", len(plan.nodes), estimate.total(plan), story.ended - story.began)
    return sections.table(("wave", "nodes", "predicted", "actual", "difference"), [*rows, total])


def _time_row(name: str, nodes: int, predicted: float, took: float) -> Html:
    longer = took - predicted
    word = f"{seconds_text(abs(longer))} {'longer' if longer > 0 else 'shorter'}" if took else "–"
    return tag(
        "tr",
        tag("td", printable(name, 40)),
        tag("td", f"{nodes:,}", class_="number"),
        tag("td", seconds_text(predicted)),
        tag("td", seconds_text(took) if took else "not begun"),
        tag("td", word),
    )


def _waits(state: RunState) -> Html:
    rows = [
        tag("li", tag("p", why), tag("p", tag("code", command, class_="command"))) for why, command in waiting(state)
    ]
    return tag("ul", rows, class_="waits") if rows else tag("p", "Nothing waits for you.")


def waiting(state: RunState) -> Iterator[tuple[str, str]]:
    """``(what waits for an operator, the command to type)``."""
    run, summary = state.order.run, summarize(state)
    if state.paused is not None and state.phase in (Phase.RUNNING, Phase.SOAKING):
        yield f"{'On hold' if state.paused.held else 'Paused'}: {summary.paused}", f"rollout continue {run}"
    for command, what in sections.next_steps(state):
        if not command.startswith("rollout watch"):
            yield f"{what[0].upper()}{what[1:]}{_which(state, command)}", command
    if summary.cordoned and state.phase is Phase.ENDED:
        yield f"May still be cordoned: {printable(summary.cordoned, 200)}", f"rollout recover {run}"


def _which(state: RunState, command: str) -> str:
    if not command.startswith("rollout recover"):
        return ""
    return f": {printable(summarize(state).pending_recovery.nodes, 200)}"


# The document.


def live_head(run: str, cluster: str, goal: str) -> str:
    """The document up to what must be read first."""
    what = "Rollback" if goal is Goal.REVERT else "Rollout"
    return html_page(
        f"{what} {run} on {cluster}",
        tag("h1", f"{what} on {cluster}"),
        tag("p", f"run {run} · ", tag("span", "reading the journal", id="standing", role="status"), class_="dim"),
        data_run=run,
    )


def live_body(parts: dict[str, Html]) -> str:
    """The rest of the document."""
    first = tag("div", parts["now"], class_="part", data_part="now", id="now")
    last = [_section(name, title, parts[name]) for name, title in _TITLES.items()]
    control = tag("div", parts["control"], class_="part", data_part="control", id="control")
    return raw(first, control, _nodes(), *last, END)


def _section(name: str, title: str, inside: Html) -> Html:
    return tag("section", tag("h2", title), tag("div", inside, class_="part", data_part=name), id=name)


def _nodes() -> Html:
    """The frame of the map and of the table of nodes."""
    field = tag("input", type="search", id="search", autocomplete="off", spellcheck="false", aria_describedby="found")
    states = tag(
        "select", tag("option", "any state", value=""), [tag("option", each) for each in NodeState], id="state"
    )
    head = tag("tr", [tag("th", title, scope="col") for title in ("node", "rack", "wave", "state", "message")])
    rows = tag("table", tag("thead", head), tag("tbody", id="rows"), id="nodes", aria_label="Nodes")
    return tag(
        "section",
        tag("h2", "Racks and zones"),
        legend(),
        tag("div", id="racks", role="group", aria_label="Racks: each filters the table of nodes"),
        tag("h2", "Nodes"),
        tag(
            "p",
            tag("label", "Name or message ", field),
            " ",
            tag("label", "State ", states),
            " ",
            tag("button", "Show all", type="button", id="all"),
            " ",
            tag("span", id="found", role="status"),
            class_="filter",
        ),
        tag("div", rows, id="window", tabindex="0", role="region", aria_label="Table of nodes, scrolls"),
        tag("noscript", tag("p", "The map and the table need JavaScript; the other sections do not.")),
        id="map",
    )
