"""The programs of ``ProxyCommand`` side by side: their order, when the next one starts, and what is left after a trouble."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from rollout.adapters.ssh.limits import Deadline, SshLimits
from rollout.adapters.ssh.proxy_process import ProxyProcesses, ProxyWire
from rollout.errors import RemoteError
from tests.controllers import until

pytestmark = pytest.mark.process

ONE = SshLimits(proxy_commands=1, proxy_starts=2, proxy_wait=60)
ECHO = ("/bin/cat",)
SILENT = ("/bin/sleep", "600")


class _Asked:
    """``make_room`` that finds no idle connection; ``callers`` are the threads that asked."""

    def __init__(self) -> None:
        self.callers: set[int] = set()
        self.changed = threading.Condition()

    def __call__(self) -> bool:
        with self.changed:
            self.callers.add(threading.get_ident())
            self.changed.notify_all()
        return False

    def until(self, many: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.callers) >= many, 60)


Make = Callable[[SshLimits], ProxyProcesses]


@pytest.fixture
def asked() -> _Asked:
    return _Asked()


@pytest.fixture
def make(asked: _Asked) -> Iterator[Make]:
    made: list[ProxyProcesses] = []

    def new(limits: SshLimits) -> ProxyProcesses:
        made.append(ProxyProcesses(limits, asked))
        return made[-1]

    yield new
    for programs in made:
        programs.close(Deadline(5))


def test_the_wait_for_a_turn_is_fair_and_does_not_count_towards_the_deadline(make: Make, asked: _Asked) -> None:
    programs = make(ONE)
    held = programs.start(ECHO, Deadline(60))
    deadlines = [Deadline(0.0), Deadline(0.0)]
    waiting: list[Future[ProxyWire]] = []
    with ThreadPoolExecutor(2) as pool:
        for number, deadline in enumerate(deadlines, 1):
            waiting.append(pool.submit(programs.start, ECHO, deadline))
            asked.until(number)
        held.close()
        first = waiting[0].result(60)
        assert not waiting[1].done()
        first.close()
        waiting[1].result(60).close()
    assert deadlines[0].at < deadlines[1].at


def test_a_program_that_ends_is_waited_for_before_an_idle_connection_is_closed(make: Make, asked: _Asked) -> None:
    programs = make(ONE)
    programs.start(SILENT, Deadline(60)).close()
    programs.start(ECHO, Deadline(60)).close()
    assert not asked.callers


def test_a_start_waits_for_the_first_bytes_of_the_one_before_but_not_for_ever(make: Make) -> None:
    apart = replace(ONE, proxy_commands=9, proxy_starts=1)
    slow = make(replace(apart, proxy_pace=0.3))
    begun = time.monotonic()
    both = [slow.start(SILENT, Deadline(60)), slow.start(SILENT, Deadline(60))]
    assert time.monotonic() - begun >= 0.3

    prompt = make(replace(apart, proxy_pace=600))
    one = prompt.start(ECHO, Deadline(60))
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(prompt.start, ECHO, Deadline(60))
        one.settimeout(60)
        one.send(b"x")
        assert one.recv(1) == b"x"
        both += [one, other.result(60)]
    for wire in both:
        wire.close()


def test_a_watcher_that_the_system_ended_is_replaced_and_its_loss_ends_no_run(make: Make) -> None:
    programs = make(replace(ONE, proxy_commands=9))
    before = _children()
    for _ in range(2):
        wire = programs.start(ECHO, Deadline(60))
        until(lambda: _watchers(before), 60, "the watcher runs its program")
        (watcher,) = _watchers(before)
        os.kill(watcher, signal.SIGKILL)
        os.waitid(os.P_PID, watcher, os.WEXITED | os.WNOWAIT)
        wire.close()
    programs.close(Deadline(5))
    assert not _children() - before


def _children() -> set[int]:
    return {
        int(child) for task in Path("/proc/self/task").iterdir() for child in (task / "children").read_text().split()
    }


def _watchers(before: set[int]) -> list[int]:
    """A child that has not begun its program yet has the command line of this process."""
    return [child for child in _children() - before if b"while read" in _arguments(child)]


def _arguments(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):  # it has ended
        return b""


@pytest.mark.parametrize("free", [1, 3, 5, 6, 8, 10, 20])
def test_no_descriptor_left_is_told_and_none_is_lost(free: int) -> None:
    """Wherever in the start the descriptors end. In a process of its own: no other thread takes one or gives one back."""
    alone = f"import {__name__} as tests; tests.start_with({free})"
    ended = subprocess.run([sys.executable, "-c", alone], stdout=subprocess.PIPE, text=True, check=True)
    assert ended.stdout.split() == (["too-many-files"] if free < 20 else [])


def start_with(free: int) -> None:
    """Print the reference of a start while so many descriptors are left; raise if one stays open."""
    programs = ProxyProcesses(replace(ONE, proxy_commands=9), _Asked())
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = _descriptors()
    highest = max(before)
    gaps = [os.dup(0) for _ in range(highest + 1 - len(before))]
    assert max([highest, *gaps]) == highest
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1 + free, limits[1]))
    try:
        reference = _reference(programs)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for gap in gaps:
            os.close(gap)
    programs.close(Deadline(5))
    sys.stdout.write(reference)
    assert _descriptors() == before


def _reference(programs: ProxyProcesses) -> str:
    try:
        programs.start(ECHO, Deadline(60)).close()
    except RemoteError as error:
        return error.reference
    return ""


def _descriptors() -> set[int]:
    return {int(entry.name) for entry in Path("/dev/fd").iterdir() if entry.exists()}
