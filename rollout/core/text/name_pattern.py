"""Many names as one short regular expression, for queries: exactly these names, in the syntax that RE2 and others share.

Two thousand names as an alternation are 40 kB, but numbered names share nearly all characters. The names are put into a
tree of characters; branches with equal continuations become one character class: ``n[1-9]``, ``rack(?:0[1-9]|1[0-2])``.
No backslash is used, because a query has the expression in quotes, where it would have to be doubled.
"""

from __future__ import annotations

from collections.abc import Iterable

from rollout.core.text.nodesets import is_name

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
    first, last = names[0], names[-1]
    shared = 0
    while depth + shared < min(len(first), len(last)) and first[depth + shared] == last[depth + shared]:
        shared += 1
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
