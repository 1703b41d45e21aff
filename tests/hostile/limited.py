"""Parsers in a process with limits of CPU time and memory, one text after the other.

    python -m tests.hostile.limited [PARSER…]     all of them, or these; prints what breaks and the counts

The child process prints the number of each case before it; a limit ends the process, and its last number is the case that
broke it. CPU time is that of the process itself, so other load changes nothing.
"""

from __future__ import annotations

import contextlib
import resource
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

MOST_PATTERN_TEXTS = 60


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
    at = 0
    todo = [(name, case) for name in names for case, _ in cases(_by_name(name))]
    while at < len(todo):
        command = [sys.executable, "-m", "tests.hostile.limited", "--child", str(at), *names]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
        lines = done.stdout.splitlines()
        last = max((int(line.split()[1]) for line in lines if line.startswith("case ")), default=at - 1)
        for line in lines:
            if line.startswith("error "):
                _, number, how = line.split(" ", 2)
                broken.append(Broken(*todo[int(number)], how))
        if done.returncode == 0:
            break
        if last < at:
            raise RuntimeError(done.stderr[-2000:])
        broken.append(Broken(*todo[last], f"ended with {done.returncode}: {done.stderr[-300:]}"))
        sys.stderr.write(f"{broken[-1]}\n")
        at = next((number for number in range(last, len(todo)) if todo[number][0] != todo[last][0]), len(todo))
    return broken, len(todo)


def _by_name(name: str) -> parsers.Parser:
    return next(parser for parser in parsers.found() if parser.name == name)


def child(first: int, names: Sequence[str]) -> None:
    number = -1
    for name in names:
        parser = _by_name(name)
        call = parsers.direct(parser)
        assert call is not None
        for _, text in cases(parser):
            number += 1
            if number < first:
                continue
            sys.stdout.write(f"case {number}\n")
            sys.stdout.flush()
            _within_limits()
            try:
                with contextlib.redirect_stderr(None):
                    call(text)
            except (MemoryError, RecursionError, OverflowError) as error:
                sys.stdout.write(f"error {number} {type(error).__name__}\n")
            except Exception:  # noqa: BLE001, S110 - a refusal; whether its form is right is for the readers of targets
                pass


def _within_limits() -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + 1 + SECONDS, hard))
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
        child(int(sys.argv[2]), sys.argv[3:])
    else:
        sys.exit(main(sys.argv[1:]))
