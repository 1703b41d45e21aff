"""Names on disk, on the wire and in documents outlive the code: renaming code renames none of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import pytest

from rollout.core.text import json_text
from rollout.core.text.json_text import on_disk
from tests.wire_names import FORMATS, breaks, names, read, shape


def test_no_name_is_gone_and_no_format_changes_under_its_old_number() -> None:
    assert list(breaks(*read(), names())) == []


def test_the_table_is_whole() -> None:
    numbers, frozen = read()
    now = names()
    new = {section: sorted(set(lines) - set(frozen.get(section, ()))) for section, lines in now.items()}
    anew = "new names: add them with `python -m tests.wire_names`"
    assert {section: lines for section, lines in new.items() if lines} == {}, anew
    assert numbers == FORMATS, anew


@dataclass(frozen=True)
class Older:
    to_revert: bool
    at: float


@dataclass(frozen=True)
class Renamed:
    reverts: bool = field(metadata=on_disk("to_revert"))
    at: float


def test_a_field_that_was_renamed_is_written_and_read_under_its_old_name() -> None:
    written = json_text.encode(Renamed(reverts=True, at=1.0))
    assert written == json_text.encode(Older(to_revert=True, at=1.0))
    assert json_text.decode(Renamed, written) == Renamed(reverts=True, at=1.0)
    assert list(shape("", Renamed)) == list(shape("", Older))
    with pytest.raises(json_text.ShapeError, match="reverts"):
        json_text.decode(Renamed, {"reverts": True, "at": 1.0})


@dataclass(frozen=True)
class Shortened:
    at: float


@pytest.mark.parametrize(
    ("section", "lines", "said"),
    [
        ("journal", [*shape("Ticked", Shortened)], "keeps its name: field"),
        ("agent verbs", [], "apply, boot, .* is gone. Such a name never changes"),
        ("receipt states", ["armed", "confirmed"], "reverted, reverting is gone"),
    ],
)
def test_a_name_that_is_gone_is_told_with_what_to_do(section: str, lines: list[str], said: str) -> None:
    (line,) = breaks(*read(), {**names(), section: lines})
    assert line.startswith(f"{section}: ")
    assert re.search(said, line)


def test_a_format_may_change_with_its_number() -> None:
    numbers, frozen = read()
    assert list(breaks({**numbers, "journal": numbers["journal"] - 1}, frozen, {**names(), "journal": []})) == []
