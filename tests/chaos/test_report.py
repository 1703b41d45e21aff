"""The page lists the runs and counts every harm, and nothing that did not run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.chaos.draws import KINDS, WITH_REGIONS, draw
from tests.chaos.findings import Finding, Harm
from tests.chaos.report import COLUMNS, Conditions, page, table
from tests.chaos.trial import Result

AROUND = Conditions("2026-01-02", "2 processors", "rollout abc", "make chaos RUNS=12 SEED=1 FLEETS=2", 3.0)
WELL = [Result(draw(1, number), reached=True, confirmed=3, longest=float(number)) for number in range(2 * len(KINDS))]


def cells(line: str) -> dict[str, str]:
    return dict(zip(COLUMNS, [cell.strip() for cell in line.strip("|").split("|")], strict=True))


def test_each_kind_has_a_row_and_there_is_a_total() -> None:
    _, _, *lines = table(WELL)
    told = [cells(line) for line in lines]
    assert [line["fault"] for line in told] == [*KINDS, "all"]
    assert {line["runs"] for line in told[:-1]} == {"2"}
    assert (told[-1]["runs"], told[-1]["ended with new files"], told[-1]["worst s"]) == (
        str(2 * len(KINDS)),
        str(6 * len(KINDS)),
        f"{2 * len(KINDS) - 1}.0",
    )


@pytest.mark.parametrize(("harm", "column"), list(zip(Harm, COLUMNS[-5:], strict=True)))
def test_a_harm_is_counted_in_its_column(harm: Harm, column: str) -> None:
    hurt = Result(draw(1, 3), findings=(Finding(harm, "n1", "it is"),))
    told = cells(list(table([*WELL, hurt]))[-1])
    assert [name for name in COLUMNS[-5:] if told[name] != "0"] == [column]


def test_kinds_that_did_not_run_are_not_in_the_table() -> None:
    assert [cells(line)["fault"] for line in list(table(WELL[:1]))[2:]] == [KINDS[0], "all"]


def test_each_engine_has_a_part_of_the_page_and_keeps_that_of_the_other() -> None:
    with_regions = replace(AROUND, engine="dask", command="make chaos ENGINE=dask")
    struck = [Result(draw(1, number, WITH_REGIONS), reached=True, applied=3) for number in range(len(WITH_REGIONS))]
    first = page("", WELL, AROUND)
    both = page(first, struck, with_regions)
    assert both.startswith(first)
    assert f"The nodes counted {3 * len(WITH_REGIONS)} changes of their files." in both
    assert page(both, WELL, AROUND) == page(both, struck, with_regions) == both


def test_the_page_contains_how_it_was_made() -> None:
    text = page("", WELL, AROUND)
    assert f"`{AROUND.command}`" in text
    assert all(part in text for part in (AROUND.date, AROUND.machine, AROUND.versions, "3 minutes"))
    assert text.rstrip().splitlines()[-1].startswith(f"| all | {2 * len(KINDS)} |")
