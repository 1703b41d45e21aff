"""A module that a docstring or a comment names exists: when modules move, their names in prose do not change by
themselves.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.places import ROOT

_NAME = re.compile(r"``((?:adapters|app|cli|composition|core|lab|simulator|kubelet\.[a-z_]+)(?:\.[a-z_]+)+)``")


def stale(text: str, package: Path) -> list[str]:
    """Dotted names in double backticks that are neither a module nor a name that a module has."""
    return [name for name in _NAME.findall(text) if not _is_there(name.split("."), package)]


def _is_there(parts: list[str], package: Path) -> bool:
    whole, holder = package.joinpath(*parts), package.joinpath(*parts[:-1]).with_suffix(".py")
    if whole.is_dir() or whole.with_suffix(".py").is_file():
        return True
    return holder.is_file() and re.search(rf"\b{parts[-1]}\b", holder.read_text()) is not None


def test_modules_that_texts_name_exist() -> None:
    package = ROOT / "rollout"
    found = {str(path.relative_to(ROOT)): stale(path.read_text(), package) for path in package.rglob("*.py")}
    assert {path: names for path, names in found.items() if names} == {}


def test_a_module_that_is_gone_is_found(tmp_path: Path) -> None:
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "here.py").write_text("def known() -> None: ...\n")
    text = "``core.here``, ``core.here.known``, ``core.here.gone``, ``core.gone`` and ``core.gone.known``"
    assert stale(text, tmp_path) == ["core.here.gone", "core.gone", "core.gone.known"]
