"""The documentation's tables match the tables that plans use, and its counts match the recordings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.computed import TABLES, written
from tests.docs.pages import PAGES

NAMED = re.compile(r"<!-- computed: (\S+) -->")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_computed_tables_are_up_to_date(page: Path) -> None:
    text = page.read_text()
    assert written(text) == text, "`python -m tests.docs.computed` writes them anew"


def test_every_table_is_on_a_page() -> None:
    assert sorted(name for page in PAGES for name in NAMED.findall(page.read_text())) == sorted(TABLES)


def test_a_table_that_is_out_of_date_is_found() -> None:
    page = "Before.\n\n<!-- computed: ends -->\n\n| grace period |\n| old |\n\nAfter.\n"
    assert "| old |" not in written(page)
    assert written(page).startswith("Before.\n\n<!-- computed: ends -->\n\n| grace period | containers |")
    assert written(page).endswith("|\n\nAfter.\n")
    assert written(written(page)) == written(page)
