"""A node in a folder: the real agent under a real shell, with stand-ins for systemd around it."""

from __future__ import annotations

import fcntl
import hashlib
import re
import shutil
import signal
import subprocess
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rollout.adapters.agent_program import agent_program
from rollout.core.model.freeze import NodeFreeze
from rollout.core.model.plan import Change, FileChange
from rollout.core.model.report import RemoteAnswer, RemoteCommand, Report
from rollout.core.model.snapshot import Snapshot, Unread
from rollout.core.model.verification import Verification
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_answer import parse_report, parse_snapshot, parse_verification
from rollout.kubelet.agent.agent_call import ApplyOrder
from tests.controllers import until

PROGRAM = agent_program()
STANDINS = Path(__file__).parent / "standins"
TIME = Path(__file__).parent / "time"
"""More stand-ins: with them the node's clock moves only when something sleeps or hangs, and then at once."""
MACHINE = "0123456789abcdef0123456789abcdef"
BOOTED_FOR = 10_000.0
"""Seconds, at the start of a test."""
CONFIG = "/var/lib/kubelet/config.yaml"
FLAGS = "/etc/default/kubelet"
DROPIN = "/etc/systemd/system/kubelet.service.d/90-rollout.conf"
SHELLS = ("dash", "busybox", "bash")
"""The ``sh`` of Debian, of the smallest systems and of RHEL."""
PATIENCE = 600.0
"""Seconds after which a hanging test is ended: a safety net, not a verdict."""

OLD: Mapping[str, bytes | None] = {CONFIG: b"old config\n", FLAGS: b"OLD=1\n", DROPIN: None}
NEW: Mapping[str, bytes | None] = {CONFIG: b"new config\n", FLAGS: b"NEW=1\nMORE=2\n", DROPIN: b"[Service]\n"}


SOCKETS = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
"""The first line of the kernel's table of TCP sockets."""


def listening(address: str, port: int, inode: int, user: int = 0) -> str:
    """A line of that table: ``address`` as the kernel writes it, ``0100007F`` for 127.0.0.1."""
    other = "0" * len(address)
    return f"   0: {address}:{port:04X} {other}:0000 0A 00000000:00000000 00:00000000 00000000 {user:5}        0 {inode} 1 0 100 0 0 10 0\n"


def digest(content: bytes | None) -> str:
    return "" if content is None else hashlib.sha256(content).hexdigest()


def order(
    tx: str = "t1",
    run: str = "run-1",
    counter: int = 1,
    *,
    old: Mapping[str, bytes | None] = OLD,
    new: Mapping[str, bytes | None] = NEW,
    guard: int = 60,
    machine_id: str = MACHINE,
    arguments: tuple[str, ...] = ("--config=/var/lib/kubelet/config.yaml",),
    healthz_port: int = 10248,
    units: tuple[str, ...] = ("kubelet.service",),
    hangups: tuple[str, ...] = (),
) -> ApplyOrder:
    files = tuple(
        FileChange(path, old.get(path), content, mode="640") for path, content in new.items() if content is not None
    )
    change = Change(files, units, arguments=arguments, healthz_port=healthz_port, hangups=hangups)
    return ApplyOrder(tx, run, counter, machine_id, guard, 3, "kubelet.service", change)


@dataclass
class Node:
    """``bin`` comes before the system's tools on PATH; it holds ``sh``, the shell under test, and the stand-ins."""

    root: Path
    shell: str
    bin: Path
    program: str = PROGRAM
    environment: dict[str, str] = field(default_factory=dict)

    @classmethod
    def make(cls, folder: Path, shell: str) -> Node:
        root, tools = folder / "root", folder / "bin"
        shutil.copytree(STANDINS, tools)
        shutil.copytree(TIME, tools, dirs_exist_ok=True)
        (tools / "sh").symlink_to(shutil.which(shell) or shell)
        for path, text in {
            "/etc/machine-id": f"{MACHINE}\n",
            "/etc/hostname": "tess-node-0001\n",
            "/proc/sys/kernel/random/boot_id": f"{uuid.UUID(int=1)}\n",
            "/proc/uptime": f"{BOOTED_FOR:.2f} 0.00\n",
            "/proc/self/mountinfo": "29 1 254:0 / / rw - ext4 /dev/vda rw\n",
            "/proc/100/cmdline": "kubelet\0--config=/var/lib/kubelet/config.yaml\0",
            "/run/standin/calls": "",
            "/run/standin/pid.100.running": "",
            "/etc/systemd/system/kubelet.service": "[Service]\n",
        }.items():
            target = root / path[1:]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        (root / "etc/systemd/system/basic.target.wants").mkdir()
        (root / "run/systemd/transient").mkdir(parents=True)
        node = cls(root, shell, tools)
        node.kubelet_listens()
        for logical, content in OLD.items():
            if content is not None:
                node.write(logical, content)
        return node

    def copy(self, folder: Path) -> Node:
        """The same node elsewhere; hard links stay hard links."""
        folder.mkdir(parents=True)
        subprocess.run(["cp", "-a", str(self.root), str(folder / "root")], check=True)
        return Node(folder / "root", self.shell, self.bin, self.program, dict(self.environment))

    # -- the node's insides

    def at(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def write(self, path: str, content: bytes) -> None:
        self.at(path).parent.mkdir(parents=True, exist_ok=True)
        self.at(path).write_bytes(content)

    def read(self, path: str) -> bytes | None:
        return self.at(path).read_bytes() if self.at(path).exists() else None

    def tree(self) -> list[Path]:
        """Every path of the node, without the journal to which ``logger`` writes a line for each verb."""
        return sorted(set(self.root.rglob("*")) - {self.at("/run/standin/journal")})

    def files(self) -> dict[str, bytes | None]:
        return {path: self.read(path) for path in OLD}

    def standin(self, name: str, text: str = "") -> None:
        self.at(f"/run/standin/{name}").write_text(text)

    def calls(self) -> list[str]:
        return self.at("/run/standin/calls").read_text().splitlines()

    def tx(self, tx: str = "t1") -> Path:
        return self.at(f"/var/lib/rollout/tx/{tx}")

    def receipt(self, tx: str = "t1") -> dict[str, str]:
        file = self.tx(tx) / "receipt"
        return dict(line.split("=", 1) for line in file.read_text().splitlines()) if file.exists() else {}

    def kubelet_started(self, ago: float) -> None:
        """The running kubelet's process is this many seconds old."""
        self.standin("unit", f"started={round((self.now() - ago) * 1e6)}\n")

    def kubelet_listens(self) -> None:
        """Its only process, the kubelet's, listens on 127.0.0.1:10248."""
        self.write("/proc/net/tcp", (SOCKETS + listening("0100007F", 10248, 4242)).encode())
        (process,) = self.at("/proc").glob("[0-9]*")
        (process / "fd").mkdir()
        (process / "fd/3").symlink_to("socket:[4242]")

    def control_group(self, *processes: int, base: str = "") -> Path:
        """The kubelet's control group, with these processes: of v2, of v1 (``systemd``) or of both (``unified``)."""
        self.write(
            f"/sys/fs/cgroup/{base}/system.slice/kubelet.service/cgroup.procs",
            "".join(f"{process}\n" for process in processes or (100,)).encode(),
        )
        return self.at(f"/sys/fs/cgroup/{base}/system.slice/kubelet.service/cgroup.procs")

    def serve(self, unit: str, *words: str, pid: int = 300) -> None:
        """A container runtime's unit, running, and its process with this command line."""
        self.write(f"/usr/lib/systemd/system/{unit}", b"")
        self.standin(f"{unit}.{pid}.running")
        self.write(f"/proc/{pid}/cmdline", "".join(f"{word}\0" for word in words).encode())

    def reboot(self) -> None:
        """Power loss: another boot id, no transient units, and no unit runs yet."""
        self.at("/proc/sys/kernel/random/boot_id").write_text(f"{uuid.uuid4()}\n")
        for unit in self.at("/run/standin").glob("rollout-*"):
            unit.unlink()
        shutil.rmtree(self.at("/run/systemd/system"), ignore_errors=True)
        for unit in self.at("/run/standin").glob("*.[0-9]*.*"):
            unit.rename(unit.with_suffix(".dead"))

    def now(self) -> float:
        """Seconds since it booted, by its own clock."""
        return float(self.at("/proc/uptime").read_text().split()[0])

    def show(self, seconds: float) -> None:
        """Set the node's clock; the file always contains a time."""
        other = self.at("/proc/uptime.new")
        other.write_text(f"{seconds:.2f} 0.00\n")
        other.rename(self.at("/proc/uptime"))

    @contextmanager
    def on_real_time(self) -> Iterator[None]:
        """Until the end its clock is this machine's, as its files have this machine's times. Nothing may sleep meanwhile."""
        clock = self.at("/proc/uptime")
        kept = clock.rename(clock.with_name("uptime.kept"))
        clock.symlink_to("/proc/uptime")
        try:
            yield
        finally:
            kept.replace(clock)

    def pass_time(self, seconds: float) -> None:
        self.show(self.now() + seconds)

    def pass_time_for_who_waits(self, seconds: float = 0) -> None:
        """For a process that waits for the node's lock; returns after it has read the clock again."""
        self.pass_time(seconds)
        naps = self.at("/run/standin/naps")
        seen = naps.stat().st_size if naps.exists() else 0
        until(lambda: naps.exists() and naps.stat().st_size >= seen + 3, PATIENCE, "a process waits for the lock")

    def tire_who_waits(self) -> None:
        """A guard waits for the node's lock: until now, and for as long as it tolerates the same holder."""
        self.pass_time_for_who_waits()
        self.pass_time_for_who_waits(2)  # now it has noted the holder
        self.pass_time(12)

    def is_locked(self) -> bool:
        with self.at("/var/lib/rollout/lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    @contextmanager
    def locked(self) -> Iterator[None]:
        """A process that is not recorded as its holder holds the node's lock."""
        with self.at("/var/lib/rollout/lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def strays(self) -> list[str]:
        """Everything of rollout outside /var/lib/rollout."""
        state = self.at("/var/lib/rollout")
        return [
            str(path.relative_to(self.root))
            for path in self.root.rglob("*rollout*")
            if path != state and state not in path.parents and path.name != "90-rollout.conf"
        ]

    # -- the agent

    def env(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        system = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return {
            "PATH": f"{self.bin}:{system}",
            "ROLLOUT_ROOT": str(self.root),
            **self.environment,
            **(extra or {}),
        }

    def run(
        self,
        command: RemoteCommand,
        *,
        full_disk: bool = False,
        extra: Mapping[str, str] | None = None,
        pass_fds: tuple[int, ...] = (),
        before: Sequence[str] = (),
    ) -> RemoteAnswer:
        """``before``: the words of a program that runs it."""
        line = f"ulimit -S -f 0; {command.line}" if full_disk else command.line
        done = subprocess.run(
            [*before, str(self.bin / "sh"), "-c", line],
            input=command.stdin,
            capture_output=True,
            env=self.env(extra),
            cwd="/",
            timeout=PATIENCE,
            check=False,
            restore_signals=not full_disk,  # Python ignores SIGXFSZ, so that a full "disk" is an error and does not kill
            pass_fds=pass_fds,
        )
        return RemoteAnswer(done.returncode, done.stdout, done.stderr, started=True)

    def report(self, verb: str, command: RemoteCommand, *, full_disk: bool = False) -> Report:
        return parse_report("n1", verb, self.run(command, full_disk=full_disk), 1.0)

    def apply(self, what: ApplyOrder | None = None) -> Report:
        return self.report("apply", agent_call.apply(self.program, what or order(), sudo=False, deadline=60))

    def confirm(self, tx: str = "t1", run: str = "run-1", counter: int = 1, keep: int = 3) -> Report:
        command = agent_call.confirm(self.program, tx=tx, run=run, counter=counter, keep=keep, sudo=False, deadline=60)
        return self.report("confirm", command)

    def revert(
        self, tx: str = "t1", run: str = "run-1", counter: int = 1, *, force: bool = False, full_disk: bool = False
    ) -> Report:
        command = agent_call.revert(self.program, tx=tx, run=run, counter=counter, force=force, sudo=False, deadline=60)
        return self.report("revert", command, full_disk=full_disk)

    def cleanup(self, run: str = "run-1", counter: int = 1) -> Report:
        return self.report(
            "cleanup", agent_call.cleanup(self.program, run=run, counter=counter, sudo=False, deadline=60)
        )

    def forget(self, run: str = "run-1", counter: int = 1) -> Report:
        return self.report("forget", agent_call.forget(self.program, run=run, counter=counter, sudo=False, deadline=60))

    def freeze(self, counter: int = 2, name: str = "f-1", why: str = "year end") -> Report:
        order = NodeFreeze(counter, name, "ann@desk", why)
        return self.report("freeze", agent_call.freeze(self.program, order, sudo=False, deadline=60))

    def unfreeze(self, counter: int = 3, name: str = "f-2", *, full_disk: bool = False) -> Report:
        order = NodeFreeze(counter, name, "bob@desk", "over")
        command = agent_call.unfreeze(self.program, order, sudo=False, deadline=60)
        return self.report("unfreeze", command, full_disk=full_disk)

    def verify(self, *paths: str) -> Verification:
        command = agent_call.verify(self.program, unit="kubelet.service", paths=paths, sudo=False, deadline=60)
        found = parse_verification("n1", self.run(command))
        assert isinstance(found, Verification), found
        return found

    def status(
        self,
        tx: str = "",
        claim: agent_call.Claim | None = None,
        measure: agent_call.Measure | None = None,
        *,
        strays: bool = False,
        roles: bool = False,
    ) -> Report:
        command = agent_call.status(
            self.program, tx=tx, claim=claim, measure=measure, strays=strays, roles=roles, sudo=False, deadline=60
        )
        return self.report("status", command)

    def snapshot(self) -> Snapshot | Unread:
        command = agent_call.snapshot(self.program, unit="kubelet.service", healthz_port=10248, sudo=False, deadline=60)
        return parse_snapshot("n1", self.run(command))

    def trigger(self, what: str, tx: str = "t1", *, full_disk: bool = False) -> int:
        """What the timer (``guard``), the process beside it (``watch``) or the boot unit (``boot``) runs: the copy on the node."""
        agent = self.tx(tx) / "agent"
        if not agent.exists():
            return 0
        after = self.after_boot() if what == "boot" else []
        words = {"guard": tx, "watch": f"{tx} {self.watched_until(tx)}", "boot": ""}[what]
        line = f"{'ulimit -S -f 0; ' if full_disk else ''}exec sh {agent} {what} {words}"
        done = subprocess.run(
            [str(self.bin / "sh"), "-c", line],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=self.env(),  # the root in it is for the stand-ins; the agent uses its own path
            timeout=PATIENCE,
            check=False,
            restore_signals=not full_disk,
        )
        self.ends(after)
        return done.returncode

    def after_boot(self) -> list[str]:
        """The command that systemd runs when the boot unit has ended, however it ended: what it has read in the unit's drop-in."""
        drop_in = self.at("/etc/systemd/system/rollout-guard-boot.service.d/~~~~~~~~-rollout.conf")
        text = drop_in.read_text() if drop_in.exists() else ""
        found = re.findall(r"(?m)^ExecStopPost=-/bin/sh \S*(/var/lib/rollout/.+)$", text)[-1:]
        return [f"{self.root}{words}" for words in found]

    def ends(self, after: list[str]) -> None:
        """Those commands; systemd ends each after 30 s (``TimeoutStopSec``)."""
        for words in after:
            command = [str(self.bin / "sh"), *words.split()]
            process = subprocess.Popen(command, env=self.env(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            over = self.now() + 30
            until(lambda: process.poll() is not None or self.now() > over, PATIENCE, f"the end of {words}")  # noqa: B023
            process.kill()
            process.wait()

    def watched_until(self, tx: str) -> str:
        """The second since boot until which the process beside the timer waits, from the command with which it was started."""
        started = self.at(f"/run/standin/rollout-watch-{tx}.service")
        return started.read_text().split()[-1] if started.exists() else ""

    @contextmanager
    def at_work(self, what: str) -> Iterator[subprocess.Popen[bytes]]:
        """The trigger of t1 in the background, in a session of its own."""
        words = [str(self.bin / "sh"), str(self.tx() / "agent"), what, "" if what == "boot" else "t1"]
        after = self.after_boot() if what == "boot" else []
        process = subprocess.Popen(words, env=self.env(), start_new_session=True)
        try:
            yield process
            if after:
                process.wait(PATIENCE)
                self.ends(after)
        finally:
            process.kill()
            process.wait()


def killed(answer: RemoteAnswer) -> bool:
    return answer.status in (-signal.SIGKILL, 128 + signal.SIGKILL)
