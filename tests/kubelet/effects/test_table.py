"""The table of effects has a row for every field, and names none that no kubelet has."""

from __future__ import annotations

import tomllib

from rollout.kubelet import fields
from tests.places import ROOT

TABLE = tomllib.loads((ROOT / "rollout/kubelet/effects/table.toml").read_text(encoding="utf-8"))
EVERY = {name for minor in fields.known_minors() for name in fields.known_fields(minor)}


def test_every_field_of_every_minor_has_a_row() -> None:
    assert EVERY - {"kind", "apiVersion"} - set(TABLE["fields"]) == set()


def test_each_row_is_of_a_field_or_flag() -> None:
    assert set(TABLE["fields"]) - EVERY == set()
    assert [name for name in TABLE["flags"] if fields.flag(name) is None] == []
