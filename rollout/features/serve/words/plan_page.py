"""The page of a run's plan: what it changes with every diff, its waves, its numbers, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Iterable

from rollout.core.model.plan import Plan
from rollout.core.plans import estimate
from rollout.core.plans.plan_text import (
    left_lines,
    limit_lines,
    side_effect_lines,
    tail_lines,
    warning_lines,
    wave_halts,
)
from rollout.core.presentation.pages import sections
from rollout.core.presentation.pages.markup import Html, lines, raw, tag
from rollout.core.presentation.pages.parts import section
from rollout.core.run.state import Order
from rollout.core.text.redaction import without_secrets
from rollout.core.text.terminal import printable, seconds_text
from rollout.features.serve.words.shell import END, html_page

LONGEST = 1_000


def plan_head(order: Order) -> str:
    """The document up to what must be read first."""
    back = tag("a", f"run {order.run}", href=f"../../runs/{order.run}")
    where = tag("p", "of ", back, f" on {order.cluster}", class_="dim")
    return html_page(f"Plan of run {order.run}", tag("h1", "Plan"), where, up="../../")


def plan_body(plan: Plan | None, digest: str) -> str:
    """The rest of the document. ``None``: the run has no plan that this version can read."""
    if plan is None:
        return raw(tag("p", "This run has no plan that this version of rollout can read."), END)
    facts = (
        ("playbook", plan.playbook),
        ("nodes read", plan.taken),
        ("limit", plan.limit),
        ("digest", digest),
    )
    return raw(
        tag("dl", [raw(tag("dt", title), tag("dd", text)) for title, text in facts if text]),
        _text("warnings", "Warnings", list(warning_lines(plan))[2:]),
        section("changes", "Changes", sections.changes(plan)),
        section("waves", "Waves", _waves(plan)),
        _text("effects", "Side effects", side_effect_lines(plan)),
        _text("limits", "Limits and gates", limit_lines(plan)),
        _text("left", "Left alone", left_lines(plan)),
        _text("times", "Times", tail_lines(plan)),
        END,
    )


def _text(name: str, title: str, found: Iterable[str]) -> Html:
    """A section in the words that a terminal shows; nothing, if there are none."""
    shown = [printable(without_secrets(line), LONGEST) for line in found if line and line not in (title, "Limits")]
    return (
        section(name, title, tag("pre", lines(shown), tabindex="0", role="region", aria_label=title))
        if shown
        else Html("")
    )


def _waves(plan: Plan) -> Html:
    rows = [
        tag(
            "tr",
            tag("td", printable(wave.name, 60)),
            tag("td", f"{len(wave.nodes):,}", class_="number"),
            tag("td", seconds_text(estimate.of_wave(plan, wave))),
            tag("td", "waits for `rollout continue`" if wave.hold else "–"),
            tag("td", "; ".join(wave_halts(plan, wave)) or "it has no budget of its own"),
        )
        for wave in plan.waves
    ]
    return sections.table(("wave", "nodes", "predicted", "then", "halts when"), rows)
