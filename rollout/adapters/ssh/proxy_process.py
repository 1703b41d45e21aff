"""The programs of ``ProxyCommand``: each carries one connection on its standard input and output.

A program is started without a shell, in a session of its own: no terminal asks the user in the middle of a run. It gets two socket pairs, so that a program that makes one of its streams
non-blocking does not change the other one. It ends with its connection: first its input is closed, then all processes of
its session are ended by signals. After ``kill -9`` of the controller the watcher does that: a small shell that reads the
sessions in use from a pipe. Both find the processes in ``/proc``; without it they reach the program's process group.
"""

from __future__ import annotations

import errno
import os
import selectors
import signal
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO

from rollout.adapters.ssh.ascii_text import printable
from rollout.adapters.ssh.limits import Deadline, SshLimits
from rollout.adapters.ssh.proxy_lines import ProxyWords, shown
from rollout.adapters.ssh.troubles import ProxyEndedError, told, translate
from rollout.adapters.ssh.wire import CHUNK
from rollout.errors import RemoteError

KEPT = 4096
"""Bytes of its standard error that are kept: the last ones."""
SHOWN_LINES = 3
EXIT = 1.0
"""Seconds for a program to end by itself once its connection is over, and for its exit status when it has ended that."""
TERM = 2.0
"""Seconds after SIGTERM until SIGKILL."""
TICK = 0.05
ASK_AGAIN = 1.0
"""Seconds after which one that waits looks for an idle connection again."""
PASSES = 8
"""So often new processes of a session are looked for: one that is about to end may start another."""
READS = 64
"""So many pieces of its standard error are taken at a time."""

CANNOT_START = (errno.ENOENT, errno.ENOEXEC, errno.EACCES, errno.ENOTDIR, errno.ELOOP)

WATCHER = """
sessions=' '
while read -r verb session; do
  case $verb in
    began) sessions="$sessions$session " ;;
    ended) sessions="${sessions%% $session *} ${sessions#* $session }" ;;
  esac
done
end() {
  for session in $sessions; do kill -s $1 -- "-$session" && left=yes; done
  for stat in /proc/[0-9]*/stat; do
    read -r line <"$stat" || continue
    process=${stat#/proc/}
    set -- $1 ${line##*) }
    case $sessions in *" $5 "*) kill -s $1 "${process%/stat}" && left=yes ;; esac
  done
}
exec 2>/dev/null
for sign in TERM KILL; do
  end $sign
  [ "$sign" = KILL ] || [ -z "$left" ] || sleep 1
done
end KILL
"""
"""Reads which sessions began and ended. The end of its input is the controller's."""


class _Watcher:
    """The process that ends the sessions after the controller. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None

    def ready(self) -> None:
        """Start it, also in place of one that the system has ended. Raises ``OSError``."""
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                return
            self._close()
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", WATCHER],
                bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", start_new_session=True,
            )  # fmt: skip
            for session in self._sessions:
                self._tell("began", session)

    def began(self, session: int) -> None:
        with self._lock:
            self._sessions.add(session)
            self._tell("began", session)

    def ended(self, session: int) -> None:
        with self._lock:
            self._sessions.discard(session)
            self._tell("ended", session)

    def close(self) -> None:
        with self._lock:
            self._close()

    def _tell(self, verb: str, session: int) -> None:
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):  # it was ended: the next one is told anew
                self._process.stdin.write(f"{verb} {session}\n".encode())

    def _close(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait()


class ProxyWire:
    """A connection through a program, with the interface of a socket. Closing never blocks and may be repeated."""

    ahead = b""
    said = b""

    def __init__(self, program: ProxyProcess, to: socket.socket, back: socket.socket) -> None:
        self._program = program
        self._to = to
        self._back = back

    def settimeout(self, seconds: float, /) -> None:
        self._to.settimeout(seconds)
        self._back.settimeout(seconds)

    def recv(self, size: int, /) -> bytes:
        if not self.ahead:
            self.ahead = self._back.recv(max(size, CHUNK))
            if self.ahead:
                self._program.speaks()
            else:
                self._program.end(by_itself=True)
        data, self.ahead = self.ahead[:size], self.ahead[size:]
        return data

    def send(self, data: bytes, /) -> int:
        return self._to.send(data)

    def shutdown(self, _how: int, /) -> None:
        for end in (self._to, self._back):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._program.end()

    def close(self) -> None:
        self.shutdown(socket.SHUT_RDWR)
        self._to.close()
        self._back.close()

    def blame(self) -> ProxyEndedError | None:
        return self._program.standing()


class ProxyProcess:
    """One running program."""

    def __init__(
        self, words: ProxyWords, process: subprocess.Popen[bytes], errors: IO[bytes], changed: Callable[[], None]
    ) -> None:
        """``errors``: its standard error; ``changed`` is called when its end is asked for."""
        self.name = shown(words)
        self.errors = errors
        self.session = process.pid
        self.began = time.monotonic()
        self.spoke = False
        self._process = process
        self._changed = changed
        self._lock = threading.Lock()
        self._tail = b""
        self._ending_since: float | None = None
        self._by_itself = False
        self._signals = [(EXIT, signal.SIGTERM), (EXIT + TERM, signal.SIGKILL)]
        self._status: int | None = None
        self._exited = threading.Event()

    def end(self, *, by_itself: bool = False, at_once: bool = False) -> None:
        """Ask for its end. The thread of ``ProxyProcesses`` does the rest. ``by_itself``: it has closed its output."""
        with self._lock:
            if self._ending_since is None:
                self._ending_since, self._by_itself = time.monotonic(), by_itself
            elif not at_once:
                return
            if at_once:
                self._ending_since -= EXIT
        self._changed()

    def speaks(self) -> None:
        """It has brought the first bytes of the other side: its start is over."""
        if not self.spoke:
            self.spoke = True
            self._changed()

    @property
    def ending(self) -> bool:
        return self._ending_since is not None

    def standing(self) -> ProxyEndedError | None:
        """How it stands, with the last lines that it printed. ``None``: we have ended it."""
        if self._ending_since is not None:
            if not self._by_itself:
                return None
            self._exited.wait(EXIT / 2)
        status = self._look()
        if status is None:
            how = "still runs"
        elif status < 0:
            how = f"was ended by signal {-status}"
        else:
            how = f"ended with exit status {status}"
        with self._lock:
            lines = [line for line in self._tail.decode("ascii", "replace").splitlines() if line.strip()]
        last = "; ".join(printable(line.strip()) for line in lines[-SHOWN_LINES:])
        return ProxyEndedError(f"the ProxyCommand {self.name} {how}{last and f': {last}'}", quietly=status == 0)

    def hear(self) -> bool:
        """Take what it printed on standard error. Whether more may come."""
        for _ in range(READS):
            try:
                data = os.read(self.errors.fileno(), 16 * KEPT)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not data:
                return False
            with self._lock:
                self._tail = (self._tail + data)[-KEPT:]
        return True

    def tend(self, now: float) -> bool:
        """Whether it has ended after its connection. What it has left running is ended, too."""
        since = self._ending_since
        if since is None:
            return False
        if self._look() is None:
            while self._signals and now - since >= self._signals[0][0]:
                self._send(self._signals.pop(0)[1])
            return False
        self.hear()
        self._exited.set()
        self._send(signal.SIGKILL)
        return True

    def bury(self) -> None:
        """Its number is free for another program now."""
        self._process.wait()
        self.errors.close()

    def _look(self) -> int | None:
        """The exit status, without taking it: until ``bury`` nobody else gets its number."""
        with self._lock:
            if self._status is None:
                try:
                    found = os.waitid(os.P_PID, self.session, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                except ChildProcessError:  # this process was started with SIGCHLD ignored: the system takes the status
                    self._status = 0
                else:
                    if found is not None:
                        exited = found.si_code == os.CLD_EXITED
                        self._status = found.si_status if exited else -found.si_status
            return self._status

    def _send(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.session, number)
        sent = set[int]()
        for _ in range(PASSES):
            processes = _processes(self.session) - sent
            for process in processes:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(process, number)
            sent |= processes
            if not processes:
                break


def _processes(session: int) -> set[int]:
    """The processes of a session; none where there is no ``/proc``."""
    try:
        found = [path for path in Path("/proc").iterdir() if path.name.isdecimal()]
    except OSError:
        return set()
    return {int(path.name) for path in found if _session(path / "stat") == session}


def _session(stat: Path) -> int:
    try:
        return int(stat.read_bytes().rpartition(b")")[2].split()[3])
    except (OSError, IndexError):  # it has ended
        return 0


class ProxyProcesses:
    """All programs of one ``SshNodes``. Thread-safe.

    They start in the order of the calls, at most ``proxy_commands`` of them, and ``proxy_starts`` of them at once: each
    may take a second of a processor until it connects. A start ends when the program brings its first bytes, and after
    ``proxy_pace`` seconds does not keep others waiting.
    """

    def __init__(self, limits: SshLimits, make_room: Callable[[], bool]) -> None:
        """``make_room``: closes an idle connection through a program, if there is one."""
        self._limits = limits
        self._make_room = make_room
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()
        self._evicting = False
        self._running: set[ProxyProcess] = set()
        self._reserved = 0
        self._starting = threading.Lock()
        self._selector: selectors.BaseSelector | None = None
        self._wake: socket.socket | None = None
        self._woken: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self._watcher = _Watcher()
        self._closed = False

    def start(self, words: ProxyWords, deadline: Deadline) -> ProxyWire:
        """Raises ``RemoteError``. ``deadline`` is put off by the time that others keep us waiting: no node is to blame for that."""
        began = time.monotonic()
        self._reserve()
        deadline.at += time.monotonic() - began
        try:
            with self._starting:
                return self._start(words)
        finally:
            with self._changed:
                self._reserved -= 1
                self._changed.notify_all()

    def close(self, deadline: Deadline) -> None:
        with self._changed:
            self._closed = True
            running, thread = list(self._running), self._thread
            self._changed.notify_all()
        for program in running:
            program.end(at_once=True)
        self._call()
        if thread is not None:
            thread.join(max(deadline.left(), TERM + EXIT))
        self._watcher.close()
        if self._wake is not None:
            self._wake.close()

    def _reserve(self) -> None:
        turn, limit = object(), Deadline(self._limits.proxy_wait)
        with self._changed:
            self._waiting.append(turn)
            try:
                while not self._closed and limit.left():
                    self._make_way(self._waiting.index(turn))
                    wait = self._not_yet() if self._waiting[0] is turn else ASK_AGAIN
                    if not wait:
                        self._reserved += 1
                        return
                    self._changed.wait(min(wait, limit.left()))
            finally:
                self._waiting.remove(turn)
                self._changed.notify_all()
            if self._closed:
                raise RemoteError("closed", "SSH was shut down")
        raise RemoteError("busy", f"all {self._limits.proxy_commands} ProxyCommands are in use")

    def _free(self) -> int:
        return self._limits.proxy_commands - len(self._running) - self._reserved

    def _not_yet(self) -> float:
        """Seconds for the first that waits until it is worth another look; 0: it may start now. Called under the lock."""
        if self._free() <= 0:
            return ASK_AGAIN
        now = time.monotonic()
        starting = [
            left
            for program in self._running
            if not program.spoke and not program.ending and (left := program.began + self._limits.proxy_pace - now) > 0
        ]
        if len(starting) + self._reserved < self._limits.proxy_starts:
            return 0.0
        return min(starting, default=ASK_AGAIN)

    def _make_way(self, before: int) -> None:
        """Close an idle connection for one that waits behind so many, unless one is ending for it. Called under the lock."""
        ending = sum(program.ending for program in self._running)
        if self._evicting or before >= self._limits.proxy_starts or self._free() + ending > before:
            return
        self._evicting = True
        self._changed.release()
        try:
            self._make_room()
        finally:
            self._changed.acquire()
            self._evicting = False

    def _start(self, words: ProxyWords) -> ProxyWire:
        with ExitStack() as ours, ExitStack() as its:
            try:
                self._begin()
                self._watcher.ready()
                to, its_input = _pair(ours, its)
                back, its_output = _pair(ours, its)
                process = subprocess.Popen(
                    words,
                    stdin=its_input.fileno(),
                    stdout=its_output.fileno(),
                    stderr=subprocess.PIPE,
                    cwd="/",
                    start_new_session=True,
                )
            except (OSError, RuntimeError) as error:
                if isinstance(error, OSError) and error.errno in CANNOT_START:
                    raise told("proxy-command-failed", f"cannot start {shown(words)}: {error.strerror}") from None
                raise translate(error) from None
            ours.pop_all()
        errors = process.stderr
        if errors is None:
            raise LookupError("a program without standard error")
        os.set_blocking(errors.fileno(), False)
        program = ProxyProcess(words, process, errors, self._call)
        self._watcher.began(program.session)
        with self._changed:
            self._running.add(program)
            closed = self._closed
        self._call()
        if closed:
            program.end(at_once=True)
        return ProxyWire(program, to, back)

    # Its thread: standard error, and the ends.

    def _begin(self) -> None:
        if self._thread is not None:
            return
        with ExitStack() as ours:
            self._wake, self._woken = socket.socketpair()
            ours.callback(self._wake.close)
            ours.callback(self._woken.close)
            self._wake.settimeout(0)
            self._woken.settimeout(0)
            self._selector = selectors.DefaultSelector()
            ours.callback(self._selector.close)
            self._selector.register(self._woken, selectors.EVENT_READ)
            thread = threading.Thread(target=self._run, name="ssh-proxies", daemon=True)
            thread.start()
            ours.pop_all()
        self._thread = thread

    def _call(self) -> None:
        """A program has changed: its thread and those that wait look at it."""
        if self._wake is not None:
            with suppress(OSError):
                self._wake.send(b"x")

    def _run(self) -> None:
        if self._selector is None or self._woken is None:
            return
        heard: set[ProxyProcess] = set()
        while True:
            with self._changed:
                running = set(self._running)
                if self._closed and not running and not self._reserved:
                    break
                soon = self._closed or any(program.ending for program in running)
            for program in running - heard:
                self._selector.register(program.errors, selectors.EVENT_READ, program)
            heard = running
            for key, _ in self._selector.select(TICK if soon else None):
                if key.data is None:
                    self._woken.recv(CHUNK)
                    with self._changed:
                        self._changed.notify_all()
                elif not key.data.hear():
                    self._selector.unregister(key.fileobj)
            now = time.monotonic()
            for program in [program for program in running if program.tend(now)]:
                self._finish(self._selector, program)
        self._selector.close()
        self._woken.close()

    def _finish(self, selector: selectors.BaseSelector, program: ProxyProcess) -> None:
        with suppress(KeyError):  # its standard error may have ended before
            selector.unregister(program.errors)
        self._watcher.ended(program.session)
        program.bury()
        with self._changed:
            self._running.discard(program)
            self._changed.notify_all()


def _pair(ours: ExitStack, its: ExitStack) -> tuple[socket.socket, socket.socket]:
    """Our end and the program's."""
    one, other = socket.socketpair()
    ours.callback(one.close)
    its.callback(other.close)
    return one, other
