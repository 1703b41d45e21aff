"""What ``rollout explain NAME --node NODE`` prints besides, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rollout.core.model.settings import Value
from rollout.core.text.terminal import printable
from rollout.kubelet.explained.on_node import NOWHERE, OnNode


@dataclass(frozen=True, slots=True)
class Shown:
    """What ``/configz`` says; ``not_asked`` is why it says nothing. ``agrees`` ``None``: there is nothing to compare."""

    value: Value = None
    agrees: bool | None = None
    not_asked: str = ""


def on_node_lines(here: OnNode, shown: Shown) -> Iterator[str]:
    """Lines for people: what is in force, the layers from low to high, what the kubelet shows."""
    yield f"on {here.node}, kubelet {here.kubelet}, {here.runtime}"
    if here.home:
        yield f"  lives here: {here.home}"
    for late in here.late:
        yield f"  not in force before a restart: {printable(late, 300)}"
    if not here.layers:
        if not here.home:
            yield "  not set on the kubelet's command line"
        elif not here.home.startswith(NOWHERE):
            yield "  its value there is not read"
        return
    yield f"  {'in the files' if here.late else 'in force'}: {_text(here.value)}"
    for each in here.layers:
        where = f" ({printable(each.where, 200)})" if each.where else ""
        yield f"    {each.layer.value}: {_text(each.value)}{where}{', wins' if each.wins else ''}"
    yield f"  /configz: {_shown(shown)}"


def on_node_document(here: OnNode, shown: Shown) -> dict[str, Any]:
    """The same as JSON values."""
    return {
        "node": here.node,
        "kubelet": here.kubelet,
        "runtime": here.runtime,
        "field": here.field or None,
        "home": here.home or None,
        "value": here.value,
        "notLoaded": list(here.late),
        "layers": [
            {"layer": each.layer.value, "where": each.where, "value": each.value, "wins": each.wins}
            for each in here.layers
        ],
        "configz": {"value": shown.value, "agrees": shown.agrees, "notAsked": shown.not_asked or None},
    }


def _shown(shown: Shown) -> str:
    if shown.not_asked:
        return f"was not asked: {printable(shown.not_asked, 300)}"
    if shown.agrees is None:
        return "does not show flags that stand for no field"
    return f"{_text(shown.value)}, {'as worked out' if shown.agrees else 'which is not what was worked out: was the kubelet restarted since?'}"


def _text(value: Value) -> str:
    if value is None:
        return "not set"
    return printable(value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False), 300)
