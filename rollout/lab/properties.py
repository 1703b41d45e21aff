"""``systemctl show``: the properties of a unit, in systemd's order (the service's own first)."""

from __future__ import annotations

from rollout.lab import units
from rollout.lab.machine import Machine
from rollout.lab.service import Phase, Service
from rollout.lab.units import Unit


def of(machine: Machine, name: str) -> dict[str, str]:
    """All properties of one unit that the lab knows."""
    if name in machine.timers:
        return _timer(machine, name)
    unit = machine.unit(name)
    service = machine.service(name) or Service(unit)
    return (_service(service) | _common(machine, service)) if name.endswith(".service") else _common(machine, service)


def _service(service: Service) -> dict[str, str]:
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
        "ExecMainStartTimestampMonotonic": str(round(service.started * 1e6)),
        "ExecMainPID": main,
        "ExecMainCode": "0" if service.pid or not service.started else "1",
        "ExecMainStatus": str(service.status),
        "ExecStart": "".join(_exec(command) for command in unit.every("ExecStart")),
        "Environment": " ".join(unit.every("Environment")),
        "EnvironmentFiles": "\n".join(_environment_file(value) for value in unit.every("EnvironmentFile")),
    }


def _exec(command: str) -> str:
    return f"{{ path={command.split(maxsplit=1)[0]} ; argv[]={command} ; ignore_errors=no ; start_time=[n/a] ; stop_time=[n/a] ; pid=0 ; code=(null) ; status=0/0 }}"


def _environment_file(value: str) -> str:
    return f"{value.removeprefix('-')} (ignore_errors={'yes' if value.startswith('-') else 'no'})"


def _common(machine: Machine, service: Service) -> dict[str, str]:
    unit = service.unit
    active, sub = service.phase.value
    return {
        "Id": unit.name,
        "Names": unit.name,
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
        "NeedDaemonReload": "yes" if _stale(machine, unit) else "no",
        "Transient": "yes" if machine.transient(unit.name) else "no",
        "Job": "0",
    }


def _stale(machine: Machine, unit: Unit) -> bool:
    return not machine.transient(unit.name) and units.changed(machine.tree, unit)


def _timer(machine: Machine, name: str) -> dict[str, str]:
    timer = machine.timers[name]
    return {
        "Unit": timer.service,
        "NextElapseUSecMonotonic": "infinity" if timer.fired else units.span_text(timer.when),
        "LastTriggerUSecMonotonic": units.span_text(timer.when) if timer.fired else "0",
        "AccuracyUSec": units.span_text(timer.accuracy),
        "Id": name,
        "Names": name,
        "Description": " ".join(timer.arguments),
        "LoadState": "loaded",
        "ActiveState": "active",
        "SubState": "running" if timer.fired else "waiting",
        "FragmentPath": f"/run/systemd/transient/{name}",
        "DropInPaths": "",
        "UnitFileState": "transient",
        "NeedDaemonReload": "no",
        "Transient": "yes",
    }


def active(machine: Machine, name: str) -> str:
    """``ActiveState`` of a unit, which is what ``is-active`` prints."""
    if name in machine.timers:
        return "active"
    service = machine.service(name)
    return (service.phase if service else Phase.STOPPED).value[0]
