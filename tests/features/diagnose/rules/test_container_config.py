"""Containers that the kubelet cannot configure: each form of the error, in each place where it is printed."""

from __future__ import annotations

import json
import time

import pytest

from rollout.features.diagnose.rules.container_errors import of_sync
from rollout.features.diagnose.rules.finding import Confidence, Finding
from tests.features.diagnose.rules.logs import diagnosis, event, event_list, found, klog, lines

ID = "container-config-error"
FORMS = {
    'secret "db" not found': "there is no secret db in namespace shop",
    'configmaps "web-config" not found': "there is no configmap web-config in namespace shop",
    "couldn't find key url in Secret shop/db": "Secret db in namespace shop has no key url",
    "couldn't find key tls.crt in ConfigMap shop/web": "ConfigMap web in namespace shop has no key tls.crt",
    "container has runAsNonRoot and image will run as root": "the image runs as root",
    'container has runAsNonRoot and image will run as root (pod: "web-1_shop(9f3c)", container: web)': "the image runs as root",
    "container has runAsNonRoot and image has non-numeric user (node), cannot verify user is non-root": "its user node without a number",
    "container's runAsUser breaks non-root policy": "runAsUser is 0",
    "failed to sync configmap cache: timed out waiting for the condition": "no copy of a configmap",
    'object "shop"/"db" not registered': "does not keep db of namespace shop",
    "services have not yet been read at least once, cannot construct envvars": "has not read the Services",
    'failed to prepare subPath for volumeMount "conf" of container "web"': "the subPath of volume conf",
    'cannot find volume "conf" to mount into container "web"': "volume conf is not mounted",
    'secrets "db" is forbidden: User "system:node:n-1" cannot get resource "secrets" in API group "" in the namespace "shop": no relationship found between node \'n-1\' and this object': "does not let system:node:n-1 read secret db",
}  # fmt: skip
OTHERS = (
    'Get "https://10.0.0.1:6443/api/v1/namespaces/shop/secrets/db": dial tcp 10.0.0.1:6443: connect: connection refused'
)


def sync(error: str, pod: str = "web-1", container: str = "web", reason: str = "CreateContainerConfigError") -> str:
    told = f'failed to "StartContainer" for "{container}" with {reason}: {json.dumps(error)}'
    return f'"Error syncing pod, skipping" err={json.dumps(told)} pod="shop/{pod}" podUID="9f3c"'


def old_sync(error: str) -> str:
    told = f'failed to "StartContainer" for "web" with CreateContainerConfigError: {json.dumps(error)}'
    return f'Error syncing pod 9f3c ("web-1_shop(9f3c)"), skipping: {told}'


def of_event(error: str) -> str:
    text = json.dumps(f"Error: {error}")
    return f'"Event occurred" object="shop/web-1" fieldPath="spec.containers{{web}}" kind="Pod" apiVersion="v1" type="Warning" reason="Failed" message={text}'


def waiting(error: str) -> str:
    state = {"waiting": {"reason": "CreateContainerConfigError", "message": error}}
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-1", "namespace": "shop"}, "spec": {"nodeName": "n-1"},
        "status": {"containerStatuses": [{"name": "web", "state": state}]},
    }  # fmt: skip
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod]})


def only(*files: str) -> Finding:
    (finding,) = found(*files).values()
    assert finding.id == ID
    return finding


@pytest.mark.parametrize("error", FORMS)
@pytest.mark.parametrize("made", [sync, old_sync, of_event])
def test_a_whole_form_that_is_reported_for_minutes_is_certain(error: str, made: object) -> None:
    assert callable(made)
    finding = only(lines(*(klog(at, made(error), "E") for at in (0, 15, 150))))
    assert finding.confidence is Confidence.CERTAIN
    assert FORMS[error] in finding.cause
    assert "Of pod shop/web-1" in finding.cause
    assert "Reported 3 times over 2 min 30 s." in finding.cause


@pytest.mark.parametrize("error", FORMS)
def test_events_and_a_status_show_it_too(error: str) -> None:
    often = event(150, "Failed", f"Error: {error}", first=0, count=12)
    assert FORMS[error] in only(event_list([often])).cause
    status = only(waiting(error))
    assert FORMS[error] in status.cause
    assert status.confidence is Confidence.LIKELY, "the next try may succeed"


def test_an_error_of_no_known_form_is_likely_and_quoted() -> None:
    finding = only(lines(*(klog(at, sync(OTHERS), "E") for at in (0, 150))))
    assert (finding.confidence, "connection refused" in finding.cause) == (Confidence.LIKELY, True)
    assert not found(lines(*(klog(at, of_event(OTHERS), "E") for at in (0, 150)))), "an event has the error alone"


def test_known_words_inside_another_error_are_no_form() -> None:
    error = 'admission said: secret "db" not found'
    assert only(lines(*(klog(at, sync(error), "E") for at in (0, 150)))).confidence is Confidence.LIKELY


def test_a_secret_that_comes_later_is_no_finding() -> None:
    """The kubelet tries again every few seconds: an object that is made behind its pod is found then."""
    created = '"Event occurred" object="shop/web-1" fieldPath="spec.containers{web}" kind="Pod" apiVersion="v1" type="Normal" reason="Created" message="Created container web"'
    early = [klog(at, sync('secret "db" not found'), "E") for at in (0, 12)]
    assert not found(lines(*early))
    again = [klog(at, sync('secret "db" not found'), "E") for at in (3000, 3012)]
    assert not found(lines(*early, klog(30, created), *again)), "two times, and both were over at once"


def test_what_is_over_is_told_as_past() -> None:
    created = '"Event occurred" object="shop/web-1" fieldPath="spec.containers{web}" kind="Pod" apiVersion="v1" type="Normal" reason="Created" message="Created container web"'
    text = [klog(at, sync('secret "db" not found'), "E") for at in (0, 150)]
    assert only(lines(*text, klog(160, created))).cause.startswith("over since 09:02:40")


def test_pods_with_one_error_are_one_finding() -> None:
    text = [klog(at, sync('secret "db" not found', f"web-{pod}"), "E") for at in (0, 150) for pod in range(5)]
    assert "Of pod shop/web-0, shop/web-1, shop/web-2 and 2 more pods." in only(lines(*text)).cause


def test_containers_of_one_pod_are_told_apart() -> None:
    errors = (("a", 'secret "db" not found'), ("b", "couldn't find key x in ConfigMap shop/web"))
    told = ", ".join(
        f'failed to "StartContainer" for "{name}" with CreateContainerConfigError: {json.dumps(error)}'
        for name, error in errors
    )
    text = f'"Error syncing pod, skipping" err={json.dumps(f"[{told}]")} pod="shop/web-1" podUID="9f3c"'
    causes = [each.cause for each in diagnosis(lines(*(klog(at, text, "E") for at in (0, 150)))).findings]
    assert len(causes) == 2
    assert any("container a cannot be created: there is no secret db" in cause for cause in causes)
    assert any("container b cannot be created: ConfigMap web" in cause for cause in causes)


def test_a_back_off_from_1_32_on_has_the_error_of_its_pull() -> None:
    error = 'Back-off pulling image "r.example/web:1": ErrImagePull: rpc error: code = NotFound desc = failed to pull and unpack image "r.example/web:1": failed to resolve reference "r.example/web:1": r.example/web:1: not found'
    text = lines(*(klog(at, sync(error, reason="ImagePullBackOff"), "E") for at in (0, 150)))
    (finding,) = found(text).values()
    assert (finding.id, finding.confidence) == ("image-pull-backoff", Confidence.CERTAIN)
    assert "no such image or tag" in finding.cause


def table(*rows: str) -> str:
    return "\n".join(["LAST SEEN   TYPE   REASON   OBJECT   MESSAGE", *rows]) + "\n"


FAILS = '{seen} (x{count} over {first})   Warning   Failed   pod/web-1   Error: secret "db" not found'


@pytest.mark.parametrize("count", [12, 30])
def test_of_a_container_that_a_table_does_not_name_a_later_one_of_the_pod_may_be_the_end(count: int) -> None:
    """Tables of events have no container for an error: another one of the pod may be the one that was created."""
    failed = FAILS.format(seen="2m", count=count, first="20m")
    assert only(table(failed)).confidence is Confidence.CERTAIN
    over = only(table(failed, "1m   Normal   Created   pod/web-1   Created container app"))
    assert over.cause.startswith("over since")
    assert over.confidence is Confidence.LIKELY
    assert "whether it is container app, which was created in pod" in over.fetch_next
    other = only(table(failed, "1m   Normal   Created   pod/web-2   Created container app"))
    assert (other.confidence, other.cause.startswith("over")) == (Confidence.CERTAIN, False)


def test_a_container_that_was_created_between_two_errors_of_a_table_may_be_the_one_that_failed() -> None:
    failed = FAILS.format(seen="10s", count=3, first="20m")
    before = "21m   Normal   Created   pod/web-1   Created container app"
    between = "9m   Normal   Created   pod/web-1   Created container app"
    assert only(table(failed, before)).confidence is Confidence.CERTAIN
    unsure = only(table(failed, between))
    assert (unsure.confidence, unsure.cause.startswith("over")) == (Confidence.LIKELY, False)


def test_the_time_for_an_error_does_not_grow_with_the_square_of_its_brackets() -> None:
    """The end of an error is searched in what is kept of it."""

    def cost(brackets: int) -> float:
        text = f'failed to "StartContainer" for "web" with CreateContainerConfigError: {"]" * brackets}x'
        begun = time.process_time()
        assert len([*of_sync(text, "shop/web-1")]) == 1
        return time.process_time() - begun

    assert cost(20_000) < 5, "hours with the square"
