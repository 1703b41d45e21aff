"""The first page of ``rollout serve``: the runs of the journal as a table, filtered by its address, and what waits for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from rollout.core.model.frozen import dataclass
from rollout.core.presentation.freeze_text import noted
from rollout.core.presentation.headline import ChangedSetting
from rollout.core.presentation.owned_text import OwnedNoted, owned_lines
from rollout.core.presentation.pages import sections
from rollout.core.presentation.pages.markup import Html, copied, linked, moment, raw, tag
from rollout.core.presentation.run_list import ListedRun, RunStanding
from rollout.core.presentation.waiting_plans import WaitingPlan
from rollout.core.run.state import Goal
from rollout.core.text.redaction import without_secrets
from rollout.core.text.terminal import counted, printable
from rollout.features.serve.words.live_page import frozen_banner
from rollout.features.serve.words.shell import END, html_page

MOST = 200
"""Runs that are listed."""
MOST_NOTES = 50
MOST_FOLDED = 20
"""Settings of a run that its fold has, beside the first."""

_SIGNS = {
    RunStanding.AT_WORK: "▸",
    RunStanding.ON_HOLD: "‖",
    RunStanding.PAUSED: "‖",
    RunStanding.WINDOW_CLOSED: "‖",
    RunStanding.HALTING: "■",
    RunStanding.NO_CONTROLLER: "?",
    RunStanding.DONE: "✓",
    RunStanding.HALTED: "■",
    RunStanding.INTERRUPTED: "■",
    RunStanding.PREFLIGHT: "■",
    RunStanding.CLAIMED: "■",
}
_BAD = frozenset({RunStanding.HALTED, RunStanding.HALTING, RunStanding.NO_CONTROLLER, RunStanding.INTERRUPTED})


@dataclass(frozen=True, slots=True)
class ChosenRuns:
    """The filter of the address: ``?cluster=rno&state=halted&who=ann&text=serializeImagePulls``. Empty: any."""

    cluster: str = ""
    state: str = ""
    who: str = ""
    text: str = ""

    def fits(self, run: ListedRun) -> bool:
        words = f"{run.run} {run.change} {run.why} {run.reason}".lower()
        return (
            self.cluster in ("", run.cluster)
            and (not self.state or run.is_in({self.state}))
            and self.who.lower() in run.who.lower()
            and self.text.lower() in words
        )


EVERY_RUN = ChosenRuns()


def index_head(place: str) -> str:
    """The document up to the clusters. ``place``: where the journal is."""
    return html_page("Runs – rollout", tag("h1", "Runs"), tag("p", f"journal: {place}", class_="dim"), up="")


Notes = Mapping[str, Sequence[tuple[float, str, str]]]
"""Cluster → what operators did without a run: seconds since the epoch, the operator, the text; the oldest first."""

Owned = Mapping[str, OwnedNoted | None]
"""Cluster → its owned settings with the last comparison."""

NOTHING_OWNED: Owned = MappingProxyType({})


def index_body(
    runs: Sequence[ListedRun],
    place: str,
    notes: Notes,
    plans: Sequence[WaitingPlan] = (),
    chosen: ChosenRuns = EVERY_RUN,
    now: float = 0.0,
    owned: Owned = NOTHING_OWNED,
) -> str:
    """The rest of the document. ``plans``: those that wait for people. ``now``: seconds since the epoch."""
    if not runs:
        return raw(_waits(plans), _how_to_begin(place), END)
    clusters = tuple(dict.fromkeys(run.cluster for run in runs))
    above = [raw(frozen_banner(name, noted(notes.get(name, ()))), *_owned(name, owned.get(name))) for name in clusters]
    below = [_below(name, notes.get(name, ())) for name in clusters]
    return raw(_waits(plans), *above, _form(clusters, chosen), _table(runs, chosen, now), *below, END)


def _waits(plans: Sequence[WaitingPlan]) -> Html:
    if not plans:
        return Html("")
    rows = [tag("li", tag("p", str(plan)), copied(plan.command)) for plan in plans]
    return tag("section", tag("h2", "Waits for you"), tag("ul", rows, class_="waits"))


def _form(clusters: Sequence[str], chosen: ChosenRuns) -> Html:
    """The filter: it is in the address, so that it can be kept and sent to others."""
    states = [tag("option", "any state", value="")]
    states += [
        tag(
            "option",
            each.value.replace("-", " "),
            value=each.value,
            selected="selected" if chosen.state == each else None,
        )
        for each in RunStanding
    ]
    names = [tag("option", "any cluster", value="")]
    names += [
        tag("option", name, value=name, selected="selected" if chosen.cluster == name else None) for name in clusters
    ]
    text = tag(
        "input", type="search", name="text", value=chosen.text, autocomplete="off", spellcheck="false", aria_keyshortcuts="/",
    )  # fmt: skip
    who = tag("input", name="who", value=chosen.who, autocomplete="off", spellcheck="false")
    return tag(
        "form",
        tag("label", "Setting, run or reason ", text),
        tag("label", "Who ", who),
        tag("label", "State ", tag("select", states, name="state")),
        tag("label", "Cluster ", tag("select", names, name="cluster")) if len(clusters) > 1 else "",
        tag("button", "Filter", type="submit"),
        tag("a", "Show all", href="./") if chosen != EVERY_RUN else "",
        method="get",
        action="./",
        class_="filter",
        role="search",
    )


def _table(runs: Sequence[ListedRun], chosen: ChosenRuns, now: float) -> Html:
    found = [run for run in runs if chosen.fits(run)]
    count = f"{len(found):,} of {counted(len(runs), 'run')}"
    if not found:
        return tag("p", f"{count}: none fits the filter.")
    known = {run.run: f"runs/{run.run}" for run in runs}
    rows = [_run(run, known, now) for run in found[:MOST]]
    more = len(found) - MOST
    rest = tag("p", f"and {counted(more, 'earlier run')}: rollout runs --most {len(found)}") if more > 0 else ""
    titles = ("state", "change", "nodes done", "duration", "who", "when")
    return raw(tag("p", count, class_="dim"), tag("div", sections.table(titles, rows), class_="runs"), rest)


def _run(run: ListedRun, known: Mapping[str, str], now: float) -> Html:
    what = "rollback " if run.goal == Goal.REVERT else "run "
    progress = f"{run.progress.done:,} of {run.progress.total:,}" if run.progress is not None else "–"
    return tag(
        "tr",
        tag("td", *_state(run, known)),
        tag(
            "td",
            what,
            tag("a", run.run, href=f"runs/{run.run}", class_="run"),
            f" on {run.cluster}",
            tag("br"),
            _change(run, known),
            tag("br") if run.reason else "",
            tag("span", printable(run.reason, 200), class_="dim"),
        ),
        tag("td", progress, class_="when"),
        tag("td", run.took(now) or "–", class_="when"),
        tag("td", printable(run.who, 60)),
        tag("td", moment(run.began)),
        class_="bad" if run.state in _BAD else "warn" if _is_warned(run) else None,
    )


def _change(run: ListedRun, known: Mapping[str, str]) -> Html:
    """The first setting, the others in a fold, and where the change comes from."""
    first, others = run.change.settings[:1], run.change.settings[1:]
    source = linked(run.change.source, {name: known[name] for name in run.change.reverts if name in known})
    shown = [raw(tag("b", str(setting)), _folded(others) if others else tag("br")) for setting in first]
    return raw(*shown, source)


def _folded(settings: Sequence[ChangedSetting]) -> Html:
    rows = [tag("li", str(setting)) for setting in settings[:MOST_FOLDED]]
    more = len(settings) - MOST_FOLDED
    rest = tag("li", f"and {counted(more, 'more setting')}") if more > 0 else ""
    return tag(
        "details", tag("summary", counted(len(settings), "more setting")), tag("ul", *rows, rest), class_="others"
    )


def _is_warned(run: ListedRun) -> bool:
    return bool(run.rolled_back) or run.state is not RunStanding.DONE or run.exit_code != 0


def _state(run: ListedRun, known: Mapping[str, str]) -> list[Html]:
    sign = (
        "↩"
        if run.is_rolled_back
        else "▲"
        if run.state is RunStanding.DONE and run.exit_code
        else _SIGNS.get(run.state, "·")
    )
    code = "" if run.exit_code in (None, 0) else f" (exit code {run.exit_code})"
    parts = [tag("span", f"{sign} {run.standing}{code}", class_="word")]
    texts = [printable(run.why, 200)] if run.why else []
    if run.pending_recovery.nodes:
        texts.append(f"pending recovery: {printable(run.pending_recovery.nodes, 100)}")
    texts += [f"rolled back by {later.run} on {printable(later.nodes, 100)}" for later in run.rolled_back]
    texts += [f"newer changes on top: {newer.run} on {printable(newer.nodes, 100)}" for newer in run.on_top]
    others = (*(back.run for back in run.rolled_back), *(newer.run for newer in run.on_top))
    ways = {name: known[name] for name in others if name in known}
    return [*parts, *(raw(tag("br"), linked(text, ways)) for text in texts)]


def _owned(name: str, owned: OwnedNoted | None) -> list[Html]:
    """What the last comparison with the owned settings found; nothing if no setting is owned."""
    lacks = owned is not None and owned.compared is not None and owned.compared.lacking > 0
    return [tag("p", line.strip(), class_="bad" if lacks else None) for line in owned_lines(name, owned)]


def _below(name: str, notes: Sequence[tuple[float, str, str]]) -> Html:
    """The command that measures drift, and operators' commands and unlocks, the newest first."""
    drift = copied(f"rollout verify --cluster {name}", f"Drift on {name} is measured on its nodes:")
    if not notes:
        return drift
    rows = [
        tag(
            "tr", tag("td", moment(at), class_="when"), tag("td", who), tag("td", printable(without_secrets(text), 300))
        )
        for at, who, text in notes[::-1][:MOST_NOTES]
    ]
    title = tag("summary", f"{counted(len(notes), 'record')} of commands and unlocks on {name}")
    return raw(drift, tag("details", title, sections.table(("when", "who", "what"), rows)))


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
