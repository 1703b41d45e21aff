"""JSON from outside. The place where its nesting is bounded."""

import json
from typing import Any


def parse(text: str | bytes) -> Any:
    """The value in a JSON text, or ``ValueError``, also for one nested more deeply than Python can follow.

    ``json.loads`` raises ``RecursionError`` there, which is no ``ValueError`` and so passes by the handlers of its
    callers; a file of a node or a row of a journal that says ``[[[[…`` would end the whole run as an internal error.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
