"""Each mutant can still be made of the program as it is: `make mutants` then shows that each is killed."""

from __future__ import annotations

import pytest

from tests.mutants.list_of_mutants import MUTANTS
from tests.mutants.mutant import ROOT, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_its_line_is_there_once_and_its_tests_are_there(mutant: Mutant) -> None:
    assert mutant.applied_to((ROOT / mutant.file).read_text()) != (ROOT / mutant.file).read_text()
    for killer in mutant.killers:
        file, _, name = killer.partition("::")
        assert f"def {name}" in (ROOT / file).read_text()


def test_there_are_at_least_ten_with_names_of_their_own() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 10
