"""The second picture: rack by rack, one square per node. A sign shows the state to those who cannot see colours."""

from __future__ import annotations

from rollout.core.presentation.pages.markup import Html, raw, tag
from rollout.core.presentation.pages.story import Story
from rollout.core.presentation.summary_text import counts_text
from rollout.core.run.state import NodeRecord
from rollout.core.run.state import NodeState as S
from rollout.core.text.terminal import printable

SIDE = 15
STEP = 17
ACROSS = 10

SIGNS: dict[S, str] = {
    S.CONFIRMED: "",
    S.REVERTED: "↩",
    S.REVERTING: "◂",
    S.FAILED: "✗",
    S.REFUSED: "!",
    S.UNREACHABLE: "?",
    S.UNKNOWN: "?",
    S.APPLYING: "▸",
    S.APPLIED: "▸",
    S.SKIPPED: "–",
    S.PENDING: "·",
}

CHARGED = "✗"
"""For a node that was reverted because it failed itself, not with others."""


def racks(story: Story) -> Html:
    """Every rack of the run in the order of its plan."""
    members: dict[str, list[str]] = {}
    for name, node in story.past.order.nodes.items():
        members.setdefault(node.rack, []).append(name)
    return tag("div", (_rack(story, rack, members[rack]) for rack in sorted(members)), class_="racks")


def _rack(story: Story, rack: str, names: list[str]) -> Html:
    nodes = story.state.nodes
    counts = {str(kind): count for kind in S if (count := sum(nodes[name].state is kind for name in names))}
    rows = -(-len(names) // ACROSS)
    width, height = ACROSS * STEP - (STEP - SIDE), rows * STEP - (STEP - SIDE)
    squares = (
        _square(story, name, nodes[name], at % ACROSS * STEP, at // ACROSS * STEP)
        for at, name in enumerate(sorted(names))
    )
    wrong = " bad" if any(nodes[name].cause is not None for name in names) else ""
    label = f"{rack}: {counts_text(counts)}"
    return tag(
        "figure",
        tag("figcaption", tag("b", printable(rack, 40)), " ", tag("span", counts_text(counts))),
        tag("svg", squares, view_box=f"0 0 {width} {height}", width=width, height=height, role="img", aria_label=label),
        class_=f"rack{wrong}",
    )


def _square(story: Story, name: str, record: NodeRecord, x: int, y: int) -> Html:
    wave = story.past.order.waves[story.past.order.nodes[name].wave].name
    why = f": {record.message}" if record.message else ""
    reference = f" [{record.reference}]" if record.reference else ""
    owed = ", pending recovery" if record.owed else ""
    title = tag("title", f"{name} (wave {wave}): {record.state}{owed}{why}{reference}")
    charged = " charged" if record.cause is not None else ""
    box = tag("rect", x=x, y=y, width=SIDE, height=SIDE, rx=2, class_=f"n s-{_class(record.state)}{charged}")
    sign = CHARGED if record.cause is not None and record.state is S.REVERTED else SIGNS[record.state]
    text = tag("text", sign, x=x + SIDE / 2, y=y + 11.5, class_="sign") if sign else Html("")
    return tag("g", title, raw(box, text))


def _class(state: S) -> str:
    if state in (S.FAILED, S.REFUSED, S.UNREACHABLE):
        return "wrong"
    return "moving" if state in (S.APPLYING, S.APPLIED) else state.value


def legend() -> Html:
    """What the signs mean, for both pictures."""
    shown = (S.CONFIRMED, S.REVERTED, S.FAILED, S.REFUSED, S.UNREACHABLE, S.UNKNOWN, S.APPLYING, S.SKIPPED, S.PENDING)
    return tag("p", (_key(state) for state in shown), class_="legend")


def _key(state: S) -> Html:
    box = tag("rect", x=0, y=0, width=SIDE, height=SIDE, rx=2, class_=f"n s-{_class(state)}")
    sign = tag("text", SIGNS[state], x=SIDE / 2, y=11.5, class_="sign")
    size = {"view_box": f"0 0 {SIDE} {SIDE}", "width": SIDE, "height": SIDE, "aria_hidden": "true"}
    words = "applying or applied" if state is S.APPLYING else state.value
    return tag("span", tag("svg", box, sign, **size), f" {words}", class_="key")
