"""The page's sections of text and tables."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from html import escape

from rollout.core.model.areas import limited
from rollout.core.model.plan import FileChange, Plan
from rollout.core.model.playbook import Cause, Scope
from rollout.core.model.verdict import Verdict
from rollout.core.plans.again import SAME_SETTINGS, plan_again
from rollout.core.plans.change_text import ShownGroup, kinds
from rollout.core.presentation.glance import Glance, glance
from rollout.core.presentation.pages.health_gates import evidence_rows
from rollout.core.presentation.pages.last_logs import logs
from rollout.core.presentation.pages.markup import Html, clock, lines, linked, nodeset, raw, tag
from rollout.core.presentation.pages.moments import fallen, moments
from rollout.core.presentation.pages.story import Story
from rollout.core.presentation.summary import WITH_OTHERS, Summary, exit_code, rehearsed, summarize
from rollout.core.presentation.summary_text import (
    FORCED,
    NOTHING_SINCE,
    Afterwards,
    afterwards_lines,
    forced_rollback,
    is_fenced,
    recoverable,
    since_lines,
    still_pending,
)
from rollout.core.presentation.watch_keys import possible
from rollout.core.run.budgets import Distance, distances
from rollout.core.run.drains import restart_may_come
from rollout.core.run.events import RequestWord
from rollout.core.run.facts import wrong
from rollout.core.run.retries import need_a_plan
from rollout.core.run.state import Ending, Goal, NodeState, Phase, RunState
from rollout.core.text import diff
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable, seconds_text, wall, wall_of

# What to do after a run: commands that work as printed, each with what it does.


def next_steps(state: RunState, after: Afterwards = NOTHING_SINCE) -> Iterator[tuple[str, str]]:
    """``(command, what it does)``, the most useful first. No command that ``after`` makes useless."""
    run, cluster = state.order.run, state.order.cluster
    if state.phase is not Phase.ENDED and after.controller.alive:
        yield from _requests(state)
        return
    if state.phase is not Phase.ENDED and not after.is_superseded:
        yield f"rollout resume {run}", "continue it in a new controller"
    summary = summarize(state)
    if state.ending in (Ending.HALTED, Ending.INTERRUPTED) and summary.can_resume and not after.is_superseded:
        what = "continue after its halt with the nodes that have not failed; all nodes are read again first"
        yield f"rollout resume {run}", what if state.ending is Ending.HALTED else "continue where it stopped"
    if recoverable(summary, after):
        yield f"rollout resume --recover-only {run}", "do the pending recoveries of unreachable nodes, once they answer"
    for source, forced in summary.need_force.items():
        if nodes := still_pending(forced, after):
            yield forced_rollback(cluster, source, nodes), f"overwrite what others wrote with the old files. {FORCED}"
    if (again := fold(need_a_plan(state))) and not after.is_rolled_back:
        what = f"plan the failed, reverted and refused nodes again, once they are repaired, {SAME_SETTINGS}"
        yield plan_again(cluster, again, after.playbook), what
    yield from _left_behind(state, summary, after)
    if summary.can_roll_back and after.may_undo:
        yield f"rollout rollback {run}", "revert every node that has the change"
    if state.ending is Ending.PREFLIGHT:
        what = f"plan again once the unhealthy nodes are fixed or left out with --limit, {SAME_SETTINGS}"
        yield plan_again(cluster, "", after.playbook), what
    if is_fenced(summary) and not after.is_superseded:
        yield f"rollout resume {run}", "take a token above the one on the node"
    elif state.ending is Ending.CLAIMED:
        yield (
            f"rollout status --state DIR {run}",
            "another run has claimed nodes of this one: check it there, then resume it or roll it back",
        )
    if state.ending is Ending.DONE and state.order.goal is Goal.APPLY:
        yield f"rollout verify --cluster {cluster}", "check the nodes for drift"


def _requests(state: RunState) -> Iterator[tuple[str, str]]:
    """Of a run with a controller: what the controller would do, and to watch it."""
    run, words = state.order.run, possible(state)
    told = {
        RequestWord.PAUSE: "start no more nodes until it is continued",
        RequestWord.CONTINUE: "go on with the next nodes",
        RequestWord.ABORT: f"end it; nodes are reverted as the playbook sets it (revert: {state.order.on_failure.value})",
    }
    if RequestWord.CONTINUE not in words:
        yield f"rollout watch {run}", "watch it in a terminal"
    yield from ((f"rollout {word.value} {run}", told[word]) for word in words)


def _left_behind(state: RunState, summary: Summary, after: Afterwards) -> Iterator[tuple[str, str]]:
    """What the run could not remove from nodes, once it has ended."""
    cordoned = fold(name for name, record in state.nodes.items() if record.cordoned and not restart_may_come(record))
    if cordoned and state.phase is Phase.ENDED and not after.is_superseded:
        yield (
            f"rollout resume --recover-only {summary.run}",
            f"lift cordons that may be left behind on {printable(cordoned, 200)}",
        )
    kept = [name for name, record in state.nodes.items() if record.leftovers and not record.cordoned]
    if kept and state.phase is Phase.ENDED:
        names = fold(kept)
        yield (
            f"rollout cluster unlock --cluster {summary.cluster} --limit {shlex.quote(names)} --reason …",
            f"remove what is left behind on {counted(len(kept), 'node')}, and keep the receipts",
        )


# The page's section on the planned changes: each kind of node with its reasons and diffs.


def changes(plan: Plan, culprits: Collection[str] = ()) -> Html:
    """The planned changes: the reasons at a glance, then each kind of node with its reasons and diffs.

    The kinds with ``culprits`` (nodes that failed) come first. The first kind is open.
    """
    groups = sorted(kinds(plan), key=lambda kind: set(culprits).isdisjoint(kind.nodes))
    glance = tag("ul", [tag("li", f"{why}: {counted(count, 'node')}") for why, count in _reasons(groups)[:MOST_KINDS]])
    shown = [_kind(kind, opened=at == 0) for at, kind in enumerate(groups[:MOST_KINDS])]
    more = len(groups) - MOST_KINDS
    rest = tag("p", f"and {counted(more, 'more kind')} of node, in the plan file", class_="dim") if more > 0 else ""
    return raw(glance, *shown, rest)


def _reasons(groups: Sequence[ShownGroup]) -> list[tuple[str, int]]:
    """Every reason with its number of nodes, the most first."""
    counts: Counter[str] = Counter()
    for kind in groups:
        for why in dict.fromkeys(why for file in kind.first.change.files for why in file.reasons):
            counts[why] += len(kind.nodes)
    return counts.most_common()


def _kind(kind: ShownGroup, *, opened: bool) -> Html:
    change = kind.first.change
    units = ", ".join(change.units)
    return tag(
        "details",
        tag("summary", f"{kind.first.label}: {counted(len(kind.nodes), 'node')}"),
        tag("p", printable(fold(kind.nodes), LONGEST_NODESET), class_="dim"),
        [file_diff(file) for file in change.files],
        tag("p", f"then restart {units} ({change.disruption.value})"),
        [tag("p", note, class_="dim") for note in change.notes],
        open="open" if opened else None,
    )


def file_diff(file: FileChange) -> Html:
    """The reasons of a change to one file, and its diff without secrets."""
    shown = [_diff_line(line) for line in diff.unified(file.before, file.after, file.path)]
    reasons = tag("ul", [tag("li", reason) for reason in file.reasons])
    return raw(
        reasons, tag("pre", Html("\n".join(shown)), tabindex="0", role="region", aria_label=f"diff of {file.path}")
    )


def _diff_line(line: str) -> Html:
    kind = "add" if line.startswith("+") else "cut" if line.startswith("-") else None
    return tag("span", lines([line]), class_=kind) if kind else lines([line])


MOST_ROWS = 60
MOST_KINDS = 12
LONGEST_NODESET = 400


def banner(story: Story, after: Afterwards, ways: Mapping[str, str] | None = None) -> Html:
    """How the run ended, why, what was reverted, what is pending recovery and what came afterwards, in a few lines.

    ``ways``: to the pages of other runs.
    """
    state = story.state
    seen, summary = glance(state, after), summarize(state)
    texts = [
        tag("p", linked(text, ways) if ways else text, class_=name) for name, text in _verdict(story, seen, summary)
    ]
    later = (*since_lines(after.rolled_back), *afterwards_lines(summary, after))
    texts += [tag("p", linked(line.strip(), ways) if ways else line.strip()) for line in later]
    return tag("div", texts, class_=f"banner {seen.mood}".strip())


def _verdict(story: Story, seen: Glance, summary: Summary) -> Iterator[tuple[str | None, str]]:
    state = story.state
    took = seconds_text(story.ended - story.began)
    if state.ending is None:
        yield "verdict-word", f"{seen.sign} {seen.word.capitalize()}"
        yield None, seen.reason
    elif seen.is_rolled_back:
        yield "verdict-word", f"{seen.sign} Rolled back"
        yield None, f"It had ended: {_ending(state)} after {took}. The nodes are shown as it left them."
    else:
        yield "verdict-word", f"{seen.sign} {_ending(state)} after {took}"
    yield None, str(story.past.change)
    if state.halt is not None:
        wave = state.order.waves[min(state.wave, len(state.order.waves) - 1)].name
        where = f" in wave {wave}" if state.order.goal is Goal.APPLY else ""
        yield None, f"Halted{where}: {state.halt.message} [{state.halt.reference}]"
    if back := taken_back(story):
        yield None, back
    pending = summary.pending_recovery
    if pending.changes:
        yield None, f"Pending recovery, the change is still to be applied or reverted there: {pending.changes}"
    if pending.cordons:
        yield None, f"Pending recovery, only the cordon is still to be lifted there: {pending.cordons}"
    for leftover in (*summary.leftovers[:10], *state.leftovers[:10]):
        yield None, f"Left behind: {leftover}"


def _ending(state: RunState) -> str:
    words = {
        Ending.DONE: "Done",
        Ending.HALTED: "Halted",
        Ending.INTERRUPTED: "Interrupted",
        Ending.PREFLIGHT: "Not begun: preflight",
        Ending.CLAIMED: "Refused: another run has claimed its nodes",
    }
    but = ", incomplete" if state.ending is Ending.DONE and exit_code(state) else ""
    return f"{words[state.ending or Ending.DONE]}{but} (exit code {exit_code(state)})"


def taken_back(story: Story) -> str:
    """How many nodes were reverted, and why."""
    state = story.state
    if state.order.goal is Goal.REVERT:
        return ""
    back = [name for name, record in state.nodes.items() if record.state is NodeState.REVERTED]
    others = [name for name in back if state.nodes[name].reference == WITH_OTHERS]
    if not back:
        return ""
    own = len(back) - len(others)
    if not others:
        return f"Reverted: {counted(own, 'node')} that failed."
    failed, why = (f"{own} that failed, ", "with them") if own else ("", "because the run halted")
    return f"Reverted: {counted(len(back), 'node')}: {failed}{len(others)} {why}, {_by_whose_word(story)}."


def _by_whose_word(story: Story) -> str:
    if story.asked_back is None:
        return f"as the playbook sets it (revert: {story.state.order.on_failure.value})"
    who, scope = story.asked_back
    return f"as {printable(who, 60)} requested (revert: {scope.value})"


_RANK = (
    NodeState.CONFIRMED, NodeState.REVERTED, NodeState.FAILED, NodeState.UNREACHABLE, NodeState.REFUSED, NodeState.UNKNOWN,
    NodeState.REVERTING, NodeState.APPLYING, NodeState.APPLIED, NodeState.SKIPPED, NodeState.GONE, NodeState.PENDING,
)  # fmt: skip


def numbers(story: Story, after: Afterwards = NOTHING_SINCE) -> Html:
    """The final counts, in large type. Nodes that later rollbacks reverted count as reverted."""
    back = {name for names in after.rolled_back.values() for name in names}
    counts = Counter(NodeState.REVERTED if name in back else record.state for name, record in story.state.nodes.items())
    bad = (NodeState.FAILED, NodeState.UNREACHABLE, NodeState.REFUSED, NodeState.UNKNOWN)
    boxes = [
        tag(
            "li",
            tag("b", f"{count:,}"),
            kind,
            class_="confirmed" if kind is NodeState.CONFIRMED else "wrong" if kind in bad else None,
        )
        for kind in _RANK
        if (count := counts[kind])
    ]
    return tag("ul", boxes, class_="numbers")


def facts(story: Story) -> Html:
    """The operator, the reason, the time and the plan."""
    return tag("dl", [raw(tag("dt", title), tag("dd", text)) for title, text in _facts(story) if text])


def _facts(story: Story) -> Iterator[tuple[str, Html | str]]:
    past, plan = story.past, story.past.plan
    yield "who", past.who
    yield "why", past.reason or "no reason was given"
    yield "began", wall(past.at)
    yield "ended" if story.state.ending else "last event", wall(story.ended)
    yield "token", f"{story.state.counter}"
    if plan is not None:
        chosen = f", limit {plan.limit}" if plan.limit else ""
        yield "plan", f"playbook {plan.playbook}, nodes read {wall_of(plan.taken)}{chosen}"
    elif past.order.goal is Goal.APPLY:
        yield "plan", "cannot be read by this version of rollout"
    learnt = rehearsed(story.state)
    if learnt is not None:
        yield "rehearsal", str(learnt).removeprefix("rehearsal: ")
    limits = past.order.limits
    areas = ", ".join(f"{share} of a {kind}" for kind, share in limited(limits))
    yield "limits", f"{areas}, {limits.in_flight} in flight, {limits.pace:g} restarts/s"
    for left in past.order.left_out:
        yield (
            f"not in the run, {left.words}",
            f"{counted(left.count, 'node')} {printable(left.nodes, 160)}: {left.reason}",
        )


def steps(story: Story, after: Afterwards = NOTHING_SINCE) -> Html:
    """What to do next."""
    rows = [tag("li", tag("code", command), f" {what}") for command, what in next_steps(story.state, after)]
    if rows:
        return tag("ul", rows)
    whole = after.is_rolled_back or exit_code(story.state) == 0
    return tag(
        "p", "Nothing is left to be done." if whole else "No command of rollout does the rest: see the nodes above."
    )


def narrative(story: Story) -> Html:
    """What happened, sentence by sentence."""
    found = moments(story)
    shown = found if len(found) <= MOST_ROWS * 2 else (*found[:MOST_ROWS], *found[-MOST_ROWS:])
    rows = [tag("li", tag("time", clock(m.at)), tag("span", m.text), class_=m.kind) for m in shown]
    more = (
        tag("p", f"{len(found) - len(shown)} more in between are left out.", class_="dim")
        if len(shown) < len(found)
        else None
    )
    return raw(tag("ol", rows, class_="story"), more or "")


def failures(story: Story) -> Html:
    """Failed nodes, folded by message, with the evidence; nodes that were only reverted with them come last."""
    groups = sorted(fallen(story), key=lambda kind: (kind.reference == WITH_OTHERS, -len(kind.nodes)))
    if not groups:
        return tag("p", "No node failed.")
    rows = [
        tag(
            "tr",
            tag("td", f"{len(kind.nodes):,}", class_="number"),
            tag("td", tag("span", kind.state.value, class_="word")),
            tag("td", kind.message or "no message", f" [{kind.reference}]" if kind.reference else ""),
            tag("td", nodeset(printable(fold(kind.nodes), LONGEST_NODESET))),
            tag("td", clock(kind.first - story.began), class_="when"),
            class_=None if kind.reference == WITH_OTHERS else "bad",
        )
        for kind in groups[:MOST_ROWS]
    ]
    more = len(groups) - MOST_ROWS
    rest = tag("p", f"and {counted(more, 'more kind')}", class_="dim") if more > 0 else ""
    return raw(table(("nodes", "became", "evidence", "which", "first at"), rows), rest, logs(story, groups))


def used_budgets(story: Story) -> list[Distance]:
    """Every budget that was charged by the halt (or the end), and the nearest budget of each scope."""
    state = story.halted_in or story.state
    budgets = list(distances(state.order, state.nodes, min(state.wave, len(state.order.waves) - 1)))
    best: dict[Scope, Distance] = {}
    for budget in budgets:
        if budget.scope not in best or budget.left < best[budget.scope].left:
            best[budget.scope] = budget
    shown = (budget for budget in budgets if budget.wrong or best[budget.scope] is budget)
    return sorted(shown, key=lambda each: (each.left, -each.wrong))[:MOST_ROWS]


def budgets(story: Story) -> Html:
    """How far each budget was used."""
    if not story.past.order.budgets:
        return tag("p", "This run has no budget.")
    state = story.halted_in or story.state
    charged = sum(wrong(record) is not None for record in state.nodes.values())
    when = "when it halted" if story.halted_in else "so far" if story.state.ending is None else "at the end"
    words = f"{counted(charged, 'node')} charged {when}; a budget halts the run when it is used up."
    rows = [_budget(budget) for budget in used_budgets(story)]
    return raw(tag("p", words, class_="dim"), table(("where", "for", "failed", "halts at", "used"), rows))


def _budget(each: Distance) -> Html:
    return tag(
        "tr",
        tag("td", each.place),
        tag("td", "any cause" if set(Cause) <= each.budget.causes else " or ".join(sorted(each.budget.causes))),
        tag("td", f"{each.wrong} of {each.total}", class_="number"),
        tag("td", f"{each.limit} ({each.budget.share})" + (": used up" if not each.left else ""), class_="number"),
        tag("td", meter(each)),
        class_=None if each.left else "bad",
    )


def meter(each: Distance) -> Html:
    """How much of a budget is used."""
    return bar(min(1.0, each.wrong / each.limit), "v-fail")


def bar(share: float, kind: str) -> Html:
    """``kind``: the class of its colour."""
    filled = tag("rect", x=0, y=0, width=share * 100, height=10, class_=kind)
    label = f"{share:.0%}"
    drawn = tag("svg", filled, view_box="0 0 100 10", preserve_aspect_ratio="none", role="img", aria_label=label)
    return tag("div", drawn, class_="meter")


def evidence(story: Story) -> Html:
    """The wave gates' results, equal texts folded; those that did not pass come first."""
    evidence = sorted(evidence_rows(story), key=lambda row: row[3] is Verdict.PASS)
    rows = [
        tag(
            "tr",
            tag("td", printable(gate, 30), class_="name"),
            tag("td", printable(wave, 30), class_="name"),
            tag("td", when, class_="when"),
            tag("td", tag("span", verdict.value.upper(), class_=f"word {verdict.value}")),
            tag("td", evidence_text or "–"),
        )
        for gate, wave, when, verdict, evidence_text in evidence
    ]
    return table(("gate", "wave", "when", "verdict", "evidence"), rows[:200]) if rows else Html("")


def table(titles: Sequence[str], rows: Sequence[Html], *, stacks: bool = True) -> Html:
    """A table with these titles. ``stacks``: on a narrow screen the cells of a row stand below one another."""
    labelled = [_labelled(row, titles) for row in rows] if stacks else rows
    numeric = {"nodes", "failed", "halts at", "calls in progress", "connected nodes", "round trip"}
    head = tag("tr", [tag("th", title, class_="number" if title in numeric else None) for title in titles])
    return tag("table", tag("thead", head), tag("tbody", labelled), class_="stacks" if stacks else None)


def _labelled(row: Html, titles: Sequence[str]) -> Html:
    """A row with the title of its column at each cell."""
    named = iter(titles)
    return Html(re.sub(r"<td", lambda _: f'<td data-title="{escape(next(named, ""))}"', row))
