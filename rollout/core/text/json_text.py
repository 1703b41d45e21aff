"""JSON from outside, with bounded nesting."""

import json
from typing import Any


def parse(text: str | bytes) -> Any:
    """The value in a JSON text, or ``ValueError``, also for one nested more deeply than Python can follow.

    ``json.loads`` raises ``RecursionError`` there, which is not a ``ValueError`` and so is not caught by its callers. A
    node's file or a journal row with ``[[[[…`` would end the whole run as an internal error.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
