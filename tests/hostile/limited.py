"""Parsers in a process with limits of CPU time and memory, one text after the other, and how their work grows with its length.

    python -m tests.hostile.limited [PARSER…]     all of them, or these; prints what breaks and the counts

A parser is a function that is called with texts alone, or ``reader:NAME``: a reader of ``targets`` that gets its own normal
input with one part of it repeated, and so reaches the functions that need values of our own.

The child process names each case before it; a limit ends the process, and the last case is the one that broke it. CPU time
is that of the process itself, so other load changes nothing.
"""

from __future__ import annotations

import contextlib
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from tests.hostile import adversarial, growth, parsers
from tests.hostile.property import Target
from tests.hostile.targets import TARGETS
from tests.places import ROOT
from tests.sampling import DEPTH, Depth, dice, sample

SECONDS = 30
"""CPU time after which a parser counts as one that does not end, on the slowest machine too. How its work grows is measured apart."""

MEBIBYTES = 400
"""Memory for one text, above what the process has before."""

EXPECTED = {
    "rollout.core.reading.rendering:_parsed": "RecursionError",  # its callers make it an error of the template
    "rollout.core.reading.rendering:line_behind": "RecursionError",  # called with templates that were rendered
}
"""Parser → the error that its callers handle."""

GROWS = {
    "rollout.kubelet.runtimes.toml_edit:_new_table": "tomlkit's escapes in a value, which is a duration or a number of ours",
}
"""Parser → why its growth does no harm."""

MOST_PATTERN_TEXTS = 150
MOST_PARTS = 40
"""Of a parser, and of a reader; drawn, if there are more. At night there are ten times as many parts."""

READERS = "reader:"
READ_LENGTH = 1 << 14
"""Bytes that a reader gets. Whole plans are made of them, with a thousand times the work of a parser."""

READ_SECONDS = 60

Make = Callable[[int], str]


@dataclass(frozen=True, slots=True)
class Broken:
    """``how``: the limit, the error, or the growth."""

    parser: str
    text: str
    how: str


def cases(parser: parsers.Parser) -> Iterator[tuple[str, Make]]:
    """The name and text of each case: general ones, and those of the patterns of its module."""
    for name in adversarial.NAMES:
        yield name, partial(_general, name)
    made = [
        (pattern, number)
        for pattern in parsers.patterns(parser.module)
        for number in range(len(_of_pattern(pattern, 1)))
    ]
    for pattern, number in sample(f"texts for {parser.name}", made, MOST_PATTERN_TEXTS):
        yield f"{pattern.pattern!r} {number}", partial(_nth, pattern, number)


@lru_cache(maxsize=8)
def _texts(length: int) -> dict[str, str]:
    return dict(adversarial.texts(length))


def _general(name: str, length: int) -> str:
    return _texts(length)[name]


@lru_cache(maxsize=64)
def _of_pattern(pattern: re.Pattern[str] | re.Pattern[bytes], length: int) -> tuple[str, ...]:
    return tuple(adversarial.of_pattern(pattern, length))


def _nth(pattern: re.Pattern[str] | re.Pattern[bytes], number: int, length: int) -> str:
    return _of_pattern(pattern, length)[number]


def parts(target: Target) -> Iterator[tuple[str, Make]]:
    """The normal input of a reader with one part repeated: a line, a word, a number, punctuation, or all of it."""
    found = [
        (number, at.start(), upto)
        for number, seed in enumerate(target.seeds())
        for at in re.finditer(rb"(?=(?:^|(?<=\n))[^\n]*\n)|[A-Za-z]+|[0-9]+|[^A-Za-z0-9\s]+|\s+", seed)
        for upto in sorted({at.end(), seed.find(b"\n", at.start()) + 1 or len(seed)})
        if at.start() < upto
    ]
    most = MOST_PARTS * (10 if DEPTH is Depth.NIGHT else 1)
    drawn = sorted(dice(f"parts for {target.name}").sample(found, min(most, len(found))))
    for number, start, end in (*drawn, *((at, 0, len(seed)) for at, seed in enumerate(target.seeds()))):
        yield f"part {number}:{start}:{end}", partial(_inflated, target.seeds()[number], start, end)


def _inflated(seed: bytes, start: int, end: int, length: int) -> str:
    part = seed[start:end]
    return (seed[:start] + part * max(1, length // len(part)) + seed[end:]).decode("latin-1")


def callable_ones() -> tuple[str, ...]:
    """The names of all."""
    found = [parser.name for parser in parsers.found() if parsers.direct(parser) is not None]
    return *found, *(f"{READERS}{name}" for name in TARGETS)


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


@dataclass(frozen=True, slots=True)
class _Subject:
    call: Callable[[str], object]
    cases: Iterator[tuple[str, Make]]
    longest: int
    seconds: int


def subject(name: str) -> _Subject:
    if name.startswith(READERS):
        target = TARGETS[name.removeprefix(READERS)]
        return _Subject(lambda text: target.read(text.encode("latin-1")), parts(target), READ_LENGTH, READ_SECONDS)
    parser = next(parser for parser in parsers.found() if parser.name == name)
    call = parsers.direct(parser)
    assert call is not None
    return _Subject(call, cases(parser), adversarial.LENGTH, SECONDS)


def child(names: Sequence[str]) -> None:
    for name in names:
        tried = subject(name)
        for label, make in tried.cases:
            case = f"{name}\t{label.encode('ascii', 'backslashreplace').decode()}".replace("\n", " ")
            text = make(tried.longest)
            sys.stdout.write(f"case\t{case}\n")
            sys.stdout.flush()
            within_limits(tried.seconds)
            with contextlib.redirect_stderr(None):
                broken = _broken(tried, text, name)
                grown = "" if broken or name in GROWS else _grown(tried, make)
            if broken or grown:
                sys.stdout.write(f"error\t{case}\t{broken or grown}\n")
            if grown:
                break  # its other texts would take as long


def _broken(tried: _Subject, text: str, name: str) -> str:
    try:
        tried.call(text)
    except (MemoryError, RecursionError, OverflowError) as error:
        return "" if type(error).__name__ == EXPECTED.get(name) else type(error).__name__
    except Exception:  # noqa: BLE001, S110 - a refusal; whether its form is right is for the readers of targets
        pass
    return ""


def _grown(tried: _Subject, make: Make) -> str:
    signal.setitimer(signal.ITIMER_PROF, 0)  # no call here takes longer than the one before
    found = growth.grows(tried.call, make, tried.longest)
    return "" if found is None else f"{found[0]:,} characters are {found[1]:.0f} times the work of a quarter of them"


def within_limits(seconds: int = SECONDS) -> None:
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)  # the kernel ends the process, whatever it is in
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (MEBIBYTES << 20), hard))


def main(names: Sequence[str]) -> int:
    chosen = names or callable_ones()
    broken, tried = try_all(chosen)
    for each in broken:
        sys.stdout.write(f"BROKEN {each.parser} by {each.text[:120]}: {each.how}\n")
    readers = sum(name.startswith(READERS) for name in chosen)
    sys.stdout.write(
        f"{len(parsers.found())} parsers found, {len(chosen) - readers} called, {readers} readers, "
        f"{tried} texts tried, {len(broken)} broken\n"
    )
    return 1 if broken else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2:])
    else:
        sys.exit(main(sys.argv[1:]))
