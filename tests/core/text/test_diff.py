"""Diffs for people: exact where it matters, bounded, redacted, and without control characters."""

from __future__ import annotations

import pytest

from rollout.core.text.diff import MOST_LINES, redacted, unified


def test_a_change_with_its_surroundings() -> None:
    assert unified(b"a\nb\nc\nd\ne\nf\n", b"a\nb\nc\nX\ne\nf\n", "/f") == (
        "--- /f", "+++ /f", "@@ -2,5 +2,5 @@", " b", " c", "-d", "+X", " e", " f",
    )  # fmt: skip


def test_a_new_file() -> None:
    assert unified(None, b"a\n", "/f") == ("--- /dev/null", "+++ /f", "@@ -0,0 +1 @@", "+a")


def test_a_missing_final_newline_shows() -> None:
    assert unified(b"a", b"a\n", "/f")[3:] == ("-a (no newline at the end)", "+a")


def test_line_ends_and_escapes_are_made_visible() -> None:
    lines = unified(b"a\r\n", b"a\x1b[31m\n", "/f")
    assert lines[3:] == ("-a\\x0d", "+a\\x1b[31m")


def test_binary() -> None:
    assert unified(b"\x00", b"ab", "/f")[-1] == "(binary: 1 bytes become 2)"
    assert unified(b"\xff\xfe", b"a", "/f")[-1] == "(binary: 2 bytes become 1)"


def test_bounded() -> None:
    lines = unified(None, b"".join(b"line %d\n" % at for at in range(1000)), "/f")
    assert len(lines) == MOST_LINES + 1
    assert lines[-1] == "… 803 more lines"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("+maxPods: 5", "+maxPods: 5"),
        ("+  token: abc", "+  token: <redacted>"),
        ("-    certificate-authority-data: LS0t", "-    certificate-authority-data: <redacted>"),
        (" authentication:", " authentication:"),
        ("+PASSWORD=abc", "+PASSWORD= <redacted>"),
        ('+A="--authentication-token-webhook=true --v=2"', '+A="--authentication-token-webhook=<redacted> --v=2"'),
        ('+A="--x=secret --v=2"', '+A="--x=secret --v=2"'),
        ("+A=--token-file=/t secret", "+A= <redacted>"),
        ("+just a secret here", "+<redacted>"),
        ("+x: {token: abc}", "+x: <redacted>"),
    ],
)
def test_redacted(line: str, shown: str) -> None:
    assert redacted(line) == shown
