"""Unit files, environment files, and the arguments that result from them."""

from __future__ import annotations

import pytest

from rollout.lab import units
from tests.lab.trees import MemoryTree, kubeadm

UNIT = "/usr/lib/systemd/system/a.service"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10", 10), ("10s", 10), ("1min 30s", 90), ("100ms", 0.1), ("0.5", 0.5), ("infinity", float("inf")), ("2h", 7200)],
)
def test_time_spans(text: str, seconds: float) -> None:
    assert units.seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["ten", "5 fortnights", "1m1"])
def test_invalid_time_spans(text: str) -> None:
    if text == "1m1":
        assert units.seconds(text) == 61
    else:
        with pytest.raises(ValueError, match="time span"):
            units.seconds(text)


@pytest.mark.parametrize(("value", "text"), [(10, "10s"), (90, "1min 30s"), (0.5, "500ms"), (0, "0"), (3600, "1h")])
def test_time_spans_as_printed(value: float, text: str) -> None:
    assert units.span_text(value) == text


def test_later_drop_ins_override_and_an_empty_assignment_resets() -> None:
    tree = MemoryTree()
    tree.write(UNIT, "[Service]\nExecStart=/bin/one\nRestartSec=10\nEnvironment=A=1\n")
    tree.write(
        "/etc/systemd/system/a.service.d/20.conf", "[Service]\nExecStart=\nExecStart=/bin/two\nEnvironment=A=2 B=3\n"
    )
    tree.write("/usr/lib/systemd/system/a.service.d/90.conf", "[Service]\nRestartSec=1\n")
    tree.write("/etc/systemd/system/a.service.d/README", "[Service]\nRestartSec=99\n")
    unit = units.load(tree, "a.service")
    assert unit.fragment == UNIT
    assert [path.rpartition("/")[2] for path in unit.drop_ins] == ["20.conf", "90.conf"]
    assert unit.every("ExecStart") == ("/bin/two",)
    assert unit.last("RestartSec") == "1"
    assert units.environment(tree, unit) == {"A": "2", "B": "3"}


def test_etc_shadows_usr() -> None:
    tree = MemoryTree()
    tree.write(UNIT, "[Service]\nExecStart=/bin/one\n")
    tree.write("/etc/systemd/system/a.service", "[Service]\nExecStart=/bin/two\n")
    assert units.load(tree, "a.service").last("ExecStart") == "/bin/two"


def test_masked_enabled_static_and_not_found() -> None:
    tree = MemoryTree()
    tree.write(UNIT, "[Service]\nExecStart=/bin/one\n")
    assert units.enablement(tree, units.load(tree, "a.service")) == "static"
    tree.write(UNIT, "[Service]\nExecStart=/bin/one\n[Install]\nWantedBy=multi-user.target\n")
    assert units.enablement(tree, units.load(tree, "a.service")) == "disabled"
    tree.links["/etc/systemd/system/multi-user.target.wants/a.service"] = UNIT
    assert units.enablement(tree, units.load(tree, "a.service")) == "enabled"
    tree.links["/etc/systemd/system/a.service"] = "/dev/null"
    assert units.load(tree, "a.service").load_state == "masked"
    assert units.load(tree, "b.service").load_state == "not-found"


def test_a_written_file_or_a_new_drop_in_needs_a_reload() -> None:
    tree = kubeadm()
    unit = units.load(tree, "kubelet.service")
    assert not units.changed(tree, unit)
    tree.write("/etc/systemd/system/kubelet.service.d/90.conf", "[Service]\n")
    assert units.changed(tree, unit)
    unit = units.load(tree, "kubelet.service")
    tree.write("/etc/systemd/system/kubelet.service.d/90.conf", "[Service]\n")
    assert units.changed(tree, unit)


def test_words_as_systemd_expands_them() -> None:
    variables = {"ARGS": '--a=1  --b="x y"', "ONE": "two words", "NONE": ""}
    command = '/bin/x $ARGS ${ONE} --k=${ONE} $NONE $UNSET "quo ted" $$ --p=$ONE'
    assert units.argv(command, variables) == (
        *("/bin/x", "--a=1", "--b=x y", "two words", "--k=two words", "quo ted", "$", "--p=$ONE"),
    )


def test_environment_files() -> None:
    text = '# A=0\n; B=0\nA=1\nB="two words"\nC=\'$x\'\nD=a \\\nb\nE=a "b" c  \nno assignment\nA=2\n'
    assert units.parse_file(text) == {"A": "2", "B": "two words", "C": "$x", "D": "a b", "E": 'a "b" c'}


def test_a_missing_environment_file_matters_only_without_the_dash() -> None:
    tree = MemoryTree()
    tree.write(UNIT, "[Service]\nEnvironmentFile=-/etc/a\nExecStart=/bin/x\n")
    assert units.environment(tree, units.load(tree, "a.service")) == {}
    tree.write(UNIT, "[Service]\nEnvironmentFile=/etc/a\nExecStart=/bin/x\n")
    with pytest.raises(units.MissingFileError, match="/etc/a"):
        units.environment(tree, units.load(tree, "a.service"))
