"""A conversation with the agent, as bytes: one shell on a node, its program once, then verbs as frames.

    we      the command line ``boot``; it starts the shell. A first frame without a payload may be its last word (``with_frame``)
    node    ``begin DIGEST``, `` gzip`` where the node can unpack, `` kept`` where its last transaction by name has this program
    we      ``opening``: the program, or which of the node's own to use. A node that keeps it and has a first frame goes on without
    we      ``frame``: ``NONCE SIZE VERB [KEY=VALUE …]``, and SIZE bytes of payload
    node    ``begin NONCE`` and the lines of the verb, at its end; ``over NONCE STATUS``; then the next frame

The program runs only if its digest is the one in the command line: a program that was cut off runs nothing. Whatever a
login shell prints comes before the first ``begin``. A nonce is random, so no older answer and no other program's output
ends an answer.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import shlex
from enum import Enum
from functools import lru_cache

from rollout.core.model.frozen import dataclass
from rollout.core.model.report import AgentRequest

# One line without `!`: csh, too, passes it on. `dd` takes exactly its bytes, where a shell or `head` would read ahead.
# `echo .` keeps the shell from dropping newlines at the end.
BOOT = (
    "trap '' HUP PIPE; set -f +a; unset -v all form size kept first; "
    'case "${KSH_VERSION-}${YASH_VERSION-}${ZSH_VERSION-}${POSH_VERSION-}" in ?*) '
    "exe=$(readlink /proc/$$/exe); case ${exe##*/} in dash|bash|busybox) ;; "
    '*) echo "refused shell-not-supported sh is $exe; dash, bash and busybox run the agent"; exit 0;; esac;; esac; '
    'can=; if command -v gzip >/dev/null; then can=" gzip"; fi; '
    'set +f; for kept in "${ROLLOUT_ROOT-}"/var/lib/rollout/tx/*/agent; do :; done; set -f; '
    'if [ -f "$kept" ]; then case $(sha256sum <"$kept" 2>/dev/null) in "$1 "*) can="$can kept" first=${2-};; esac; fi; '
    'printf "\\nbegin %s%s\\n" "$1" "$can"; '
    'if [ -n "$first" ]; then form=kept; else read -r form size; fi; '
    'all=$(if [ "$form" = kept ]; then cat "$kept"; elif [ "$form" = gzip ]; then dd bs="$size" count=1 iflag=fullblock | gzip -dc; '
    'else dd bs="$size" count=1 iflag=fullblock; fi 2>/dev/null; echo .); all=${all%.}; '
    'sum=$(printf %s "$all" | sha256sum 2>&1); '
    'case $sum in "$1 "*) ;; '
    '[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]*" "*) '
    'echo "refused torn-program the program arrived incomplete or changed; sh is $(readlink /proc/$$/exe)"; exit 0;; '
    "*) echo refused program-failed sha256sum: $sum; exit 0;; esac; "
    'eval "$all"; conversation_serve "$first"'
)


OVER = re.compile(rb"over (\S+) ([0-9]{1,3})\n")
"""The end of an answer: its nonce and the status of its verb."""

_STATUS = re.compile(rb"([0-9]{1,3})\n")
"""After an answer's mark. No pattern has the nonce in it: compiling one costs a millisecond an answer."""

_FORMS = re.compile(rb"( gzip)?( kept)?\n")


class ProgramForm(Enum):
    """How the program comes to the shell."""

    PLAIN = "plain"
    GZIP = "gzip"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class Program:
    """The agent's text as bytes, plain and packed, and its SHA-256."""

    text: bytes
    packed: bytes
    digest: str


@lru_cache(maxsize=8)
def prepared(program: str) -> Program:
    text = program.encode()
    return Program(text, gzip.compress(text, mtime=0), hashlib.sha256(text).hexdigest())


@lru_cache(maxsize=8)
def boot(program: str) -> str:
    """The simple command that starts the shell of a conversation."""
    return shlex.join(("sh", "-c", BOOT, "rollout", prepared(program).digest))


@lru_cache(maxsize=8)
def opening(program: str, form: ProgramForm) -> bytes:
    found = prepared(program)
    sent = {ProgramForm.PLAIN: found.text, ProgramForm.GZIP: found.packed, ProgramForm.KEPT: b""}[form]
    return f"{form.value} {len(sent)}\n".encode() + sent


def with_frame(line: str, request: AgentRequest, nonce: str) -> str:
    """A command line of ``boot`` with this frame, if it has no payload. A node that keeps the program answers it at once; any other ignores it."""
    return line if request.payload else f"{line} {shlex.quote(frame(request, nonce).decode().strip())}"


def frame(request: AgentRequest, nonce: str) -> bytes:
    return f"{nonce} {len(request.payload)} {request.words}\n".encode() + request.payload


def probe(nonce: str) -> bytes:
    """A frame without a verb: the node only answers."""
    return f"{nonce} 0 \n".encode()


def mark(nonce: str) -> bytes:
    """With this the last line of an answer begins."""
    return f"over {nonce} ".encode()


def alone(request: AgentRequest) -> bytes:
    """The whole input of a conversation of one verb, for a caller that reads nothing before the end."""
    return opening(request.program, ProgramForm.PLAIN) + frame(request, "0" * 64)


# A node may send its bytes one by one. So readers of output get ``seen``, the number of bytes that they have looked at
# before, and look at each byte once.


@dataclass(frozen=True, slots=True)
class Greeting:
    """``form``: the shortest one in which the shell of a conversation can take the program. ``end``: where the output goes on."""

    form: ProgramForm
    end: int


def greeted(output: bytes | bytearray, program: str, seen: int = 0) -> Greeting | None:
    """``None``: the shell has not begun yet."""
    line = b"begin %b" % prepared(program).digest.encode()
    at = output.find(line, max(0, seen - len(line) - len(b" gzip kept")))
    while at >= 0:
        match = _FORMS.match(output, at + len(line))
        if match and (at == 0 or output[at - 1] == ord("\n")):
            form = ProgramForm.KEPT if match[2] else ProgramForm.GZIP if match[1] else ProgramForm.PLAIN
            return Greeting(form, match.end())
        at = output.find(line, at + 1)
    return None


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer: ``output`` begins with its mark, or is empty if the verb was killed; the status of its verb. ``rest`` is what came after it."""

    output: bytes
    status: int
    rest: bytes


def answer(output: bytes | bytearray, nonce: str, seen: int = 0) -> Answer | None:
    """The answer to the frame with this nonce, as soon as it has ended.

    Raises ``ValueError`` if these bytes do not begin an answer to it: an older answer, or what another process printed.
    """
    end = mark(nonce)
    if not any(head.startswith(bytes(output[: len(head)])) for head in (f"begin {nonce}\n".encode(), end)):
        raise ValueError("the node's output is not an answer to this request")
    at = output.find(end, max(0, seen - len(end) - len("255")))
    while at >= 0:
        match = _STATUS.match(output, at + len(end))
        if match:
            return Answer(bytes(output[:at]), int(match[1]), bytes(output[match.end() :]))
        at = output.find(end, at + 1)
    return None
