"""Every labelled input is answered as its label says; ``make bench-honesty`` counts the same."""

from __future__ import annotations

import pytest

from tests.features.diagnose.labelled.reading import Labelled, cases, graded, read


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in cases()])
def test_the_answer_is_that_of_the_label(case: Labelled) -> None:
    answer = graded(case)
    assert [(finding.id, finding.confidence, finding.cause) for finding in answer.wrong] == []
    assert answer.silent == ()


def test_each_case_has_a_source_a_kind_and_a_name_of_its_own() -> None:
    every = list(cases())
    assert len({case.id for case in every}) == len(every)
    assert all(case.source and case.kind and case.files for case in every)
    assert sum(not case.id.startswith(("handed", "healthy")) for case in every) >= 40


def test_a_label_is_not_met_by_another_word_or_a_surer_grade() -> None:
    """The reader itself: a case with the right id and a wrong word, and one that is surer than its label allows."""
    line = 'E1120 09:00:0{}.000000 3033 kubelet.go:1] "Skipping pod synchronization" err="container runtime is down"\n'
    told = f"--- a.log\n{line.format(0)}{line.format(5)}"
    for label, good in (
        ("runtime-down | does not answer", True),
        ("runtime-down | socket; does not answer", True),
        ("runtime-down | socket", False),
        ("runtime-down at most likely", False),
        ("pleg-unhealthy or runtime-down", True),
        ("pleg-unhealthy", False),
    ):
        (case,) = read(f"=== x\nkind: runtimes\nsource: own\nshows: {label}\n{told}".splitlines(keepends=True))
        assert graded(case).good is good, label
    (case,) = read(f"=== x\nshows: runtime-down\nnever: Pods\n{told}".splitlines(keepends=True))
    assert not graded(case).good
    (case,) = read(f"=== x\n{told}".splitlines(keepends=True))
    assert not graded(case).good, "a case without labels has no finding"
