"""Text of others for messages, without paramiko: what reads only an ssh_config imports this."""

from __future__ import annotations


def printable(text: str, limit: int = 200) -> str:
    """Text that may come from a node: printable ASCII only, bounded, so that no terminal escape gets through."""
    return "".join(char if " " <= char <= "~" else "?" for char in text[:limit])
