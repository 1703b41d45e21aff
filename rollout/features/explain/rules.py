"""A setting on one node: every layer that sets it, the layer that wins, and the value in force.

The kubelet's own order, from low to high: defaults, the ``--config`` file, each drop-in of ``--config-dir``, flags. A layer's
value is as it is written there; the value in force is computed for the whole configuration (``configuration.startup``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from rollout.core.model.settings import Value
from rollout.core.plans.roles import seen_role
from rollout.kubelet import fields, node_values, values
from rollout.kubelet.configuration.config_file import LoadError, document
from rollout.kubelet.configuration.defaulting import with_file, without_file
from rollout.kubelet.configuration.outcome import File, Layer
from rollout.kubelet.defects import matching
from rollout.kubelet.defects.matching import FoundDefect
from rollout.kubelet.defects.rows import Defect
from rollout.kubelet.explained.explanation import Explanation, What
from rollout.kubelet.intents import DEADLINE, DEADLINE_FLAG
from rollout.kubelet.node import arguments, unloaded
from rollout.kubelet.node.layout import KUBELET_UNITS
from rollout.kubelet.node.sources import FitNode
from rollout.kubelet.runtimes import known
from rollout.kubelet.values import value_at

NOWHERE = "nowhere"
"""The first word of an intent's home when it has none on this node."""


@dataclass(frozen=True, slots=True)
class LayerValue:
    """A setting's value in one layer. ``where``: a path, or for a flag where it is written; ``""`` for defaults."""

    layer: Layer
    where: str
    value: Value
    wins: bool = False


@dataclass(frozen=True, slots=True)
class OnNode:
    """``layers`` from low to high. ``home`` is the home of an intent on this node; ``""`` for a kubelet's own setting.

    ``runtime`` is for people: ``containerd 2.1.4``. ``field`` is the field that it is or sets; ``""``: none.
    """

    node: str
    kubelet: str
    runtime: str
    name: str
    field: str
    value: Value
    layers: tuple[LayerValue, ...]
    home: str = ""
    defects: tuple[FoundDefect, ...] = ()  # known defects of this node, those about the setting first
    settings: frozenset[str] = frozenset()  # the defects with a condition on the setting, by their names
    late: tuple[str, ...] = ()  # values in files that the running process has not loaded: ``maxPods: 110 → 1``
    control_plane: str = ""  # what shows that it is of the control plane, although the inventory does not say so

    @property
    def defects_of_setting(self) -> tuple[FoundDefect, ...]:
        return tuple(each for each in self.defects if each.defect.id in self.settings)


def on_node(here: FitNode, explanation: Explanation, own: Iterable[Defect] = ()) -> OnNode:
    """The sources of the setting's value on this node. ``own``: known defects of the project."""
    over = known.runtime_of(here)
    version = known.describe(over).version(here.snapshot.runtimes)
    runtime = f"{over.value} {version.text}" if version else over.value
    path = _field(explanation)
    layers = tuple(_layers(here, explanation, path))
    value = value_at(here.outcome.effective, path) if path else layers[-1].value if layers else None
    home = _home(here, explanation)
    late = (*_late_flags(here, _flags(explanation, path)), *_late(here, path, home))
    about = frozenset(row.id for row in explanation.defects)
    defects = sorted(_defects(here, own), key=lambda each: each.defect.id not in about)
    return OnNode(
        here.node.name,
        here.version.text,
        runtime,
        explanation.name,
        path,
        value,
        _won(layers),
        home,
        tuple(defects),
        about,
        late,
        seen_role(here.node, here.snapshot, None).seen,
    )


def _defects(here: FitNode, own: Iterable[Defect]) -> Iterator[FoundDefect]:
    """Of the node's versions and values. Those of pods it may have: the API server is not asked."""
    runtime = known.runtime_of(here)
    found = matching.on_node(here.snapshot, runtime, node_values.now(here), own)
    yield from matching.with_pods(found, {})


def _flags(explanation: Explanation, path: str) -> tuple[str, ...]:
    """The flags that set it."""
    if not path:
        return (DEADLINE_FLAG,) if explanation.name == DEADLINE else (explanation.name,)
    return _setting(path)


def _setting(path: str) -> tuple[str, ...]:
    """The flags that set a field or a part of it."""
    return tuple(name for name in fields.every_name() if (flag := fields.flag(name)) and _sets(flag.field, path))


def _late_flags(here: FitNode, names: tuple[str, ...]) -> Iterator[str]:
    """Flags that differ between the unit's files and the running process."""
    for name in names:
        asked, runs = (arguments.last(words, name) for words in (here.layout.asked, here.layout.running[1:]))
        old, new = (given.value if given else "not set" for given in (runs, asked))
        if old != new:
            yield f"{name}: {old} → {new}"


def _late(here: FitNode, path: str, home: str) -> Iterator[str]:
    if path:
        wanted = tuple(path.split("."))
        for edit in unloaded.of_kubelet(here):
            if edit.field[: len(wanted)] == wanted or wanted[: len(edit.field)] == edit.field:
                yield edit.told
    elif home:
        for each in unloaded.of_runtime(here.snapshot, {entry.unit for entry in here.snapshot.stale} - KUBELET_UNITS):
            yield each.told


def agrees(here: OnNode, shown: Mapping[str, Value]) -> bool:
    """Does ``/configz`` show the computed value of the field?"""
    return values.is_in_force(value_at(shown, here.field), here.value, tuple(here.field.split(".")))


def _field(explanation: Explanation) -> str:
    if explanation.what is What.FIELD:
        return explanation.name
    flag = fields.flag(explanation.name)
    return flag.field if flag else ""


def _layers(here: FitNode, explanation: Explanation, path: str) -> Iterator[LayerValue]:
    if path:
        given, minor = here.sources, here.version.minor
        yield LayerValue(Layer.DEFAULT, "", value_at(_defaults(given.config, minor), path))
        files = [(Layer.FILE, given.config), *((Layer.DROP_IN, file) for file in given.drop_ins or ())]
        for layer, file in files:
            value = _written(file, path) if file else None
            if file and value is not None:
                yield LayerValue(layer, file.path, value)
        yield from _of_flags(here, _setting(path))
    elif explanation.what is What.FLAG:
        yield from _of_flags(here, (explanation.name,))
    elif (row := known.describe(known.runtime_of(here)).row(explanation.name, None)) is not None and row.in_kubelet:
        yield LayerValue(Layer.DEFAULT, "", row.default)
        yield from _of_flags(here, (row.key,))


def _defaults(config: File | None, minor: int) -> Mapping[str, Value]:
    """The defaults; those that depend on gates follow the gates in the file."""
    if config is None:
        return without_file(minor)
    gates = _written(config, "featureGates")
    return with_file(minor, gates if isinstance(gates, dict) else {})


def _sets(field: str, path: str) -> bool:
    """Whether a flag for ``field`` sets ``path`` or a part of it."""
    return field == path or field.startswith(f"{path}.")


def _written(file: File, path: str) -> Value:
    try:
        value = document(file).value
    except LoadError:
        return None
    return value_at(value, path) if isinstance(value, dict) else None


def _of_flags(here: FitNode, names: tuple[str, ...]) -> Iterator[LayerValue]:
    for name in names:
        given = arguments.last(here.layout.asked, name)
        if given is not None:
            yield LayerValue(Layer.FLAG, f"{name}, {here.layout.origin(name)}", given.value)


def _won(layers: tuple[LayerValue, ...]) -> tuple[LayerValue, ...]:
    """Marks the last layer: it overrides all others."""
    return (*layers[:-1], replace(layers[-1], wins=True)) if layers else ()


def _home(here: FitNode, explanation: Explanation) -> str:
    if explanation.what is not What.INTENT:
        return ""
    over = known.runtime_of(here)
    version = known.describe(over).version(here.snapshot.runtimes)
    row, refused = known.describe(over).row(explanation.name, version), known.refusal(explanation.name, over, version)
    if row is None or refused is not None:
        why = refused[1] if refused else "nothing is known of it"
        return f"{NOWHERE}: {why.removeprefix(f'{explanation.name}: ')}"
    return f"{row.key}, in {row.place}; default {row.default or 'none'}"
