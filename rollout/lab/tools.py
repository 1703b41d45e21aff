"""The other stand-ins that use the machine: ``systemd-run``, ``journalctl``, ``curl``."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from rollout.kubelet.runtimes.known import DAEMONS, KNOWN
from rollout.lab import systemctl, units
from rollout.lab.answers import ToolOutput, failed
from rollout.lab.kubelet import START_UP
from rollout.lab.machine import JournalLine, LabMachine, Timer
from rollout.lab.service import LabService, UnitPhase

# The nodes' command search path: our stand-ins, and the host's tools without the host's own cluster software.


ASKING = ("systemctl", "systemd-run", "journalctl", "curl", "clock-step")
"""Stand-ins that use the lab's state table; all are the same script ``ask``."""
_HIDDEN = frozenset(
    (
        *ASKING,
        *(
            "sudo",
            "wget",
            "bash",  # it would ask a kubelet of this machine
            "nerdctl",
            "podman",
        ),
        *(tool for known in KNOWN for tool in known.pull_tools),
        *(daemon.program for daemon in DAEMONS),
        *(PurePosixPath(daemon.stand_in.program).name for daemon in DAEMONS),
        *("kubelet", "kubeadm", "kubectl", "hostname", "machinectl", "reboot", "shutdown", "poweroff", "halt", "init"),
        "logger",  # it would write to this machine's journal
        *("loginctl", "hostnamectl", "timedatectl", "busctl", "systemd-analyze", "telinit", "runlevel"),
    )
)


def install(directory: Path) -> None:
    """Fill ``directory/bin`` (stand-ins) and ``directory/base`` (links to the host's tools)."""
    ours, base = directory / "bin", directory / "base"
    ours.mkdir()
    base.mkdir()
    for entry in files("rollout.lab").joinpath("standins").iterdir():
        if entry.name != "stat" or _in_memory(directory):
            path = ours / entry.name
            path.write_text(entry.read_text(encoding="utf-8"), encoding="utf-8")
            path.chmod(0o555)
    for name in ASKING:
        (ours / name).hardlink_to(ours / "ask")
    seen = set(_HIDDEN)
    for folder in ("/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        for tool in Path(folder).iterdir() if Path(folder).is_dir() else ():
            if tool.name not in seen:
                seen.add(tool.name)
                (base / tool.name).symlink_to(tool)


def _in_memory(directory: Path) -> bool:
    """Whether the lab is on a file system that an agent would refuse, because it does not survive a reboot."""
    shown = subprocess.run(["stat", "-f", "-c", "%T", str(directory)], capture_output=True, text=True, check=False)
    return shown.stdout.strip() in {"tmpfs", "ramfs"}


def search_path(directory: Path, root: str) -> str:
    """``PATH`` on a node."""
    return f"{directory}/bin:{root}/usr/bin:{directory}/base"


_PRECISE = 1.0
"""Up to this accuracy a timer is on time; above it, it is late by half of the accuracy (systemd may pick any time)."""


def answer(machine: LabMachine, tool: str, arguments: tuple[str, ...], now: float, wall: float) -> ToolOutput:
    """Run ``tool``. ``wall`` is the wall time of ``now``, for ``journalctl --since``."""
    if tool == "journalctl":
        return journalctl(machine, arguments, now - wall)
    if tool == "systemctl":
        return systemctl.answer(machine, arguments, now, wall - now)
    asked = _TOOLS.get(tool)
    return asked(machine, arguments, now) if asked else failed(127, f"{tool}: not in the lab")


def systemd_run(machine: LabMachine, arguments: tuple[str, ...], now: float) -> ToolOutput:
    """``systemd-run --on-active=…``: a transient timer. Without it: the command as a transient service, now."""
    options: dict[str, list[str]] = {}
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        if word == "--":
            break
        name, equals, value = word.partition("=")
        if not equals and name in {
            "-u",
            "--unit",
            "-p",
            "--property",
            "-E",
            "--setenv",
            "--on-active",
            "--description",
        }:
            value = rest.pop(0) if rest else ""
        options.setdefault({"-u": "--unit", "-p": "--property", "-E": "--setenv"}.get(name, name), []).append(value)
    if not rest:
        return failed(1, "Command line to execute required.")
    try:
        delay = units.seconds(options.get("--on-active", ["0"])[-1])
        accuracy = units.seconds(dict(_pairs(options, "--timer-property")).get("AccuracySec", "1min"))
    except ValueError as error:
        return failed(1, f"Failed to parse argument: {error}")
    command = tuple(rest)
    name = re.sub(r"\.(timer|service)$", "", options.get("--unit", [f"run-r{machine.host.pid():x}"])[-1])
    timed = "--on-active" in options
    late = accuracy / 2 if timed and accuracy > _PRECISE else 0.0
    variables = dict(_pairs(options, "--setenv"))
    entries = {key: (value,) for key, value in _pairs(options, "--property")}
    timer = Timer(f"{name}.service", now + delay + late, command, variables, accuracy=accuracy, entries=entries)
    if not machine.arm(timer, now):
        kind = "timer" if timed else "service"
        return failed(
            1, f"Failed to start transient {kind} unit: Unit {name}.{kind} was already loaded or has a fragment file."
        )
    if not timed:
        machine.advance(now)
        first = machine.unit(f"{name}.service").last("ExecStartPre").removeprefix("-")
        service = machine.service(f"{name}.service")
        return ToolOutput(
            err=(f"Running as unit: {name}.service",),
            first=tuple(first.split()),
            invocation=service.invocation if service else "",
        )
    return ToolOutput(err=(f"Running timer as unit: {name}.timer", f"Will run service as unit: {name}.service"))


def _pairs(options: dict[str, list[str]], name: str) -> list[tuple[str, str]]:
    return [(key, value) for key, _, value in (text.partition("=") for text in options.get(name, []))]


def journalctl(machine: LabMachine, arguments: tuple[str, ...], offset: float) -> ToolOutput:
    """The journal of a unit or of processes; ``offset`` plus wall time is the machine's time."""
    options: dict[str, str] = {}
    pids: set[str] = set()
    asked: set[str] = set()
    rest = list(arguments)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if not equals and name in _LONG and rest:
            value = rest.pop(0)
        if name == "_PID":
            pids.add(value)  # the same field twice means either
        options[_LONG.get(name, name)] = value
        if _LONG.get(name) == "--unit":
            asked.add(systemctl.full_name(value))
    said = (line for line in machine.journal if not pids or str(line.pid) in pids)
    lines = [line for line in said if _wanted(options, asked, machine, line, offset)]
    shown = lines[-int(options["--lines"]) :] if "--lines" in options else lines
    if options.get("--output") == "cat":
        return ToolOutput(out=tuple(line.text for line in shown))
    if options.get("--output") == "short-iso":
        stamps = (datetime.fromtimestamp(line.when - offset, UTC) for line in shown)
        lines_of = zip(stamps, shown, strict=True)
        return ToolOutput(
            out=tuple(
                f"{at:%Y-%m-%dT%H:%M:%S%z} node {line.identifier}[{line.pid}]: {line.text}" for at, line in lines_of
            )
        )
    texts = [f"[{line.when:.6f}] node {line.identifier}[{line.pid}]: {line.text}" for line in shown]
    return ToolOutput(out=tuple(texts) or ("-- No entries --",))


_LONG = {
    "-u": "--unit",
    "-S": "--since",
    "-U": "--until",
    "-n": "--lines",
    "-o": "--output",
    "-g": "--grep",
    **{name: name for name in ("--unit", "--since", "--until", "--lines", "--output", "--grep")},
}


def _wanted(
    options: Mapping[str, str], asked: Collection[str], machine: LabMachine, line: JournalLine, offset: float
) -> bool:
    if asked and not any(_belongs(unit, line) for unit in asked):
        return False
    if "--since" in options and line.when < _since(options["--since"], machine, offset):
        return False
    if "--until" in options and line.when > _since(options["--until"], machine, offset):
        return False
    return "--grep" not in options or _grep(options["--grep"], line.text)


def _grep(pattern: str, text: str) -> bool:
    """journalctl ignores case when the pattern is all lower case."""
    return re.search(pattern, text, re.IGNORECASE if pattern == pattern.lower() else 0) is not None


def _belongs(unit: str, line: JournalLine) -> bool:
    if line.identifier == "systemd":
        return unit in line.text
    return f"{line.identifier}.service" == unit


def _since(value: str, machine: LabMachine, offset: float) -> float:
    if value.startswith("@"):
        return float(value[1:]) + offset
    if value.startswith("-"):
        latest = machine.journal[-1].when if machine.journal else 0.0
        return latest - units.seconds(value[1:])
    return 0.0


def curl(machine: LabMachine, arguments: tuple[str, ...], now: float) -> ToolOutput:
    """One GET of the kubelet's own health endpoint."""
    url, most, template, discard = "", 300.0, "", False
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        takes = name in {"-m", "--max-time", "-w", "--write-out", "-o", "--output", "--connect-timeout", "--noproxy"}
        takes = takes or re.fullmatch(r"-[a-zA-Z]*[mwo]", name) is not None
        if takes and not equals and rest:
            value = rest.pop(0)
        if name == "--max-time" or re.fullmatch(r"-[a-zA-Z]*m", name):
            most = float(value)
        elif name == "--write-out" or re.fullmatch(r"-[a-zA-Z]*w", name):
            template = value
        elif name == "--output" or re.fullmatch(r"-[a-zA-Z]*o", name):
            discard = True
        elif not name.startswith("-"):
            url = word
    reply = _get(machine, url, now, most)
    if not isinstance(reply, str):
        return reply
    code = "200" if reply == "ok" else "404"
    shown = "" if discard else reply
    return ToolOutput(bare=shown + template.replace("%{http_code}", code).replace("\\n", "\n"))


def _get(machine: LabMachine, url: str, now: float, most: float) -> ToolOutput | str:
    parts = urlsplit(url if "//" in url else f"http://{url}")
    port = parts.port or 80
    if port == machine.taken:
        return "ok"
    running = [service for service in machine.kubelets() if _listens(service, port, now)]
    if not running:
        message = f"curl: (7) Failed to connect to {parts.hostname} port {port} after 0 ms: Couldn't connect to server"
        return failed(7, message)
    if machine.ailments.silent(running[0].start, now):
        message = f"curl: (28) Operation timed out after {most * 1000:.0f} milliseconds with 0 bytes received"
        return ToolOutput(err=(message,), status=28, delay=most)
    return "ok" if parts.path == "/healthz" else "404 page not found"


def _listens(service: LabService, port: int, now: float) -> bool:
    stays = service.ends is None or service.start.life > START_UP
    settled = service.phase is UnitPhase.RUNNING and stays and now >= service.started + START_UP
    return settled and service.start.healthz_port == port != 0


_TOOLS: Mapping[str, Callable[[LabMachine, tuple[str, ...], float], ToolOutput]] = {
    "systemd-run": systemd_run,
    "curl": curl,
}
