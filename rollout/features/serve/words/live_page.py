"""The page of a run while it goes on: the report's sections in the order in which an operator needs them.

A part is replaced whole when its text changes. The map and the table of nodes are drawn by the page's own script.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rollout.core.model.regions import RegionStanding
from rollout.core.presentation.freeze_text import FreezeNoted, noted_line
from rollout.core.presentation.pages import first_screen, sections
from rollout.core.presentation.pages.charts import legend
from rollout.core.presentation.pages.markup import Html, raw, tag
from rollout.core.presentation.pages.parts import TITLES
from rollout.core.presentation.pages.story import Story
from rollout.core.presentation.summary import summarize
from rollout.core.presentation.summary_text import NOTHING_SINCE, Afterwards
from rollout.core.presentation.waiting import in_flight, silences, waits_for
from rollout.core.run.state import Goal, NodeState, Phase, RunState
from rollout.core.text.redaction import without_secrets
from rollout.core.text.terminal import printable
from rollout.features.serve.words.controls import controls
from rollout.features.serve.words.shell import END, html_page


def now_parts(story: Story, after: Afterwards, now: float, secret: str = "") -> dict[str, Html]:
    """What changes with time alone. ``now``: seconds since the epoch; ``secret``: see ``controls``."""
    return {
        "now": _now(story, after, now),
        "waits": _waits(story.state, after, now),
        "waves": first_screen.wave_progress(story, after, now),
        "control": controls(story.state, after, secret),
        "regions": _regions(after.controller.regions if after.controller.alive else ()),
    }


def _now(story: Story, after: Afterwards, now: float) -> Html:
    state = story.state
    waits: tuple[str, ...] = ()
    if state.phase is not Phase.ENDED and not after.controller.alive:
        waits = (f"in flight when its controller ended: {moving}" if (moving := in_flight(state)) else "",)
    elif state.phase is not Phase.ENDED:
        waits = (_waits_for(state, max(now, state.now)), *silences(state, now))
    waiting = [tag("p", _with_commands(wait), class_="waiting") for wait in waits if wait]
    frozen = frozen_banner(state.order.cluster, after.frozen)
    without_regions = replace(after, controller=replace(after.controller, regions=()))
    banner = sections.banner(story, without_regions, first_screen.links_of(story, after))
    return raw(banner, frozen, *waiting, sections.numbers(story, after))


def _waits_for(state: RunState, now: float) -> str:
    """A run that is paused or on hold says so in its banner, and has its command below."""
    if state.paused is not None and state.halt is None:
        moving = in_flight(state)
        return f"in flight: {moving}" if moving else ""
    waits = waits_for(state, now)
    return waits if state.waits and state.halt is None else f"waits for: {waits}"


def frozen_banner(cluster: str, freeze: FreezeNoted | None) -> Html:
    """One line: who froze the cluster, since when, why, and the command that lifts it."""
    if freeze is None:
        return Html("")
    command = tag("code", f"rollout cluster unfreeze --cluster {cluster} --reason …", class_="command")
    banner = without_secrets(f"{cluster} is {noted_line(freeze)}; ")
    return tag("p", banner, command, " lifts it", class_="banner warn")


def _regions(regions: Sequence[RegionStanding]) -> Html:
    """How the workers of each region stand. Nothing for a controller that reaches the nodes itself."""
    if not regions:
        return raw()
    titles = ("region", "workers", "calls in progress", "connected nodes", "round trip")
    return raw(tag("h2", "Regions"), sections.table(titles, [_region(region) for region in regions]))


def _region(each: RegionStanding) -> Html:
    trip = "" if each.round_trip_seconds is None else f"{1000 * each.round_trip_seconds:.0f} ms"
    return tag(
        "tr",
        tag("td", printable(each.region, 60)),
        tag("td", ", ".join(printable(name, 60) for name in each.workers) or "none"),
        tag("td", f"{each.calls:,}", class_="number"),
        tag("td", f"{each.nodes:,}", class_="number"),
        tag("td", trip, class_="number"),
        class_=None if each.workers else "bad",
    )


def _with_commands(text: str) -> Html:
    """A sentence; what stands between backticks in it can be copied as a whole."""
    parts = printable(text, 400).split("`")
    first = parts[0][:1].upper() + parts[0][1:]
    return raw(
        tag("span", first),
        *(tag("code", part, class_="command") if at % 2 else tag("span", part) for at, part in enumerate(parts[1:], 1)),
    )


def _waits(state: RunState, after: Afterwards, now: float) -> Html:
    late = tuple(late_waits(after, state.order.run, now))
    return first_screen.steps_now((*late, *waiting(state, after)))


def waiting(state: RunState, after: Afterwards = NOTHING_SINCE) -> Iterator[tuple[str, str]]:
    """``(what it does, the command to type)``: only what can be done now."""
    for command, what in sections.next_steps(state, after):
        yield f"{what[0].upper()}{what[1:]}{_which(state, command)}", command


def late_waits(after: Afterwards, run: str, now: float) -> Iterator[tuple[str, str]]:
    """The same of the watch after the end of a run."""
    late = after.late
    if late is None or late.ended:
        return
    if late.harm:
        yield f"Late harm: {printable(late.harm, 300)}", f"rollout rollback {run}"
    elif now >= late.until:
        yield "The time of its late watch is over, and its end is not recorded", f"rollout watch --late {run} --once"
    elif late.verdict is None:
        yield "Its late watch has not begun", f"rollout watch --late {run}"


def _which(state: RunState, command: str) -> str:
    if not command.startswith("rollout resume --recover-only"):
        return ""
    return f": {printable(summarize(state).pending_recovery.nodes, 200)}"


def live_head(run: str, cluster: str, goal: str, title: str = "") -> str:
    """The document up to what must be read first. ``title``: with its state, if that is known before its journal is read."""
    what = "Rollback" if goal is Goal.REVERT else "Rollout"
    still = tag("noscript", "without JavaScript this page does not follow the run: load it again")
    return html_page(
        title or f"{what} {run} on {cluster}",
        tag("h1", f"{what} on {cluster}"),
        tag(
            "p", f"run {run} · ", tag("span", "reading the journal", id="standing", role="status"), still, class_="dim"
        ),
        up="../",
        data_run=run,
    )


def live_body(parts: dict[str, Html]) -> str:
    """The rest of the document: what an operator needs first, the nodes, then what is read when there is time."""
    first = tag("div", parts["now"], class_="part", data_part="now", id="now")
    control = tag("div", parts["control"], class_="part", data_part="control", id="control")
    regions = tag("section", parts["regions"], class_="part", data_part="regions", id="regions")
    left, right = ([(name, title, parts[name]) for name, title in column.items()] for column in BLOCKS)
    rest = [_folded(name, title, parts[name]) for name, title in FOLDED.items()]
    return raw(first, control, first_screen.blocks(left, right), regions, _nodes(), _map(), *rest, END)


BLOCKS = (
    {"waits": "What you can do now", "nearest": "Distance to halt", "change": "What changes"},
    {"failed": "Failed nodes", "waves": "Waves"},
)
"""The columns of a wide first screen. On a narrow one the failed nodes come second: see page.css."""

FOLDED = {
    "failures": TITLES["failures"],
    "gates": TITLES["gates"],
    "time": TITLES["time"],
    "predicted": TITLES["predicted"],
    "facts": "Facts of the run",
}


def _folded(name: str, title: str, inside: Html) -> Html:
    return tag(
        "details",
        tag("summary", tag("h2", title)),
        tag("div", inside, class_="part", data_part=name),
        id=name,
        class_="more",
    )


def _nodes() -> Html:
    """The frame of the table of nodes."""
    field = tag(
        "input", type="search", id="search", autocomplete="off", spellcheck="false", aria_describedby="found",
        aria_keyshortcuts="/",
    )  # fmt: skip
    states = tag(
        "select", tag("option", "any state", value=""), [tag("option", state) for state in NodeState], id="state"
    )
    head = tag("tr", [tag("th", title, scope="col") for title in ("node", "rack", "wave", "state", "message")])
    rows = tag("table", tag("thead", head), tag("tbody", id="rows"), id="nodes", aria_label="Nodes")
    return tag(
        "section",
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
        id="table",
    )


def _map() -> Html:
    """The frame of the map: behind the table, which it filters."""
    return tag(
        "details",
        tag("summary", tag("h2", "Racks and zones")),
        legend(),
        tag("div", id="racks", role="group", aria_label="Racks: each filters the table of nodes"),
        id="map",
        class_="more",
    )
