"""The kind of each kubelet flag, and the minors in which it exists."""

from __future__ import annotations

import pytest

from rollout.kubelet import fields

KINDS = {
    "bool", "duration", "float64", "int32", "int64", "string", "stringslice", "uint64",  # pflag's own
    "gates", "headers", "ip", "labels", "level", "modules", "pair", "pairs", "quantity", "reserved-memory", "severity", "taints",
    "thresholds", "trace-location", "version",
}  # fmt: skip

ALL = [flag for name in fields.every_name() if (flag := fields.flag(name)) is not None]


@pytest.mark.parametrize("flag", ALL, ids=lambda flag: flag.name)
def test_every_flag_has_a_kind(flag: fields.Flag) -> None:
    assert flag.kind in KINDS


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("--address", "ip"),
        ("--cluster-dns", "stringslice"),
        ("--eviction-hard", "thresholds"),
        ("--feature-gates", "gates"),
        ("--logtostderr", "bool"),
        ("--node-labels", "labels"),
        ("--register-with-taints", "taints"),
        ("--system-reserved", "pairs"),
        ("--v", "level"),
    ],
)
def test_a_kind(name: str, kind: str) -> None:
    flag = fields.flag(name)
    assert flag is not None
    assert flag.kind == kind


@pytest.mark.parametrize("flag", [flag for flag in ALL if flag.field], ids=lambda flag: flag.name)
def test_a_flag_and_its_field_take_the_same(flag: fields.Flag) -> None:
    """Only where a field can have the flag's kind; other kinds write a map, a list or an address in one word."""
    field = fields.field(flag.field)
    if field is not None and flag.kind in {"bool", "duration", "int32", "int64"}:
        assert flag.kind == field.kind


@pytest.mark.parametrize(
    ("name", "minors"),
    [
        ("--logtostderr", range(20, 26)),  # 1.26 removed klog's flags
        ("--docker-root", range(20, 24)),  # cAdvisor's, removed with dockershim
        ("--log-json-split-stream", range(23, 38)),
        ("--log-text-split-stream", range(30, 38)),
        ("--azure-container-registry-config", range(20, 30)),
    ],
)
def test_flags_of_libraries_exist_in_some_minors_only(name: str, minors: range) -> None:
    assert [minor for minor in fields.known_minors() if name in fields.known_flags(minor)] == list(minors)


def test_a_flag_of_a_fork_is_unknown() -> None:
    assert fields.flag("--max-housekeeping-interval") is None
