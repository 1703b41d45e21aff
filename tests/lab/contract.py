"""The contract of a node: cases for the lab's nodes and for real systemd nodes.

A case takes a ``Subject`` and raises ``AssertionError``. The node is a kubeadm node with a healthy kubelet of 1.20 to
1.23, before and after every case.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from rollout.adapters.agent_program import agent_program
from rollout.core.model.plan import Change, FileChange
from rollout.core.model.report import Outcome, RemoteAnswer, RemoteCommand
from rollout.core.model.snapshot import Token
from rollout.core.model.verification import Verification, drifts
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_answer import parse_report, parse_verification
from tests.controllers import until

PROGRAM = agent_program()
CONFIG = "/var/lib/kubelet/config.yaml"
ENVIRONMENT = "/etc/default/kubelet"
DROP_IN = "/etc/systemd/system/kubelet.service.d/90-contract.conf"
PATIENCE = 300.0
"""Seconds: a safety net for hanging commands, not a verdict."""


_HEALTHZ = """\
if command -v curl >/dev/null; then
    curl -s -m 3 http://127.0.0.1:10248/healthz
else
    timeout 3 bash -c 'exec 3<>/dev/tcp/127.0.0.1/10248 && printf "GET /healthz HTTP/1.0\\r\\n\\r\\n" >&3 && tail -c 2 <&3' 2>/dev/null
fi"""


class Subject(Protocol):
    """The node under test. Commands run with root's rights; paths are the node's own."""

    version: str
    restart_sec: float

    @property
    def prefix(self) -> str:
        """The prefix of the node's paths in commands; empty on a real node."""

    def run(self, line: str, stdin: bytes = b"") -> tuple[int, str]: ...

    def read(self, path: str) -> bytes | None: ...

    def write(self, path: str, content: bytes | None) -> None:
        """Replace a file, or remove it (``None``)."""


@contextmanager
def changed(node: Subject, path: str, content: bytes) -> Iterator[None]:
    """The file contains this inside the block. Afterwards it is restored, and the kubelet is healthy again."""
    before = node.read(path)
    node.write(path, content)
    try:
        yield
    finally:
        node.write(path, before)
        node.run("systemctl daemon-reload; systemctl restart kubelet")
        until(lambda: healthz(node) == "ok", PATIENCE, "it answers")


def said(node: Subject, line: str) -> str:
    status, output = node.run(line)
    assert status == 0, (line, status, output)
    return output.strip()


def shown(node: Subject, name: str, unit: str = "kubelet.service") -> str:
    return said(node, f"systemctl show -p {name} --value {unit}")


def healthz(node: Subject) -> str:
    """``ok``, or empty; uses only tools that a minimal Debian or RHEL has."""
    return node.run(_HEALTHZ)[1]


def version_is_printed(node: Subject) -> None:
    assert said(node, "kubelet --version") == f"Kubernetes v{node.version}"


def a_healthy_kubelet_shows_itself(node: Subject) -> None:
    lines = said(
        node,
        "systemctl show -p LoadState -p ActiveState -p SubState -p MainPID -p NRestarts -p NeedDaemonReload"
        " -p RestartUSec -p UnitFileState -p FragmentPath -p DropInPaths kubelet.service",
    ).splitlines()
    found = dict(line.split("=", 1) for line in lines)
    assert found["LoadState"] == "loaded"
    assert (found["ActiveState"], found["SubState"]) == ("active", "running")
    assert int(found["MainPID"]) > 1
    assert found["NeedDaemonReload"] == "no"
    assert found["RestartUSec"].endswith("s")
    assert found["UnitFileState"] == "enabled"
    assert found["FragmentPath"].endswith("/systemd/system/kubelet.service")
    assert "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf" in found["DropInPaths"]
    words = said(node, f"tr '\\0' '\\n' <{node.prefix}/proc/{found['MainPID']}/cmdline").splitlines()
    assert f"--config={CONFIG}" in words


def restart_makes_a_new_process_that_answers(node: Subject) -> None:
    before, started = shown(node, "MainPID"), int(shown(node, "ExecMainStartTimestampMonotonic"))
    said(node, "systemctl restart kubelet")
    assert shown(node, "MainPID") != before
    assert int(shown(node, "ExecMainStartTimestampMonotonic")) > started
    until(lambda: healthz(node) == "ok", PATIENCE, "it answers")


def restart_returns_0_for_a_crash_loop(node: Subject) -> None:
    with changed(node, ENVIRONMENT, b"KUBELET_EXTRA_ARGS=--no-such-flag\n"):
        said(node, "systemctl restart kubelet")
        waiting = ["0", "activating", "auto-restart"]
        asks = "systemctl show -p MainPID -p ActiveState -p SubState --value kubelet"
        until(lambda: said(node, asks).split() == waiting, PATIENCE, "it waits for its next start")
        until(lambda: node.run("systemctl is-active kubelet") == (3, "activating\n"), PATIENCE, "and waits again")
        counted = int(shown(node, "NRestarts"))
        until(lambda: int(shown(node, "NRestarts")) > counted, PATIENCE, "it is started again and again")
        assert healthz(node) == ""


_WAITS = '[ "$(systemctl show -p SubState --value kubelet)" = auto-restart ]'
"""Checked on the node: the check must succeed at the beginning of its RestartSec, or the restart comes too late."""


def the_counter_survives_a_restart_out_of_a_crash_loop(node: Subject) -> None:
    with changed(node, ENVIRONMENT, b"KUBELET_EXTRA_ARGS=--no-such-flag\n"):
        said(node, "systemctl restart kubelet")
        until(lambda: _is_restarted_while_it_waits(node) >= COUNTED, PATIENCE, "the counter continues")
    said(node, "systemctl restart kubelet")
    assert shown(node, "NRestarts") == "0"


COUNTED = 3
"""More than a kubelet can be restarted between a restart that resets the counter and a reading of the counter."""


def _is_restarted_while_it_waits(node: Subject) -> int:
    """The counter at that time.

    A busy machine may be too late and restart it while it runs; then the count starts again.
    """
    until(lambda: int(shown(node, "NRestarts")) >= COUNTED, PATIENCE, "it is started again and again")
    restart = "systemctl restart kubelet; systemctl show -p NRestarts --value kubelet"
    return int(said(node, f"while {_WAITS}; do :; done; until {_WAITS}; do :; done; {restart}"))


def show_prints_in_its_own_order(node: Subject) -> None:
    lines = said(
        node,
        "systemctl show -p NeedDaemonReload -p DropInPaths -p ActiveState -p LoadState -p EnvironmentFiles -p NRestarts"
        " -p ExecMainStartTimestampMonotonic -p MainPID -p RestartUSec -p SubState -p NoSuchThing kubelet",
    ).splitlines()
    names = list(dict.fromkeys(line.split("=")[0] for line in lines))
    assert names == [
        *("RestartUSec", "MainPID", "NRestarts", "ExecMainStartTimestampMonotonic", "EnvironmentFiles"),
        *("LoadState", "ActiveState", "SubState", "DropInPaths", "NeedDaemonReload"),
    ]
    files = [line.split("=", 1)[1] for line in lines if line.startswith("EnvironmentFiles=")]
    assert files == [
        "/var/lib/kubelet/kubeadm-flags.env (ignore_errors=yes)",
        "/etc/default/kubelet (ignore_errors=yes)",
    ]


def a_stop_out_of_a_crash_loop_ends_it(node: Subject) -> None:
    with changed(node, ENVIRONMENT, b"KUBELET_EXTRA_ARGS=--no-such-flag\n"):
        said(node, "systemctl restart kubelet")
        until(lambda: shown(node, "SubState") == "auto-restart", PATIENCE, "it waits for its next start")
        said(node, "systemctl stop kubelet")
        _until_a_timer_has_fired(node, node.restart_sec + 0.5)
        assert node.run("systemctl is-active kubelet")[0] == 3
        assert shown(node, "MainPID") == "0"


def a_restart_out_of_a_crash_loop_heals(node: Subject) -> None:
    with changed(node, CONFIG, b"{ this is no configuration"):
        said(node, "systemctl restart kubelet")
        until(lambda: shown(node, "SubState") == "auto-restart", PATIENCE, "it waits for its next start")
    assert shown(node, "ActiveState") == "active"


def an_unknown_field_is_lenient(node: Subject) -> None:
    config = node.read(CONFIG) or b""
    with changed(node, CONFIG, config + b"serialiseImagePulls: false\n"):
        said(node, "systemctl restart kubelet")
        until(lambda: healthz(node) == "ok", PATIENCE, "it answers")
        pid = shown(node, "MainPID")
        journal = said(node, f"journalctl -q -b --no-pager -o cat -n 5000 _PID={pid}")
        assert "lenient decoding" in journal
        assert "serialiseImagePulls" in journal


def a_wrong_type_is_fatal(node: Subject) -> None:
    config = node.read(CONFIG) or b""
    with changed(node, CONFIG, config.replace(b"maxPods: 110", b"maxPods: fifty")):
        said(node, "systemctl restart kubelet")
        until(lambda: shown(node, "SubState") == "auto-restart", PATIENCE, "it waits for its next start")


def an_empty_config_is_fatal(node: Subject) -> None:
    with changed(node, CONFIG, b""):
        said(node, "systemctl restart kubelet")
        until(lambda: shown(node, "SubState") == "auto-restart", PATIENCE, "it waits for its next start")


def a_missing_optional_environment_file_is_no_error(node: Subject) -> None:
    before = node.read(ENVIRONMENT)
    node.write(ENVIRONMENT, None)
    try:
        said(node, "systemctl restart kubelet")
        until(lambda: healthz(node) == "ok", PATIENCE, "it answers")
    finally:
        node.write(ENVIRONMENT, before)
        said(node, "systemctl restart kubelet")


def an_environment_file_is_split_at_blanks(node: Subject) -> None:
    with changed(node, ENVIRONMENT, b'# ours\nKUBELET_EXTRA_ARGS="--v=3 --max-pods=99"\n'):
        said(node, "systemctl restart kubelet")
        words = _words(node)
        assert "--v=3" in words
        assert "--max-pods=99" in words


def a_changed_unit_needs_daemon_reload(node: Subject) -> None:
    with changed(
        node, DROP_IN, b'[Service]\nEnvironment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml --v=4"\n'
    ):
        assert shown(node, "NeedDaemonReload") == "yes"
        said(node, "systemctl restart kubelet")
        assert "--v=4" not in _words(node)
        assert shown(node, "NeedDaemonReload") == "yes"
        said(node, "systemctl daemon-reload")
        assert shown(node, "NeedDaemonReload") == "no"
        assert DROP_IN in shown(node, "DropInPaths")
        said(node, "systemctl restart kubelet")
        assert "--v=4" in _words(node)


def _words(node: Subject) -> list[str]:
    """The kubelet's command line, once the process is a kubelet: a restart returns before systemd's child has become
    one.
    """
    said_then: list[str] = []

    def is_one() -> bool:
        pid = shown(node, "MainPID")
        said_then[:] = said(node, f"tr '\\0' '\\n' <{node.prefix}/proc/{pid}/cmdline || :").splitlines()
        return any(word.startswith("--config=") for word in said_then)

    until(is_one, PATIENCE, "it is a kubelet")
    return said_then


def stop_and_start(node: Subject) -> None:
    said(node, "systemctl stop kubelet")
    assert node.run("systemctl is-active kubelet") == (3, "inactive\n")
    assert shown(node, "MainPID") == "0"
    said(node, "systemctl start kubelet")
    assert said(node, "systemctl is-active kubelet") == "active"
    assert shown(node, "NRestarts") == "0"
    until(lambda: healthz(node) == "ok", PATIENCE, "it answers")


def is_enabled(node: Subject) -> None:
    assert said(node, "systemctl is-enabled kubelet") == "enabled"
    status, output = node.run("systemctl is-enabled no-such-unit.service 2>/dev/null")
    assert status != 0
    assert "enabled" not in output


def the_default_target_reaches_basic_target(node: Subject) -> None:
    shown = said(node, "systemctl list-dependencies --plain --no-pager default.target")
    assert "basic.target" in shown.split()


def an_unknown_unit_is_not_found(node: Subject) -> None:
    assert shown(node, "LoadState", "no-such-unit.service") == "not-found"
    assert node.run("systemctl restart no-such-unit.service 2>/dev/null")[0] == 5


def _timer(node: Subject, unit: str, seconds: float, command: str) -> None:
    flags = f"--on-active={seconds:g} --timer-property=AccuracySec=100ms --unit={unit} --collect"
    said(node, f"systemd-run --quiet {flags} /bin/sh -c '{command}'")


def _until_a_timer_has_fired(node: Subject, seconds: float) -> None:
    """By the node's own systemd: everything that systemd had to do before that is done."""
    flag = "/run/contract-later"
    node.run(f"rm -f {node.prefix}{flag}")
    _timer(node, "contract-later", seconds, f"echo fired >{node.prefix}{flag}")
    until(lambda: node.read(flag) is not None, PATIENCE, "a timer fires")


def a_timer_fires_in_time(node: Subject) -> None:
    """Not before its time, and before another timer that was set later for two seconds later."""
    flag, later = "/run/contract-fired", "/run/contract-fired-later"
    node.run(f"rm -f {node.prefix}{flag} {node.prefix}{later}")
    begun = time.monotonic()
    tell = 'cut -d" " -f1 /proc/uptime >{path}.new && mv {path}.new {path}'
    _timer(node, "contract-a", 2, tell.format(path=f"{node.prefix}{flag}"))
    _timer(node, "contract-d", 4, tell.format(path=f"{node.prefix}{later}"))
    assert shown(node, "ActiveState", "contract-d.timer") == "active"
    assert shown(node, "NextElapseUSecMonotonic", "contract-d.timer") not in {"", "0", "infinity"}
    until(lambda: node.read(flag) is not None, PATIENCE, "it fires")
    assert time.monotonic() - begun >= 1.9
    until(lambda: node.read(later) is not None, PATIENCE, "the other one too")
    assert float(node.read(flag) or b"inf") < float(node.read(later) or b"0")
    until(lambda: shown(node, "LoadState", "contract-a.timer") == "not-found", PATIENCE, "nothing is left of it")
    node.run(f"rm -f {node.prefix}{flag} {node.prefix}{later}")


def a_timer_can_be_stopped(node: Subject) -> None:
    flag = "/run/contract-never"
    # Longer than two calls take on a busy machine: what has fired already cannot be stopped.
    _timer(node, "contract-b", 10, f"echo fired >{node.prefix}{flag}")
    said(node, "systemctl stop contract-b.timer")
    _until_a_timer_has_fired(node, 10.5)
    assert node.read(flag) is None
    assert shown(node, "LoadState", "contract-b.timer") == "not-found"
    left = "systemctl list-units --all --plain --no-legend 'contract-*'"
    until(lambda: said(node, left) == "", PATIENCE, "nothing is left of either")


def a_timer_is_not_made_twice(node: Subject) -> None:
    line = "systemd-run --quiet --on-active=60 --unit=contract-c true 2>/dev/null"
    said(node, line)
    assert node.run(line)[0] == 1
    said(node, "systemctl stop contract-c.timer")


def _answer(node: Subject, command: RemoteCommand) -> RemoteAnswer:
    status, output = node.run(command.line, command.stdin)
    return RemoteAnswer(status, output.encode(), b"", started=True)


def _verified(node: Subject) -> Verification:
    command = agent_call.verify(PROGRAM, unit="kubelet.service", sudo=False, deadline=30)
    found = parse_verification("n1", _answer(node, command))
    assert isinstance(found, Verification), found
    return found


def _armed(node: Subject, tx: str, content: bytes, guard: int = 60) -> None:
    """ENVIRONMENT contains these bytes, from a transaction of run ``contract``, token 1, that waits for its confirm."""
    before, machine = node.read(ENVIRONMENT), node.read("/etc/machine-id") or b""
    file = FileChange(ENVIRONMENT, before, content)
    unit = "kubelet.service"
    change = Change((file,), (unit,), healthz_port=10248)
    order = agent_call.ApplyOrder(tx, "contract", 1, machine.decode().strip(), guard, 3, unit, change)
    report = parse_report("n1", "apply", _answer(node, agent_call.apply(PROGRAM, order, sudo=False, deadline=60)), 1.0)
    assert report.healthy, report


def _confirmed(node: Subject, tx: str) -> None:
    confirm = agent_call.confirm(PROGRAM, tx=tx, run="contract", counter=1, keep=3, sudo=False, deadline=60)
    assert parse_report("n1", "confirm", _answer(node, confirm), 1.0).outcome is Outcome.DONE


def _applied(node: Subject, tx: str, content: bytes) -> None:
    """ENVIRONMENT contains these bytes, from a confirmed transaction."""
    _armed(node, tx, content)
    _confirmed(node, tx)


@contextmanager
def _ours(node: Subject) -> Iterator[None]:
    """Afterwards nothing of ours is on the node, the file is restored, and the kubelet runs with it."""
    before = node.read(ENVIRONMENT)
    try:
        yield
    finally:
        command = agent_call.forget(PROGRAM, run="contract", counter=1, sudo=False, deadline=60)
        report = parse_report("n1", "forget", _answer(node, command), 1.0)
        node.write(ENVIRONMENT, before)
        said(node, "systemctl restart kubelet")
        until(lambda: healthz(node) == "ok", PATIENCE, "it answers")
        assert (report.outcome, report.leftovers) == (Outcome.DONE, ()), report
        assert node.run(f"ls -d {node.prefix}/var/lib/rollout* 2>/dev/null")[1] == ""


def a_change_is_verified_and_forgotten(node: Subject) -> None:
    assert _verified(node).expected == ()
    with _ours(node):
        begun = time.monotonic()
        _applied(node, "c1", b"KUBELET_EXTRA_ARGS=--v=3\n")
        found = _verified(node)
        assert drifts(found) == ()
        assert [(entry.path, entry.tx) for entry in found.expected] == [(ENVIRONMENT, "c1")]
        assert found.binary is not None
        assert "unknown" not in (found.binary.before, found.binary.now)
        assert found.age is not None
        assert found.age <= time.monotonic() - begun + 2
    found = _verified(node)
    assert (found.expected, found.receipts, found.token) == ((), (), Token())


def drift_is_reported_and_whether_the_running_kubelet_is_older(node: Subject) -> None:
    with _ours(node):
        _applied(node, "c1", b"KUBELET_EXTRA_ARGS=--v=3\n")
        started = time.monotonic()
        node.write(ENVIRONMENT, b"KUBELET_EXTRA_ARGS=--v=9\n")
        until(lambda: (_verified(node).age or 0) >= 4, PATIENCE, "time passes")
        node.write(ENVIRONMENT, b"KUBELET_EXTRA_ARGS=--v=5\n")
        found = _verified(node)
        assert {drift.reference for drift in drifts(found)} == {"content-differs", "edited-after-start"}
        assert 2 <= found.stale[0].seconds <= time.monotonic() - started + 10
        said(node, "systemctl restart kubelet")
        until(lambda: healthz(node) == "ok", PATIENCE, "it answers")
        assert {drift.reference for drift in drifts(_verified(node))} == {"content-differs"}


ASKED = frozenset(re.findall(r" -p ([A-Z]\w+)", PROGRAM))
"""Every property of a unit that the agent asks for."""

_TELLING = frozenset({"basic.target", "multi-user.target"})
"""What the agent looks for among the dependencies of a target; the others are the machine's own."""


def _properties(node: Subject, unit: str) -> dict[str, str]:
    """What systemd answers of everything that the agent asks; what differs from node to node is ``some``, mounts are left out."""
    lines = said(node, f"TZ=UTC systemctl show {' '.join(f'-p {name}' for name in sorted(ASKED))} {unit}").splitlines()
    found = dict(line.split("=", 1) for line in lines)
    for name, value in found.items():
        if name in _DEPENDENCIES:
            words = {word for word in value.split() if not word.endswith(".mount")}
            found[name] = " ".join(sorted(words & _TELLING if unit.endswith(".target") else words))
        elif name in _MOMENTS and value not in {"", "0", "infinity"}:
            found[name] = "some"
    return found


_DEPENDENCIES = frozenset({"Requires", "Requisite", "BindsTo", "PartOf", "StopPropagatedFrom", "Conflicts", "Wants"})
_MOMENTS = frozenset(
    {
        "MainPID", "InvocationID", "NextElapseUSecMonotonic", "ExecMainStartTimestamp", "ExecMainStartTimestampMonotonic",
    }
)  # fmt: skip

_ANY = {
    "LoadState": "loaded", "NeedDaemonReload": "no", "Requisite": "", "BindsTo": "", "PartOf": "", "StopPropagatedFrom": "",
    "Conflicts": "shutdown.target", "Wants": "", "InactiveEnterTimestampMonotonic": "0",
}  # fmt: skip
_UNBOUNDED = dict.fromkeys(
    (
        "RuntimeMaxUSec", "MemoryMax", "MemoryHigh", "MemoryLimit", "TasksMax", "LimitCPU", "LimitFSIZE", "LimitAS",
        "LimitDATA", "CPUQuotaPerSecUSec",
    ),
    "infinity",
)  # fmt: skip
_SERVICE = _ANY | _UNBOUNDED | {
    "RestartUSec": "100ms", "TimeoutStartUSec": "1min 30s", "TimeoutStopUSec": "1min 30s", "WatchdogUSec": "0", "MainPID": "0",
    "NRestarts": "0", "ExecMainStartTimestamp": "", "ExecMainStartTimestampMonotonic": "0", "InvocationID": "",
    "ActiveState": "inactive", "SubState": "dead", "KillMode": "control-group", "ControlGroup": "",
    "Requires": "sysinit.target system.slice",
}  # fmt: skip
_RUNNING = {
    "ActiveState": "active", "SubState": "running", "MainPID": "some", "InvocationID": "some", "ExecMainStartTimestamp": "some",
    "ExecMainStartTimestampMonotonic": "some",
}  # fmt: skip
_GUARDED = {
    "Description": "rollout: a guard with all settings of its own",
    "RestartUSec": "5s",
    "TimeoutStopUSec": "30s",
    "WatchdogUSec": "infinity",
}


def _differences(found: dict[str, str], wanted: dict[str, str]) -> dict[str, tuple[str | None, str | None]]:
    """Property → the value found and the one wanted; ``None``: the property is not shown."""
    return {
        name: (found.get(name), wanted.get(name))
        for name in sorted(found.keys() | wanted.keys())
        if found.get(name) != wanted.get(name)
    }


def _transient(unit: str) -> dict[str, str]:
    return {
        "Id": unit,
        "UnitFileState": "transient",
        "FragmentPath": f"/run/systemd/transient/{unit}",
        "DropInPaths": f"/run/systemd/system/{unit}.d/~~~~~~~~-rollout.conf",
    }


def the_units_of_an_armed_change_are_as_systemd_shows_them(node: Subject) -> None:
    timer, guard, watch = (f"rollout-{name}" for name in ("guard-c1.timer", "guard-c1.service", "watch-c1.service"))
    boot = "rollout-guard-boot.service"
    own = f"/etc/systemd/system/{boot}"
    service = _SERVICE | _GUARDED
    waits = {"ActiveState": "active", "SubState": "waiting", "InvocationID": "some", "NextElapseUSecMonotonic": "some"}
    description = {"Description": _GUARDED["Description"]}
    wanted = {
        timer: _ANY | _transient(timer) | waits | description | {"Unit": guard, "Requires": "sysinit.target"},
        guard: service | _transient(guard) | {"TimeoutStartUSec": "infinity"},
        watch: service
        | _transient(watch)
        | _RUNNING
        | {"TimeoutStartUSec": "25s", "WatchdogUSec": "0", "ControlGroup": f"/system.slice/{watch}"},
        boot: service
        | {"Id": boot, "FragmentPath": own, "DropInPaths": f"{own}.d/~~~~~~~~-rollout.conf", "UnitFileState": "enabled"}
        | {"TimeoutStartUSec": "1min"},
    }
    with _ours(node):
        _armed(node, "c1", b"KUBELET_EXTRA_ARGS=--v=3\n", guard=600)
        try:
            found = {unit: _properties(node, unit) for unit in wanted}
            reached = [_properties(node, unit)["Requires"] for unit in ("default.target", "multi-user.target")]
        finally:
            _confirmed(node, "c1")
    differences = {unit: _differences(found[unit], shown) for unit, shown in wanted.items()}
    assert not any(differences.values()), differences
    assert reached[-1] == "basic.target"
    assert reached[0] in _TELLING


def limits_and_dependencies_of_others_are_shown(node: Subject) -> None:
    """Drop-ins for a name, for the names that begin alike, and for all units of a kind: the agent refuses what they add."""
    unit = "contract-limits.service"
    kinds = {
        f"/run/systemd/system/{unit}.d/90-a.conf": "[Service]\nMemoryMax=64M\nLimitFSIZE=1K:2M\nCPUQuota=50%\n",
        "/run/systemd/system/contract-.service.d/50-b.conf": "[Unit]\nPartOf=c.target\nConflicts=d.target\n"
        "[Service]\nMemoryMax=1G\nMemoryHigh=32M\nTasksMax=77\nLimitCPU=30\nRuntimeMaxSec=5min\nWatchdogSec=90\n",
    }
    for path, text in kinds.items():
        node.write(path, text.encode())
    try:
        said(node, f"systemd-run --quiet --unit={unit} /bin/sleep 600")
        found = _properties(node, unit)
    finally:
        node.run(f"systemctl stop {unit}")
        for path in kinds:
            node.write(path, None)
    wanted = _SERVICE | _transient(unit) | _RUNNING | {
        "Description": "/bin/sleep 600", "DropInPaths": " ".join(reversed(kinds)), "Conflicts": "d.target shutdown.target",
        "PartOf": "c.target", "ControlGroup": f"/system.slice/{unit}", "MemoryMax": "67108864", "MemoryHigh": "33554432", "TasksMax": "77", "LimitFSIZE": "2097152",
        "LimitCPU": "30", "RuntimeMaxUSec": "5min", "WatchdogUSec": "1min 30s", "CPUQuotaPerSecUSec": "500ms",
    }  # fmt: skip
    assert not _differences(found, wanted), _differences(found, wanted)


CASES: tuple[Callable[[Subject], None], ...] = (
    version_is_printed,
    a_healthy_kubelet_shows_itself,
    restart_makes_a_new_process_that_answers,
    restart_returns_0_for_a_crash_loop,
    the_counter_survives_a_restart_out_of_a_crash_loop,
    a_stop_out_of_a_crash_loop_ends_it,
    show_prints_in_its_own_order,
    a_restart_out_of_a_crash_loop_heals,
    an_unknown_field_is_lenient,
    a_wrong_type_is_fatal,
    an_empty_config_is_fatal,
    a_missing_optional_environment_file_is_no_error,
    an_environment_file_is_split_at_blanks,
    a_changed_unit_needs_daemon_reload,
    stop_and_start,
    is_enabled,
    the_default_target_reaches_basic_target,
    an_unknown_unit_is_not_found,
    a_timer_fires_in_time,
    a_timer_can_be_stopped,
    a_timer_is_not_made_twice,
    a_change_is_verified_and_forgotten,
    drift_is_reported_and_whether_the_running_kubelet_is_older,
    the_units_of_an_armed_change_are_as_systemd_shows_them,
    limits_and_dependencies_of_others_are_shown,
)
