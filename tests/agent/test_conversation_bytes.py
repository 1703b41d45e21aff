"""A node may send its output in any pieces: the same is found as in the whole, and no byte is looked at again and again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.kubelet.agent import conversation

PROGRAM = "conversation_serve() { :; }\n"
DIGEST = conversation.prepared(PROGRAM).digest.encode()
NONCE = "a" * 64
ENDS = (b"over " + NONCE.encode() + b" 0\n", b"over " + NONCE.encode() + b" 137\n", b"over " + b"b" * 64 + b" 0\n")
PIECES = st.sampled_from(
    [
        *ENDS,
        b"\n",
        b"over ",
        NONCE.encode(),
        b" ",
        b"255",
        b"x",
        b"begin ",
        DIGEST,
        b" gzip",
        b" kept",
        b"begin " + DIGEST + b"\n",
    ]
)


class Looked(bytearray):
    """Counts the bytes that were looked at."""

    looked_at = 0

    def find(self, *words: Any) -> int:
        found = super().find(*words)
        start = int(words[1]) if len(words) > 1 else 0
        Looked.looked_at += (found if found >= 0 else len(self)) - start
        return found

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        Looked.looked_at += len(found) if isinstance(found, bytes | bytearray) else 1
        return found


def in_pieces(reader: object, output: bytes, key: str, size: int) -> object:
    heard = bytearray()
    for at in range(0, len(output), size):
        seen = len(heard)
        heard += output[at : at + size]
        found = reader(heard, key, seen)  # type: ignore[operator]
        if found is not None:
            return found
    return None


@given(st.lists(PIECES, max_size=12).map(b"".join), st.integers(1, 9))
def test_an_answer_in_pieces_ends_where_the_whole_does(body: bytes, size: int) -> None:
    output = f"begin {NONCE}\n".encode() + body
    whole = conversation.answer(output, NONCE)
    found = in_pieces(conversation.answer, output, NONCE, size)
    assert isinstance(found, conversation.Answer) is isinstance(whole, conversation.Answer)
    if isinstance(found, conversation.Answer) and whole is not None:
        assert (found.output, found.status) == (whole.output, whole.status)


@given(st.lists(PIECES, max_size=12).map(b"".join), st.integers(1, 9))
def test_a_beginning_in_pieces_is_that_of_the_whole(output: bytes, size: int) -> None:
    assert in_pieces(conversation.greeted, output, PROGRAM, size) == conversation.greeted(output, PROGRAM)


@pytest.mark.parametrize(
    "before", [b"\n", b"begin ", b"begin " + DIGEST + b" ", b"x"], ids=["newlines", "begin", "digest", "x"]
)
def test_a_flood_and_then_single_bytes_before_the_beginning_are_looked_at_once(before: bytes) -> None:
    assert _looks(conversation.greeted, PROGRAM, b"", before) < 200_000


@pytest.mark.parametrize(
    "before", [b"\n", b"over ", ENDS[0][:-1], ENDS[2]], ids=["newlines", "over", "half ends", "other ends"]
)
def test_a_flood_and_then_single_bytes_in_an_answer_are_looked_at_once(before: bytes) -> None:
    assert _looks(conversation.answer, NONCE, f"begin {NONCE}\n".encode(), before) < 400_000


def _looks(reader: object, key: str, head: bytes, before: bytes) -> int:
    """The bytes looked at: 64 KiB at once, and then 1,000 single bytes, each of which wakes the reader."""
    heard = Looked(head + before * (65536 // len(before)))
    Looked.looked_at, seen = 0, 0
    for _ in range(1000):
        assert reader(heard, key, seen) is None  # type: ignore[operator]
        seen = len(heard)
        heard += b"x"
    return Looked.looked_at
