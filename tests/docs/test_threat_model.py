"""Every claim of the threat model names a test, and every named test exists."""

from __future__ import annotations

import re

from tests.places import ROOT

PAGE = (ROOT / "docs/threat-model.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)`", PAGE)))


def test_every_test_that_is_named_exists_and_tests_something() -> None:
    assert len(NAMED) > 12
    for name in NAMED:
        assert re.search(r"^def test_", (ROOT / name).read_text(), re.MULTILINE), name


def test_every_row_of_what_a_node_may_try_names_its_test() -> None:
    table = PAGE.split("## From a node")[1].split("What one node still can do")[0]
    rows = [
        line for line in table.splitlines() if line.startswith("| ") and not line.startswith(("| it tries", "| ---"))
    ]
    assert len(rows) >= 10
    for row in rows:
        assert any(name in row for name in NAMED), row


def test_every_row_of_the_attackers_names_its_test() -> None:
    """Except for attackers with all rights, and for rows that refer to another section."""
    for part, free in (
        ("## Who is there", "| root of a node |"),
        ("## Beside the controller", "| the operator's own login |"),
    ):
        rows = [line for line in PAGE.split(part)[1].split("\n## ")[0].splitlines() if line.startswith("| ")]
        assert len(rows) > 5
        for row in rows[2:]:
            assert row.startswith(free) or any(name in row for name in NAMED), row
