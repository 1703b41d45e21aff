"""The types of KubeletConfiguration: what is decoded and what is shown, by minor."""

from __future__ import annotations

import pytest

from rollout.kubelet import fields
from rollout.kubelet.configuration import schema
from rollout.kubelet.configuration.schema import ROOT, FieldType, Form, WhenShown


def field(path: str, minor: int) -> FieldType | None:
    """The type at ``a.b`` of a kubelet 1.``minor``; for a list, the type of its entries."""
    *objects, last = path.split(".")
    name = ROOT
    for step in objects:
        kind = schema.fields_of(name, minor).get(step)
        if kind is None:
            return None
        name = (kind.element or kind).type_name
    return schema.fields_of(name, minor).get(last)


@pytest.mark.parametrize(
    ("path", "minor", "form"),
    [
        ("maxPods", 20, Form.INT32),
        ("maxOpenFiles", 20, Form.INT64),
        ("runtimeRequestTimeout", 20, Form.DURATION),
        ("memoryThrottlingFactor", 22, Form.FLOAT64),
        ("authentication", 20, Form.OBJECT),
        ("authentication.webhook.cacheTTL", 20, Form.DURATION),
        ("evictionHard", 20, Form.MAP),
        ("clusterDNS", 20, Form.LIST),
        ("logging.verbosity", 23, Form.UINT32),
        ("logging.flushFrequency", 27, Form.NANOSECONDS),
        ("logging.flushFrequency", 28, Form.DURATION_OR_NANOSECONDS),
        ("logging.options.json.infoBufferSize", 23, Form.QUANTITY),
        ("logging.vmodule.filePattern", 23, Form.STRING),
        ("registerWithTaints.timeAdded", 23, Form.TIME),
        ("shutdownGracePeriodByPodPriority.priority", 23, Form.INT32),
        ("userNamespaces.idsPerPod", 33, Form.INT64),
    ],
)  # fmt: skip
def test_forms(path: str, minor: int, form: Form) -> None:
    found = field(path, minor)
    assert found is not None
    assert found.form is form


@pytest.mark.parametrize(
    ("path", "since"),
    [
        ("reservedMemory.numaNode", 21),
        ("memorySwap.swapBehavior", 22),
        ("logging.verbosity", 23),
        ("tracing.endpoint", 25),
        ("logging.options.text.splitStream", 30),
        ("crashLoopBackOff.maxContainerRestartPeriod", 32),
        ("userNamespaces.idsPerPod", 33),
    ],
)
def test_nested_fields_begin_with_their_minor(path: str, since: int) -> None:
    assert field(path, since - 1) is None
    assert field(path, since) is not None


def test_a_nested_field_that_was_removed() -> None:
    assert field("logging.sanitization", 23) is not None
    assert field("logging.sanitization", 24) is None


def test_lists_and_maps_have_the_type_of_their_values() -> None:
    header = field("staticPodURLHeader", 20)
    assert header == FieldType(
        Form.MAP, element=FieldType(Form.LIST, element=FieldType(Form.STRING)), shown=WhenShown.NONEMPTY
    )
    limits = field("reservedMemory.limits", 21)
    assert limits is not None
    assert limits.element == FieldType(Form.QUANTITY)
    gates = field("featureGates", 20)
    assert gates is not None
    assert gates.element == FieldType(Form.BOOL)


def test_a_pointer_distinguishes_a_written_zero_from_an_unset_field() -> None:
    qps, burst = field("registryPullQPS", 20), field("registryBurst", 20)
    assert qps is not None
    assert burst is not None
    assert (qps.pointer, qps.shown) == (True, WhenShown.ALWAYS)
    assert (burst.pointer, burst.shown) == (False, WhenShown.NONEMPTY)


@pytest.mark.parametrize(
    ("path", "minor", "shown"),
    [
        ("shutdownGracePeriod", 20, WhenShown.ALWAYS),  # a duration is never left out
        ("memorySwap", 22, WhenShown.ALWAYS),  # nor an object that is no pointer
        ("resolvConf", 22, WhenShown.NONEMPTY),
        ("resolvConf", 23, WhenShown.ALWAYS),  # a pointer in the file's type, a plain text inside
        ("maxParallelImagePulls", 27, WhenShown.SET),
        ("containerRuntimeEndpoint", 27, WhenShown.ALWAYS),
        ("kind", 35, WhenShown.NEVER),
        ("kind", 36, WhenShown.ALWAYS),
    ],
)
def test_when_a_field_is_shown(path: str, minor: int, shown: WhenShown) -> None:
    found = field(path, minor)
    assert found is not None
    assert found.shown is shown


@pytest.mark.parametrize("minor", fields.known_minors())
def test_the_two_tables_have_the_same_fields(minor: int) -> None:
    assert schema.fields_of(ROOT, minor).keys() - {"kind", "apiVersion"} == fields.known_fields(minor)


@pytest.mark.parametrize("minor", fields.known_minors())
def test_every_object_has_its_fields(minor: int) -> None:
    waiting, seen = [ROOT], {ROOT}
    while waiting:
        for kind in schema.fields_of(waiting.pop(), minor).values():
            inner = kind
            while inner.element is not None:
                inner = inner.element
            if inner.form is Form.OBJECT and inner.type_name not in seen:
                assert schema.fields_of(inner.type_name, minor)
                seen.add(inner.type_name)
                waiting.append(inner.type_name)


def test_an_unknown_minor_or_type() -> None:
    assert schema.fields_of(ROOT, 19) == {}
    with pytest.raises(KeyError):
        schema.fields_of("KubeletConfig", 20)
