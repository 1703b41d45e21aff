"""YAML, JSON and types as a kubelet reads them."""

from __future__ import annotations

from typing import Any

import pytest

from rollout.kubelet.configuration.outcome import MessageLevel
from rollout.kubelet.configuration.yaml_document import DocumentError, read
from rollout.kubelet.configuration.yaml_words import resolve

from .starts import CONFIG, HEAD, references, said, started, worse


@pytest.mark.parametrize(
    ("word", "value"),
    [
        *((word, True) for word in ("y", "Y", "yes", "Yes", "on", "ON", "true", "True")),
        *((word, False) for word in ("n", "no", "NO", "off", "Off", "false", "FALSE")),
        *((word, None) for word in ("", "~", "null", "Null", "NULL")),
        ("10", 10),
        ("+5", 5),
        ("010", 8),
        ("0o10", 8),
        ("0x1F", 31),
        ("0b11", 3),
        ("-0b11", -3),
        ("1_000", 1000),
        ("08", 8.0),
        ("1e2", 100.0),
        (".5", 0.5),
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", float(2**64)),
        ("1e400", "1e400"),
        ("1:30", "1:30"),
        ("2026-11-20", "2026-11-20"),
        ("yEs", "yEs"),
        ("-", "-"),
        ("١", "١"),
    ],
)
def test_a_plain_word_has_the_value_that_go_reads(word: str, value: Any) -> None:
    found = resolve("", word)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1\n---\na: 2\n", {"a": 1}),
        ("a: 1\n...\n: : :", {"a": 1}),
        ("a: 5.0", {"a": 5}),
        ("a: 5.5", {"a": 5.5}),
        ("yes: 1\n1: 2\n1.5: 3", {"true": 1, "1": 2, "1.5": 3}),
        ("a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}),
        ("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}", {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}}),
        ("a: !!str 5", {"a": "5"}),
        ("a: !thing 5", {"a": "5"}),
        ("a: !!float 5", {"a": 5}),
        ("# nothing", None),
    ],
)
def test_the_first_document_becomes_json(text: str, value: Any) -> None:
    assert read(text.encode()).value == value


def test_the_last_of_two_equal_keys_counts_and_the_others_are_reported() -> None:
    found = read(b"a: 1\nb: {c: 1, c: 2}\na: 3\n")
    assert found.value == {"a": 3, "b": {"c": 2}}
    assert [(twice.path, twice.line) for twice in found.duplicates] == [(("b", "c"), 2), (("a",), 3)]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a: b: c", "yaml: mapping values are not allowed in this context"),
        ("x: 1\na: b: c", "yaml: line 2: mapping values are not allowed in this context"),
        ("a: .inf", "json: unsupported value: +Inf"),
        ("a: *b", "yaml: unknown anchor 'b' referenced"),
        ("a: &a [*a]", "yaml: anchor 'a' value contains itself"),
        ("? [a]\n: 1", "yaml: invalid map key"),
        ("~: 1", "Unsupported map key of type: %!s(<nil>), key: <nil>"),
        ("a: !!int b", "yaml: cannot decode !!str `b` as a !!int"),
        ("%YAML 1.2\n---\na: 1", "yaml: found incompatible YAML document"),
        ("<<: 1", "yaml: map merge requires map or sequence of maps as the value"),
    ],
)
def test_unreadable_documents_have_the_errors_of_go(text: str, error: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read(text.encode())
    assert caught.value.text == error


def test_excessive_aliases_are_refused() -> None:
    layers = "".join(f"l{at}: &l{at} [{', '.join([f'*l{at - 1}'] * 9)}]\n" for at in range(1, 12))
    with pytest.raises(DocumentError, match="excessive aliasing"):
        read(b"l0: &l0 [a]\n" + layers.encode())


@pytest.mark.parametrize(
    "text", ["a: " + "[" * 100_000, "a: " + "{a: " * 300 + "}" * 300, "{" * 100_000, f"a: 1{'0' * 5000}"]
)
def test_kubelets_do_not_start_with_oversized_documents(text: str) -> None:
    assert not started("1.31.1", text, bare=True).starts


def test_a_number_of_5000_digits_is_too_large_for_any_field() -> None:
    meta = '"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1"'
    assert not started("1.31.1", f'{{{meta}, "maxPods": 1{"0" * 5000}}}', bare=True).starts


@pytest.mark.parametrize(
    ("written", "field", "value"),
    [
        ("failSwapOn: no", "failSwapOn", False),
        ("maxPods: 1e2", "maxPods", 100),
        ("maxPods: 0x10", "maxPods", 16),
        ("maxPods: null", "maxPods", 110),
        ("registryPullQPS: 0", "registryPullQPS", 0),
        ("registryBurst: 0", "registryBurst", 10),
        ("enforceNodeAllocatable: null", "enforceNodeAllocatable", ["pods"]),
        ("runtimeRequestTimeout: 90s", "runtimeRequestTimeout", "1m30s"),
        ('runtimeRequestTimeout: "0"', "runtimeRequestTimeout", "2m0s"),
        ("featureGates: {CPUManager: null}", "featureGates", {"CPUManager": False}),
        ("nodeStatusUpdateFrequency: 7s", "nodeStatusReportFrequency", "7s"),
        ("podPidsLimit: -7", "podPidsLimit", -1),
    ],
)
def test_values_are_read_as_the_kubelet_reads_them(written: str, field: str, value: Any) -> None:
    found = started("1.20.2", written)
    assert (found.starts, worse(found), found.effective[field]) == (True, [], value)


@pytest.mark.parametrize(
    ("written", "old", "new"),
    [
        ('maxPods: "5"', "readUint32: unexpected character", "cannot unmarshal string into Go struct field KubeletConfiguration.maxPods of type int32"),
        ("maxPods: 5.5", "can not decode float as int", "cannot unmarshal number 5.5 into Go struct field KubeletConfiguration.maxPods of type int32"),
        ("maxPods: 2147483648", "overflow", "cannot unmarshal number 2147483648 into Go struct field"),
        ('failSwapOn: "true"', "ReadBool", "cannot unmarshal string into Go struct field KubeletConfiguration.failSwapOn of type bool"),
        ("clusterDomain: 5", "ReadString", "cannot unmarshal number into Go struct field KubeletConfiguration.clusterDomain of type string"),
        ("clusterDNS: 10.0.0.1", "decode slice", "cannot unmarshal string into Go struct field KubeletConfiguration.clusterDNS of type []string"),
        ("evictionHard: []", "ReadMapCB", "cannot unmarshal array into Go struct field KubeletConfiguration.evictionHard of type map[string]string"),
        ("runtimeRequestTimeout: 120", "json: cannot unmarshal number into Go value of type string", "KubeletConfiguration.runtimeRequestTimeout of type string"),
        ("runtimeRequestTimeout: 1d", 'time: unknown unit "d" in duration "1d"', 'time: unknown unit "d" in duration "1d"'),
        ('runtimeRequestTimeout: "2 m"', 'time: unknown unit " m" in duration "2 m"', 'time: unknown unit " m" in duration "2 m"'),
        ('runtimeRequestTimeout: "5"', 'time: missing unit in duration "5"', 'time: missing unit in duration "5"'),
        ("runtimeRequestTimeout: null", 'time: invalid duration ""', 'time: invalid duration ""'),
        ("authentication: {webhook: {enabled: 1}}", "authentication.webhook.enabled", "KubeletWebhookAuthentication.authentication.webhook.enabled of type bool"),
    ],
)  # fmt: skip
def test_a_wrong_type_is_fatal_with_the_error_of_the_decoder(written: str, old: str, new: str) -> None:
    for version, text in (("1.20.2", old), ("1.36.3", new)):
        found = started(version, written)
        assert (found.starts, found.effective) == (False, {})
        assert text in said(found)[0]


@pytest.mark.parametrize(
    ("written", "version", "text"),
    [
        ("logging: {verbosity: -1}", "1.24.1", "LoggingConfiguration.logging.verbosity of type uint32"),
        ("logging: {verbosity: -1}", "1.25.1", "LoggingConfiguration.logging.verbosity of type v1.VerbosityLevel"),
        ("logging: {flushFrequency: true}", "1.28.1",
         'invalid duration "true": json: cannot unmarshal bool into Go value of type time.Duration'),
        ("logging: {flushFrequency: 1.5}", "1.36.1",
         'invalid duration "1.5": json: cannot unmarshal number 1.5 into Go value of type time.Duration'),
    ],
)  # fmt: skip
def test_types_of_the_logging_have_errors_of_their_own(written: str, version: str, text: str) -> None:
    assert said(started(version, written))[0].endswith(text)


@pytest.mark.parametrize(
    ("written", "minor", "type_name"),
    [
        ("authorization: {mode: 1}", 24, "v1beta1.KubeletAuthorizationMode"),
        ("configMapAndSecretChangeDetectionStrategy: 1", 36, "v1beta1.ResourceChangeDetectionStrategy"),
        ("imagePullCredentialsVerificationPolicy: 1", 34, "v1beta1.ImagePullCredentialsVerificationPolicy"),
        ("memoryReservationPolicy: 1", 36, "v1beta1.MemoryReservationPolicy"),
        ("registerWithTaints: 1", 36, "[]v1.Taint"),
        ("registerWithTaints: [1]", 36, "v1.Taint"),
        ("registerWithTaints: [{effect: 1}]", 36, "v1.TaintEffect"),
        ("registerWithTaints: [{key: 1}]", 36, "string"),
        ("reservedMemory: [{limits: 1}]", 36, "v1.ResourceList"),
        ("logging: 1", 24, "v1alpha1.LoggingConfiguration"),
        ("logging: 1", 25, "v1.LoggingConfiguration"),
        ("logging: {vmodule: 1}", 36, "v1.VModuleConfiguration"),
        ("logging: {vmodule: [1]}", 36, "v1.VModuleItem"),
        ("logging: {options: {json: 1}}", 36, "v1.JSONOptions"),
        ("tracing: 1", 36, "v1.TracingConfiguration"),
        ("userNamespaces: 1", 36, "v1beta1.UserNamespaces"),
    ],
)
def test_the_error_names_the_type_of_go(written: str, minor: int, type_name: str) -> None:
    assert said(started(f"1.{minor}.1", written))[0].endswith(f" of type {type_name}")


def test_a_misspelt_field_is_ignored_with_the_kubelets_warning_and_our_error() -> None:
    found = started("1.36.3", "maxPods: 50\nserialiseImagePulls: false\nauthentication: {anonymos: {enabled: true}}\n")
    assert found.starts
    assert found.ignored == ("authentication.anonymos", "serialiseImagePulls")
    assert said(found, MessageLevel.WARNING) == [
        f'Using lenient decoding as strict decoding failed: strict decoding error: unknown field "{name}"'
        for name in found.ignored
    ]
    mistakes = [message for message in found.messages if message.level is MessageLevel.POLICY]
    assert [str(message.place) for message in mistakes] == [f"{CONFIG}:5:18", f"{CONFIG}:4:1"]
    assert "did you mean `anonymous`?" in mistakes[0].text
    assert "did you mean `serializeImagePulls`?" in mistakes[1].text


def test_case_matters() -> None:
    found = started("1.20.2", "MaxPods: 50\n")
    assert (found.starts, found.ignored, found.effective["maxPods"]) == (True, ("MaxPods",), 110)


def test_a_field_of_another_minor_is_reported_with_that_minor() -> None:
    assert "it was added in 1.27" in said(started("1.26.1", "maxParallelImagePulls: 2\n"), MessageLevel.POLICY)[0]


def test_a_key_written_twice() -> None:
    found = started("1.36.3", "maxPods: 50\nmaxPods: 60\n")
    assert (found.starts, found.ignored, found.effective["maxPods"]) == (True, (), 60)
    assert references(found, MessageLevel.WARNING) == references(found, MessageLevel.POLICY) == ["duplicate-key"]
    assert 'line 4: key "maxPods" already set in map' in said(found, MessageLevel.WARNING)[0]
    assert "first in line 3" in said(found, MessageLevel.POLICY)[0]


@pytest.mark.parametrize(
    ("content", "reference", "text"),
    [
        ("", "empty-file", f'kubelet config file "{CONFIG}" was empty'),
        ("# nothing\n", "no-kind", "Object 'Kind' is missing in"),
        ("kind: KubeletConfiguration\n", "no-api-version", "Object 'apiVersion' is missing in"),
        ("kind: KubeletConfig\napiVersion: kubelet.config.k8s.io/v1beta1\n", "unknown-kind",
         'no kind "KubeletConfig" is registered for version "kubelet.config.k8s.io/v1beta1"'),
        ("kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1\n", "unknown-kind",
         'no kind "KubeletConfiguration" is registered for version "kubelet.config.k8s.io/v1"'),
        ("word", "bad-document", "cannot unmarshal string into Go value of type struct"),
        ("kind: 5\napiVersion: v1\n", "bad-value", "cannot unmarshal number into Go struct field .kind of type string"),
        ("a: b: c\n", "yaml-syntax", "mapping values are not allowed in this context"),
        ("{kind: KubeletConfiguration}", "bad-document", "couldn't get version/kind; json parse error"),
    ],
)  # fmt: skip
def test_documents_that_are_no_configuration(content: str, reference: str, text: str) -> None:
    found = started("1.20.2", content, bare=True)
    assert references(found, MessageLevel.FATAL) == [reference]
    assert text in said(found)[0]
    assert said(found)[0].startswith(f"failed to load Kubelet config file {CONFIG}, error ")


def test_kind_is_found_in_any_letter_case_and_then_ignored() -> None:
    found = started("1.20.2", "Kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n", bare=True)
    assert (found.starts, found.ignored) == (True, ("Kind",))


def test_json_is_read_as_json() -> None:
    meta = '"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1"'
    assert started("1.20.2", f'{{{meta}, "maxPods": 7}}', bare=True).effective["maxPods"] == 7
    assert not started("1.20.2", f'{{{meta}, "maxPods": 7.0}}', bare=True).starts


def test_relative_paths_are_relative_to_the_file() -> None:
    found = started("1.20.2", "staticPodPath: manifests\nauthentication: {x509: {clientCAFile: ../pki/ca.crt}}\n")
    assert found.effective["staticPodPath"] == "/var/lib/kubelet/manifests"
    assert found.effective["authentication"]["x509"] == {"clientCAFile": "/var/lib/pki/ca.crt"}  # type: ignore[index,call-overload]


def test_the_second_document_is_not_read() -> None:
    assert started("1.20.2", "maxPods: 5\n---\nmaxPods: : :\n").effective["maxPods"] == 5
    assert not started("1.20.2", f"---\n---\n{HEAD}", bare=True).starts


def test_half_of_a_surrogate_pair_in_json_is_the_replacement_character() -> None:
    written = (
        '{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "clusterDomain": "a\\ud800",'
        ' "clusterDNS": ["\\udc00"], "kubeReserved": {"cpu": "1"}, "providerID": "\\ud83d\\ude00", "\\ud800": 1}'
    )
    found = started("1.30.1", written, bare=True)
    effective = found.effective
    assert (effective["clusterDomain"], effective["clusterDNS"]) == ("a\ufffd", ["\ufffd"])
    assert (effective["providerID"], found.ignored) == ("\U0001f600", ("\ufffd",))
