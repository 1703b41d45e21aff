"""Nodesets and their algebra. The only module that uses ClusterShell.

ClusterShell knows what ``tess-node-[0001-0060/2]`` means and how to fold names back. What ``@rack12`` means is
resolved here, from the inventory alone (ClusterShell's default resolver opens files and runs programs), and everything
is bounded before ClusterShell sees it: ``node[1-999999999]`` would use up all memory.

The algebra is ClusterShell's: operators apply from left to right, without precedence.

    a,b   nodes of either        a&b   nodes of both
    a!b   nodes of a but not b   a^b   nodes of exactly one
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from fnmatch import filter as matching
from math import prod

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Inventory
from rollout.core.text.suggest import did_you_mean
from rollout.core.text.terminal import printable
from rollout.errors import UsageError

MAX_NODES = 200_000
MAX_TEXT = 256 * 1024
EVERYTHING = "all"

_OPERATIONS: Mapping[str, Callable[[Set[str], Set[str]], Set[str]]] = {
    ",": operator.or_,
    "&": operator.and_,
    "!": operator.sub,
    "^": operator.xor,
}
_TERM = re.compile(r"(?:[^\[\],!&^]|\[[^\[\]]*\])*")
_RANGE = re.compile(r"(?P<first>[0-9]{1,15})(?:-(?P<last>[0-9]{1,15})(?:/(?P<step>[0-9]{1,15}))?)?")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_UNFOLDED = re.compile(r"[0-9]{16}")
_BRACKET = re.compile(r"\[([^\[\]]*)\]")
_NOT_PLAIN = re.compile(r"[@*?]")
_LONGEST_NAME = 253
_STEPS = 6
"""Fewer names at one distance are clearer one by one."""
_MOST_BRACKETS = 4


@dataclass(frozen=True, slots=True)
class Flaw:
    """A mistake in a nodeset, without the file or option that it came from."""

    reference: str
    message: str
    hint: str = ""


class NodesetError(Exception):
    """An invalid nodeset; carries every flaw found, and the valid names in it."""

    def __init__(self, *flaws: Flaw, valid: Set[str] = frozenset()) -> None:
        super().__init__(flaws[0].message)
        self.flaws = flaws
        self.valid = valid


@dataclass(frozen=True, slots=True)
class Names:
    """The names that an expression may use: nodes, and the nodesets behind ``@name``."""

    nodes: Collection[str]
    sets: Mapping[str, Set[str]]
    what: str = "node"


def is_name(text: str) -> bool:
    """Whether a node, rack, zone, group or cluster may have this name."""
    return len(text) <= _LONGEST_NAME and _NAME.fullmatch(text) is not None


def expand(text: str) -> tuple[str, ...]:
    """The names of a nodeset without groups and operators, in the order written, or ``NodesetError``."""
    if is_name(text):
        return (text,)
    names: dict[str, None] = {}
    for sign, term in _split(text):
        odd = _NOT_PLAIN.search(term) if sign == "," else re.match(".", sign)
        if odd:
            raise NodesetError(
                Flaw("bad-nodeset", f"`{printable(text)}`: `{odd.group()}` has no meaning here; write the names")
            )
        names.update(dict.fromkeys(_term_names(term)))
    return tuple(names)


def fold(names: Iterable[str]) -> str:
    """Names as the shortest nodeset: ``tess-node-[0001-0060,0062]``; what ``expand`` reads back to the same names.

    ``_STEPS`` names or more at one distance become ``tess-node-[0005-0060/5]``.

    A name with a number too long for a range is kept as it is: ClusterShell refuses numbers of more than 100 digits. So is a
    name that is longer than any node's: its numbers would be as many axes.
    """
    ordered = list(names)
    kept = {name for name in ordered if len(name) > _LONGEST_NAME or _UNFOLDED.search(name)}
    foldable = [name for name in ordered if name not in kept]
    folded = NodeSet.fromlist(_joined(foldable), resolver=RESOLVER_NOGROUP, autostep=_STEPS)
    folded.fold_axis = tuple(range(_MOST_BRACKETS))  # overrides ClusterShell's own configuration files
    return ",".join(filter(None, [str(folded), *dict.fromkeys(name for name in ordered if name in kept)]))


_NUMBERED = re.compile(r"([A-Za-z._-]+)([0-9]+)([A-Za-z._-]*)")


def _joined(names: Iterable[str]) -> list[str]:
    """Names that differ in their only number as one, ``tess-node-[0001,0002]``: ClusterShell reads it many times faster than them."""
    numbers: dict[str | tuple[str, str], list[str]] = {}
    for name in names:
        match = _NUMBERED.fullmatch(name)
        if match is None:
            numbers[name] = []
        else:
            before, number, after = match.groups()
            numbers.setdefault((before, after), []).append(number)
    return [around if isinstance(around, str) else _term(*around, found) for around, found in numbers.items()]


def _term(before: str, after: str, numbers: Sequence[str]) -> str:
    return f"{before}[{','.join(numbers)}]{after}" if len(numbers) > 1 else f"{before}{numbers[0]}{after}"


def select(expression: str, inventory: Inventory) -> tuple[str, ...]:
    """The nodes that an expression selects, in inventory order. Raises ``UsageError``; an empty result is one, too."""
    try:
        chosen = evaluate(expression, Names(inventory.nodes, inventory.nodesets))
    except NodesetError as error:
        first = error.flaws[0]
        raise UsageError(first.reference, "; ".join(flaw.message for flaw in error.flaws), hint=first.hint) from None
    if not chosen:
        raise UsageError("empty-limit", f"`{printable(expression)}` selects no node of cluster {inventory.cluster}")
    return tuple(name for name in inventory.nodes if name in chosen)


def limited(limit: str, inventory: Inventory) -> tuple[str, ...]:
    """The nodes of ``--limit`` (``""``: all of them)."""
    return select(limit, inventory) if limit else tuple(inventory.nodes)


def left_of(limit: str, inventory: Inventory) -> Set[str]:
    """The nodes that an earlier limit (``""``: all) selects now. Names that the inventory no longer has select nothing."""
    try:
        return evaluate(limit, Names(inventory.nodes, inventory.nodesets)) if limit else frozenset(inventory.nodes)
    except NodesetError as error:
        return error.valid


def evaluate(expression: str, names: Names) -> Set[str]:
    """Set algebra over the known names, or ``NodesetError`` with every unknown node and group."""
    flaws: list[Flaw] = []
    result: Set[str] = frozenset()
    for sign, term in _split(expression):
        names_meant, wrong = _meaning(term, names)
        flaws += wrong
        result = _OPERATIONS[sign](result, names_meant)
    if flaws:
        raise NodesetError(*flaws, valid=result)
    return result


def _meaning(term: str, names: Names) -> tuple[Set[str], list[Flaw]]:
    if term.startswith("@"):
        return _of_groups(term, names)
    words = _term_names(term)
    if "*" in term or "?" in term:
        return frozenset(name for word in words for name in matching(names.nodes, word)), []
    unknown = [word for word in words if word not in names.nodes]
    return frozenset(words).difference(unknown), [_unknown_nodes(unknown, names)] if unknown else []


def _of_groups(term: str, names: Names) -> tuple[Set[str], list[Flaw]]:
    if term in ("@" + EVERYTHING, "@*"):
        return frozenset(names.nodes), []
    words = _checked([""], term) if term == "@" else _term_names(term[1:])
    known = [f"@{name}" for name in (*names.sets, EVERYTHING)]
    flaws = [
        Flaw("unknown-group", f"there is no rack, zone or group `@{printable(word)}`", did_you_mean(f"@{word}", known))
        for word in words
        if word not in names.sets
    ]
    return frozenset[str]().union(*(names.sets[word] for word in words if word in names.sets)), flaws


def _unknown_nodes(unknown: list[str], names: Names) -> Flaw:
    plural = "s" if len(unknown) > 1 else ""
    message = f"no {names.what}{plural} `{printable(fold(unknown))}` in the inventory"
    return Flaw(f"unknown-{names.what}", message, did_you_mean(unknown[0], names.nodes))


def _split(text: str) -> list[tuple[str, str]]:
    """``a&b!c`` as ``[(",", "a"), ("&", "b"), ("!", "c")]``; operators inside brackets belong to the range."""
    if len(text) > MAX_TEXT:
        raise NodesetError(Flaw("nodeset-too-large", f"the nodeset is longer than {MAX_TEXT} characters"))
    terms: list[tuple[str, str]] = []
    sign, at = ",", 0
    while True:
        match = _TERM.match(text, at)
        term = match.group() if match else ""
        at += len(term)
        if not term.strip():
            raise NodesetError(_nothing(text, at, sign))
        terms.append((sign, term.strip()))
        if at == len(text):
            size = sum(_size(term) for _, term in terms)
            if size > MAX_NODES:
                raise NodesetError(
                    Flaw("nodeset-too-large", f"the nodeset means {size} names; the most is {MAX_NODES}")
                )
            return terms
        sign, at = text[at], at + 1
        if sign not in _OPERATIONS:
            raise NodesetError(Flaw("bad-nodeset", f"`{printable(text)}`: a `{sign}` without its partner"))


def _nothing(text: str, at: int, sign: str) -> Flaw:
    if not text.strip():
        return Flaw("bad-nodeset", "the nodeset is empty")
    if at < len(text) and text[at] in "[]":
        return Flaw("bad-nodeset", f"`{printable(text)}`: a `{text[at]}` without its partner")
    side = f"after `{sign}`" if at else "at the beginning"
    return Flaw("bad-nodeset", f"`{printable(text)}`: a name is missing {side}")


def _size(term: str) -> int:
    """How many names a term will expand to, without expanding it."""
    if "][" in term:
        raise NodesetError(
            Flaw("bad-nodeset", f"`{printable(term)}`: two ranges need a character between them, such as `-`")
        )
    brackets = _BRACKET.findall(term)
    if len(brackets) > _MOST_BRACKETS:
        raise NodesetError(Flaw("nodeset-too-large", f"`{printable(term)}` has more than {_MOST_BRACKETS} ranges"))
    return prod(sum(_count(part, term) for part in bracket.split(",")) for bracket in brackets)


def _term_names(term: str) -> list[str]:
    return _checked(list(_clustershell(term)) if "[" in term else [term], term)


def _count(part: str, term: str) -> int:
    """How many numbers ``1``, ``1-9`` or ``1-9/2`` is."""
    match = _RANGE.fullmatch(part.strip())
    if match is None:
        raise NodesetError(
            Flaw("bad-nodeset", f"`{printable(term)}`: `{printable(part)}` is not a range such as 0001-0060")
        )
    first, last, step = match["first"], match["last"] or match["first"], int(match["step"] or 1)
    if int(last) < int(first):
        raise NodesetError(Flaw("bad-nodeset", f"`{printable(term)}`: the range {part.strip()} runs backwards"))
    if step == 0:
        raise NodesetError(Flaw("bad-nodeset", f"`{printable(term)}`: the range {part.strip()} has a step of 0"))
    if len(first) != len(last) and any(number != str(int(number)) for number in (first, last)):
        width = max(len(first), len(last))
        meant = f"{first.zfill(width)}-{last.zfill(width)} or {int(first)}-{int(last)}"
        raise NodesetError(
            Flaw(
                "bad-nodeset",
                f"`{printable(term)}`: the numbers of the range {part.strip()} have different widths; write {meant}",
            )
        )
    return (int(last) - int(first)) // step + 1


def _clustershell(term: str) -> NodeSet:
    """The term as ClusterShell reads it. It asserts that a range is not too large, and counts by Python's ``int``."""
    try:
        return NodeSet(term, resolver=RESOLVER_NOGROUP)
    except (NodeSetException, AssertionError, ValueError) as error:
        raise NodesetError(Flaw("bad-nodeset", f"`{printable(term)}`: {printable(str(error))}")) from None


def _checked(names: list[str], term: str) -> list[str]:
    for name in names:
        if len(name) > _LONGEST_NAME:
            raise NodesetError(
                Flaw("bad-nodeset", f"`{printable(term, 60)}`: a name is longer than {_LONGEST_NAME} characters")
            )
        if not is_name(name.translate(_WILDCARDS)):
            raise NodesetError(
                Flaw(
                    "bad-nodeset",
                    f"`{printable(term)}`: `{printable(name)}` is not a name; names are letters, digits, `-`, `_` and `.`",
                )
            )
    return names


_WILDCARDS = str.maketrans("*?", "xx")
