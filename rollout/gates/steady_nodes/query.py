"""The Nodes that a run has changed stay Ready until it ends. What is read of them, and the verdict with its evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from rollout.core.model.frozen import dataclass
from rollout.core.model.gates import GateQuery
from rollout.core.model.inventory import Endpoints
from rollout.core.model.live import LiveNode
from rollout.core.model.verdict import SHOWN, Judged, Verdict
from rollout.core.text import json_text
from rollout.core.text.json_text import Json
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable

SteadyKind = Literal["nodesSteady"]
FLAPS = 2
"""From so many times on a Node that ceased to be Ready flaps."""


@dataclass(frozen=True, slots=True)
class SteadyQuery(GateQuery):
    """``nodeReady`` looks at a node in its own wave only; this gate looks at all that the run has changed, in the soak of each wave.

    A node flaps if it ceased to be Ready twice. One reboot is none, and a Node that is gone is not judged. An API server without most of
    the nodes may be that of another cluster: then nothing is known.
    """

    kind: SteadyKind = "nodesSteady"

    back_end = "kubeconfig"
    asks_api = True
    compares_readings = True

    def lacks_back_end(self, endpoints: Endpoints) -> bool:
        return not endpoints.kubeconfig


_NO_NODE = "no such Node"


@dataclass(frozen=True, slots=True)
class SteadyWatch:
    """A Node by its newest reading: since when it is Ready (``""``: it does not tell), how often it ceased to be, and whether it is not now."""

    ready_since: str
    unsteady: int = 0
    said: str = ""
    down: bool = False


def steady_watch(before: SteadyWatch | None, now: LiveNode | None) -> SteadyWatch:
    """``now`` ``None``: the API server does not know it. It left, which the run sees by itself."""
    if now is None:
        return SteadyWatch("", said=_NO_NODE)
    if now.ready != "True":
        said = f"Ready is {printable(now.ready, 20) or 'not reported'}"
        times = before.unsteady if before else 0
        return SteadyWatch("", times if before and before.down else times + 1, said, down=True)
    if before is None:
        return SteadyWatch(now.ready_since)
    if before.ready_since and now.ready_since != before.ready_since:
        said = f"Ready since {printable(now.ready_since, 40)}, at the last reading since {printable(before.ready_since, 40)}"
        return SteadyWatch(now.ready_since, before.unsteady + 1, said)
    return SteadyWatch(now.ready_since, before.unsteady, before.said)


def judge_nodes(nodes: Iterable[tuple[str, SteadyWatch]], most: int) -> Judged:
    """``most``: from so many nodes on it is harm. One node that is not Ready, for the first time, is none: each fleet has such nodes."""
    watched = list(nodes)
    absent = [name for name, node in watched if node.said == _NO_NODE]
    every = [(name, node) for name, node in watched if node.said != _NO_NODE]
    unsteady = [(name, node) for name, node in every if node.down or node.unsteady >= FLAPS]
    times = sum(node.unsteady for _, node in unsteady)
    if len(absent) > len(every):
        said = f"the API server has {len(every)} of the {counted(len(watched), 'changed node')}"
        return Verdict.UNKNOWN, f"{said}: it may be that of another cluster"
    gone = f"; not judged, no such Node: {printable(fold(absent), 200)}" if absent else ""
    if not unsteady:
        once = [f"{name}: {node.said}" for name, node in every if node.unsteady or node.said]
        said = f"{counted(len(every), 'changed node')} {'was' if len(every) == 1 else 'were'} Ready at each reading"
        return (
            Verdict.PASS,
            f"{said}, but for one time each: {'; '.join(once[:SHOWN])}{gone}" if once else f"{said}{gone}",
        )
    told = "; ".join(f"{name}: {node.said}" for name, node in unsteady[:SHOWN])
    more = f" and {len(unsteady) - SHOWN} more" if len(unsteady) > SHOWN else ""
    was = "was" if len(unsteady) == 1 else "were"
    said = f"{len(unsteady)} of {counted(len(every), 'changed node')} {was} not always Ready: {told}{more}{gone}"
    return (Verdict.FAIL if times > 1 and len(unsteady) >= most else Verdict.PASS), said


MOST_KEPT = 5_000
"""Nodes that are kept in the baseline of a wave; first those that were not Ready at a reading."""


def kept(seen: Mapping[int, Mapping[str, SteadyWatch]]) -> Json:
    """What was read of the nodes of each wave, for the journal."""
    every = [(wave, name, node) for wave, nodes in seen.items() for name, node in nodes.items()]
    every.sort(key=lambda each: (not each[2].unsteady and not each[2].said, each[0], each[1]))
    found: dict[str, dict[str, Json]] = {}
    for wave, name, node in every[:MOST_KEPT]:
        found.setdefault(str(wave), {})[name] = json_text.encode(node)
    return found


def read_back(found: Json) -> Mapping[int, dict[str, SteadyWatch]]:
    """The same from the journal; nothing from a baseline that is not understood."""
    try:
        waves = json_text.converter(Mapping[str, Mapping[str, SteadyWatch]]).decode(found, "baseline")
        return {int(wave): dict(nodes) for wave, nodes in waves.items()}
    except ValueError:
        return {}
