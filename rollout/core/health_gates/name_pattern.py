"""Many names as one short regular expression, for queries: exactly these names, in the syntax that RE2 and others share.

Two thousand names as an alternation are 40 kB, but numbered names share nearly all characters. The names are put into a
tree of characters; branches with equal continuations become one character class: ``n[1-9]``, ``rack(?:0[1-9]|1[0-2])``.
No backslash is used, because a query has the expression in quotes, where it would have to be doubled.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Set

from rollout.core.health_gates.prometheus import Samples
from rollout.core.model.verdict import SHOWN
from rollout.core.text.nodesets import fold, is_name
from rollout.core.text.terminal import counted, printable

# Which nodes an instant query's answer covers, so that nodes are noticed when their series vanish.
#
# A sample belongs to a node when one of its labels has the node's name: alone, with a port (``n1:9100``), or as the
# beginning of a longer name (``n1.example.net``). A query that sums over nodes has no such label: its nodes cannot be
# counted.


def answering(answer: Samples, names: Collection[str]) -> frozenset[str]:
    """Those of ``names`` that have a sample."""
    wanted = frozenset(names)
    found = (_named(value, wanted) for sample in answer.samples for value in sample.words)
    return frozenset(name for name in found if name)


def vanished(now: Set[str], before: Set[str], touched: Collection[str]) -> str:
    """The message for touched nodes that had samples before the wave and have none now; ``""``: there are none."""
    gone = sorted((before & frozenset(touched)) - now)
    if not gone:
        return ""
    named = printable(fold(gone[:SHOWN]), 200)
    more = f" and {len(gone) - SHOWN} more" if len(gone) > SHOWN else ""
    have = "has" if len(gone) == 1 else "have"
    return f"samples of {share(now, touched)}: {named}{more} {have} none now and had some before the wave"


def unnamed(answer: Samples, touched: Collection[str]) -> str:
    """The message for an answer to a query for nodes that names none of them."""
    number, of = counted(len(answer.samples), "sample"), counted(len(touched), "touched node")
    return f"{number} without a node's name: it is not known how many of {of} were counted; keep their label, as in `sum by (node) (…)`"


def seen(now: Collection[str], touched: Collection[str]) -> str:
    """How many of the touched nodes an answer covers, as a prefix of its evidence; ``""``: all of them.

    A query without ``$nodes`` may cover the whole cluster.
    """
    if not now:
        return "not of single nodes: "
    return f"{share(now, touched)}: " if len(now) < len(touched) else ""


def share(now: Collection[str], touched: Collection[str]) -> str:
    """``1 of 7 nodes``."""
    return f"{len(now)} of {counted(len(touched), 'node')}"


def _named(word: str, names: Set[str]) -> str:
    """The longest of ``names`` that a label's value begins with, up to a port or a dot."""
    if word in names:
        return word
    host = word.partition(":")[0]
    while host and host not in names:
        host = host.rpartition(".")[0]
    return host


LONGEST = 64 * 1024
_END = ""


class PatternTooLongError(ValueError):
    """The names have too little in common."""


def name_pattern(names: Iterable[str]) -> str:
    """An expression in brackets that matches each of ``names`` and nothing else; without names it matches nothing."""
    wanted = sorted(set(names))
    if not wanted:
        return "(?:[^ -~][ -~])"  # cannot be a name
    if not all(map(is_name, wanted)):
        raise ValueError("only names of nodes can be asked for")
    pattern = f"(?:{_branches(wanted, 0)})"  # in brackets, so that a query may continue after it
    if len(pattern) > LONGEST:
        raise PatternTooLongError(f"{len(wanted)} names need {len(pattern)} characters, at most {LONGEST}")
    return pattern


def _branches(names: list[str], depth: int) -> str:
    """What may follow the first ``depth`` characters that ``names`` (sorted, different) share."""
    shared = _shared(names, depth)
    if shared:
        head = "".join(map(_literal, names[0][depth : depth + shared]))
        return head + _grouped(_branches(names, depth + shared))
    by_first: dict[str, list[str]] = {}
    for name in names:
        by_first.setdefault(name[depth : depth + 1], []).append(name)
    by_rest: dict[str, list[str]] = {}
    for first, those in by_first.items():
        rest = "" if first == _END else _grouped(_branches(those, depth + 1))
        by_rest.setdefault(rest, []).append(first)
    return "|".join(_one_of(firsts) + rest for rest, firsts in _ends_apart(by_rest))


def _grouped(pattern: str) -> str:
    return f"(?:{pattern})" if "|" in pattern else pattern


def _ends_apart(by_rest: dict[str, list[str]]) -> Iterable[tuple[str, list[str]]]:
    """A name that ends here has no next character that could join a class."""
    for rest, firsts in by_rest.items():
        if _END in firsts:
            yield "", [_END]
        if going_on := [first for first in firsts if first != _END]:
            yield rest, going_on


def _shared(names: list[str], depth: int) -> int:
    first, last = names[0], names[-1]
    shared = 0
    while depth + shared < min(len(first), len(last)) and first[depth + shared] == last[depth + shared]:
        shared += 1
    return shared


def _literal(character: str) -> str:
    return "[.]" if character == "." else character


def _one_of(firsts: list[str]) -> str:
    if firsts == [_END]:
        return ""
    return _literal(firsts[0]) if len(firsts) == 1 else f"[{_class(sorted(firsts))}]"


def _class(characters: list[str]) -> str:
    """Runs of three and more as ranges; ``-`` comes last, where it is literal."""
    plain = [character for character in characters if character != "-"]
    said = ""
    at = 0
    while at < len(plain):
        end = at
        while end + 1 < len(plain) and ord(plain[end + 1]) == ord(plain[end]) + 1:
            end += 1
        said += f"{plain[at]}-{plain[end]}" if end - at > 1 else "".join(plain[at : end + 1])
        at = end + 1
    return said + "-" * ("-" in characters)
