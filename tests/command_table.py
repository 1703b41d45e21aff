"""The table of commands from their declarations: ``python -m tests.command_table`` writes it."""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Mapping
from importlib import import_module

import rollout.cli
import rollout.features
from rollout.cli.registry import REGISTERED, SECTIONS, Listed
from tests.places import ROOT

FILE = ROOT / "rollout/cli/command_table.py"
HEAD = '"""Every command of ``rollout``: `python -m tests.command_table` writes this file, see ``rollout/cli/registry.py``."""'


def declared() -> Mapping[str, Listed]:
    """Name → what is listed, of each command in a module of ``rollout.cli`` or of a feature."""
    own = (module.name for module in pkgutil.iter_modules(rollout.cli.__path__, "rollout.cli."))
    features = (module.name for module in pkgutil.walk_packages(rollout.features.__path__, "rollout.features."))
    commands = (name for name in features if "command" in name.split("."))
    for name in (*own, *commands):
        if name not in ("rollout.cli.__main__", "rollout.cli.main"):
            import_module(name)
    at_the_top = {name for name in REGISTERED if " " not in name}
    in_help = [name for names in SECTIONS.values() for name in names]
    assert sorted(in_help) == sorted(at_the_top), "SECTIONS of rollout/cli/registry.py lists each command once"
    return {name: REGISTERED[name].listed for name in sorted(REGISTERED)}


def text(commands: Mapping[str, Listed]) -> str:
    rows = "".join(f"    {_quoted(name)}: {_row(listed)},\n" for name, listed in commands.items())
    return f"{HEAD}\n\nfrom rollout.cli.registry import Listed\n\n# fmt: off\nCOMMANDS = {{\n{rows}}}\n"


def _row(listed: Listed) -> str:
    """Its place and its line, and what is not as usual."""
    usual = Listed("", "")._asdict()
    where, line, *others = listed._asdict().items()
    words = [
        _quoted(where[1]),
        _quoted(line[1]),
        *(f"{key}={_quoted(value)}" for key, value in others if value != usual[key]),
    ]
    return f"Listed({', '.join(words)})"


def _quoted(value: object) -> str:
    if isinstance(value, tuple):
        return f"({''.join(f'{_quoted(each)},' for each in value)})"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)


if __name__ == "__main__":
    FILE.write_text(text(declared()))
