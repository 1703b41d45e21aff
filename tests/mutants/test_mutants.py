"""Each mutant can still be made from the current program; `make mutants` then shows that each is killed."""

from __future__ import annotations

import ast
import subprocess

import pytest

from tests.house.language import Kind, Prose, complaints
from tests.mutants.list_of_mutants import MUTANTS
from tests.mutants.mutant import Mutant, pytest_of
from tests.places import ROOT


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_its_line_occurs_once_and_its_tests_exist(mutant: Mutant) -> None:
    whole = (ROOT / mutant.file).read_text()
    changed = mutant.applied_to(whole)
    assert changed != whole
    if mutant.file.endswith(".py"):
        ast.parse(changed)  # a file that is not Python fails every test, and shows nothing
    for killer in mutant.killers:
        file, _, name = killer.partition("::")
        assert f"def {name}" in (ROOT / file).read_text()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_its_harm_follows_the_rules_of_the_page_on_which_it_is_written(mutant: Mutant) -> None:
    assert not list(complaints(Prose(0, mutant.harm, Kind.PRINTED)))


@pytest.mark.process
def test_its_tests_can_be_run_as_they_are_named() -> None:
    killers = {killer for mutant in MUTANTS for killer in mutant.killers}
    done = subprocess.run(
        [*pytest_of(*killers), "--collect-only"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:]


def test_there_are_at_least_25_with_unique_names() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 25
