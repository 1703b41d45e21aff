"""Settings as a plan records them, and as they are set again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

from rollout.core.model.plan import WantedSetting
from rollout.core.model.settings import Setting
from rollout.core.text import json_text
from rollout.core.text.nodesets import fold


def wanted_by_node(
    settings: Mapping[str, Mapping[str, Setting]], selection: Iterable[str]
) -> tuple[WantedSetting, ...]:
    """Merged settings (node → name → setting) of these nodes: each value with its nodes."""
    nodes: dict[WantedSetting, list[str]] = {}
    for name in selection:
        for setting in settings.get(name, {}).values():
            nodes.setdefault(as_wanted(setting, ""), []).append(name)
    return tuple(replace(each, selection=fold(names)) for each, names in nodes.items())


def as_wanted(setting: Setting, selection: str) -> WantedSetting:
    """``selection``: a nodeset expression; ``""``: all nodes."""
    value = json.dumps(setting.value, sort_keys=True, ensure_ascii=False)
    return WantedSetting(setting.name, value, selection, setting.if_unsupported, setting.pin)


def as_setting(wanted: WantedSetting, source: str) -> Setting:
    """The setting again. ``source``: for messages."""
    value = json_text.parse(wanted.value)
    return Setting(wanted.name, value, wanted.if_unsupported, source, pin=wanted.pin)
