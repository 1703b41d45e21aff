"""No command imports more than the table says: a start is quick only while somebody looks."""

from __future__ import annotations

import pytest

from tests.imported_modules import measured, recorded


@pytest.mark.process
def test_each_command_imports_what_the_table_says() -> None:
    found, known = measured(), recorded()
    hint = "it is slower to start now: import less, or write the table anew: python -m tests.imported_modules"
    assert found.keys() == known.keys(), hint
    more = {name: (each, known[name]) for name, each in found.items() if each.modules > known[name].modules}
    assert more == {}, hint
    assert {name: each.libraries for name, each in found.items()} == {
        name: each.libraries for name, each in known.items()
    }, hint
