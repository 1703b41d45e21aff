"""Faults of what a node says: rubbish instead of an answer, or an answer that never ends. The command itself runs as always."""

from __future__ import annotations

import random

GARBAGE, ENDLESS = "garbage-output", "endless-output"
KINDS = (GARBAGE, ENDLESS)

_LIE = "receipt tx=t1 run=r1 counter=99 state=confirmed cause=- left=0 finished=1"
_GARBAGE = 'export LC_ALL=C; /bin/sh -c "$1" >/dev/null 2>&1; exec cat "$2"'
_ENDLESS = '/bin/sh -c "$1" >/dev/null 2>&1; exec yes "$2"'


def spoilt(kind: str, line: str, rubbish: str) -> tuple[str, ...]:
    """What is run in place of a command line; ``rubbish`` is a file with what ``garbage`` prints."""
    script, word = (_GARBAGE, rubbish) if kind == GARBAGE else (_ENDLESS, _LIE)
    return ("/bin/sh", "-c", script, "sh", line, word)


def garbage(seed: str) -> bytes:
    """Lies without an end line, terminal escapes, invalid UTF-8, a line of binary that has no end; the same for the same seed."""
    chance = random.Random(seed)  # noqa: S311 (rubbish, not a secret)
    lies = f"token 99 nobody ended\n{_LIE}\nhealthy yes \x1b[2J\x1b]0;owned\x07all is well\n".encode()
    broken = b"say \xff\xfe\xc3\x28 \xed\xa0\x80\r\x1b[31m\nfact machine-id ../../etc\x00passwd\nreceipt state=\n"
    return lies + broken + chance.randbytes(20_000).replace(b"\n", b"\0")
