"""One node of the fleet: its tree, its machine, its listener. Everything here runs in the loop's thread."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import paramiko

from rollout.lab import children, disk, layouts, listener, runtimes, syscalls, tools, trees
from rollout.lab.answers import ToolOutput
from rollout.lab.disk import Disk
from rollout.lab.keys import USER, Key
from rollout.lab.loop import Loop
from rollout.lab.machine import LabMachine
from rollout.lab.session import LabSession, Reply, StateLine, Verbs, is_conversation
from rollout.lab.spec import NodeSpec
from rollout.lab.sshd import Connection, decline

_PIDS = itertools.count(5_000_001)
"""Simulated processes: above the kernel's highest process id (2**22), so that a ``kill`` can never hit a real one."""


_OF_ANOTHER_USER = 1
"""The number of a socket that belongs to no process of the node's units."""


class LabNode:
    """A node that serves. ``mark`` is in the environment of every process of the node and of no other."""

    def __init__(self, loop: Loop, spec: NodeSpec, directory: Path, mark: str, ahead: float) -> None:
        self.spec, self.root, self.loop = spec, directory / "nodes" / spec.name, loop
        version = runtimes.version(spec.runtime, spec.runtime_version)
        self.machine = LabMachine(spec.version, trees.DiskTree(self.root), self, runtime_version=version)
        self.sessions: dict[paramiko.Channel, LabSession] = {}
        self.connections: set[Connection] = set()
        self.cut_after: float | None = None
        self.disk = Disk(loop, str(self.root), self._reached)
        self.stranger: Key | None = None
        self.babble = ""
        self.clock_step = 0.0
        self.is_off, self.boot = True, 0
        self._awaited: dict[str, list[Callable[[], None]]] = {}
        self._rubbish = directory / "garbage" / spec.name
        self._ahead, self._mark = ahead, f"{mark}/{spec.name}/"
        self._running: dict[str, int] = {}
        self._listens: dict[int, int] = {}
        self._groups: dict[int, str] = {}
        self._lines: set[StateLine] = set()
        self._parked: list[Callable[[], None]] = []
        self._scheduled: float | None = None
        self._environment = {
            "PATH": tools.search_path(directory, str(self.root)),
            "HOME": f"{self.root}/root",
            "TMPDIR": f"{self.root}/tmp",  # noqa: S108
            "USER": USER,
            "LOGNAME": USER,
            "SHELL": "/bin/sh",
            "ROLLOUT_ROOT": str(self.root),
            "ROLLOUT_LAB": self._mark,
        }

    def pid(self) -> int:
        return next(_PIDS)

    def appear(self, pid: int, arguments: tuple[str, ...], started: float, port: int, parent: int = 1) -> None:
        folder = f"{self.root}/proc/{pid}"
        os.mkdir(folder)  # noqa: PTH102 (2,000 at once)
        name = os.path.basename(arguments[0]) if arguments else ""  # noqa: PTH119 (a node's path, not ours)
        stat = f"{pid} ({name}) S {parent} {pid} {pid} 0 -1 4194560 {'0 ' * 12}{round(started * 100)} 0 0\n"
        _write(f"{folder}/cmdline", "".join(f"{word}\0" for word in arguments).encode())
        _write(f"{folder}/stat", stat.encode())
        _write(f"{folder}/comm", f"{name[:15]}\n".encode())
        unit = next((unit for unit, service in self.machine.services.items() if service.pid == pid), "")
        if unit in runtimes.STAND_INS:
            self._groups[pid] = f"{self.root}{layouts.control_groups(self.spec.minor)}/system.slice/{unit}"
            os.makedirs(self._groups[pid], exist_ok=True)  # noqa: PTH103
            _write(f"{self._groups[pid]}/cgroup.procs", f"{pid}\n".encode())
        os.symlink(self.root, f"{folder}/root")  # noqa: PTH211 (2,000 at once)
        if port:
            os.mkdir(f"{folder}/fd")  # noqa: PTH102
            os.symlink(f"socket:[{pid}]", f"{folder}/fd/3")  # noqa: PTH211
            self._listens[pid] = port
            self._show_sockets()

    def log(self, path: str, lines: Iterator[str]) -> None:
        with (self.root / path.lstrip("/")).open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)

    def vanish(self, pid: int) -> None:
        shutil.rmtree(f"{self.root}/proc/{pid}", ignore_errors=True)
        if group := self._groups.pop(pid, ""):
            shutil.rmtree(group, ignore_errors=True)
        if self._listens.pop(pid, 0):
            self._show_sockets()

    def _show_sockets(self) -> None:
        """The kernel's table of TCP sockets; the number of a socket is that of its process."""
        taken = self.machine.taken
        listens = {pid: port for pid, port in self._listens.items() if port != taken}
        if taken:
            listens[_OF_ANOTHER_USER] = taken
        rows = [
            f"   0: 0100007F:{port:04X} 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 {number} 1 0 100 0 0 10 0\n"
            for number, port in listens.items()
        ]
        os.makedirs(f"{self.root}/proc/net", exist_ok=True)  # noqa: PTH103
        _write(f"{self.root}/proc/net/tcp", "".join(("  sl  local_address rem_address   st\n", *rows)).encode())

    def take_port(self, port: int) -> None:
        """A process of another user listens on ``port``, and the kubelet does not; 0: no longer."""
        self.machine.taken = port
        self._show_sockets()

    def run(self, unit: str, arguments: tuple[str, ...], variables: Mapping[str, str]) -> None:
        try:
            child = children.spawn(self._watched(arguments), {**self._environment, **variables}, piped=False)
        except OSError:
            self._running[unit] = 0
            self.loop.call(partial(self._unit_ended, unit, 0, 203))
            return
        self._running[unit] = child.pid
        StateLine(self.loop, child.line, self._ask, self._lines)
        children.on_end(self.loop, child.pid, partial(self._unit_ended, unit, child.pid))

    def kill(self, unit: str) -> None:
        pid = self._running.get(unit)
        if pid:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGTERM)

    def lay(self, path: str) -> None:
        layer = Path(f"{self.root}{path}")
        layer.parent.mkdir(parents=True, exist_ok=True)
        layer.write_bytes(b"a layer, so far")

    def lift(self, path: str) -> None:
        Path(f"{self.root}{path}").unlink(missing_ok=True)

    def _unit_ended(self, unit: str, pid: int, status: int) -> None:
        if self._running.get(unit) != pid:  # from before a power cut
            return
        del self._running[unit]
        booting = bool(self.machine.booting)
        self.machine.ended(unit, status, self.loop.now())
        if booting and not self.machine.booting:
            self._booted()
        self.settle()

    def settle(self) -> None:
        """Run all due changes, and schedule the next call."""
        now = self.loop.now()
        self.machine.advance(now)
        due = self.machine.due()
        if due is not None and (self._scheduled is None or due < self._scheduled):
            self._scheduled = due
            self.loop.at(due, partial(self._tick, due))

    def _tick(self, moment: float) -> None:
        if self._scheduled == moment:
            self._scheduled = None
        self.settle()

    def power_on(self) -> None:
        """Boot: the units that guard a transaction first, then the daemons."""
        self.is_off = False
        self.machine.power_on(self.loop.now())
        if not self.machine.booting:
            self._booted()
        self.settle()

    def power_cut(self) -> int:
        """Everything in memory is lost: processes, connections, /run, transient timers. Returns how often."""
        self.is_off, self.boot = True, self.boot + 1
        children.kill_marked("ROLLOUT_LAB", self._mark)
        for connection in list(self.connections):
            connection.cut()
        for line in list(self._lines):  # pending requests are lost, too
            line.close()
        self.disk.power_off()
        self._parked.clear()
        self._running.clear()
        self.machine.power_off(self.loop.now())
        for entry in (self.root / "run").iterdir():
            shutil.rmtree(entry, ignore_errors=True)
        trees.new_boot_id(str(self.root))
        return self.boot

    def _booted(self) -> None:
        self.machine.booted(self.loop.now())
        parked, self._parked = self._parked, []
        for again in parked:
            again()

    def await_moment(self, moment: str, act: Callable[[], None]) -> None:
        """Call once, when a transaction on this node reaches a moment (``faults.MOMENTS``)."""
        if moment in disk.MOMENTS:
            disk.check()
        self._awaited.setdefault(moment, []).append(act)
        self.disk.awaited.add(moment)
        self.end_conversations()

    def await_nothing(self, moment: str) -> None:
        """Cancel the wait for this moment."""
        self._awaited.pop(moment, None)
        self.disk.awaited.discard(moment)

    def _reached(self, moment: str) -> None:
        acts = self._awaited.get(moment, ())
        self.await_nothing(moment)
        for act in acts:
            act()

    def _watched(self, arguments: tuple[str, ...]) -> tuple[str, ...]:
        return syscalls.command(arguments) if self.disk.is_watched else arguments

    def welcome(self, client: socket.socket, authorized: bytes, host_key: Key) -> None:
        """A client has connected."""
        connection = Connection(self.loop, client, authorized, self._start, self._touch, self._gone)
        self.connections.add(connection)
        connection.serve((self.stranger or host_key).loaded())

    def _start(self, connection: Connection, channel: paramiko.Channel, line: str) -> None:
        try:
            child = children.spawn(self._watched(self._command(line)), self._environment, piped=True)
        except (OSError, ValueError) as error:  # a line too long, no descriptor left
            decline(channel, f"cannot start a command: {error}")
            return
        StateLine(self.loop, child.line, self._ask, self._lines)
        forget = partial(self.sessions.pop, channel, None)
        verbs = Verbs(line, partial(self._verb_begins, connection), self._verb_ended)
        prepared = bool(self.disk.awaited)
        self.sessions[channel] = LabSession(self.loop, channel, child, verbs, forget, prepared=prepared)

    def _verb_begins(self, connection: Connection, verb: str) -> None:
        if verb != "apply":
            return
        self._reached(verb)
        if self.cut_after is not None:
            self.loop.at(self.loop.now() + self.cut_after, connection.cut)

    def end_conversations(self) -> None:
        """For faults of commands that start later: the next verb starts another conversation."""
        for session in self.sessions.values():
            session.end_conversation()

    def spoil(self, kind: str) -> None:
        """Every later answer is garbage, or output without an end. ``""``: the answers are normal again."""
        self.babble = kind
        endless = self._rubbish.with_name(f"{self._rubbish.name}.endless")
        if kind:
            self._rubbish.parent.mkdir(exist_ok=True)
            self._rubbish.write_bytes(listener.garbage(self.spec.name))
        if kind == listener.ENDLESS:
            endless.touch()
        else:
            endless.unlink(missing_ok=True)
        if not kind:
            self._rubbish.unlink(missing_ok=True)
        self.end_conversations()

    def _command(self, line: str) -> tuple[str, ...]:
        if is_conversation(line) and (self.babble or self.disk.awaited):
            return listener.may_spoil(line, str(self._rubbish))
        if self.babble:
            return listener.spoilt(self.babble, line, str(self._rubbish))
        return ("/bin/sh", "-c", line)

    def _gone(self, connection: Connection) -> None:
        self.connections.discard(connection)
        for channel, session in list(self.sessions.items()):
            if channel.closed:
                session.hang_up()

    def _touch(self, channel: paramiko.Channel) -> None:
        session = self.sessions.get(channel)
        if session is not None:
            session.touch()

    def _verb_ended(self, verb: str, status: int) -> None:
        if verb == "confirm" and status == 0:
            self.machine.ailments.confirmed(self.loop.now())
            self.settle()

    def _ask(self, tool: str, words: tuple[str, ...], reply: Reply) -> None:
        now = self.loop.now()
        if tool == "listener":  # a command with held calls from here on
            self.disk.adopt(*map(int, words))
            reply(ToolOutput())
            return
        if tool == "clock-step":
            reply(ToolOutput(out=(f"{self.clock_step:.0f}",)))
            return
        self.machine.advance(now)
        answer = tools.answer(self.machine, tool, words, now, now + self.ahead)
        if answer.after_boot:
            self._parked.append(partial(self._ask, tool, words, reply))
        elif answer.delay:
            self.loop.at(now + answer.delay, partial(reply, answer))
        elif answer.first:
            child = children.spawn(
                self._watched(answer.first), {**self._environment, "INVOCATION_ID": answer.invocation}, piped=False
            )
            StateLine(self.loop, child.line, self._ask, self._lines)
            children.on_end(self.loop, child.pid, lambda _: reply(answer))
        else:
            reply(answer)
        self.settle()

    @property
    def ahead(self) -> float:
        """Seconds by which the node's own clock is ahead of the lab's."""
        return self._ahead + self.clock_step

    def state(self) -> str:
        """One word for ``lab status``."""
        if self.machine.booting:
            return "booting"
        for service in self.machine.kubelets():
            if service.phase.value == ("activating", "auto-restart") or service.ends is not None:
                return "crash-looping"
            return {"active": "running", "inactive": "stopped"}.get(service.phase.value[0], service.phase.value[0])
        return "off"


def _write(path: str, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o444)
    os.write(descriptor, data)
    os.close(descriptor)
