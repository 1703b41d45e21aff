"""What CONTRIBUTING promises about the source: one name for one thing."""

from __future__ import annotations

from pathlib import Path

import rollout
from tests.house import modules as texts


def test_a_public_class_name_stands_for_one_class() -> None:
    assert texts.classes_named_alike(texts.modules(Path(rollout.__file__).parent)) == {}


def test_two_classes_of_one_name_are_found() -> None:
    first, second = (texts.Module(name, f"class {kind}: ...\n") for name, kind in (("a", "Part"), ("b", "Part")))
    assert texts.classes_named_alike((first, second)) == {"Part": 2}
