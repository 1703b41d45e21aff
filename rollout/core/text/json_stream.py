"""A JSON text read piece by piece, so that a large object's entries are not in memory all at once."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rollout.core.text.json_text import Json

_SPACE = " \t\n\r"
_READ = json.JSONDecoder().raw_decode


class JsonStream:
    """Reads from the start to the end. All methods raise ``ValueError`` where the text is not what they expect."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def value(self) -> Json:
        """The next value, whole."""
        self._skip()
        try:
            found, self._at = _READ(self._text, self._at)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        return found

    def each_key(self) -> Iterator[str]:
        """The keys of the next object. The caller reads each key's value before it asks for the next key."""
        self._take("{")
        if self._next() == "}":
            self._take("}")
            return
        while True:
            key = self.value()
            if not isinstance(key, str):
                raise ValueError("a key is not a text")
            self._take(":")
            yield key
            if self._next() == "}":
                self._take("}")
                return
            self._take(",")

    def end(self) -> None:
        """Nothing follows."""
        if self._next():
            raise ValueError("more text follows")

    def _next(self) -> str:
        self._skip()
        return self._text[self._at : self._at + 1]

    def _take(self, expected: str) -> None:
        if self._next() != expected:
            raise ValueError(f"{expected} is missing")
        self._at += 1

    def _skip(self) -> None:
        while self._text[self._at : self._at + 1] in _SPACE and self._at < len(self._text):
            self._at += 1
