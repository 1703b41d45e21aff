"""The faults, by kind: how each begins and ends. Each lasts until ``heal``, which removes all of it."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from tests.bed.shell import BedError
from tests.chaos.agent_faults import KillAgent, NoProcess, OutOfMemory
from tests.chaos.answer_faults import HoldAnswers
from tests.chaos.api_server import ColdApiServer
from tests.chaos.draws import Draw, Kind
from tests.chaos.fault import Fault
from tests.chaos.file_faults import LoseSync, MakeImmutable, SlowSync, WriteBack
from tests.chaos.region_faults import FAULTS_OF_ENGINE
from tests.chaos.site import CLUSTER, PATIENCE, Site
from tests.chaos.surroundings import Bastion, OneSession, Proxy
from tests.chaos.systemd_faults import DropIn, Isolate, OtherTarget, StopSystemd
from tests.chaos.unit_faults import LimitStarts, Mask, NoRestart, Rewrite
from tests.controllers import until

DAY = 86400


class KillController(Fault):
    def strike(self) -> None:
        if self.controller:
            self.controller.kill()


class KillSshd(Fault):
    def strike(self) -> None:
        for node in self.nodes:
            main = node.exec("systemctl", "show", "-p", "MainPID", "--value", "ssh").strip()
            listener = f"kill -9 {main}"
            sessions = f"for p in $(pgrep -x sshd); do [ $p = {main} ] || kill -9 $p; done"
            script = {"listener": listener, "sessions": sessions}.get(self.draw.variant, f"{listener}; {sessions}")
            node.exec("sh", "-c", f"{script}; :")

    def heal(self) -> None:
        for node in self.nodes:
            node.exec("sh", "-c", "systemctl is-active -q ssh || systemctl restart ssh")


class PowerCut(Fault):
    def strike(self) -> None:
        for node in self.nodes:
            node.powercut()
        if self.draw.variant != "at once":
            time.sleep(self.draw.seconds)
        for node in self.nodes:
            node.heal()
            node.boot()

    def heal(self) -> None:
        for node in self.nodes:
            node.wait()
            until(node.is_up, PATIENCE, "its kubelet runs")


class CutLink(Fault):
    def prepare(self) -> None:
        for node in self.nodes:
            node.notice_lost_peers()

    def strike(self) -> None:
        for node in self.nodes:
            node.cut()

    def heal(self) -> None:
        for node in self.nodes:
            node.heal()


class Freeze(Fault):
    def strike(self) -> None:
        for node in self.nodes:
            node.pause()

    def heal(self) -> None:
        for node in self.nodes:
            node.resume()


class FillDisk(Fault):
    def strike(self) -> None:
        for node in self.nodes:
            node.disk.fill()

    def heal(self) -> None:
        for node in self.nodes:
            node.disk.free()


READ_ONLY = """\
tries=0
mount --bind /var /var
until mount -o remount,bind,ro /var; do
    umount -l /var
    tries=$((tries + 1)) && [ "$tries" -lt 50 ] || exit 1
    mount --bind /var /var
done
! touch /var/lib/x"""
"""A mount becomes read-only unless a file in it was opened for writing since it was made. Then a new mount is made."""


class ReadOnly(Fault):
    """/var is a separate mount from the start, like a separate file system; then it becomes read-only."""

    def prepare(self) -> None:
        for node in self.nodes:
            node.exec("mount", "--bind", "/var", "/var")

    def strike(self) -> None:
        for node in self.nodes:
            node.exec("sh", "-c", READ_ONLY)

    def heal(self) -> None:
        for node in self.nodes:
            node.exec("sh", "-c", "while mountpoint -q /var; do umount -l /var; done")


class StepClock(Fault):
    """For commands through sudo and for everything that systemd starts: the kernel's clock is shared.

    See ``tests/chaos/sh``.
    """

    def prepare(self) -> None:
        variables = (
            "LD_PRELOAD=/usr/local/lib/libfaketime.so.1 FAKETIME_TIMESTAMP_FILE=/run/bed-clock FAKETIME_NO_CACHE=1 "
            "FAKETIME_DONT_FAKE_MONOTONIC=1 DONT_FAKE_MONOTONIC=1 NO_FAKE_STAT=1"
        )
        for node in self.nodes:
            node.exec("sh", "-c", f"echo +0 >/run/bed-clock; systemctl set-environment {variables}")

    def strike(self) -> None:
        offset = f"{DAY if self.draw.variant == '+1 day' else -DAY:+d}"
        for node in self.nodes:
            node.exec("sh", "-c", f"echo {offset} >/run/bed-clock.new && mv /run/bed-clock.new /run/bed-clock")
            told = int(node.exec("/usr/local/bin/sh", "-c", "date +%s"))
            if abs(abs(told - time.time()) - DAY) > 60:
                raise BedError(f"{node.name} tells {told}, which is not a day off")

    def heal(self) -> None:
        names = "LD_PRELOAD FAKETIME_TIMESTAMP_FILE FAKETIME_NO_CACHE FAKETIME_DONT_FAKE_MONOTONIC DONT_FAKE_MONOTONIC NO_FAKE_STAT"
        for node in self.nodes:
            node.exec(
                "sh", "-c", f"systemctl unset-environment {names}; rm -f /run/bed-clock; rm -f /dev/shm/*faketime*"
            )


class LateConfirm(Fault):
    """Every confirm of these nodes arrives around its deadline."""

    throughout = True

    def prepare(self) -> None:
        for node in self.nodes:
            node.exec("sh", "-c", f"echo {self.draw.late} >/run/bed-late")

    def heal(self) -> None:
        for node in self.nodes:
            node.exec("rm", "-f", "/run/bed-late")


class SecondController(Fault):
    """A second controller, with the same journal or its own. The laws define what it may do.

    It ends before anything is judged.
    """

    def strike(self) -> None:
        same = "another journal" not in self.draw.variant
        words: tuple[str, ...] = ("apply", "p.json", "--yes")
        if self.draw.variant == "rollback":
            run = self.site.newest()
            words = ("rollback", run.order.run, "--yes") if run else ("resume", "--yes")
        elif self.draw.variant.startswith("emergency"):
            words = ("rollback", "--cluster", CLUSTER, "--emergency", "--yes")
        self._second = threading.Thread(
            target=self.site.rollout, args=words, kwargs={"state": "" if same else OTHER_STATE}
        )
        self._second.start()

    def heal(self) -> None:
        self._second.join()


OTHER_STATE = "other"


class FreezeController(Fault):
    """Frozen in the middle.

    Another machine takes the lease, by time or by unlock, and resumes; then the first one continues.
    """

    def strike(self) -> None:
        if self.controller and self.controller.poll() is None:
            os.kill(self.controller.pid, signal.SIGSTOP)

    def heal(self) -> None:
        """Thawed: its further actions count as its own."""
        if self.controller:
            with suppress(ProcessLookupError):
                os.kill(self.controller.pid, signal.SIGCONT)


FAULTS: Mapping[Kind, Callable[[Site, Draw], Fault]] = {
    Kind.CONTROLLER: KillController,
    Kind.SSHD: KillSshd,
    Kind.POWER: PowerCut,
    Kind.LINK_SHORT: CutLink,
    Kind.LINK_LONG: CutLink,
    Kind.FREEZE: Freeze,
    Kind.DISK: FillDisk,
    Kind.READ_ONLY: ReadOnly,
    Kind.CLOCK: StepClock,
    Kind.LATE: LateConfirm,
    Kind.TWO: SecondController,
    Kind.FROZEN: FreezeController,
    Kind.AGENT: KillAgent,
    Kind.MEMORY: OutOfMemory,
    Kind.FORKS: NoProcess,
    Kind.SYSTEMD: StopSystemd,
    Kind.ISOLATE: Isolate,
    Kind.TARGET: OtherTarget,
    Kind.IMMUTABLE: MakeImmutable,
    Kind.SYNC: LoseSync,
    Kind.SLOW_SYNC: SlowSync,
    Kind.MANAGER: WriteBack,
    Kind.REWRITE: Rewrite,
    Kind.MASKED: Mask,
    Kind.NO_RESTART: NoRestart,
    Kind.STARTS: LimitStarts,
    Kind.SESSIONS: OneSession,
    Kind.PROXY: Proxy,
    Kind.BASTION: Bastion,
    Kind.API_SERVER: ColdApiServer,
    Kind.ANSWER: HoldAnswers,
    Kind.DROP_IN: DropIn,
    **FAULTS_OF_ENGINE,
}


def keep(site: Site, folder: Path) -> None:
    """The evidence of a run with findings, for people."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", str(site.folder), str(folder / "site")], check=False)
    for node in site.nodes:
        subprocess.run(["cp", "-a", str(node.root / "var/lib/rollout"), str(folder / node.name)], check=False)
        subprocess.run(["cp", "-a", str(node.folder / "console"), str(folder / f"{node.name}.console")], check=False)
