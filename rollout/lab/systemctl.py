"""``systemctl`` of the lab's nodes: arguments in, answer out, from the machine's state."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from rollout.lab import units
from rollout.lab.answers import ToolOutput, failed
from rollout.lab.machine import KUBELET, LabMachine
from rollout.lab.service import LabService, UnitPhase
from rollout.lab.units import Unit

# ``systemctl show``: the properties of a unit, in systemd's order (the service's own first).


def of(machine: LabMachine, name: str, ahead: float = 0.0) -> dict[str, str]:
    """All properties of one unit that the lab knows. ``ahead``: seconds by which the node's clock is ahead of ``now``."""
    if name in machine.timers:
        timer = machine.timers[name]
        unit = units.transient(machine.tree, name, {"Description": (" ".join(timer.arguments),)})
        return {
            "Unit": timer.service,
            "NextElapseUSecMonotonic": "infinity" if timer.fired else units.span_text(timer.when),
            "LastTriggerUSecMonotonic": units.span_text(timer.when) if timer.fired else "0",
            "AccuracyUSec": units.span_text(timer.accuracy),
            "Id": name,
            "Names": name,
            **_dependencies(unit),
            "Description": unit.last("Description"),
            "LoadState": "loaded",
            "ActiveState": "active",
            "SubState": "running" if timer.fired else "waiting",
            "FragmentPath": unit.fragment,
            "DropInPaths": " ".join(unit.drop_ins),
            "UnitFileState": "transient",
            "NeedDaemonReload": "no",
            "Transient": "yes",
            "InactiveEnterTimestampMonotonic": "0",
            "InvocationID": timer.invocation,
        }
    if name in _TARGETS:
        return dict(_TARGETS[name])
    unit = machine.unit(name)
    service = machine.service(name) or LabService(unit)
    if not name.endswith(".service"):
        return _common(machine, service)
    unit = service.unit
    main = str(service.pid)
    return {
        "Type": unit.last("Type", "simple"),
        "Restart": unit.last("Restart", "no"),
        "RestartUSec": units.span_text(service.restart_after),
        "TimeoutStartUSec": units.span_text(unit.span("TimeoutStartSec", unit.span("TimeoutSec", 90))),
        "TimeoutStopUSec": units.span_text(unit.span("TimeoutStopSec", unit.span("TimeoutSec", 90))),
        "MainPID": main,
        "ControlPID": "0",
        "Result": service.result,
        "NRestarts": str(service.restarts),
        "ExecMainStartTimestamp": _date(service, ahead),
        "ExecMainStartTimestampMonotonic": str(round(service.started * 1e6)),
        "ExecMainPID": main,
        "ExecMainCode": "0" if service.pid or not service.started else "1",
        "ExecMainStatus": str(service.status),
        "ExecStart": "".join(
            f"{{ path={command.split(maxsplit=1)[0]} ; argv[]={command} ; ignore_errors=no ; start_time=[n/a] ; stop_time=[n/a] ; pid=0 ; code=(null) ; status=0/0 }}"
            for command in unit.every("ExecStart")
        ),
        "ControlGroup": f"/{unit.last('Slice', 'system.slice')}/{unit.name}" if service.pid else "",
        "KillMode": unit.last("KillMode", "control-group"),
        "WatchdogUSec": _watchdog(service),
        "RuntimeMaxUSec": units.span_text(unit.span("RuntimeMaxSec", units.INFINITE)),
        "TasksMax": unit.last("TasksMax", _TASKS),
        "CPUQuotaPerSecUSec": units.quota_text(unit.last("CPUQuota")),
        "LimitCPU": unit.last("LimitCPU", "infinity").rpartition(":")[2],
        **{name: units.size_text(unit.last(name, "infinity").rpartition(":")[2]) for name in _SIZES},
        "Environment": " ".join(unit.every("Environment")),
        "EnvironmentFiles": "\n".join(
            f"{value.removeprefix('-')} (ignore_errors={'yes' if value.startswith('-') else 'no'})"
            for value in unit.every("EnvironmentFile")
        ),
    } | _common(machine, service)


_TARGETS: Mapping[str, Mapping[str, str]] = {
    name: {
        "Id": own, "Names": f"{own} default.target" if name == "default.target" else own, "Requires": needed,
        "Conflicts": "shutdown.target", "LoadState": "loaded", "ActiveState": "active", "SubState": "active",
        "UnitFileState": "static",
    }
    for name, own, needed in (
        ("default.target", "graphical.target", "multi-user.target"),
        ("multi-user.target", "multi-user.target", "basic.target"),
        ("basic.target", "basic.target", "sysinit.target"),
    )
}  # fmt: skip


def _dependencies(unit: Unit, *needed: str) -> dict[str, str]:
    """``needed``: what every unit of this kind requires in addition to its default dependencies."""
    given = {name: unit.words(name) for name in ("Requires", "Requisite", "BindsTo", "PartOf", "Conflicts", "Wants")}
    if unit.last("DefaultDependencies", "yes") not in units.NO:
        needed = ("sysinit.target", *needed)
        given["Conflicts"] = ("shutdown.target", *given["Conflicts"])
    given["Requires"] = (*needed, *given["Requires"])
    given["StopPropagatedFrom"] = unit.words("StopPropagatedFrom")
    return {name: " ".join(dict.fromkeys(names)) for name, names in given.items()}


_SIZES = ("MemoryHigh", "MemoryMax", "MemoryLimit", "LimitFSIZE", "LimitDATA", "LimitAS")


def _watchdog(service: LabService) -> str:
    """``WatchdogSec=0`` is ``infinity`` until the first start, and ``0`` from then on, as without it."""
    seconds = service.unit.span("WatchdogSec", 0)
    off = "infinity" if service.unit.every("WatchdogSec") and not service.started else "0"
    return units.span_text(seconds) if seconds else off


_TASKS = "4915"
"""A share of the pids of the machine, where a unit says nothing else."""


def _date(service: LabService, ahead: float) -> str:
    if not service.started:
        return ""
    return datetime.fromtimestamp(service.started + ahead, UTC).strftime("%a %Y-%m-%d %H:%M:%S UTC")


def _common(machine: LabMachine, service: LabService) -> dict[str, str]:
    unit = service.unit
    active, sub = service.phase.value
    needed = ("system.slice",) if unit.name.endswith(".service") else ()
    return {
        "Id": unit.name,
        "Names": unit.name,
        **_dependencies(unit, *needed),
        "Description": unit.last("Description", unit.name),
        "Before": " ".join(unit.every("Before")),
        "After": " ".join(unit.every("After")),
        "LoadState": unit.load_state,
        "ActiveState": active,
        "SubState": sub,
        "FragmentPath": unit.fragment,
        "DropInPaths": " ".join(unit.drop_ins),
        "UnitFileState": units.enablement(machine.tree, unit),
        "StateChangeTimestampMonotonic": str(round(service.started * 1e6)),
        "InactiveEnterTimestampMonotonic": str(round(service.ended * 1e6)),
        "NeedDaemonReload": "yes" if not machine.transient(unit.name) and units.changed(machine.tree, unit) else "no",
        "Transient": "yes" if machine.transient(unit.name) else "no",
        "Job": "0",
        "InvocationID": service.invocation,
    }


def active(machine: LabMachine, name: str) -> str:
    """``ActiveState`` of a unit, as ``is-active`` prints it."""
    if name in machine.timers:
        return "active"
    service = machine.service(name)
    return (service.phase if service else UnitPhase.STOPPED).value[0]


_STALE = (
    "Warning: The unit file, source configuration file or drop-ins of {0} changed on disk. "
    "Run 'systemctl daemon-reload' to reload units."
)


@dataclass(slots=True)
class Call:
    """A parsed command line."""

    verb: str = ""
    units: list[str] = field(default_factory=list)
    wanted: list[str] = field(default_factory=list)
    value: bool = False
    quiet: bool = False
    block: bool = True
    all: bool = False
    now: bool = False
    signal: str = "TERM"
    ahead: float = 0.0


def answer(machine: LabMachine, arguments: tuple[str, ...], now: float, ahead: float = 0.0) -> ToolOutput:
    """Run the command and print what the real one would. ``ahead``: seconds by which the node's clock is ahead of ``now``."""
    if "--version" in arguments:
        return ToolOutput(out=("systemd 252 (252.39-1~deb12u1)",))
    call = parse(arguments)
    call.ahead = ahead
    verb = _VERBS.get(call.verb)
    if verb is None:
        return failed(1, f"Unknown command verb {call.verb}.")
    return verb(machine, call, now)


def parse(arguments: tuple[str, ...]) -> Call:
    """Options and arguments may be mixed, as in the real one."""
    call, rest = Call(), list(arguments)
    while rest:
        word = rest.pop(0)
        if word in {
            "-p",
            "-P",
            "--property",
            "-t",
            "--type",
            "-n",
            "--lines",
            "-o",
            "--output",
            "--state",
            "--job-mode",
            "-s",
            "--signal",
            "--kill-who",
            "--kill-whom",
        }:
            value = rest.pop(0) if rest else ""
            call.signal = value if word in {"-s", "--signal"} else call.signal
            if word in {"-p", "-P", "--property"}:
                call.wanted.extend(value.split(","))
                call.value = call.value or word == "-P"
        elif word.startswith("--property="):
            call.wanted.extend(word.split("=", 1)[1].split(","))
        elif word.startswith("-p") and len(word) > 2:
            call.wanted.extend(word[2:].split(","))
        elif word.startswith("-"):
            call.value = call.value or word == "--value"
            call.quiet = call.quiet or word in {"-q", "--quiet"}
            call.all = call.all or word in {"-a", "--all"}
            call.now = call.now or word == "--now"
            if word == "--no-block":
                call.block = False
        elif not call.verb:
            call.verb = word
        else:
            call.units.append(full_name(word))
    return call


def full_name(word: str) -> str:
    """``kubelet`` means ``kubelet.service``."""
    known = (".service", ".timer", ".target", ".socket", ".path", ".mount", ".slice", ".scope")
    return word if word.endswith(known) or "*" in word else f"{word}.service"


def _show(machine: LabMachine, call: Call, _now: float) -> ToolOutput:
    if not call.units:
        manager = {"Version": "252.39-1~deb12u1", "SystemState": "running", "NFailedUnits": "0"}
        return ToolOutput(out=tuple(_picked(manager, call)))
    blocks = ["\n".join(_picked(of(machine, name, call.ahead), call)) for name in call.units]
    return ToolOutput(out=tuple("\n\n".join(blocks).split("\n")) if any(blocks) else ())


_LEFT_OUT = frozenset({"EnvironmentFiles"})
"""Lists of structures: an empty one has no line, though it is asked for."""


def _picked(found: Mapping[str, str], call: Call) -> list[str]:
    lines: list[str] = []
    for name, text in found.items():
        if call.wanted and name not in call.wanted:
            continue
        if not text and not call.wanted and not call.all:
            continue
        if text or name not in _LEFT_OUT:
            lines.extend(part if call.value else f"{name}={part}" for part in text.split("\n"))
    return lines


def _is_active(machine: LabMachine, call: Call, _now: float) -> ToolOutput:
    states = [active(machine, name) for name in call.units]
    return ToolOutput(out=() if call.quiet else tuple(states), status=0 if "active" in states else 3)


def _is_failed(machine: LabMachine, call: Call, _now: float) -> ToolOutput:
    states = [active(machine, name) for name in call.units]
    return ToolOutput(out=() if call.quiet else tuple(states), status=0 if "failed" in states else 1)


def _is_enabled(machine: LabMachine, call: Call, _now: float) -> ToolOutput:
    states, complaints = [], []
    for name in call.units:
        unit = machine.unit(name)
        state = "transient" if machine.transient(name) else units.enablement(machine.tree, unit)
        if state:
            states.append(state)
        else:
            complaints.append(f"Failed to get unit file state for {name}: No such file or directory")
    good = any(state in {"enabled", "static", "transient"} for state in states)
    return ToolOutput(() if call.quiet else tuple(states), tuple(complaints), 0 if good else 1)


def _list_dependencies(_machine: LabMachine, call: Call, _now: float) -> ToolOutput:
    """For the default target the usual dependencies; for any other unit only its name."""
    known = {"default.target": ("  basic.target", "    sysinit.target")}
    return ToolOutput(out=tuple(line for name in call.units for line in (name, *known.get(name, ()))))


def _is_running(machine: LabMachine, _call: Call, _now: float) -> ToolOutput:
    return ToolOutput(out=("starting",), status=1) if machine.booting else ToolOutput(out=("running",))


def _reload(machine: LabMachine, _call: Call, _now: float) -> ToolOutput:
    machine.reload()
    return ToolOutput()


def _change(machine: LabMachine, call: Call, now: float) -> ToolOutput:
    """start, restart and similar: a job, which during boot waits for the units ordered before it."""
    if call.block and machine.booting and KUBELET in call.units:
        return ToolOutput(after_boot=True)
    complaints, status = [], 0
    for name in call.units:
        unit = machine.unit(name)
        if name not in machine.timers and unit.load_state != "loaded":
            why = "is masked" if unit.load_state == "masked" else "not found"
            complaints.append(f"Failed to {call.verb} {name}: Unit {name} {why}.")
            status = 1 if unit.load_state == "masked" else 5
            continue
        if units.changed(machine.tree, unit) and not machine.transient(name):
            complaints.append(_STALE.format(name))
        if not (machine.start(name, now) if call.verb == "start" else machine.restart(name, now)):
            complaints.append(f"Job for {name} failed because of unavailable resources or another system error.")
            status = 1
        elif machine.never_ready(name):
            complaints.append(f"Job for {name} failed because the control process exited with error code.")
            status = 1
    return ToolOutput(err=tuple(complaints), status=status)


def _try_restart(machine: LabMachine, call: Call, now: float) -> ToolOutput:
    call.units = [name for name in call.units if active(machine, name) in {"active", "activating"}]
    return _change(machine, call, now)


def _stop(machine: LabMachine, call: Call, now: float) -> ToolOutput:
    complaints = []
    for name in call.units:
        known = name in machine.timers or machine.unit(name).load_state != "not-found"
        if known:
            machine.stop(name, now)
        else:
            complaints.append(f"Failed to stop {name}: Unit {name} not loaded.")
    return ToolOutput(err=tuple(complaints), status=5 if complaints else 0)


def _kill(machine: LabMachine, call: Call, now: float) -> ToolOutput:
    """SIGHUP is the only supported signal."""
    if call.signal.removeprefix("SIG") != "HUP":
        return failed(1, f"signal {call.signal} is not supported in the lab")
    complaints = [
        f"Failed to kill unit {name}: No main process to kill" for name in call.units if not machine.hang_up(name, now)
    ]
    return ToolOutput(err=tuple(complaints), status=1 if complaints else 0)


def _list_units(machine: LabMachine, call: Call, _now: float) -> ToolOutput:
    names = sorted({*machine.services, *machine.timers})
    lines = []
    for name in names:
        properties = of(machine, name)
        shown = call.all or properties["ActiveState"] != "inactive"
        if shown and (not call.units or any(fnmatch.fnmatch(name, pattern) for pattern in call.units)):
            lines.append(
                f"{name} {properties['LoadState']} {properties['ActiveState']} {properties['SubState']} {properties['Description']}"
            )
    return ToolOutput(out=tuple(lines))


def _list_timers(machine: LabMachine, call: Call, now: float) -> ToolOutput:
    return ToolOutput(
        out=tuple(
            f"- {units.span_text(max(timer.when - now, 0.001))} left - - {name} {timer.service}"
            for name, timer in sorted(machine.timers.items())
            if not call.units or any(fnmatch.fnmatch(name, pattern) for pattern in call.units)
        )
    )


def _cat(machine: LabMachine, call: Call, _now: float) -> ToolOutput:
    lines: list[str] = []
    for name in call.units:
        unit = machine.unit(name)
        if not unit.fragment:
            return failed(1, f"No files found for {name}.")
        for path in (unit.fragment, *unit.drop_ins):
            text = (machine.tree.read(path) or b"").decode("utf-8", "replace")
            lines += [f"# {path}", *text.splitlines(), ""]
    return ToolOutput(out=tuple(lines))


def _nothing(_machine: LabMachine, _call: Call, _now: float) -> ToolOutput:
    return ToolOutput()


_VERBS: Mapping[str, Callable[[LabMachine, Call, float], ToolOutput]] = {
    "show": _show,
    "": _list_units,
    "is-active": _is_active,
    "is-failed": _is_failed,
    "is-enabled": _is_enabled,
    "is-system-running": _is_running,
    "daemon-reload": _reload,
    "start": _change,
    "restart": _change,
    "reload-or-restart": _change,
    "try-restart": _try_restart,
    "stop": _stop,
    "list-units": _list_units,
    "list-dependencies": _list_dependencies,
    "list-timers": _list_timers,
    "cat": _cat,
    "reset-failed": _nothing,
    "kill": _kill,
}
