"""Every fact of Kubernetes' own tests is a case: would the kubelet start, with which text, and what is in force."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.kubelet.configuration.kubernetes_facts import Fact, disagreement, facts

pytestmark = pytest.mark.no_cover  # thousands of cases; the written tests count

FACTS = dict(facts())

ROUND_TRIP = "scheme testdata roundtrip/default/v1beta1.yaml"
WRITTEN = "the file of the round trip has the value written; unset it is 50 and 100 since 1.27 (SetDefaults, after/v1beta1.yaml)"
SPLIT = (
    "the fact is of Validate alone: a kubelet registers its flags over the file first, and the default of "
    "--log-json-split-stream or --log-text-split-stream overwrites what is refused here (addFlags)"
)
KNOWN: Mapping[tuple[str, str], str] = {
    (ROUND_TRIP, "our values are {'eventRecordQPS': 50}"): WRITTEN,
    (ROUND_TRIP, "our values are {'eventBurst': 100}"): WRITTEN,
    ("component-base/logs/api/v1 Validate", "we say that it starts: True []"): SPLIT,
}
"""Why we answer otherwise, by what the fact is about and a part of our answer. Each must still be needed."""


def reason(fact: Fact, difference: str) -> str:
    return next((why for (about, ours), why in KNOWN.items() if about == fact.about and ours in difference), "")


def test_every_fact_has_a_name_of_its_own() -> None:
    assert len(FACTS) == sum(1 for _ in facts()) > 2000


@pytest.mark.parametrize("name", FACTS)
def test_a_fact_is_answered_as_kubernetes_answers_it(name: str) -> None:
    difference = disagreement(FACTS[name])
    if not reason(FACTS[name], difference):
        assert difference == ""


@pytest.mark.parametrize("known", KNOWN, ids=" ".join)
def test_a_known_difference_is_one(known: tuple[str, str]) -> None:
    about, ours = known
    of_them = [difference for fact in FACTS.values() if fact.about == about and (difference := disagreement(fact))]
    assert any(ours in difference for difference in of_them), "it agrees now: remove it from KNOWN"
