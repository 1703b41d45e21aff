"""The report: one self-contained page that explains a run without its log. Pure: a story in, HTML out."""

from __future__ import annotations

from collections.abc import Iterator

from rollout.core.presentation.pages import sections
from rollout.core.presentation.pages.charts import legend, racks
from rollout.core.presentation.pages.markup import Html, raw, tag
from rollout.core.presentation.pages.parts import TITLES, section, story_parts
from rollout.core.presentation.pages.sections import changes
from rollout.core.presentation.pages.story import Story
from rollout.core.presentation.summary_text import NOTHING_SINCE, Afterwards
from rollout.core.run.state import Goal
from rollout.core.text.terminal import counted

# The page's style sheet: light and dark, for screens and for paper. It loads no fonts and no pictures.


STYLE = """
:root {
  color-scheme: light dark;
  --paper: #ffffff; --soft: #f4f6f8; --line: #d5dbe1; --ink: #1a2129; --dim: #5c6873;
  --confirmed: #2e9e5b; --moving: #3b82c4; --unknown: #d9a300; --reverting: #c387d8; --reverted: #8e5ba8; --wrong: #d13c3c;
  --pending: #e3e8ec; --skipped: #b8c1c9; --soak: #d3eadc; --hold: #f9e6a8; --halting: #f6caca; --good: #1f7a44; --bad: #b42525;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14181d; --soft: #1d232a; --line: #353e48; --ink: #e6ebf0; --dim: #98a4b0;
    --confirmed: #3fb970; --moving: #5b9fdf; --unknown: #e2b429; --reverting: #cf9be2; --reverted: #a877c0; --wrong: #ea5b5b;
    --pending: #2a323b; --skipped: #56616c; --soak: #1f4030; --hold: #54470f; --halting: #572626; --good: #59cf8b; --bad: #f07c7c;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 2rem 1.5rem 4rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .2rem; line-height: 1.25; }
h2 { font-size: 1.15rem; margin: 2.4rem 0 .6rem; padding-top: .6rem; border-top: 1px solid var(--line); }
p { margin: .5rem 0; }
code, pre { font: 13px/1.45 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
code { background: var(--soft); border: 1px solid var(--line); border-radius: 4px; padding: .05rem .35rem; }
pre { background: var(--soft); border: 1px solid var(--line); border-radius: 6px; padding: .7rem .9rem; overflow-x: auto; margin: .4rem 0; }
.dim { color: var(--dim); }
.banner { border-left: 6px solid var(--dim); background: var(--soft); padding: .8rem 1.1rem; border-radius: 0 6px 6px 0; margin: 1rem 0; }
.banner.good { border-color: var(--confirmed); } .banner.warn { border-color: var(--unknown); } .banner.bad { border-color: var(--wrong); }
.banner p { margin: .15rem 0; } .banner .verdict-word { font-size: 1.15rem; font-weight: 650; }
.numbers { display: flex; flex-wrap: wrap; gap: .6rem; margin: 1rem 0; padding: 0; list-style: none; }
.numbers li { background: var(--soft); border: 1px solid var(--line); border-radius: 6px; padding: .45rem .9rem; min-width: 6.5rem; }
.numbers b { display: block; font-size: 1.35rem; line-height: 1.2; }
.numbers .confirmed b { color: var(--good); } .numbers .wrong b { color: var(--bad); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.2rem; margin: .6rem 0; }
dt { color: var(--dim); } dd { margin: 0; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; margin: .6rem 0; }
th { white-space: nowrap; text-align: left; font-weight: 600; color: var(--dim); font-size: .85rem; }
th, td { padding: .35rem .7rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }
td.number, th.number { text-align: right; white-space: nowrap; } td.when, td.name { white-space: nowrap; }
.word { font-weight: 650; white-space: nowrap; }
.pass, .confirmed > .word { color: var(--good); } .fail, .bad > .word { color: var(--bad); } .unknown { color: var(--unknown); }
ol.story { list-style: none; padding: 0; margin: .6rem 0; }
ol.story li { display: grid; grid-template-columns: 4.5rem 1fr; gap: .8rem; padding: .18rem 0; border-left: 3px solid var(--line); padding-left: .9rem; }
ol.story li.good { border-color: var(--confirmed); } ol.story li.bad { border-color: var(--unknown); }
ol.story li.halt { border-color: var(--wrong); font-weight: 650; }
ol.story time { color: var(--dim); font-variant-numeric: tabular-nums; text-align: right; font-weight: 400; }
ol.story span { overflow-wrap: anywhere; }
svg { display: block; } svg.wide { width: 100%; height: auto; }
svg text { font: 11px system-ui, "DejaVu Sans", sans-serif; fill: var(--ink); }
svg .tick, svg .note, svg .sign, svg .verdict { text-anchor: middle; }
svg .tick, svg .small, svg .note { fill: var(--dim); } svg .lane { text-anchor: end; font-weight: 600; font-size: 12px; }
svg .small { text-anchor: end; } svg .fold { font-size: 10px; fill: var(--dim); }
.folded { fill: var(--hold); opacity: .55; }
.grid { stroke: var(--line); stroke-width: 1; } .frame { fill: none; stroke: var(--line); }
.s-confirmed { fill: var(--confirmed); } .s-moving { fill: var(--moving); } .s-unknown { fill: var(--unknown); }
.s-reverting { fill: var(--reverting); } .s-reverted { fill: var(--reverted); } .s-wrong { fill: var(--wrong); }
.s-pending { fill: var(--pending); } .s-skipped { fill: var(--skipped); }
.span-soak { fill: var(--soak); } .span-hold { fill: var(--hold); } .span-halting { fill: var(--halting); } svg .note { font-size: 10px; }
.mark-halt { stroke: var(--wrong); stroke-width: 2; } .mark-said { stroke: var(--dim); stroke-width: 1; stroke-dasharray: 4 3; }
svg .word-halt { fill: var(--bad); font-weight: 700; } svg .word-said { fill: var(--dim); }
.v-pass { fill: var(--confirmed); } .v-fail { fill: var(--wrong); } .v-unknown { fill: var(--unknown); }
svg .verdict { fill: #fff; font-weight: 700; } .measured { fill: none; stroke: var(--moving); stroke-width: 1.5; }
.against { fill: none; stroke: var(--dim); stroke-width: 1; stroke-dasharray: 3 3; }
.racks { display: flex; flex-wrap: wrap; gap: 1rem 1.4rem; align-items: flex-end; } .rack { margin: 0; width: 170px; }
.rack figcaption { font-size: .8rem; line-height: 1.3; margin-bottom: .3rem; } .rack figcaption span { color: var(--dim); }
.rack.bad figcaption b { color: var(--bad); } .rack.bad figcaption b::before { content: "✗ "; }
svg .sign { fill: #fff; font-size: 11px; font-weight: 700; } .s-pending + .sign, .s-skipped + .sign { fill: var(--dim); }
.charged { stroke: var(--wrong); stroke-width: 2.5; }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.1rem; color: var(--dim); font-size: .85rem; } .key { display: inline-flex; gap: .35rem; align-items: center; }
.meter { height: .7rem; background: var(--pending); border-radius: 4px; overflow: hidden; min-width: 8rem; }
.meter svg { height: 100%; width: 100%; }
details { border: 1px solid var(--line); border-radius: 6px; padding: .4rem .8rem; margin: .5rem 0; } summary { cursor: pointer; font-weight: 600; overflow-wrap: anywhere; }
.add { color: var(--good); } .cut { color: var(--bad); }
footer { margin-top: 3rem; color: var(--dim); font-size: .85rem; border-top: 1px solid var(--line); padding-top: .6rem; }
@media print {
  :root { color-scheme: light; --paper: #fff; --ink: #000; --soft: #fff; }
  body { max-width: none; padding: 0; font-size: 11px; } h2, figure, li, tr { break-inside: avoid; } h2 { break-after: avoid; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } pre { white-space: pre-wrap; }
}
"""


POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""The page fetches nothing and runs nothing, whatever text a node has sent."""


def page(story: Story, after: Afterwards = NOTHING_SINCE) -> str:
    """The whole document."""
    order = story.past.order
    what = "rollback" if order.goal is Goal.REVERT else "rollout"
    words = f"Made from the journal of run {story.past.order.run}: {counted(story.events, 'event')}. Times are minutes and seconds since the run began."
    return self_contained(
        f"{what} {order.run} on {order.cluster}", *_header(story, after), *_sections(story, after), tag("footer", words)
    )


def self_contained(title: str, *body: Html) -> str:
    """A document that needs no other file."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("style", raw(STYLE)),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', *body), lang='en')}\n"


def _header(story: Story, after: Afterwards) -> Iterator[Html]:
    order = story.past.order
    what = "Rollback" if order.goal is Goal.REVERT else "Rollout"
    yield tag("h1", f"{what} of {counted(len(order.nodes), 'node')} on {order.cluster}")
    yield tag("p", f"run {order.run}", class_="dim")
    yield sections.banner(story, after)
    yield sections.numbers(story, after)
    yield sections.facts(story)


def _sections(story: Story, after: Afterwards) -> Iterator[Html]:
    """What to do and the culprit, then what was changed, then the pictures."""
    parts = story_parts(story)
    yield section("next", "What to do next", sections.steps(story, after))
    yield section("failures", TITLES["failures"], parts["failures"])
    if story.past.plan is not None:
        yield section(
            "changes",
            "Planned changes",
            changes(story.past.plan, {wrong.node for wrong in story.wrongs if wrong.cause is not None}),
        )
    if story.past.order.budgets:
        yield section("distance", TITLES["distance"], parts["distance"])
    yield section("story", "What happened", sections.narrative(story))
    yield section("time", TITLES["time"], parts["time"])
    yield section(
        "racks",
        "Rack by rack",
        racks(story),
        legend(),
        tag(
            "p",
            "A square is a node. One with a red edge failed itself and is charged to a budget. Point at it for its name and last message.",
            class_="dim",
        ),
    )
    yield section("gates", TITLES["gates"], parts["gates"])
    yield section("predicted", TITLES["predicted"], parts["predicted"])
