"""The output of `rollout explain` matches the tables, for every name in them."""

from __future__ import annotations

import json

import pytest

from rollout.core.model.playbook import Disruption
from rollout.errors import UsageError
from rollout.features.explain.words.explanation import ExplanationDocument, explanation_lines
from rollout.kubelet import fields, homes
from rollout.kubelet.configuration.defaulting import with_file
from rollout.kubelet.explained import explanation
from rollout.kubelet.explained.explanation import What, every_name, explain
from rollout.kubelet.intents import DEADLINE, INTENTS
from rollout.kubelet.runtimes.description import Runtime, parse
from rollout.kubelet.runtimes.known import ROWS
from tests.documents import as_printed

MINORS = fields.known_minors()


@pytest.mark.parametrize("name", every_name())
def test_every_name_can_be_explained(name: str) -> None:
    found = explain(name)
    assert list(explanation_lines(found))
    assert as_printed(ExplanationDocument(found))["name"] == found.name


@pytest.mark.parametrize("minor", MINORS)
def test_explanation_and_table_agree_on_the_names_of_each_kubelet(minor: int) -> None:
    known = fields.known_fields(minor) | fields.known_flags(minor)
    said = {name for name in fields.every_name() if explain(name, minor).here == f"known to kubelet 1.{minor}"}
    assert said == known


def test_an_unknown_flag_stops_the_kubelet_and_an_unknown_field_is_ignored() -> None:
    assert (
        explain("--image-pull-progress-deadline", 24).here
        == "unknown for kubelet 1.24 (removed): the kubelet would not start"
    )
    assert (
        explain("maxParallelImagePulls", 26).here
        == "unknown for kubelet 1.26 (added later): the kubelet ignores it with a warning"
    )


def test_a_flag_and_its_field_name_each_other_and_the_winner() -> None:
    field, flag = explain("registryPullQPS"), explain("--registry-qps")
    assert field.twins == (flag.name,)
    assert flag.twins == (field.name,)
    assert (field.wins, flag.wins) == ("the flag overrides the field", "this flag overrides the field")
    assert flag.purpose == field.purpose


def test_the_default_is_that_of_the_given_kubelet() -> None:
    assert [explain("eventRecordQPS", minor).defaults for minor in (26, 27)] == [((20, "5"),), ((27, "50"),)]
    assert len(explain("eventRecordQPS").defaults) == 2


def test_a_default_that_depends_on_a_gate_is_shown_for_both_values() -> None:
    policy, period = "imagePullCredentialsVerificationPolicy", "crashLoopBackOff.maxContainerRestartPeriod"
    by_gate = "with the gate KubeletEnsureSecretPulledImages"
    assert explain(policy).defaults == (
        (33, f"not set; NeverVerifyPreloadedImages {by_gate} on"),
        (35, f"NeverVerifyPreloadedImages; not set {by_gate} off"),
    )
    whole = (35, '{"maxContainerRestartPeriod": "5m0s"}; {} with the gate KubeletCrashLoopBackOffMax off')
    assert explain("crashLoopBackOff", 36).defaults == (whole,)
    inner = explain(period, 36)
    assert (inner.kind, inner.since) == ("duration", 32)
    assert inner.defaults == ((35, "5m0s; not set with the gate KubeletCrashLoopBackOffMax off"),)


def test_the_homes_of_an_intent_are_those_of_the_table() -> None:
    crio = explain("imagePullProgressDeadline", runtime=Runtime.CRIO, version=parse("1.32.2"))
    assert [(row.key, row.unit, row.default) for row in crio.homes] == [
        ("pull_progress_timeout", "crio.service", "10s")
    ]
    assert explain("imagePullProgressDeadline").homes == tuple(row for row in ROWS if row.intent == DEADLINE)
    assert {trap for trap, _ in explain("imagePullProgressDeadline", runtime=Runtime.CRIO).home_traps} == {"CRI-O"}


def test_every_intent_is_explained_and_so_are_the_names_that_its_homes_give_it() -> None:
    assert set(explanation.intent_words()) == set(INTENTS)
    keys = {row.key for row in ROWS if row.key and not row.key.startswith("--")}
    assert [key for key in keys if explain(key).what is not What.INTENT] == []


def test_an_intent_is_found_by_the_name_its_home_gives_it() -> None:
    assert explain("image_pull_progress_timeout").name == "imagePullProgressDeadline"


def test_settings_that_may_reject_pods_or_that_rollout_does_not_set_are_marked() -> None:
    assert explain("maxPods").may_drain
    assert explain("--max-pods").may_drain
    assert explain("cpuManagerPolicy").not_ours == homes.NOT_OURS["cpuManagerPolicy"]
    assert not explain("serializeImagePulls").may_drain


def test_a_misspelt_name_is_an_error_with_a_hint() -> None:
    with pytest.raises(UsageError) as error:
        explain("serialiseImagePulls")
    assert (error.value.reference, error.value.hint) == ("setting-unknown", "did you mean `serializeImagePulls`?")


def test_a_kubelet_without_data_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"not 1\.99"):
        explain("maxPods", 99)


def test_every_name_in_words_json_exists() -> None:
    said = explanation.said()
    assert said
    assert [name for name in said if explain(name).name != name] == []
    assert [name for name in said if not explanation.words_of(name).what] == []


@pytest.mark.parametrize("name", sorted({*fields.every_name()} - {n for n in fields.every_name() if fields.flag(n)}))
def test_a_fields_default_is_that_of_the_table_for_each_kubelet(name: str) -> None:
    for minor in (20, 27, 31, 36):
        top = fields.field(name)
        assert top
        if not top.since <= minor <= top.last:
            continue
        ((_, text),) = explain(name, minor).defaults
        value = with_file(minor, {}).get(name)
        shown = "not set" if value is None else value if isinstance(value, str) and value else json.dumps(value)
        assert text == shown or text.startswith((f"{shown} with --config, ", f"{shown}; "))


def test_the_disruption_of_an_intent_is_that_of_its_worst_home() -> None:
    assert explain("registryMirrors").disruption is Disruption.NONE
    assert explain("maxConcurrentDownloads").disruption is Disruption.RESTART_RUNTIME
    assert explain("imagePullProgressDeadline").what is What.INTENT
