"""The output of ``rollout explain NAME`` for programs."""

from __future__ import annotations

from dataclasses import dataclass

from rollout.core.model.playbook import Disruption
from rollout.kubelet.configuration.outcome import Layer
from rollout.kubelet.explained.explanation import Explanation, What
from rollout.kubelet.explained.explanation_text import ConfigzAnswer
from rollout.kubelet.explained.on_node import OnNode
from rollout.kubelet.runtimes.description import Runtime
from rollout.kubelet.runtimes.known import dotted


@dataclass(frozen=True, slots=True)
class DefaultPart:
    """The default from this minor on."""

    since: int
    text: str


@dataclass(frozen=True, slots=True)
class HomePart:
    """Versions are ``from`` and, not included, ``before``; ``refusal`` is why there is no home."""

    runtime: Runtime
    from_: str
    before: str
    key: str
    place: str
    unit: str
    disruption: Disruption
    default: str
    refusal: str


@dataclass(frozen=True, slots=True)
class LayerPart:
    """The value in one layer, from low to high, and whether it wins."""

    layer: Layer
    where: str
    value: object
    wins: bool


@dataclass(frozen=True, slots=True)
class ConfigzPart:
    """The value in ``/configz``, and whether it is the computed one; ``not_asked``: why there is none."""

    value: object
    agrees: bool | None
    not_asked: str | None


@dataclass(frozen=True, slots=True)
class OnNodePart:
    """The value on one node. ``not_loaded``: values in files that the running process does not have yet."""

    node: str
    kubelet: str
    runtime: str
    field: str | None
    home: str | None
    value: object
    not_loaded: tuple[str, ...]
    layers: tuple[LayerPart, ...]
    configz: ConfigzPart


@dataclass(frozen=True, slots=True)
class ExplanationDocument:
    """A setting. Minors are numbers, ``27`` is 1.27; ``on_node`` is ``None`` if no node was named."""

    name: str
    what: What
    type: str
    purpose: str
    since: int | None
    last: int | None
    gone: str
    here: str
    defaults: tuple[DefaultPart, ...]
    lives: str
    homes: tuple[HomePart, ...]
    twins: tuple[str, ...]
    disruption: Disruption
    may_reject_pods: bool
    not_ours: str
    traps: tuple[str, ...]
    source: str
    on_node: OnNodePart | None


def explanation_document(found: Explanation, on_node: OnNodePart | None = None) -> ExplanationDocument:
    return ExplanationDocument(
        name=found.name,
        what=found.what,
        type=found.kind,
        purpose=found.purpose,
        since=found.since,
        last=found.last,
        gone=found.gone,
        here=found.here,
        defaults=tuple(DefaultPart(since, text) for since, text in found.defaults),
        lives=found.lives,
        homes=tuple(
            HomePart(
                runtime=row.runtime,
                from_=dotted(row.since),
                before=dotted(row.before),
                key=row.key,
                place=row.place,
                unit=row.unit,
                disruption=row.disruption,
                default=row.default,
                refusal=row.refusal,
            )
            for row in found.homes
        ),
        twins=found.twins,
        disruption=found.disruption,
        may_reject_pods=found.may_drain,
        not_ours=found.not_ours,
        traps=(*found.traps, *(f"on {runtime}: {trap}" for runtime, trap in found.home_traps)),
        source=found.source,
        on_node=on_node,
    )


def on_node_part(here: OnNode, shown: ConfigzAnswer) -> OnNodePart:
    return OnNodePart(
        node=here.node,
        kubelet=here.kubelet,
        runtime=here.runtime,
        field=here.field or None,
        home=here.home or None,
        value=here.value,
        not_loaded=here.late,
        layers=tuple(LayerPart(each.layer, each.where, each.value, each.wins) for each in here.layers),
        configz=ConfigzPart(shown.value, shown.agrees, shown.not_asked or None),
    )
