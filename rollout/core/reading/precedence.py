"""Which setting applies to which node: cluster < group, in file order < node < ``--set``. The whole value wins, never a part.

Nodes with the same levels share one mapping, so that 2,000 nodes cost little more than one.
"""

from __future__ import annotations

from collections.abc import Mapping

from rollout.core.model.inventory import Inventory, Level
from rollout.core.model.playbook import Policy
from rollout.core.model.settings import Setting
from rollout.core.reading.value_types import SETTING_NAME
from rollout.core.text.terminal import printable
from rollout.core.text.yaml_source import read_yaml
from rollout.errors import UsageError


def settings_of(
    inventory: Inventory, policy: Policy, overrides: Mapping[str, Setting]
) -> Mapping[str, Mapping[str, Setting]]:
    """The settings of every node, by node and name. Names come in order of first mention."""
    whole = [level for level in inventory.levels if level.nodes is None]
    levels = [
        *whole,
        Level("playbook", None, policy.settings),
        *(level for level in inventory.levels if level.nodes is not None),
    ]
    levels_of = _levels_of(inventory, levels)
    merged = {combination: _merged(combination, levels, overrides) for combination in set(levels_of.values())}
    return {name: merged[combination] for name, combination in levels_of.items()}


def _levels_of(inventory: Inventory, levels: list[Level]) -> dict[str, tuple[int, ...]]:
    """For each node, the levels that apply to it, by index."""
    levels_of = dict.fromkeys(inventory.nodes, tuple(at for at, level in enumerate(levels) if level.nodes is None))
    for at, level in enumerate(levels):
        for name in level.nodes or ():
            levels_of[name] = (*levels_of[name], at)
    return levels_of


def _merged(
    combination: tuple[int, ...], levels: list[Level], overrides: Mapping[str, Setting]
) -> Mapping[str, Setting]:
    merged: dict[str, Setting] = {}
    for at in combination:
        merged.update(levels[at].settings)
    return {**merged, **overrides}


def parse_override(text: str) -> Setting:
    """``--set name=value``; the value is YAML: ``5m``, ``false``, ``5``, ``{memory.available: 5%}``."""
    name, sign, value = text.partition("=")
    if not sign or not SETTING_NAME.fullmatch(name):
        raise UsageError(
            "bad-override", f"--set `{printable(text)}`: write name=value, for example serializeImagePulls=false"
        )
    document = read_yaml(value, "--set")
    if document.problems:
        raise UsageError("bad-override", f"--set `{printable(text)}`: {document.problems[0].message}")
    if document.root is None or document.root.value is None:
        raise UsageError("bad-override", f"--set `{printable(text)}`: there is no value")
    return Setting(name, document.root.plain(), source="--set")
