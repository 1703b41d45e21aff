"""The state of one node: its units, timers, journal and faults. Time is an input; effects go through ``Host``.

All answers of stand-ins come from here. Processes of simulated daemons exist only as numbers and ``/proc`` entries;
the host really runs commands of timers and boot units.
"""

from __future__ import annotations

import shlex
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol
from uuid import uuid4

from rollout.kubelet.runtimes.stand_in import PullLines
from rollout.lab import embedded, kubelet, pulls, runtimes, units
from rollout.lab.kubelet_faults import Ailments
from rollout.lab.pods import LabPods
from rollout.lab.runtimes import STAND_INS
from rollout.lab.service import LabService, UnitPhase
from rollout.lab.units import MissingFileError, Tree, Unit, argv, environment

KUBELET = "kubelet.service"
KUBELETS = (KUBELET, embedded.UNIT)
DAEMONS = (*KUBELETS, *STAND_INS)
"""Units with a simulated process; commands of all other units are really run."""


class Host(Protocol):
    """The effects of a node's machine on the host."""

    def pid(self) -> int:
        """A pid that no real process has."""

    def appear(self, pid: int, arguments: tuple[str, ...], started: float, port: int, parent: int = 1) -> None:
        """A simulated process started. It listens on ``port`` of 127.0.0.1, unless that is 0."""

    def vanish(self, pid: int) -> None:
        """… and ended."""

    def run(self, unit: str, arguments: tuple[str, ...], variables: Mapping[str, str]) -> None:
        """Really run a unit's command; ``LabMachine.ended`` is called at its end."""

    def kill(self, unit: str) -> None:
        """Kill a unit's real command."""

    def log(self, path: str, lines: Iterator[str]) -> None:
        """Lines are added to a file."""

    def lay(self, path: str) -> None:
        """A layer of a pull exists or is written."""

    def lift(self, path: str) -> None:
        """… and ended."""


@dataclass(frozen=True, slots=True)
class JournalLine:
    """A journal line: time (monotonic), source, text."""

    when: float
    pid: int
    identifier: str
    text: str


@dataclass(slots=True)
class Timer:
    """A transient timer: at ``when`` its service runs the command, then both are forgotten."""

    service: str
    when: float
    arguments: tuple[str, ...]
    variables: Mapping[str, str]
    accuracy: float = 60.0
    entries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fired: bool = False
    invocation: str = field(default_factory=lambda: uuid4().hex)


@dataclass(slots=True)
class LabMachine:
    """One node. Call ``advance`` before anything else; ``due`` is the time of the next call."""

    version: str
    tree: Tree
    host: Host
    services: dict[str, LabService] = field(default_factory=dict)
    timers: dict[str, Timer] = field(default_factory=dict)
    journal: deque[JournalLine] = field(default_factory=lambda: deque(maxlen=300))
    ailments: Ailments = field(default_factory=Ailments)
    pods: LabPods = field(default_factory=LabPods)
    booting: set[str] = field(default_factory=set)
    runtime_version: str = ""
    pulling: bool = False
    taken: int = 0  # the kubelet's health port, while a process of another user listens on it
    pulled: int = 0  # images, by the kubelet that runs

    def advance(self, now: float) -> None:
        """Run all scheduled changes up to ``now``, in their order."""
        while (moment := self.due()) is not None and moment <= now:
            for timer in [timer for timer in self.timers.values() if not timer.fired and timer.when <= moment]:
                timer.fired = True
                self.run_command(timer.service, timer.arguments, timer.variables, moment)
            for name, service in list(self.services.items()):
                if service.ends is not None and service.ends <= moment:
                    status = service.start.status or 0
                    self._vanish(service, moment)
                    service.end(moment, status)
                    word = f"{status}/EXCEPTION" if status == 255 else f"{status}/FAILURE"
                    self.say(moment, 1, "systemd", f"{name}: Main process exited, code=exited, status={word}")
                    self.say(moment, 1, "systemd", f"{name}: Failed with result 'exit-code'.")
                elif service.wakes is not None and service.wakes <= moment:
                    service.restarts += 1
                    self.say(
                        moment,
                        1,
                        "systemd",
                        f"{name}: Scheduled restart job, restart counter is at {service.restarts}.",
                    )
                    self._launch(name, service, moment)
            if self.ailments.strike(moment):
                self._collapse(moment)

    def due(self) -> float | None:
        """The time of the next scheduled change."""
        times = [service.due for service in self.services.values()]
        times += [timer.when for timer in self.timers.values() if not timer.fired]
        known = [moment for moment in (*times, self.ailments.due) if moment is not None]
        return min(known) if known else None

    def unit(self, name: str) -> Unit:
        """The unit as loaded; loads it on the first request."""
        service = self.services.get(name)
        return service.unit if service else units.load(self.tree, name)

    def service(self, name: str) -> LabService | None:
        """The service; loads it on the first request if it exists."""
        if name not in self.services:
            unit = units.load(self.tree, name)
            if unit.load_state != "loaded":
                return None
            self.services[name] = LabService(unit)
        return self.services[name]

    def reload(self) -> None:
        """``daemon-reload``: read every unit file again; running processes are not touched."""
        for name, service in list(self.services.items()):
            service.unit = units.load(self.tree, name) if not self.transient(name) else service.unit
            if service.unit.load_state != "loaded" and service.phase in {UnitPhase.STOPPED, UnitPhase.FAILED}:
                del self.services[name]

    def transient(self, name: str) -> bool:
        """Whether a unit exists only because of ``systemd-run``."""
        service = self.services.get(name)
        return name in self.timers or (service is not None and service.unit.fragment.startswith("/run/systemd/trans"))

    def start(self, name: str, now: float) -> bool:
        """``systemctl start``: false when no process could be created."""
        service = self.service(name)
        if service is None:
            return False
        if service.phase in {UnitPhase.RUNNING, UnitPhase.WAITING, UnitPhase.ONESHOT}:
            return True
        return self._launch(name, service, now)

    def stop(self, name: str, now: float) -> None:
        """``systemctl stop`` of a service or a transient timer."""
        timer = self.timers.get(name)
        if timer is not None:
            del self.timers[name]
            if not timer.fired:
                self.services.pop(timer.service, None)
            return
        service = self.services.get(name)
        if service is None:
            return
        if service.phase in {UnitPhase.RUNNING, UnitPhase.WAITING}:
            self.say(now, 1, "systemd", f"Stopped {self.title(service)}.")
        if name not in DAEMONS:
            self.host.kill(name)
        self._vanish(service, now)
        service.stop(now)
        if self.transient(name):
            self._forget(name)

    def restart(self, name: str, now: float) -> bool:
        """``systemctl restart``: stop, then start; true for a kubelet that will exit at once, as on a real node."""
        self.stop(name, now)
        return self.start(name, now)

    def arm(self, timer: Timer, now: float) -> bool:
        """``systemd-run --on-active``: false when the unit exists already."""
        name = timer.service.removesuffix(".service") + ".timer"
        if name in self.timers or self.service(timer.service) is not None:
            return False
        self.timers[name] = timer
        described = " ".join(timer.arguments)
        entries = {"Description": (described,), **timer.entries, "ExecStart": (shlex.join(timer.arguments),)}
        self.services[timer.service] = LabService(units.transient(self.tree, timer.service, entries))
        self.say(now, 1, "systemd", f"Started {' '.join(timer.arguments)[:80]}.")
        return True

    def ended(self, name: str, status: int, now: float) -> None:
        """A unit's real command has ended."""
        service = self.services.get(name)
        self.booting.discard(name)
        if service is not None:
            self._vanish(service, now)
            service.end(now, status)
            stays = service.unit.last("RemainAfterExit") in {"yes", "true"} and not status
            service.phase = UnitPhase.EXITED if stays else service.phase
            if self.transient(name) and service.phase is not UnitPhase.WAITING:
                self._forget(name)

    def _forget(self, name: str) -> None:
        """A transient service, and its timer."""
        self.services.pop(name, None)
        self.timers.pop(name.removesuffix(".service") + ".timer", None)

    def power_off(self, now: float) -> None:
        """Everything in memory is lost: processes, transient units, the journal (volatile here)."""
        for service in self.services.values():
            self._vanish(service, now)
        self.services.clear()
        self.timers.clear()
        self.journal.clear()
        self.booting.clear()

    def power_on(self, now: float) -> None:
        """Boot: first the enabled units that really run, then (``booted``) the daemons."""
        wanted = {
            name
            for target in ("basic", "multi-user")
            for name in self.tree.names(f"/etc/systemd/system/{target}.target.wants")
        }
        mine = [name for name in wanted if name.endswith(".service") and name not in DAEMONS]
        self.booting.update(name for name in mine if self.service(name) is not None)
        for name in sorted(self.booting):
            self.start(name, now)

    def booted(self, now: float) -> None:
        """The boot units are done: start the existing daemons that are not masked."""
        self.pods.rebooted(now)
        for name in DAEMONS:
            self.start(name, now)

    def never_ready(self, name: str) -> bool:
        """Whether a started ``Type=notify`` service exits before it is ready: a restart reports it."""
        service = self.services.get(name)
        return service is not None and service.start.status is not None and service.unit.last("Type") == "notify"

    def hang_up(self, name: str, now: float) -> bool:
        """SIGHUP for a unit's main process: false when there is none. A process without a handler dies."""
        service = self.services.get(name)
        if service is None or service.phase is not UnitPhase.RUNNING or not service.pid:
            return False
        lines = runtimes.reload(name, service.arguments, self.tree) if name in DAEMONS else None
        if lines is None and name in DAEMONS:
            self._vanish(service, now)
            service.end(now, 1)
        for text in lines or ():
            self.say(now, service.pid, identifier(service), text)
        return True

    def pull(self, now: float) -> None:
        """The kubelet has requested an image; the pull does not end by itself."""
        self.end_pull(now)
        if not any(service.phase is UnitPhase.RUNNING for service in self.kubelets()):
            return
        self.pulling = True
        self._tell_pull(now, lambda words: words.begins)

    def end_pull(self, now: float) -> None:
        """The image is pulled."""
        if self.pulling:
            self.pulling = False
            self.pulled += 1
            self._tell_pull(now, lambda words: words.ends)

    def _tell_pull(self, now: float, choose: Callable[[PullLines], str]) -> None:
        running = {name for name, service in self.services.items() if service.phase is UnitPhase.RUNNING}
        for name, words in pulls.pullers(running):
            service = self.services[name]
            if choose(words):
                self.say(now, service.pid, identifier(service), choose(words))
            if words.layer:
                (self.host.lay if self.pulling else self.host.lift)(words.layer)

    def say(self, now: float, pid: int, identifier: str, text: str) -> None:
        """Write a journal line."""
        self.journal.append(JournalLine(now, pid, identifier, text))

    def title(self, service: LabService) -> str:
        """A unit as systemd names it in its messages."""
        return f"{service.unit.name} - {service.unit.last('Description', service.unit.name)}"

    def kubelets(self) -> Iterator[LabService]:
        """The kubelet, if it is loaded."""
        yield from (self.services[name] for name in KUBELETS if name in self.services)

    def run_command(self, name: str, arguments: tuple[str, ...], variables: Mapping[str, str], now: float) -> None:
        """Really run a unit's command."""
        service = self.services[name]
        oneshot = service.unit.last("Type") == "oneshot"
        service.begin(now, self.host.pid(), arguments, kubelet.ProgramStart())
        self.host.appear(service.pid, arguments, now, 0)
        service.phase = UnitPhase.ONESHOT if oneshot else UnitPhase.RUNNING
        self.host.run(name, arguments, {**variables, "INVOCATION_ID": service.invocation})

    def _launch(self, name: str, service: LabService, now: float) -> bool:
        try:
            variables = environment(self.tree, service.unit)
        except MissingFileError as error:
            self.say(now, 1, "systemd", f"{name}: Failed to load environment files: {error}: No such file or directory")
            service.end(now, 1)
            service.result = "resources"
            return False
        arguments = argv(service.unit.last("ExecStart"), variables)
        if name not in DAEMONS:
            self.run_command(name, arguments, variables, now)
            return True
        if name == embedded.UNIT:
            return self._launch_embedded(service, arguments, now)
        if name == KUBELET:
            start = self.ailments.spoil(kubelet.start(self.version, arguments, self.tree, variables), now)
        else:
            start = runtimes.start(name, self.runtime_version, arguments, self.tree)
        pid = self.host.pid()
        service.begin(now, pid, arguments, start)
        stays = start.status is None or start.life > kubelet.START_UP
        self.host.appear(pid, arguments, now, start.healthz_port if stays else 0)
        if name == KUBELET and stays:
            self.pods.kubelet_started(start.fingerprint, now, start.values)
        self.say(now, 1, "systemd", f"Started {self.title(service)}.")
        for text in start.journal:
            self.say(now, pid, identifier(service), text)
        return True

    def _launch_embedded(self, service: LabService, arguments: tuple[str, ...], now: float) -> bool:
        """A kubelet that cannot start leaves its unit active: it would be started again and again."""
        words = embedded.arguments(self.tree, kubelet.minor_of(self.version))
        begun = self.ailments.spoil(kubelet.start(self.version, words, self.tree), now)
        pid = self.host.pid()
        service.begin(
            now, pid, arguments, replace(begun, status=None, healthz_port=0) if begun.status is not None else begun
        )
        self.host.appear(pid, arguments, now, 0)
        self.say(now, 1, "systemd", f"Started {self.title(service)}.")
        child = self.host.pid()
        self.host.log(embedded.LOG, embedded.logged(begun.journal, child))
        if begun.status is None:
            service.child = child
            self.host.appear(child, words, now, begun.healthz_port, pid)
            self.pods.kubelet_started(begun.fingerprint, now)
        return True

    def _collapse(self, now: float) -> None:
        for service in self.kubelets():
            spoilt = self.ailments.spoil(service.start, now)
            if service.child and spoilt.status is not None:  # its unit stays active
                self.host.vanish(service.child)
                self.host.log(embedded.LOG, embedded.logged(spoilt.journal[-1:], service.child))
                service.child, service.start = 0, replace(spoilt, status=None, healthz_port=0)
            elif service.phase is UnitPhase.RUNNING and spoilt.status is not None:
                service.start, service.ends = spoilt, now
                self.say(now, service.pid, "kubelet", spoilt.journal[-1])

    def _vanish(self, service: LabService, now: float) -> None:
        if service.pid and service.unit.name in DAEMONS and self.pulling:
            self.pulling = False
            self._tell_pull(now, lambda words: words.cancelled)
        if service.pid:
            self.host.vanish(service.pid)
        if service.child:
            self.host.vanish(service.child)
            service.child = 0
        if service.pid and service.unit.name in KUBELETS:
            self.pods.kubelet_ended(now)
            self.pulled = 0


def identifier(service: LabService) -> str:
    """The name of the unit's program in the journal."""
    return service.arguments[0].rpartition("/")[2] if service.arguments else service.unit.name.removesuffix(".service")
