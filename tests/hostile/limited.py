"""Parsers in a process with limits of CPU time and memory, one text after the other.

    python -m tests.hostile.limited [PARSER…]     all of them, or these; prints what breaks and the counts

The child process names each case before it; a limit ends the process, and the last case is the one that broke it. CPU time is that of the process itself, so other load changes nothing.
"""

from __future__ import annotations

import contextlib
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.hostile import adversarial, parsers
from tests.places import ROOT

SECONDS = 4
"""CPU time for one text of 64 KiB: a thousand times what a linear parser takes."""

MEBIBYTES = 400
"""Memory for one text, above what the process has before."""

EXPECTED = {
    "rollout.core.reading.rendering:_parsed": "RecursionError",  # its callers make it an error of the template
    "rollout.core.reading.rendering:line_behind": "RecursionError",  # called with templates that were rendered
}
"""Parser → the error that its callers handle."""

MOST_PATTERN_TEXTS = 30


@dataclass(frozen=True, slots=True)
class Broken:
    """``how``: the limit or the error."""

    parser: str
    text: str
    how: str


def cases(parser: parsers.Parser) -> Iterator[tuple[str, str]]:
    """The name and text of each case: general ones, and those of the patterns of its module."""
    yield from adversarial.texts()
    number = 0
    for pattern in parsers.patterns(parser.module):
        for text in adversarial.of_pattern(pattern):
            if number < MOST_PATTERN_TEXTS:
                yield f"{pattern.pattern!r} {number}", text
            number += 1


def callable_ones() -> tuple[parsers.Parser, ...]:
    return tuple(parser for parser in parsers.found() if parsers.direct(parser) is not None)


def try_all(names: Sequence[str]) -> tuple[list[Broken], int]:
    """What breaks of these parsers, and the number of texts. Of a parser that a limit ended, the rest is not tried."""
    broken: list[Broken] = []
    tried, left = 0, list(names)
    while left:
        command = [sys.executable, "-m", "tests.hostile.limited", "--child", *left]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
        lines = [line.split("\t") for line in done.stdout.splitlines()]
        broken += [Broken(*line[1:]) for line in lines if line[0] == "error"]
        begun = [line for line in lines if line[0] == "case"]
        tried += len(begun)
        if done.returncode == 0:
            break
        if not begun:
            raise RuntimeError(done.stderr[-2000:])
        _, parser, text = begun[-1]
        broken.append(Broken(parser, text, f"ended with {done.returncode}: {done.stderr[-300:]}"))
        sys.stderr.write(f"{broken[-1]}\n")
        left = left[left.index(parser) + 1 :]
    return broken, tried


def _by_name(name: str) -> parsers.Parser:
    return next(parser for parser in parsers.found() if parser.name == name)


def child(names: Sequence[str]) -> None:
    for name in names:
        parser = _by_name(name)
        call = parsers.direct(parser)
        assert call is not None
        for label, text in cases(parser):
            case = f"{name}\t{label.encode('ascii', 'backslashreplace').decode()}".replace("\n", " ")
            sys.stdout.write(f"case\t{case}\n")
            sys.stdout.flush()
            within_limits()
            try:
                with contextlib.redirect_stderr(None):
                    call(text)
            except (MemoryError, RecursionError, OverflowError) as error:
                if type(error).__name__ == EXPECTED.get(name):
                    continue
                sys.stdout.write(f"error\t{case}\t{type(error).__name__}\n")
            except Exception:  # noqa: BLE001, S110 - a refusal; whether its form is right is for the readers of targets
                pass


def within_limits() -> None:
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)  # the kernel ends the process, whatever it is in
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (MEBIBYTES << 20), hard))


def main(names: Sequence[str]) -> int:
    chosen = names or [parser.name for parser in callable_ones()]
    broken, tried = try_all(chosen)
    for each in broken:
        sys.stdout.write(f"BROKEN {each.parser} by {each.text[:120]}: {each.how}\n")
    sys.stdout.write(
        f"{len(parsers.found())} parsers found, {len(chosen)} called, {tried} texts tried, {len(broken)} broken\n"
    )
    return 1 if broken else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2:])
    else:
        sys.exit(main(sys.argv[1:]))
