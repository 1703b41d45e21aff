"""Damaged files: a few characters or lines lost, doubled, swapped or inserted, as editors, scripts and people do."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from tests.kubelet.real_kubelet.corners.case import HEAD
from tests.kubelet.real_kubelet.corners.values import BOOLEANS, DURATIONS, INTEGERS, LISTS, STRINGS

WHOLE = (
    "maxPods: 50\nclusterDNS:\n- 10.96.0.10\n- 10.96.0.11\nclusterDomain: cluster.local\n",
    "authentication:\n  anonymous:\n    enabled: false\n  webhook:\n    cacheTTL: 2m0s\n    enabled: true\n  x509: {}\nport: 10250\n",
    "evictionHard: {memory.available: 200Mi, 'nodefs.available': \"10%\"}\nserializeImagePulls: false # see the runbook\n",
    'kubeReserved: &small\n  cpu: 100m\n  memory: "100Mi"\nsystemReserved:\n  <<: *small\n  cpu: 50m\n',
    "logging:\n  format: text\nfeatureGates:\n  CPUManager: true\n  GracefulNodeShutdown: true\nshutdownGracePeriod: 30s\n",
    "# by hand\n\nclusterDomain: |-\n  cluster.local\nruntimeRequestTimeout: 5m\nstaticPodURLHeader:\n  X-A: [a, 'b']\n",
    "? maxPods\n: 50\nhairpinMode: 'none'\nallowedUnsafeSysctls: [\n  kernel.msg*,\n  net.core.somaxconn,\n]\n",
    "---\nsyncFrequency: \"1m\"\nclusterDomain: >\n  cluster\n  local\nnodeStatusMaxImages: !!int '100'\n...\n",
)
PIECES: tuple[str, ...] = (
    *" \t:-#'\"{}[],&*!|>%@`?~.\\\n\r",
    "  ",
    ": ",
    "- ",
    " #",
    "---\n",
    "...\n",
    "é",
    "null",
    "\n\n",
    "<<: ",
)
TOKENS = (*BOOLEANS, *DURATIONS, *INTEGERS, *LISTS, *STRINGS)


@st.composite
def scarred(draw: st.DrawFn) -> bytes:
    """One to three defects in a file, sometimes in its head."""
    whole = draw(st.sampled_from(WHOLE))
    head = "" if draw(st.integers(0, 9)) else HEAD
    rest = "" if head else HEAD
    text = head + whole
    for _ in range(draw(st.integers(1, 3))):
        text = draw(st.sampled_from(WOUNDS))(draw, text)
    return (rest + text).encode()


def _at(draw: st.DrawFn, text: str) -> int:
    return draw(st.integers(0, max(len(text) - 1, 0)))


def _lost(draw: st.DrawFn, text: str) -> str:
    at = _at(draw, text)
    return text[:at] + text[at + 1 :]


def _put_in(draw: st.DrawFn, text: str) -> str:
    at = _at(draw, text)
    return text[:at] + draw(st.sampled_from(PIECES)) + text[at:]


def _line_doubled(draw: st.DrawFn, text: str) -> str:
    lines = text.splitlines(keepends=True) or [""]
    at = draw(st.integers(0, len(lines) - 1))
    return "".join([*lines[: at + 1], *lines[at:]])


def _lines_swapped(draw: st.DrawFn, text: str) -> str:
    lines = text.splitlines(keepends=True) or [""]
    at = draw(st.integers(0, len(lines) - 1))
    return "".join([*lines[at:], *lines[:at]])


def _indented(draw: st.DrawFn, text: str) -> str:
    lines = text.splitlines(keepends=True) or [""]
    at = draw(st.integers(0, len(lines) - 1))
    lines[at] = draw(st.sampled_from((" ", "  ", "    ", "\t"))) + lines[at]
    return "".join(lines)


def _value_changed(draw: st.DrawFn, text: str) -> str:
    lines = text.splitlines(keepends=True) or [""]
    at = draw(st.integers(0, len(lines) - 1))
    key, colon, _ = lines[at].partition(": ")
    if (
        not colon or "equestTimeout" in key or "OpenFiles" in key
    ):  # the duration of a call and the number of files that it needs depend on the machine
        return text
    lines[at] = f"{key}: {draw(st.sampled_from(TOKENS))}\n"
    return "".join(lines)


WOUNDS: tuple[Callable[[st.DrawFn, str], str], ...] = (
    _lost,
    _put_in,
    _line_doubled,
    _lines_swapped,
    _indented,
    _value_changed,
)
