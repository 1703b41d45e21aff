"""The sections that the report and the page of a run share, each built in one place, and their titles."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from rollout.core.plans import estimate
from rollout.core.presentation.pages import first_screen, sections
from rollout.core.presentation.pages.charts import timeline, wave_legend
from rollout.core.presentation.pages.health_gates import gates
from rollout.core.presentation.pages.markup import Html, Idle, raw, tag
from rollout.core.presentation.pages.story import Story
from rollout.core.run.state import Ending, Goal
from rollout.core.text.terminal import printable, seconds_text

TITLES = {
    "failures": "Failed and reverted nodes, the culprit first",
    "distance": "Distance to halt",
    "gates": "What the gates measured",
    "time": "Waves over time",
    "predicted": "Predicted and actual times",
}


def story_parts(story: Story) -> dict[str, Html]:
    """What changes only with the run's events, by the names of the sections."""
    checked = (*(each.at for each in story.judged), *(each.at for each in story.measured))
    measured = gates(story, idle(story, checked))
    return {
        "change": first_screen.change(story, story.headline()),
        "failed": first_screen.failed(story),
        "nearest": first_screen.nearest(story),
        "facts": sections.facts(story),
        "failures": sections.failures(story),
        "distance": sections.budgets(story),
        "gates": raw(measured, sections.evidence(story)) if measured else tag("p", "Nothing was measured yet."),
        "time": raw(timeline(story, idle(story)), wave_legend()),
        "predicted": _predicted(story),
    }


def section(name: str, title: str, *children: Html) -> Html:
    return tag("section", tag("h2", title), *children, id=name)


# The time axis: stretches in which nothing happened are folded.


FOLDED_FROM = 120.0
"""Seconds without a change of a node from which a stretch is folded."""

_SHARE = 0.06
"""How wide a folded stretch is, of the time that is not folded."""


def idle(story: Story, besides: Iterable[float] = ()) -> tuple[Idle, ...]:
    """The stretches of soaks, holds and absent controllers that the time axis folds. ``besides``: other times of interest."""
    moved = {sample.at for sample in story.samples} | {word.at for word in story.said}
    times = sorted({story.began, story.ended, *moved, *besides, *(at for at, _ in story.halts)})
    long = [(began, ended) for began, ended in pairwise(times) if ended - began > FOLDED_FROM]
    busy = story.ended - story.began - sum(ended - began for began, ended in long)
    shown = min(max(busy * _SHARE, 5.0), FOLDED_FROM / 2)
    return tuple(Idle(began, ended, shown) for began, ended in long)


def _predicted(story: Story) -> Html:
    """Each wave's time: the plan's estimate, and what it took. Only what has finished is compared."""
    plan = story.past.plan
    if plan is None or story.past.order.goal is Goal.REVERT:
        return tag("p", "Only a run of a plan that this version can read has a prediction.")
    actual = [sum(span.ended - span.began for span in story.spans if span.wave == at) for at in range(len(plan.waves))]
    state = story.state
    is_done = state.ending is Ending.DONE
    rows = [
        _time_row(wave.name, len(wave.nodes), estimate.of_wave(plan, wave), took, finished=is_done or at < state.wave)
        for at, (wave, took) in enumerate(zip(plan.waves, actual, strict=False))
    ]
    total = _time_row("all", len(plan.nodes), estimate.total(plan), story.ended - story.began, finished=is_done)
    return sections.table(("wave", "nodes", "predicted", "actual", "difference"), [*rows, total])


def _time_row(name: str, nodes: int, predicted: float, took: float, *, finished: bool) -> Html:
    longer = took - predicted
    word = f"{seconds_text(abs(longer))} {'longer' if longer > 0 else 'shorter'}" if took and finished else "–"
    until = "" if finished else ", not finished"
    return tag(
        "tr",
        tag("td", printable(name, 40)),
        tag("td", f"{nodes:,}", class_="number"),
        tag("td", seconds_text(predicted)),
        tag("td", f"{seconds_text(took)}{until}" if took else "not begun"),
        tag("td", word),
    )
