"""CONTRIBUTING: its files and names exist, its map has every folder, and recipes cover the most frequent additions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rollout.cli.command_table import COMMANDS
from rollout.core.reading.project_file import PROJECT_FILE
from tests.docs.pages import FRONT, anchors, blocks, inline_code
from tests.places import ROOT

CONTRIBUTING, CHANGELOG, _ = FRONT
RECIPES = ("gate", "container-runtime", "kubelet-minor", "fault", "command")

_FOLDERS = "|".join(("benchmarks", "docs", "inventories", "playbooks", "requirements", "rollout", "templates", "tests"))
KINDS = ("rollout/features/", "rollout/gates/", "rollout/kubelet/runtimes/")
"""Each has a folder for each kind or feature."""

_PATH = re.compile(rf"(?:{_FOLDERS})/[\w./-]*|[\w.-]+\.(?:md|py|sh|toml|ya?ml)|Makefile|LICENSE")
_NAME = re.compile(r"[A-Za-z_]\w*")
_STEP = re.compile(r"^\d+\. .*\n(?: +.*\n)*", re.MULTILINE)


def paths(text: str) -> set[str]:
    """The files and folders that a page names, in its prose and in its commands."""
    words = [code.strip() for code in inline_code(text)]
    words += [word for block in blocks(text) for word in block.text.split()]
    words += [word for code in inline_code(text) for word in code.split()]
    return {word for word in words if _PATH.fullmatch(word) and word != PROJECT_FILE}  # a user's file


def gone(text: str) -> set[str]:
    """Those that do not exist; a folder has a slash at its end."""
    named = {path: ROOT / path for path in paths(text)}
    return {path for path, place in named.items() if not (place.is_dir() if path.endswith("/") else place.is_file())}


def unheard(text: str) -> Iterator[str]:
    """Names in a step that are in none of the files that the step names."""
    for step in _STEP.findall(text):
        files = [ROOT / path for path in paths(step)]
        program = "\n".join(path.read_text() for path in files if path.is_file())
        known = set(_NAME.findall(program))
        yield from (code for code in inline_code(step) if program and _NAME.fullmatch(code) and code not in known)


def packages(top: str) -> set[str]:
    """Every folder of modules below ``top``, as the map writes it: ``rollout/core/run/``."""
    return {f"{path.parent.relative_to(ROOT)}/" for path in (ROOT / top).rglob("*/__init__.py")}


def unmapped(text: str) -> set[str]:
    """Folders without a row in the tables.

    Folders of tests need no row if they mirror a package, are in a folder with a row, or contain recordings. A kind's folder has its name.
    """
    rows = set(re.findall(r"^\| `([\w/]+/)` \|", text, re.MULTILINE))
    mirrored = {path.replace("rollout/", "tests/", 1) for path in packages("rollout")}
    others = {path for path in packages("tests") - mirrored if not path.endswith("/recorded/")}
    tests = {path for path in others if not any(path.startswith(row) for row in rows)}
    kinds = {path for path in packages("rollout") if path.startswith(KINDS) and path not in KINDS}
    return (packages("rollout") - rows - kinds) | tests


@pytest.mark.parametrize("page", FRONT, ids=lambda page: page.name)
def test_files_and_folders_that_a_front_page_names_exist(page: Path) -> None:
    assert gone(page.read_text()) == set()


def test_names_in_a_step_are_in_its_files() -> None:
    assert list(unheard(CONTRIBUTING.read_text())) == []


def test_every_folder_is_on_the_map() -> None:
    assert unmapped(CONTRIBUTING.read_text()) == set()


def test_there_is_a_recipe_for_what_is_added_most() -> None:
    text = CONTRIBUTING.read_text()
    assert {f"adding-a-{what}" for what in RECIPES} <= anchors(text)
    for recipe in re.split(r"^## ", text, flags=re.MULTILINE):
        if recipe.startswith("Adding a "):
            assert len(paths(recipe)) >= 5
            assert any(path.startswith("tests/") for path in paths(recipe))


_QUESTION = re.compile(r"^\| [^|]*\? \| `(rollout/[\w/]+/)`(?:, with `(tests/[\w/]+/)`)? \| `(\w+)` \|$", re.MULTILINE)


def homes_of(name: str) -> set[str]:
    """The folders of ``rollout/`` in which a function, class or constant of this name is defined at the top."""
    defined = re.compile(rf"^(?:def {name}\(|class {name}\b|{name}\b.* = |{name}\(\) \{{)", re.MULTILINE)
    files = [path for path in (ROOT / "rollout").rglob("*") if path.suffix in (".py", ".sh")]
    return {f"{path.parent.relative_to(ROOT)}/" for path in files if defined.search(path.read_text())}


def test_each_question_is_answered_by_a_folder() -> None:
    questions = _QUESTION.findall(CONTRIBUTING.read_text())
    assert len(questions) >= 10
    for folder, tests, name in questions:
        assert homes_of(name) == {folder}, name
        assert not tests or (ROOT / tests).is_dir(), tests


def test_the_changelog_names_every_command() -> None:
    text = CHANGELOG.read_text()
    assert "\n## [Unreleased]\n" in text
    assert [name for name in COMMANDS if f"`rollout {name}`" not in text] == []


def test_missing_files_and_names_are_found() -> None:
    text = (
        "Read `rollout/errors.py`, `rollout/nobody.py`, `Makefile`, `make quick`, `setup.py` and `rollout/core`:\n\n"
        "    .venv/bin/pytest tests/core/test_nothing.py -k name\n\n"
        "1. `RolloutError` and\n   `NoSuchError` in `rollout/errors.py`.\n2. `NoFile` of nothing.\n"
    )
    assert gone(text) == {"rollout/nobody.py", "setup.py", "rollout/core", "tests/core/test_nothing.py"}
    assert list(unheard(text)) == ["NoSuchError"]


def test_a_folder_that_is_not_on_the_map_is_found() -> None:
    text = CONTRIBUTING.read_text()
    for folder in ("rollout/core/run/", "tests/hostile/"):
        row = re.compile(rf"^\| `{folder}` \|.*\n", re.MULTILINE)
        assert folder in unmapped(row.sub("", text))
