"""A kubelet's command line: pflag's grammar, kinds of flags, and flags over files."""

from __future__ import annotations

from typing import Any

import pytest

from rollout.kubelet.configuration import feature_gates
from rollout.kubelet.configuration.flag_values import comma_separated
from rollout.kubelet.configuration.flags import FlagError, parse
from rollout.kubelet.configuration.go_values import GoValueError, duration, integer
from rollout.kubelet.configuration.outcome import Layer, MessageLevel

from .starts import references, said, started

GATES = "failed to set feature gates from initial flags-based config"


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (["--max-pods=5"], {"--max-pods": 5}),
        (["--max-pods", "5"], {"--max-pods": 5}),
        (["--max_pods=0x10"], {"--max-pods": 16}),
        (["--max-pods=5", "--max-pods=6"], {"--max-pods": 6}),
        (["--fail-swap-on", "--max-pods=5"], {"--fail-swap-on": True, "--max-pods": 5}),
        (["--fail-swap-on=F"], {"--fail-swap-on": False}),
        (["-v", "2"], {"--v": 2}),
        (["-v=2"], {"--v": 2}),
        (["-v2"], {"--v": 2}),
        (["--runtime-request-timeout=90s"], {"--runtime-request-timeout": "1m30s"}),
        (["--cluster-dns=a,b", '--cluster-dns="c,d",e'], {"--cluster-dns": ["a", "b", "c,d", "e"]}),
        (["--kube-reserved=cpu=1, memory=2Gi", "--kube-reserved=pid=10"],
         {"--kube-reserved": {"cpu": "1", "memory": "2Gi", "pid": "10"}}),
        (["--eviction-hard=memory.available<1Gi"], {"--eviction-hard": {"memory.available": "1Gi"}}),
        (["--feature-gates=A=true,,B=f"], {"--feature-gates": {"A": True, "B": False}}),
        (["--node-labels=a=b,c"], {"--node-labels": {"a": "b", "c": ""}}),
        (["--manifest-url-header=a:b,a:c"], {"--manifest-url-header": {"a": ["b", "c"]}}),
        (["--register-with-taints=a=b:NoSchedule,c:NoExecute"],
         {"--register-with-taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}, {"key": "c", "effect": "NoExecute"}]}),
    ],
)  # fmt: skip
def test_flags_are_read_as_pflag_reads_them(words: list[str], values: dict[str, Any]) -> None:
    assert parse(words, 20).values == values


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--no-such-flag=1"], "unknown flag: --no-such-flag"),
        (["-config=x"], "unknown shorthand flag: 'c' in -config=x"),
        (["--max-pods"], "flag needs an argument: --max-pods"),
        (["-v"], "flag needs an argument: 'v' in -v"),
        (["--=x"], "bad flag syntax: --=x"),
        (["---max-pods=1"], "bad flag syntax: ---max-pods=1"),
        (["--max-pods=5x"], 'invalid argument "5x" for "--max-pods" flag: strconv.ParseInt: parsing "5x": invalid syntax'),
        (["--max-pods=99999999999"],
         'invalid argument "99999999999" for "--max-pods" flag: strconv.ParseInt: parsing "99999999999": value out of range'),
        (["--serialize-image-pulls=maybe"],
         'invalid argument "maybe" for "--serialize-image-pulls" flag: strconv.ParseBool: parsing "maybe": invalid syntax'),
        (["--image-pull-progress-deadline=5"],
         'invalid argument "5" for "--image-pull-progress-deadline" flag: time: missing unit in duration "5"'),
        (["--address=here"], 'invalid argument "here" for "--address" flag: "here" is not a valid IP address'),
        (["--kube-reserved=cpu"], 'invalid argument "cpu" for "--kube-reserved" flag: malformed pair, expect string=string'),
        (["--eviction-hard=a=b"], 'invalid argument "a=b" for "--eviction-hard" flag: malformed pair, expect string<string'),
        (["--feature-gates=A=maybe"],
         'invalid argument "A=maybe" for "--feature-gates" flag: invalid value of A: maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax'),
        (["--cluster-dns=a\"b"], 'invalid argument "a\\"b" for "--cluster-dns" flag: parse error on line 1, column 2: bare " in non-quoted-field'),
        (["--vmodule=x"], 'invalid argument "x" for "--vmodule" flag: syntax error: expect comma-separated list of filename=N'),
        (["-v", "two"], 'invalid argument "two" for "-v, --v" flag: strconv.ParseInt: parsing "two": invalid syntax'),
        (["--logtostderr=x"], 'invalid argument "x" for "--logtostderr" flag: parse error'),
        (["--housekeeping-interval=x"], 'invalid argument "x" for "--housekeeping-interval" flag: parse error'),
        (["--register-with-taints=a=b:Never"],
         'invalid argument "a=b:Never" for "--register-with-taints" flag: invalid taint effect: Never, unsupported taint effect'),
    ],
)  # fmt: skip
def test_one_mistake_is_fatal_with_pflags_error(words: list[str], text: str) -> None:
    with pytest.raises(FlagError) as caught:
        parse(words, 20)
    assert caught.value.text == text


@pytest.mark.parametrize(
    ("text", "number"), [("0", 0), ("-5", -5), ("010", 8), ("0x1f", 31), ("0b11", 3), ("0o17", 15), ("1_000", 1000)]
)
def test_integers_may_have_the_bases_of_go(text: str, number: int) -> None:
    assert integer(text, 32) == number


@pytest.mark.parametrize("text", ["", "1.0", "1__0", "_1", "1_", "0x", "08", "5 ", "٣"])
def test_texts_that_are_no_integers_in_go(text: str) -> None:
    with pytest.raises(GoValueError, match="invalid syntax"):
        integer(text, 32)


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("", 'invalid duration ""'),
        ("5", 'missing unit in duration "5"'),
        ("5 m", 'unknown unit " m" in duration "5 m"'),
        ("1d", 'unknown unit "d" in duration "1d"'),
        ("1h5", 'missing unit in duration "1h5"'),
        (".", 'invalid duration "."'),
        ("-", 'invalid duration "-"'),
        ("3000000h", 'invalid duration "3000000h"'),
    ],
)
def test_the_three_errors_of_go_for_durations(text: str, mistake: str) -> None:
    with pytest.raises(GoValueError) as caught:
        duration(text)
    assert str(caught.value) == f"time: {mistake}"


def test_csv_supports_quotes() -> None:
    assert comma_separated('a,"b ""c""",,d') == ["a", 'b "c"', "", "d"]
    for wrong in ('"a', '"a"b'):
        with pytest.raises(GoValueError, match='extraneous or missing " in quoted-field'):
            comma_separated(wrong)


def test_a_stray_word_is_fatal() -> None:
    assert said(started("1.20.2", "", "stray", "--max-pods=5")) == ["unknown command: stray"]
    assert said(started("1.36.3", "", "--", "--max-pods=5")) == ["unknown command --max-pods=5"]


@pytest.mark.parametrize(
    ("flag", "last", "first_without"),
    [("--image-pull-progress-deadline=5m", "1.23.1", "1.24.1"), ("--container-runtime=remote", "1.26.1", "1.27.1")],
)
def test_a_kubelet_does_not_start_with_a_removed_flag(flag: str, last: str, first_without: str) -> None:
    assert started(last, "", flag).starts
    found = started(first_without, "", flag)
    assert references(found, MessageLevel.FATAL) == ["removed-flag"]
    assert said(found) == [f"failed to parse kubelet flag: unknown flag: {flag.partition('=')[0]}"]


def test_flags_win_over_the_file_and_maps_replace_its_maps() -> None:
    found = started("1.31.1", "maxPods: 5\nkubeReserved: {cpu: '1'}\n", "--max-pods=7", "--kube-reserved=memory=1Gi")
    assert (found.effective["maxPods"], found.effective["kubeReserved"]) == (7, {"memory": "1Gi"})
    assert (found.origins["maxPods"].layer, found.origins["maxPods"].where) == (Layer.FLAG, "--max-pods=7")


def test_gates_are_merged_key_by_key() -> None:
    found = started(
        "1.20.2", "featureGates: {CPUManager: true, TopologyManager: false}\n", "--feature-gates=TopologyManager=true"
    )
    assert found.effective["featureGates"] == {"CPUManager": True, "TopologyManager": True}


def test_nested_fields_have_flags_too() -> None:
    found = started("1.20.2", "", "--anonymous-auth=true", "--authorization-mode=AlwaysAllow")
    assert found.effective["authentication"]["anonymous"] == {"enabled": True}  # type: ignore[index,call-overload]
    assert found.effective["authorization"]["mode"] == "AlwaysAllow"  # type: ignore[index,call-overload]
    assert found.origins["authorization"].where == "--authorization-mode=AlwaysAllow"


def test_flags_of_logging_set_its_fields_from_1_23_on() -> None:
    words = ("--v=5", "--vmodule=kubelet=2,pod*=3", "--log-flush-frequency=1s")
    assert started("1.22.1", "", *words).effective["logging"] == {"format": "text"}
    for version, flush in (("1.23.1", 1_000_000_000), ("1.36.3", "1s")):
        logging: Any = started(version, "", *words).effective["logging"]
        assert (logging["verbosity"], logging["flushFrequency"]) == (5, flush)
        assert logging["vmodule"] == [
            {"filePattern": "kubelet", "verbosity": 2},
            {"filePattern": "pod*", "verbosity": 3},
        ]


def test_a_bare_switch_of_klog_takes_the_next_word_where_there_is_a_file() -> None:
    """A kubelet with a file reads its command line twice; the second time ``--alsologtostderr`` is no switch."""
    words = ("--alsologtostderr", "--serialize-image-pulls=false", "--max-pods=9")
    found = started("1.20.2", "", *words)
    assert (found.effective["serializeImagePulls"], found.effective["maxPods"]) == (True, 9)
    assert said(found, MessageLevel.POLICY) == [
        (
            "`--serialize-image-pulls=false` has no effect: the switch before it takes it as its value; "
            "write `=true` behind the switch"
        )
    ]
    assert started("1.20.2", None, *words).effective["serializeImagePulls"] is False
    assert started("1.20.2", "", "--alsologtostderr=true", *words[1:]).effective["serializeImagePulls"] is False
    cadvisor = started("1.36.3", "", "--log-cadvisor-usage", "--max-pods", "9")
    assert cadvisor.effective["maxPods"] == 110
    assert started("1.36.3", None, "--log-cadvisor-usage", "--max-pods", "9").effective["maxPods"] == 9


def test_a_name_that_no_node_can_have_is_a_doubt() -> None:
    """Its kubelet starts, and only the API server refuses it."""
    for version, name in (("1.20.2", "a b"), ("1.36.3", "under_score")):
        found = started(version, "", f"--hostname-override={name}")
        assert (found.starts, references(found, MessageLevel.POLICY)) == (True, ["bad-node-name"])
    assert started("1.36.3", "", "--hostname-override= Node-1.example ").messages == ()


def test_such_a_switch_cannot_be_the_last_word() -> None:
    for version, switch in (("1.20.2", "--alsologtostderr"), ("1.36.3", "--enable_load_reader")):
        assert said(started(version, "", "--max-pods=9", switch)) == [f"flag needs an argument: {switch}"]
        assert started(version, None, "--max-pods=9", switch).starts
    assert said(started("1.20.2", "", "--help=false")) == ["pflag: help requested"]


def test_taints_are_a_field_from_1_23_on_and_duplicates_are_refused() -> None:
    twice = "--register-with-taints=a=b:NoSchedule,a=b:NoSchedule"
    assert started("1.22.1", "", twice).starts
    found = started("1.23.1", "", twice)
    assert said(found)[0].endswith("duplicated taints with the same key and effect: {a b NoSchedule <nil>}")
    effective = started("1.23.1", "", "--register-with-taints=a=b:NoSchedule,c:NoExecute-").effective
    assert effective["registerWithTaints"] == [{"key": "a", "value": "b", "effect": "NoSchedule"}]


def test_a_gate_of_a_minor_with_gates_that_are_not_certain_is_a_doubt_and_not_fatal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not started("1.37.0", "featureGates: {Nope: true}\n").starts
    monkeypatch.setattr(feature_gates, "certain", lambda _minor: False)
    found = started("1.37.0", "featureGates: {Nope: true}\n")
    assert (found.starts, references(found, MessageLevel.POLICY)) == (True, ["unknown-gate"])


def test_without_a_file_the_legacy_defaults_apply() -> None:
    for version in ("1.20.2", "1.36.3"):
        with_file, without = started(version, "").effective, started(version).effective
        assert (with_file["authentication"]["anonymous"], without["authentication"]["anonymous"]) == (  # type: ignore[index,call-overload]
            {"enabled": False},
            {"enabled": True},
        )
        assert ("readOnlyPort" in with_file, without["readOnlyPort"]) == (False, 10255)


def test_only_some_labels_of_kubernetes_are_allowed() -> None:
    allowed = "--node-labels=node.kubernetes.io/a=b,topology.kubernetes.io/zone=z,example.com/x=y,plain=1"
    assert started("1.20.2", "", allowed).starts
    found = started("1.20.2", "", "--node-labels=node-role.kubernetes.io/worker=,b.k8s.io/a=1")
    assert said(found)[0].startswith(
        "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [b.k8s.io/a node-role.kubernetes.io/worker]\n"
    )


def test_an_unknown_gate_is_fatal_in_the_file_and_in_a_flag() -> None:
    assert said(started("1.20.2", "", "--feature-gates=Nope=true")) == ["unrecognized feature gate: Nope"]
    assert said(started("1.20.2", "featureGates: {Nope: true}\n")) == ["unrecognized feature gate: Nope"]
    assert said(started("1.31.1", "featureGates: {Nope: true}\n")) == [f"{GATES}: unrecognized feature gate: Nope"]
    assert said(started("1.36.3", "featureGates: {Nope: true}\n")) == [
        "panic: failed to merge global and in-flight KubeletConfiguration while setting defaults, error: unrecognized feature gate: Nope"
    ]


def test_a_locked_gate_accepts_only_its_default() -> None:
    assert started("1.20.2", "featureGates: {NodeLease: true}\n").starts
    found = started("1.20.2", "featureGates: {NodeLease: false}\n")
    assert said(found) == ["cannot set feature gate NodeLease to false, feature is locked to true"]
    assert references(found, MessageLevel.FATAL) == ["locked-gate"]


def test_with_help_or_version_the_kubelet_does_not_start() -> None:
    for word in ("--help", "-h", "--version", "--version=raw"):
        assert references(started("1.20.2", "", word), MessageLevel.FATAL) == ["no-start"]
    assert started("1.20.2", "", "--version=false").starts


NAME = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
A_NAME = f"{NAME} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"


@pytest.mark.parametrize(
    ("text", "minor", "error"),
    [
        ("a:memory=1Gi", 34, "failed to convert the NUMA node ID, exptected integer, got a"),
        ("a:memory=1Gi", 35, "failed to convert the NUMA node ID, expected integer, got a"),
        ("0:memory", 34, "the reserved limit has incorrect value, expected type=quantatity, got memory"),
        ("0:memory", 35, "the reserved limit has incorrect value, expected type=quantity, got memory"),
        ("0:memory=1Gib", 34, "failed to parse the quantatity, expected quantatity, got 1Gib"),
        ("0:memory=1Gib", 35, "failed to parse the quantity: 1Gib"),
        ("0:cpu=1", 22, 'memory type conversion error, unknown type: "cpu"'),
        ("0:cpu=1", 36, 'memory type conversion error, unknown type: "cpu"'),
        ("0:memory=1Gi;1:memory=1Gi", 23,
         "the reserved memory has incorrect format, expected numaNodeID:type=quantity[,type=quantity...], got 0:memory=1Gi;1:memory=1Gi"),
    ],
)  # fmt: skip
def test_the_errors_of_reserved_memory(text: str, minor: int, error: str) -> None:
    with pytest.raises(FlagError) as caught:
        parse([f"--reserved-memory={text}"], minor)
    assert caught.value.text == f'invalid argument "{text}" for "--reserved-memory" flag: {error}'


def test_memory_of_two_nodes_is_reserved_in_one_flag_from_1_24_on() -> None:
    flags = parse(["--reserved-memory=0:memory=1Gi;1:memory=2Gi"], 24)
    assert [entry["numaNode"] for entry in flags.values["--reserved-memory"]] == [0, 1]


@pytest.mark.parametrize(
    ("version", "flag", "error"),
    [
        ("1.30.1", "--node-labels=a=b c", "'b c' - a valid label must be an empty string or consist of alphanumeric"),
        ("1.30.1", "--node-labels==b", f"'' - name part must be non-empty, name part {A_NAME}"),
        ("1.30.1", "--node-labels=/a=b", "'/a' - prefix part must be non-empty"),
        ("1.30.1", "--node-labels=A/a=b", "'A/a' - prefix part a lowercase RFC 1123 subdomain must consist of"),
        ("1.34.1", "--node-labels=a/b/c=d", f"'a/b/c' - a qualified name {A_NAME} with an optional DNS"),
        ("1.35.1", "--node-labels=a/b/c=d", f"'a/b/c' - a valid label key {A_NAME} with an optional DNS"),
        ("1.30.1", f"--node-labels={'a' * 64}=b", f"'{'a' * 64}' - name part must be no more than 63 characters"),
        ("1.35.1", f"--node-labels={'a' * 64}=b", f"'{'a' * 64}' - name part must be no more than 63 bytes"),
        ("1.34.1", f"--node-labels=a={'b' * 64}", f"'{'b' * 64}' - must be no more than 63 characters"),
        ("1.35.1", f"--node-labels=a={'b' * 64}", f"'{'b' * 64}' - must be no more than 63 bytes"),
        ("1.20.1", "--register-with-taints=a b:NoSchedule", f"invalid taint spec: a b:NoSchedule, name part {A_NAME}"),
        ("1.36.1", "--register-with-taints=a=b", f"invalid taint spec: a=b, name part {A_NAME}"),
        ("1.36.1", "--register-with-taints=a=b=c:NoExecute", "invalid taint spec: a=b=c:NoExecute"),
    ],
)
def test_the_error_names_what_is_wrong_in_a_label_or_a_taint(version: str, flag: str, error: str) -> None:
    assert error in said(started(version, "", flag))[0]
