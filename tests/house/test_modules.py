"""What CONTRIBUTING promises about the source: one name for one thing, and short files."""

from __future__ import annotations

from pathlib import Path

import rollout
from tests.house import modules as texts

LONGEST = 400
"""Lines of a module."""

FOUND = texts.modules(Path(rollout.__file__).parent)


def test_a_public_class_name_stands_for_one_class() -> None:
    assert texts.classes_named_alike(FOUND) == {}


def test_no_module_is_longer_than_a_reader_can_follow() -> None:
    assert {module.name: module.lines for module in FOUND if module.lines > LONGEST} == {}


def test_two_classes_of_one_name_are_found() -> None:
    first, second = (texts.Module(name, f"class {kind}: ...\n") for name, kind in (("a", "Part"), ("b", "Part")))
    assert texts.classes_named_alike((first, second)) == {"Part": 2}
