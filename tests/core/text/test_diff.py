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
        ("+datastore-endpoint: mysql://k3s:pw@tcp(db:3306)/k3s", "+datastore-endpoint: <redacted>"),
        ("+K3S_DATASTORE_ENDPOINT=mysql://k3s:pw@tcp(db:3306)/k3s", "+K3S_DATASTORE_ENDPOINT= <redacted>"),
        ("-    certificate-authority-data: LS0t", "-    certificate-authority-data: <redacted>"),
        (" authentication:", " authentication:"),
        ("+PASSWORD=abc", "+PASSWORD= <redacted>"),
        ('+A="--bootstrap-token=abc --v=2"', '+A="--bootstrap-token=<redacted> --v=2"'),
        ("+A=--authorization-mode=Webhook --token=abc", "+A=--authorization-mode=Webhook --token=<redacted>"),
        ("+--authentication-token-webhook=true", "+--authentication-token-webhook=true"),
        ("+--authentication-token-webhook-cache-ttl=2m", "+--authentication-token-webhook-cache-ttl=2m"),
        ("+--authorization-mode-token=abc", "+--authorization-mode-token=<redacted>"),
        ("+tlsPrivateKeyFile: /k", "+tlsPrivateKeyFile: /k"),
        ("+authentication: {anonymous: {enabled: false}, webhook: {enabled: true}}",) * 2,
        ('+  "authorization": {',) * 2,
        ("+authentication: {token: abc}", "+authentication: <redacted>"),
        ('+authorization = "Basic YWJj"', "+authorization = <redacted>"),
        ("+authorization: Basic YWJj", "+authorization: <redacted>"),
        ("+auth: {x: abc}", "+auth: <redacted>"),
        ('+A="--x=secret --v=2"', '+A="--x=secret --v=2"'),
        ("+A=--token-file=/t secret", "+A= <redacted>"),
        ("+just a secret here", "+<redacted>"),
        ("+x: {token: abc}", "+x: <redacted>"),
    ],
)
def test_redacted(line: str, shown: str) -> None:
    assert redacted(line) == shown


KUBELET_JSON = b'{"kind": "KubeletConfiguration", "authorization": {"mode": "Webhook"}, "serializeImagePulls": true, "clusterDNS": ["172.20.0.10", "a, {b}"], "none": {}}'


def test_json_in_one_line_is_shown_by_value() -> None:
    after = KUBELET_JSON.replace(b"true", b"false")
    assert unified(KUBELET_JSON, after, "/f") == (
        "--- /f (JSON in one line, shown by value)", "+++ /f (JSON in one line, shown by value)", "@@ -4,5 +4,5 @@",
        '     "mode": "Webhook"', "   },", '-  "serializeImagePulls": true,', '+  "serializeImagePulls": false,',
        '   "clusterDNS": [', '     "172.20.0.10",',
    )  # fmt: skip


def test_every_value_of_json_is_on_a_line() -> None:
    lines = unified(KUBELET_JSON, b"{" + b" " * 80 + b"}\n", "/f", context=99)
    assert [line[1:] for line in lines[3:] if line[0] == "-"] == [
        '  "kind": "KubeletConfiguration",', '  "authorization": {', '    "mode": "Webhook"', "  },",
        '  "serializeImagePulls": true,', '  "clusterDNS": [', '    "172.20.0.10",', '    "a, {b}"', "  ],", '  "none": {', "  }",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "content", [b'{"a": 1}', b'{"a": 1,\n' + b" " * 80 + b"}", b"{a: 1, " + b" " * 80 + b"}", b"[" * 5000]
)
def test_other_files_are_shown_by_line(content: bytes) -> None:
    assert unified(content, content + b" ", "/f")[0] == "--- /f"
