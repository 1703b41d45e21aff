"""A node's listening socket, and the network faults: refused connections, and connections without a banner."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable

from rollout.lab.loop import Loop

# Faults of a node's output: garbage instead of an answer, or an answer that never ends. The command itself runs as
# usual.


GARBAGE, ENDLESS = "garbage-output", "endless-output"
OUTPUT_KINDS = (GARBAGE, ENDLESS)

_LIE = "receipt tx=t1 run=r1 counter=99 state=confirmed cause=- left=0 finished=1"
_GARBAGE = 'export LC_ALL=C; /bin/sh -c "$1" >/dev/null 2>&1; exec cat "$2"'
_ENDLESS = '/bin/sh -c "$1" >/dev/null 2>&1; exec yes "$2"'
_ANSWERS = """export LC_ALL=C
/bin/sh -c "$1" | while IFS= read -r line; do
  if [ -e "$2" ]; then
    case $line in
      "begin "*) ;;
      "over "*)
        [ ! -e "$2.endless" ] || exec yes "$3"
        cat "$2"
        ;;
      *) continue ;;
    esac
  fi
  printf '%s\\n' "$line"
done"""


def may_spoil(line: str, rubbish: str) -> tuple[str, ...]:
    """The replacement of a conversation with the agent: while the file ``rubbish`` exists, it stands for each answer."""
    return ("/bin/sh", "-c", _ANSWERS, "sh", line, rubbish, _LIE)


def spoilt(kind: str, line: str, rubbish: str) -> tuple[str, ...]:
    """The replacement of a command line; ``rubbish`` is a file with the output of ``garbage``."""
    script, word = (_GARBAGE, rubbish) if kind == GARBAGE else (_ENDLESS, _LIE)
    return ("/bin/sh", "-c", script, "sh", line, word)


def garbage(seed: str) -> bytes:
    """Lies without an end line, terminal escapes, invalid UTF-8, a line of binary that has no end; the same for the same seed."""
    chance = random.Random(seed)  # noqa: S311 (rubbish, not a secret)
    lies = f"token 99 nobody ended\n{_LIE}\nhealthy yes \x1b[2J\x1b]0;owned\x07all is well\n".encode()
    broken = b"say \xff\xfe\xc3\x28 \xed\xa0\x80\r\x1b[31m\nfact machine-id ../../etc\x00passwd\nreceipt state=\n"
    return lies + broken + chance.randbytes(20_000).replace(b"\n", b"\0")


BACKLOG = 64
MOST = 256
"""Connections held without a banner during the fault; more wait in the backlog."""


class Door:
    """Open, shut (connections are refused) or dumb (connected, but no banner ever comes)."""

    def __init__(self, loop: Loop, address: str, port: int, welcome: Callable[[socket.socket], None]) -> None:
        self._loop, self._where, self._welcome = loop, (address, port), welcome
        self._listener: socket.socket | None = None
        self._held: list[socket.socket] = []
        self.dumb = False

    @property
    def port(self) -> int:
        """Where it listens; port 0 becomes a free port, which stays the same from the first ``open`` on."""
        return self._where[1]

    def open(self) -> None:
        """Listen; ``OSError`` if the address and port are taken."""
        if self._listener is not None:
            return
        listener = socket.socket()
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(self._where)
            listener.listen(BACKLOG)
            self._where = listener.getsockname()
        except OSError:
            listener.close()
            raise
        listener.setblocking(False)  # noqa: FBT003
        self._listener = listener
        self._loop.watch(listener.fileno(), self._accept)

    def shut(self) -> None:
        """Refuse new connections from now on; existing ones stay."""
        if self._listener is not None:
            self._loop.forget(self._listener.fileno())
            self._listener.close()
            self._listener = None

    def speak(self) -> None:
        """End the fault; held connections are closed."""
        self.dumb = False
        for client in self._held:
            client.close()
        self._held.clear()

    def _accept(self) -> None:
        if self._listener is None:
            return
        try:
            client, _ = self._listener.accept()
        except (BlockingIOError, ConnectionError):
            return
        client.setblocking(True)  # noqa: FBT003
        if not self.dumb:
            self._welcome(client)
        elif len(self._held) < MOST:
            self._held.append(client)
        else:
            client.close()
