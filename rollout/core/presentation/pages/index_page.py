"""The first page of ``rollout serve``: the clusters of the journal and their runs, the newest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rollout.core.presentation.freeze_text import noted
from rollout.core.presentation.owned_text import owned_lines, owned_noted
from rollout.core.presentation.pages import sections
from rollout.core.presentation.pages.live_page import frozen_banner
from rollout.core.presentation.pages.markup import Html, raw, tag
from rollout.core.presentation.pages.shell import END, html_page
from rollout.core.presentation.run_list import ListedRun, RunStanding
from rollout.core.presentation.waiting_plans import WaitingPlan
from rollout.core.run.state import Goal
from rollout.core.text.redaction import without_secrets
from rollout.core.text.terminal import counted, printable, wall

MOST = 200
"""Runs of one cluster that are listed."""
MOST_NOTES = 50

_SIGNS = {
    RunStanding.AT_WORK: "▸",
    RunStanding.NO_CONTROLLER: "?",
    RunStanding.DONE: "✓",
    RunStanding.HALTED: "■",
    RunStanding.INTERRUPTED: "–",
}


def index_head(place: str) -> str:
    """The document up to the clusters. ``place``: where the journal is."""
    return html_page("rollout", tag("h1", "Runs"), tag("p", f"journal: {place}", class_="dim"), up="")


Notes = Mapping[str, Sequence[tuple[float, str, str]]]
"""Cluster → what operators did without a run: seconds since the epoch, the operator, the text; the oldest first."""


def index_body(runs: Sequence[ListedRun], place: str, notes: Notes, plans: Sequence[WaitingPlan] = ()) -> str:
    """The rest of the document. ``plans``: those that wait for people."""
    clusters: dict[str, list[ListedRun]] = {}
    for run in runs:
        clusters.setdefault(run.cluster, []).append(run)
    shown = [_cluster(name, found, notes.get(name, ())) for name, found in clusters.items()] or [_how_to_begin(place)]
    return raw(_waits(plans), *shown, END)


def _waits(plans: Sequence[WaitingPlan]) -> Html:
    if not plans:
        return Html("")
    rows = [tag("li", tag("p", str(plan)), tag("p", tag("code", plan.command, class_="command"))) for plan in plans]
    return tag("section", tag("h2", "Waits for you"), tag("ul", rows, class_="waits"))


def _cluster(name: str, runs: Sequence[ListedRun], notes: Sequence[tuple[float, str, str]]) -> Html:
    rows = [_run(run) for run in runs[:MOST]]
    more = len(runs) - MOST
    rest = tag("p", f"and {counted(more, 'earlier run')}: rollout runs --cluster {name}") if more > 0 else ""
    head = tag("h2", f"{name}: {counted(len(runs), 'run')}")
    drift = tag(
        "p", "Drift is measured on the nodes: ", tag("code", f"rollout verify --cluster {name}", class_="command")
    )
    table = sections.table(("run", "state", "began", "who", "reason"), rows)
    return tag(
        "section", head, frozen_banner(name, noted(notes)), *_owned(name, notes), table, rest, _noted(notes), drift
    )


def _owned(name: str, notes: Sequence[tuple[float, str, str]]) -> list[Html]:
    """What the last comparison with the owned settings found; nothing if no setting is owned."""
    owned = owned_noted((at, text) for at, _, text in notes)
    lacks = owned is not None and owned.compared is not None and owned.compared.lacking > 0
    return [tag("p", line.strip(), class_="bad" if lacks else None) for line in owned_lines(name, owned)]


def _noted(notes: Sequence[tuple[float, str, str]]) -> Html | None:
    """Operators' commands and unlocks, the newest first."""
    if not notes:
        return None
    rows = [
        tag("tr", tag("td", wall(at), class_="when"), tag("td", who), tag("td", printable(without_secrets(text), 300)))
        for at, who, text in notes[::-1][:MOST_NOTES]
    ]
    title = tag("summary", f"{counted(len(notes), 'record')} of commands and unlocks")
    return tag("details", title, sections.table(("when", "who", "what"), rows))


def _run(run: ListedRun) -> Html:
    what = "rollback" if run.goal == Goal.REVERT else "run"
    code = "" if run.exit_code is None else f", exit code {run.exit_code}"
    pending = tag("br") + tag("span", f"pending recovery: {printable(run.pending_recovery.nodes, 100)}")
    back = "".join(
        tag("br") + tag("span", f"rolled back by {rollback.run} on {rollback.nodes}") for rollback in run.rolled_back
    )
    back += "".join(
        tag("br") + tag("span", f"newer changes on top: {newer.run} on {newer.nodes}") for newer in run.on_top
    )
    bad = run.state in (RunStanding.HALTED, RunStanding.NO_CONTROLLER)
    return tag(
        "tr",
        tag("td", f"{what} ", tag("a", run.run, href=f"runs/{run.run}"), class_="name"),
        tag(
            "td",
            tag("span", f"{_SIGNS.get(run.state, '·')} {run.state.value}{code}", class_="word"),
            Html(pending) if run.pending_recovery.nodes else None,
            Html(back),
        ),
        tag("td", wall(run.began), class_="when"),
        tag("td", run.who),
        tag("td", printable(run.reason, 200) or "–"),
        class_="bad" if bad else None,
    )


def _how_to_begin(place: str) -> Html:
    steps = (
        ("rollout check", "checks your inventory and playbooks"),
        ("rollout plan --cluster CLUSTER --out FILE", "reads the nodes, changes nothing, and shows what would change"),
        ("rollout apply FILE", "applies the plan; the run then appears here"),
    )
    return raw(
        tag("h2", "No run yet"),
        tag("p", f"The journal in {place} holds no run. To begin:"),
        tag("ol", [tag("li", tag("code", command, class_="command"), f" {what}") for command, what in steps]),
    )
