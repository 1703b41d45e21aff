"""Which lines two files share, in order, in time that grows with the files and not with their squares.

difflib compares each line with all equal ones: a file of 64 KiB with few kinds of lines takes it half a minute. So equal lines
at both ends are taken off first. Then lines that stand once in each file divide the rest, and difflib gets only short parts.
A long part without such lines counts as replaced.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import Match, SequenceMatcher

SHORT = 400
"""Lines of both files in a part for difflib."""


class LineMatcher(SequenceMatcher[str]):
    """difflib's, with matching blocks of ``matching``."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        super().__init__(None, old, new, autojunk=False)
        self._blocks = [*joined(matching(old, new)), Match(len(old), len(new), 0)]

    def get_matching_blocks(self) -> list[Match]:
        return self._blocks


def matching(old: Sequence[str], new: Sequence[str]) -> Iterator[Match]:
    """Runs of equal lines in both, in order."""
    first, end, new_end = 0, len(old), len(new)
    while first < min(end, new_end) and old[first] == new[first]:
        first += 1
    while first < min(end, new_end) and old[end - 1] == new[new_end - 1]:
        end, new_end = end - 1, new_end - 1
    yield Match(0, 0, first)
    at, new_at = first, first
    for anchor, new_anchor in [*_anchors(old[first:end], new[first:new_end]), (end - first, new_end - first)]:
        stop, new_stop = first + anchor, first + new_anchor
        lines, new_lines = old[at:stop], new[new_at:new_stop]
        if lines and new_lines and len(lines) + len(new_lines) <= SHORT:
            for found in SequenceMatcher(None, lines, new_lines, autojunk=False).get_matching_blocks():
                yield Match(at + found.a, new_at + found.b, found.size)
        if stop < end or new_stop < new_end:
            yield Match(stop, new_stop, 1)
        at, new_at = stop + 1, new_stop + 1
    yield Match(end, new_end, len(old) - end)


def joined(blocks: Iterator[Match]) -> Iterator[Match]:
    """Without empty blocks; blocks that touch are one."""
    last = Match(0, 0, 0)
    for block in blocks:
        if (last.a + last.size, last.b + last.size) == (block.a, block.b):
            last = Match(last.a, last.b, last.size + block.size)
            continue
        if last.size:
            yield last
        last = block
    if last.size:
        yield last


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Places of lines that stand once in each, in rising order in both: as many as there are."""
    if len(old) + len(new) <= SHORT:
        return []
    once, new_once = ({line for line, count in Counter(lines).items() if count == 1} for lines in (old, new))
    both = once & new_once
    places = {line: at for at, line in enumerate(new) if line in both}
    pairs = [(at, places[line]) for at, line in enumerate(old) if line in both]
    ends: list[int] = []  # for each length of a chain: the lowest place in ``new`` where one of it ends
    lasts: list[int] = []  # and the pair that it ends with
    before: list[int] = []  # for each pair: the pair before it in the longest chain that ends with it, or -1
    for number, (_, new_at) in enumerate(pairs):
        length = bisect_left(ends, new_at)
        before.append(lasts[length - 1] if length else -1)
        if length == len(ends):
            ends.append(new_at)
            lasts.append(number)
        else:
            ends[length], lasts[length] = new_at, number
    chain, number = [], lasts[-1] if lasts else -1
    while number >= 0:
        chain.append(pairs[number])
        number = before[number]
    return chain[::-1]
