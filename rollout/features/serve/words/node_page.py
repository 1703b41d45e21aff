"""The page of one node in a run: its state, what each verb answered and when, what changes on it, and where to read on."""

from __future__ import annotations

from collections.abc import Sequence

from rollout.core.model.inventory import NO_RACK
from rollout.core.model.plan import Plan
from rollout.core.presentation.pages import sections
from rollout.core.presentation.pages.last_logs import log_command, log_lines
from rollout.core.presentation.pages.markup import Html, clock, copied, raw, tag
from rollout.core.presentation.pages.story import Story
from rollout.core.presentation.summary import failure_log
from rollout.core.run.drains import kept
from rollout.core.run.events import Answered, Trigger
from rollout.core.run.state import Order
from rollout.core.text.redaction import without_secrets
from rollout.core.text.terminal import printable, seconds_text
from rollout.features.serve.words.shell import END, html_page

MOST_ANSWERS = 200


def node_head(order: Order, name: str) -> str:
    """The document up to what is known of the node."""
    back = tag("a", f"run {order.run}", href=f"../../../runs/{order.run}")
    where = tag("p", "in ", back, f" on {order.cluster}", class_="dim")
    return html_page(f"{name} in run {order.run}", tag("h1", name), where, up="../../../")


def node_body(story: Story, name: str, answers: Sequence[Answered]) -> str:
    """The rest of the document. ``answers``: of this node, in their order."""
    record = story.state.nodes[name]
    node = story.past.order.nodes[name]
    wave = story.past.order.waves[node.wave].name
    facts = [
        ("state", f"{record.state}{', pending recovery' if record.owed else ''}"),
        ("evidence", _evidence(record.message, record.reference)),
        ("rack", "" if node.rack == NO_RACK else node.rack),
        ("zone", "" if node.zone == NO_RACK else node.zone),
        ("wave", wave),
        ("charged to the budgets as", str(record.cause or "")),
        ("transaction", story.state.transaction(name)),
        ("left behind", _evidence("; ".join((*record.leftovers, *kept(record))), "")),
    ]
    return raw(
        tag("dl", [raw(tag("dt", title), tag("dd", text)) for title, text in facts if text]),
        _section("Steps", _steps(story, answers)),
        _section("What changes on it", _change(story.past.plan, name)),
        _section("Its receipt and its log", _further(story, name)),
        END,
    )


def _evidence(message: str, reference: str) -> str:
    text = f"{message} [{reference}]" if reference else message
    return printable(without_secrets(text), 2_000)


def _section(title: str, inside: Html) -> Html:
    return tag("section", tag("h2", title), inside)


_ANSWERS = {
    Trigger.REVERTED_UNHEALTHY: "unhealthy, reverted",
    Trigger.REVERTED_BY_GUARD: "reverted by its guard",
    Trigger.REVERTED_ON_REQUEST: "reverted",
    Trigger.STILL_UNHEALTHY: "reverted, still unhealthy",
    Trigger.STUCK: "its revert is not complete",
    Trigger.UNREACHED: "not reached",
    Trigger.LOST: "no end seen",
    Trigger.PULLING: "pulls images",
    Trigger.UNSEEN: "no baseline",
}
"""Words of answers whose name in the journal says something else to people."""


def _steps(story: Story, answers: Sequence[Answered]) -> Html:
    rows = [
        tag(
            "tr",
            tag("td", clock(answer.at - story.began), class_="when"),
            tag("td", answer.verb.value),
            tag("td", _ANSWERS.get(answer.trigger, answer.trigger.value.replace("-", " "))),
            tag("td", seconds_text(answer.seconds) if answer.seconds else "–"),
            tag("td", _evidence(answer.message, answer.reference) or "–"),
        )
        for answer in answers[-MOST_ANSWERS:]
    ]
    if not rows:
        return tag("p", "It has not answered in this run.")
    return sections.table(("at", "verb", "answer", "took", "evidence"), rows)


def _change(plan: Plan | None, name: str) -> Html:
    if plan is None or name not in plan.nodes:
        return tag("p", "The plan of this run does not name it, or cannot be read by this version.")
    change = next(group.change for group in plan.groups if group.name == plan.nodes[name].group)
    units = ", ".join(change.units) or "nothing"
    return raw(
        *(sections.file_diff(file) for file in change.files),
        tag("p", f"then restart {units} ({change.disruption.value})"),
        *(tag("p", note, class_="dim") for note in change.notes),
    )


def _further(story: Story, name: str) -> Html:
    """The last log lines, if the node sent them. The receipt and the whole log are on the node."""
    log = failure_log(story.state, [name])
    cluster = story.past.order.cluster
    at = max((wrong.at for wrong in story.wrongs if wrong.node == name), default=story.ended)
    commands = (
        (log_command(cluster, name, at), "prints its kubelet's exit status and its last log lines until then"),
        (f"rollout verify --cluster {cluster} --limit {name}", "reads its receipt and compares its files"),
        (f"rollout diagnose --cluster {cluster} --limit {name}", "reads the logs of its kubelet and runtime"),
    )
    return raw(
        log_lines(log) if log else "",
        tag("p", "The evidence above is what the node's agent reported. Its whole log is on the node:"),
        tag("ul", [tag("li", copied(command), tag("p", what)) for command, what in commands], class_="waits"),
    )
