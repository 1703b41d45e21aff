"""Words of a command line as pflag parses them: compared with real kubelets, and random words with pflag's source."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.kubelet import fields
from rollout.kubelet.configuration.flags import FlagError, FlagToken, Malformed, Stray, parse, tokens
from rollout.kubelet.node import arguments
from tests.kubelet.newer_kubelets.cases import of_minor
from tests.kubelet.real_kubelet.recording import recorded

GRAMMAR = re.compile(
    r"bad flag syntax: [^\n]*|unknown flag: [^\n]*|unknown shorthand flag: [^\n]*|flag needs an argument: [^\n]*"
)
"""The errors of pflag about words, before any value is read."""

RECORDINGS = Path(__file__).parent.parent / "newer_kubelets" / "recorded"


def heard() -> dict[str, list[tuple[tuple[str, ...], int, str]]]:
    """Every command line that a real kubelet was given: its words, its minor, and its last message."""
    found = {"1.20": [(case.words, 20, verdict.said) for case, verdict in recorded()]}
    for path in sorted(RECORDINGS.glob("*.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
        words = {case.name: case.words for case in of_minor(int(path.stem[2:]))}
        found[path.stem] = [(words[line["case"]], int(path.stem[2:]), line.get("said", "")) for line in lines]
    return found


HEARD = heard()


@pytest.mark.parametrize("version", HEARD)
def test_rollout_reports_the_same_errors_in_words_as_real_kubelets(version: str) -> None:
    """Where the kubelet reported a mistake in the words, rollout reports the same one.

    Where it read all words, the reader that skips mistakes finds the same flags.
    """
    assert any(GRAMMAR.search(said) for _, _, said in HEARD[version])
    for words, minor, said in HEARD[version]:
        mistake = GRAMMAR.search(said)
        try:
            strict = parse(words, minor)
        except FlagError as error:
            ours = GRAMMAR.search(error.text)
            assert (ours and ours[0]) == (mistake and mistake[0].rstrip('"')), words
            continue
        assert mistake is None, (words, said)
        last = {flag.name: flag for flag in arguments.given(words)}
        assert set(last) == set(strict.given), words
        for name, flag in last.items():
            assert strict.given[name] in (*words[flag.start : flag.end], f"{words[flag.start]}={flag.value}"), words


Read = list[tuple[str, str | None]]
"""(name, value) until the first mistake, which is the last entry; words that are no flags have the name ``""``."""

SHORTHANDS = {"v": "v", "h": "help"}


class MistakeError(ValueError):
    """pflag ends here."""


def no_opt_def_val(name: str) -> str:
    """``NoOptDefVal`` of a kubelet's flag; ``MistakeError`` for a name that it does not have."""
    flag = fields.flag(f"--{name.replace('_', '-')}")
    if flag is None:
        raise MistakeError("unknown flag")
    return "true" if flag.kind == "bool" or flag.name == "--version" else ""


def by_the_book(words: list[str]) -> Read:
    """``parseArgs`` of pflag 1.0.5 with the two functions that it calls, line by line, for the flags of a kubelet."""
    found: Read = []
    args = list(words)
    try:
        while args:
            s = args.pop(0)
            if len(s) == 0 or s[0] != "-" or len(s) == 1:
                found.append(("", s))
            elif s == "--":
                found += [("", word) for word in args]
                break
            elif s[1] == "-":
                found.append(parse_long_arg(s, args))
            else:
                parse_short_arg(s, args, found)
    except MistakeError as mistake:
        found.append((str(mistake), None))
    return found


def parse_long_arg(s: str, args: list[str]) -> tuple[str, str]:
    name = s[2:]
    if len(name) == 0 or name[0] in "-=":
        raise MistakeError("bad flag syntax")
    split = name.split("=", 1)
    default = no_opt_def_val(split[0])
    name = split[0].replace("_", "-")
    if len(split) == 2:
        return name, split[1]
    return name, default or shifted(args)


def shifted(args: list[str]) -> str:
    if not args:
        raise MistakeError("flag needs an argument")
    return args.pop(0)


def parse_short_arg(s: str, args: list[str], found: Read) -> None:
    shorthands = s[1:]
    while len(shorthands) > 0 and not shorthands.startswith("test."):
        if shorthands[0] not in SHORTHANDS:
            raise MistakeError("unknown shorthand flag")
        name = SHORTHANDS[shorthands[0]]
        rest = shorthands[1:]
        if len(shorthands) > 2 and shorthands[1] == "=":
            value, rest = shorthands[2:], ""
        elif no_opt_def_val(name) != "":
            value = no_opt_def_val(name)
        elif len(shorthands) > 1:
            value, rest = shorthands[1:], ""
        else:
            value = shifted(args)
        found.append((name, value))
        shorthands = rest


def ours(words: list[str]) -> Read:
    """The same result from ``tokens``."""
    found: Read = []
    for token in tokens(words):
        match token:
            case Stray(at):
                found.append(("", words[at]))
            case Malformed():
                return [*found, ("bad flag syntax", None)]
            case FlagToken() if fields.flag(token.name) is None:
                return [*found, ("unknown shorthand flag" if token.shorts else "unknown flag", None)]
            case FlagToken(value=None):
                return [*found, ("flag needs an argument", None)]
            case FlagToken():
                found.append((token.name[2:], token.value))
    return found


PARTS = st.sampled_from(
    ("-", "--", "v", "h", "=", "2", "x", "_", "test.", "max-pods", "max_pods", "fail-swap-on", "version", "help", "é", " ", "config")
)  # fmt: skip
LINES = st.lists(st.lists(PARTS, max_size=5).map("".join), max_size=5)


@given(LINES)
def test_random_words_are_parsed_as_by_pflags_source(words: list[str]) -> None:
    assert ours(words) == by_the_book(words)


FLAGS = st.sampled_from((
    ("--max-pods=5",), ("--max_pods", "6"), ("-v2",), ("-v=3",), ("-v", "4"), ("--v=5",), ("--fail-swap-on",), ("--fail_swap_on=false",), ("a word",),
    ("--version",), ("--node-labels=a=b c",), ("-test.v",),
))  # fmt: skip


@given(st.lists(FLAGS, min_size=1, max_size=6), FLAGS)
def test_removed_flags_are_absent_and_the_others_unchanged(parts: list[tuple[str, ...]], out: tuple[str, ...]) -> None:
    words = [word for part in parts for word in part]
    names = {flag.name for flag in arguments.given(out)}
    line = arguments.without(" ".join(map(arguments.quote, words)), names)
    kept = [part for part in parts if not names.intersection(flag.name for flag in arguments.given(part))]
    assert [word.text for word in arguments.split(line)] == [word for part in kept for word in part]
