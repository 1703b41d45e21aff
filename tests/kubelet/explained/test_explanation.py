"""What `rollout explain` says is what the tables say, for every name that they hold."""

from __future__ import annotations

import pytest

from rollout.core.model.disruption import Disruption
from rollout.errors import UsageError
from rollout.kubelet import fields, homes
from rollout.kubelet.explained import words
from rollout.kubelet.explained.explanation import What, every_name, explain
from rollout.kubelet.explained.explanation_text import explanation_document, explanation_lines
from rollout.kubelet.runtime_versions import Runtime

MINORS = fields.known_minors()


@pytest.mark.parametrize("name", every_name())
def test_every_name_can_be_explained(name: str) -> None:
    found = explain(name)
    assert list(explanation_lines(found))
    assert explanation_document(found)["name"] == found.name


@pytest.mark.parametrize("minor", MINORS)
def test_a_kubelet_knows_just_the_names_that_the_table_gives_it(minor: int) -> None:
    known = fields.known_fields(minor) | fields.known_flags(minor)
    said = {name for name in fields.every_name() if explain(name, minor).here == f"a kubelet 1.{minor} knows it"}
    assert said == known


def test_a_flag_says_that_it_stops_the_kubelet_and_a_field_that_it_is_ignored() -> None:
    assert explain("--image-pull-progress-deadline", 24).here == "a kubelet 1.24 knows it no more: it would not start"
    assert (
        explain("maxParallelImagePulls", 26).here == "a kubelet 1.26 does not know it yet: it ignores it with a warning"
    )


def test_a_flag_and_its_field_name_each_other_and_who_wins() -> None:
    field, flag = explain("registryPullQPS"), explain("--registry-qps")
    assert field.twins == (flag.name,)
    assert flag.twins == (field.name,)
    assert (field.wins, flag.wins) == ("the flag beats the field", "this flag beats the field")
    assert flag.purpose == field.purpose


def test_the_default_is_that_of_the_kubelet_asked_about() -> None:
    assert [explain("eventRecordQPS", minor).defaults for minor in (26, 27)] == [((20, "5"),), ((27, "50"),)]
    assert len(explain("eventRecordQPS").defaults) == 2


def test_an_intent_lives_where_the_runtime_has_it() -> None:
    found = explain("imagePullProgressDeadline", runtime="crio")
    assert [(home.runtime, home.unit) for home in found.homes] == [("CRI-O", "crio.service")]
    assert {home.runtime for home in explain("imagePullProgressDeadline").homes} == {
        runtime.value for runtime in Runtime if runtime is not Runtime.UNKNOWN
    }


def test_an_intent_is_found_by_the_name_its_home_gives_it() -> None:
    assert explain("image_pull_progress_timeout").name == "imagePullProgressDeadline"


def test_what_may_reject_pods_and_what_rollout_does_not_set_say_so() -> None:
    assert explain("maxPods").may_drain
    assert explain("--max-pods").may_drain
    assert explain("cpuManagerPolicy").not_ours == homes.NOT_OURS["cpuManagerPolicy"]
    assert not explain("serializeImagePulls").may_drain


def test_a_misspelt_name_is_an_error_with_a_hint() -> None:
    with pytest.raises(UsageError) as error:
        explain("serialiseImagePulls")
    assert (error.value.reference, error.value.hint) == ("setting-unknown", "did you mean `serializeImagePulls`?")


def test_a_kubelet_that_the_table_does_not_speak_about_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"not 1\.99"):
        explain("maxPods", 99)


def test_what_is_said_besides_is_said_of_names_that_exist() -> None:
    said = words.said()
    assert said
    assert [name for name in said if explain(name).name != name] == []
    assert [name for name in said if not words.words_of(name).what] == []


@pytest.mark.parametrize("name", words.said())
def test_defaults_are_in_order_and_begin_where_the_setting_does(name: str) -> None:
    found = explain(name)
    minors = [since for since, _ in found.defaults]
    assert minors == sorted(set(minors))
    assert minors[:1] in ([], [max(found.since or MINORS[0], MINORS[0])])


def test_the_disruption_of_an_intent_is_that_of_its_worst_home() -> None:
    assert explain("registryMirrors").disruption is Disruption.NONE
    assert explain("maxConcurrentDownloads").disruption is Disruption.RELOAD
    assert explain("imagePullProgressDeadline").what is What.INTENT
