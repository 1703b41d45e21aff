"""May this kubelet be restarted at all, or would that put somebody else's edits in force?"""

from __future__ import annotations

from collections.abc import Collection

from rollout.core.text import diff
from rollout.kubelet.node import arguments
from rollout.kubelet.node.layout import Layout, LayoutError


def check(now: Layout, ours: Collection[str]) -> None:
    """Nobody else's edit may come into force by our restart; flags of the names ``ours`` are our own."""
    if now.running[1:] == now.asked:
        return
    runs, asked = others(now.running[1:], ours), others(now.asked, ours)
    if runs == asked:
        return
    said = [
        *(f"{_safe(name, value)} runs but is not in the files" for name, value in runs if (name, value) not in asked),
        *(
            f"{_safe(name, value)} is in the files but does not run"
            for name, value in asked
            if (name, value) not in runs
        ),
    ]
    difference = ", ".join(said) or "the order differs"
    raise LayoutError("layout-drifted", f"the kubelet does not run as its unit and files say: {difference}")


def _safe(name: str, value: str) -> str:
    return diff.redacted(f"{name}={value}")


def others(words: tuple[str, ...], ours: Collection[str]) -> list[tuple[str, str]]:
    """The flags of a command line that are not ours, in order."""
    return [(flag.name, flag.value) for flag in arguments.given(words) if flag.name not in ours]
