"""The same story as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rollout.core.presentation.pages.health_gates import evidence_rows
from rollout.core.presentation.pages.markup import clock
from rollout.core.presentation.pages.moments import moments
from rollout.core.presentation.pages.sections import next_steps, taken_back, used_budgets
from rollout.core.presentation.pages.story import Story
from rollout.core.presentation.summary import summarize
from rollout.core.presentation.summary_text import NOTHING_SINCE, Afterwards, summary_lines
from rollout.core.text.terminal import printable, wall

LONGEST = 300


def report_lines(story: Story, after: Afterwards = NOTHING_SINCE) -> Iterator[str]:
    """The summary, then what happened, the gates' results, how far budgets were used, and what to do next."""
    yield from summary_lines(summarize(story.state), after)
    yield f"  by {printable(story.past.who)}, {wall(story.began)} to {wall(story.ended)}: {printable(story.past.reason) or 'no reason was given'}"
    yield from (f"  {back}" for back in (taken_back(story),) if back)
    yield ""
    yield "What happened"
    for moment in moments(story):
        sign = {"halt": "■", "bad": "✗", "good": "✓"}.get(moment.kind, " ")
        yield f"  {clock(moment.at):>8} {sign} {printable(moment.text, LONGEST)}"
    gates = list(evidence_rows(story))
    if gates:
        yield ""
        yield "What the gates measured"
    for gate, wave, when, verdict, evidence in gates:
        yield printable(f"{gate}, wave {wave}, {when}: {verdict.value.upper()} {evidence}", LONGEST).join(("  ", ""))
    budgets = used_budgets(story)
    if budgets:
        yield ""
        yield "Budgets, when it halted" if story.halted_in else "Budgets"
    for each in budgets:
        end = "used up" if not each.left else f"halts at {each.left} more"
        yield f"  {each.short} ({'/'.join(sorted(each.budget.causes))}), {end}"
    steps = list(next_steps(story.state, after))
    if steps:
        yield ""
        yield "What to do next"
    for command, what in steps:
        yield f"  {command}   {what}"
