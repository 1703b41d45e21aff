"""File contents by their digest: stored once, however many nodes have them."""

from __future__ import annotations

import hashlib
from functools import lru_cache


@lru_cache(maxsize=8192)
def digest(content: bytes) -> str:
    """Hex SHA-256."""
    return hashlib.sha256(content).hexdigest()
