"""A node's settings sorted by where they live on it: kubelet fields, kubelet flags, the container runtime's files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rollout.core.model.settings import Setting, Value
from rollout.kubelet import homes, intents, runtime_versions, values
from rollout.kubelet.homes import InField, InFlag, InRuntime, NoHome, Skipped
from rollout.kubelet.intents import DEADLINE, DEADLINE_FLAG
from rollout.kubelet.node import arguments
from rollout.kubelet.node.found import Found
from rollout.kubelet.node.layout import LayoutError


@dataclass(frozen=True, slots=True)
class Wishes:
    """Settings by home, and notes on those skipped or as wanted without being written."""

    fields: Mapping[str, Value]
    flags: tuple[InFlag, ...]
    runtime: tuple[InRuntime, ...]
    notes: tuple[str, ...]


def sorted_out(found: Found, settings: Mapping[str, Setting]) -> Wishes:
    """Each setting's home on this node; ``LayoutError`` with every reason when one has none and may not be skipped."""
    printed = runtime_versions.version_of(found.runtime, found.snapshot.runtimes)
    every = {name: homes.home(settings[name], found.version, found.runtime, printed) for name in sorted(settings)}
    refused = {name: home for name, home in every.items() if isinstance(home, NoHome)}
    if refused:
        said = "; ".join(home.reason for home in refused.values())
        raise LayoutError(next(iter(refused.values())).reference, said, about=tuple(refused))
    by_default = [name for name, home in every.items() if _by_default(found, settings[name], home)]
    return Wishes(
        fields={home.name: home.value for home in every.values() if isinstance(home, InField)},
        flags=tuple(h for name, h in every.items() if isinstance(h, InFlag) and name not in by_default),
        runtime=tuple(home for home in every.values() if isinstance(home, InRuntime)),
        notes=(
            *(home.note for home in every.values() if isinstance(home, Skipped)),
            *(f"{name} is as wanted by default and not written; `pin: true` has it written" for name in by_default),
        ),
    )


def _by_default(found: Found, setting: Setting, home: object) -> bool:
    """Whether the kubelet's own deadline for pulls, which is nowhere given, has the wanted value anyway."""
    if not isinstance(home, InFlag) or home.name != DEADLINE_FLAG or setting.pin:
        return False
    row = intents.row(DEADLINE, found.runtime, None)
    given = found.layout.flag(home.name) or arguments.last(found.layout.running[1:], home.name)
    return not given and row is not None and values.same_flag(home.kind, row.default, home.text)
