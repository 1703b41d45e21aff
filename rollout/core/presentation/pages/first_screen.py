"""What an operator reads first of a run: what to type next, what changes, what failed, how far it is from a halt, its waves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rollout.core.model.plan import Plan
from rollout.core.plans.change_text import kinds
from rollout.core.presentation.headline import Headline, WhatChanged
from rollout.core.presentation.pages import sections
from rollout.core.presentation.pages.last_logs import log_command
from rollout.core.presentation.pages.markup import Html, copied, lines, linked, moment, nodeset, raw, tag
from rollout.core.presentation.pages.moments import Fallen, fallen
from rollout.core.presentation.pages.story import Story
from rollout.core.presentation.remaining import wave_ends
from rollout.core.presentation.summary import WITH_OTHERS, failure_log
from rollout.core.presentation.summary_text import Afterwards
from rollout.core.presentation.view import WaveStanding, WaveView, wave_views
from rollout.core.run.state import NodeState
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable

MOST_STEPS = 3
MOST_FAILED = 3
MOST_BUDGETS = 3
MOST_SETTINGS = 6


def run_page(run: str) -> str:
    """The way to another run, from the page of a run."""
    return f"../runs/{run}"


def steps_now(steps: Sequence[tuple[str, str]]) -> Html:
    """``(why, command)``: the first ones in full, each with a button that copies it."""
    if not steps:
        return tag("p", "Nothing waits for you.")
    rows = [tag("li", tag("p", why), copied(command)) for why, command in steps]
    shown, rest = rows[:MOST_STEPS], rows[MOST_STEPS:]
    more = tag("details", tag("summary", f"{len(rest)} more"), tag("ul", rest, class_="waits")) if rest else ""
    return raw(tag("ul", shown, class_="waits"), more)


def change(story: Story, head: Headline) -> Html:
    """Each setting with its old and new value, the operator, and the diff of the largest kind of node."""
    return raw(_settings(head.change), _facts(head), _diff(story.past.plan), _whole_plan(story))


def _settings(found: WhatChanged) -> Html:
    rows = [
        tag("li", tag("b", each.name), ": ", tag("del", each.old), " → ", tag("ins", each.new))
        if each.old or each.new
        else tag("li", each.name)
        for each in found.settings[:MOST_SETTINGS]
    ]
    more = len(found.settings) - MOST_SETTINGS
    rest = tag("p", f"and {counted(more, 'more setting')}", class_="dim") if more > 0 else ""
    return raw(tag("ul", rows, class_="settings"), rest) if rows else tag("p", "Its settings are not recorded.")


def _facts(head: Headline) -> Html:
    source = linked(head.change.source, {run: run_page(run) for run in head.change.reverts})
    facts = (
        ("from", source),
        ("who", head.who),
        ("why", printable(head.reason, 300) or "no reason was given"),
        ("began", moment(head.began)),
        ("ended", moment(head.ended) if head.ended is not None else ""),
    )
    return tag("dl", [raw(tag("dt", title), tag("dd", text)) for title, text in facts if text])


def _diff(plan: Plan | None) -> Html:
    """Of the largest kind of node; the page of the plan has the others."""
    found = kinds(plan) if plan is not None else ()
    if not found:
        return Html("")
    first = found[0]
    diffs = [sections.file_diff(file) for file in first.first.change.files]
    title = f"Diff on {counted(len(first.nodes), 'node')}: {printable(first.first.label, 80)}"
    return tag("details", tag("summary", title), diffs)


def _whole_plan(story: Story) -> Html:
    if story.past.plan is None:
        return Html("")
    return tag("p", tag("a", "The whole plan", href=f"{run_page(story.past.order.run)}/plan"))


def failed(story: Story) -> Html:
    """The kinds of nodes that failed themselves, most nodes first, each with the last line of a kubelet."""
    groups = [kind for kind in fallen(story) if kind.reference != WITH_OTHERS]
    if not groups:
        return tag("p", "No node failed.")
    groups.sort(key=lambda kind: -len(kind.nodes))
    rows = [_failed(story, kind) for kind in groups[:MOST_FAILED]]
    more = len(groups) - MOST_FAILED
    rest = tag("p", tag("a", f"and {counted(more, 'more kind')}", href="#failures")) if more > 0 else ""
    return raw(tag("ul", rows, class_="failed"), rest)


def _own_last_line(log: Sequence[str]) -> str:
    """The last line that the process itself wrote: those of systemd after it only say that the process ended."""
    return next((line for line in reversed(log) if not line.startswith("systemd[")), log[-1])


def _failed(story: Story, kind: Fallen) -> Html:
    log = failure_log(story.state, kind.nodes)
    reference = f" [{kind.reference}]" if kind.reference else ""
    if log is not None and log.lines:
        last: Html = raw(
            tag("p", f"last line of the kubelet of {log.node}", class_="dim"),
            tag(
                "pre",
                lines([_own_last_line(log.lines)]),
                tabindex="0",
                role="region",
                aria_label=f"last log line of {log.node}",
            ),
        )
    elif kind.state is NodeState.UNREACHABLE:
        last = Html("")
    else:
        last = copied(log_command(story.past.order.cluster, kind.nodes[0], kind.first), "Read its last log lines:")
    names = printable(fold(kind.nodes), 160)
    head = f"✗ {counted(len(kind.nodes), 'node')} {kind.state.value}: "
    return tag(
        "li", tag("p", tag("b", head), nodeset(names)), tag("p", f"{kind.message or 'no message'}{reference}"), last
    )


def nearest(story: Story) -> Html:
    """The budgets that are nearest to halting the run, then all of them."""
    budgets = sections.used_budgets(story)
    if not budgets:
        return tag("p", "This run has no budget.")
    rows = [
        tag(
            "li",
            tag("span", each.place, class_="name"),
            sections.meter(each),
            tag("b", f"{each.wrong} of {each.limit}"),
            " ✗ used up" if not each.left else f" {each.left} more halts it",
            class_="bad" if not each.left else None,
        )
        for each in budgets[:MOST_BUDGETS]
    ]
    whole = tag("details", tag("summary", f"All of it ({counted(len(budgets), 'budget')})"), sections.budgets(story))
    if story.state.ending is not None and story.halted_in is None:
        return raw(tag("p", "It ended without a halt."), whole)
    return raw(tag("ul", rows, class_="budgets"), whole)


_SIGNS = {
    WaveStanding.PASSED: "✓",
    WaveStanding.OVER: "–",
    WaveStanding.NOW: "▸",
    WaveStanding.TO_COME: "·",
    WaveStanding.STOPPED: "■",
}


def wave_progress(story: Story, after: Afterwards, now: float) -> Html:
    """Each wave: how many of its nodes are finished, and when it is expected to end. What cannot be known is left out."""
    state = story.state
    ends = wave_ends(state, now) if after.controller.alive else {}
    members = [[state.nodes[name] for name in wave.nodes] for wave in state.order.waves]
    failures = [sum(record.cause is not None for record in records) for records in members]
    views = zip(wave_views(state), failures, strict=True)
    rows = [_wave(each, bad, ends.get(at), timed=bool(ends)) for at, (each, bad) in enumerate(views)]
    return sections.table(("wave", "finished", "state", *(("expected end",) if ends else ())), rows, stacks=False)


def _wave(each: WaveView, bad: int, end: float | None, *, timed: bool) -> Html:
    share = each.done / each.total if each.total else 0.0
    failed_too = f", ✗ {bad:,} failed" if bad else ""
    return tag(
        "tr",
        tag("td", printable(each.name, 40)),
        tag("td", sections.bar(share, "s-confirmed"), f"{each.done:,} of {each.total:,}"),
        tag("td", f"{_SIGNS[each.standing]} {each.standing.value}{failed_too}"),
        *((tag("td", moment(end) if end is not None else "–"),) if timed else ()),
        class_="now" if each.standing is WaveStanding.NOW else None,
    )


def links_of(story: Story, after: Afterwards) -> dict[str, str]:
    """The runs that a banner names, with the ways to their pages."""
    named: Iterable[str] = (*story.past.change.reverts, *after.rolled_back, *after.on_top, after.followed_by)
    return {run: run_page(run) for run in named if run}


def blocks(*columns: Iterable[tuple[str, str, Html]]) -> Html:
    """``(name, title, content)`` of each column: they stand beside one another where there is room."""
    shown = [
        tag(
            "div",
            [
                tag("section", tag("h2", title), tag("div", content, class_="part", data_part=name), id=name)
                for name, title, content in column
            ],
        )
        for column in columns
    ]
    return tag("div", shown, class_="first")
