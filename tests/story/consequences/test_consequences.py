"""What a change does on *this* node: more than 50 consequences, each on a lab node of its own, answered by the real plan.

Issue 37. The table is in ``table.py``; the nodes are read by the agent, in one fleet, and one plan answers for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from tests.story.consequences.fleet import Answer, answers, made
from tests.story.consequences.table import CASES, Verdict

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Answer]]:
    with made(tmp_path_factory.mktemp("consequences"), CASES) as site:
        yield answers(site, CASES)


def test_the_table_has_more_than_50_cases() -> None:
    assert len(CASES) > 50


@pytest.mark.parametrize("name", CASES)
def test_the_plan_says_what_the_change_does_on_its_node(name: str, told: Mapping[str, Answer]) -> None:
    case, answer = CASES[name], told[name]
    assert answer.changed is (case.verdict is not Verdict.REFUSED), answer.text
    for words in case.words:
        assert (words in answer.text) is (case.verdict is not Verdict.PLAIN), answer.text
    if case.verdict is Verdict.UNKNOWN:
        assert "[needs-not-known]" in answer.text
