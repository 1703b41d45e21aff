"""Which setting applies to which node: cluster < group, in file order < node < ``--set``. The whole value wins, never a part.

Nodes with the same levels share one mapping, so that 2,000 nodes cost little more than one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rollout.core.model.inventory import Inventory, Level
from rollout.core.model.plan import WantedSetting
from rollout.core.model.playbook import Policy
from rollout.core.model.settings import Setting
from rollout.core.reading.value_types import SETTING_NAME
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import printable
from rollout.core.text.wanted_settings import as_wanted
from rollout.core.text.yaml_source import read_yaml
from rollout.errors import UsageError


def settings_of(
    inventory: Inventory, policy: Policy, overrides: Mapping[str, Setting]
) -> Mapping[str, Mapping[str, Setting]]:
    """The settings of every node, by node and name. Names come in order of first mention."""
    levels = _in_order(inventory, policy)
    levels_of = _levels_of(inventory, levels)
    merged = {combination: _merged(combination, levels, overrides) for combination in set(levels_of.values())}
    return {name: merged[combination] for name, combination in levels_of.items()}


def _in_order(inventory: Inventory, policy: Policy) -> list[Level]:
    """The levels of the files; ``--set`` comes after them."""
    return [
        *(level for level in inventory.levels if level.nodes is None),
        Level("playbook", None, policy.settings),
        *(level for level in inventory.levels if level.nodes is not None),
    ]


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


def wanted_of(
    inventory: Inventory, policy: Policy, overrides: Mapping[str, Setting], selection: Collection[str]
) -> tuple[WantedSetting, ...]:
    """What these levels want on the nodes of ``selection``, in order of precedence."""
    chosen = frozenset(selection)
    levels = [*_in_order(inventory, policy), Level("--set", None, overrides)]
    found = [
        as_wanted(setting, _expression(level, inventory))
        for level in levels
        if level.nodes is None or level.nodes & chosen
        for setting in level.settings.values()
    ]
    for_all = {each.name: at for at, each in enumerate(found) if not each.selection}
    return tuple(each for at, each in enumerate(found) if at >= for_all.get(each.name, 0))


_GROUP = "group "


def _expression(level: Level, inventory: Inventory) -> str:
    """The nodes of a level as a nodeset: by the name of its group, so that it means nodes that join it later, too."""
    if level.nodes is None:
        return ""
    name = level.name.removeprefix(_GROUP)
    is_group = level.name.startswith(_GROUP) and inventory.nodesets.get(name) == level.nodes
    return f"@{name}" if is_group else fold(sorted(level.nodes))


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
