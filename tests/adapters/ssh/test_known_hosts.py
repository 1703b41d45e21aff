"""Verdicts on host keys, on files as OpenSSH writes them."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path
from random import Random

import pytest

from rollout.adapters.ssh.known_hosts import HostKeyVerdict, KnownHosts, KnownHostsFiles
from rollout.adapters.ssh.patterns import matches
from rollout.errors import RemoteError
from tests.sampling import sample


def made(letter: str, kind: str = "ssh-ed25519") -> str:
    """A key that is valid in known_hosts."""
    fields = kind.encode(), letter.encode() * 32
    return base64.b64encode(b"".join(len(field).to_bytes(4, "big") + field for field in fields)).decode()


KEY, OTHER, THIRD, RSA = made("k"), made("o"), made("t"), made("r", "ssh-rsa")
TEXT = f"""
# a comment
n1,10.0.0.1 ssh-ed25519 {KEY} somebody
[n1]:2222 ssh-ed25519 {OTHER}
*.example.net,!bad.example.net ssh-rsa {RSA}
cut ssh-ed25519 {KEY[:-4]}
other-type ssh-rsa {KEY}
[*.example.net]:2222 ssh-ed25519 {OTHER}
@revoked * ssh-ed25519 {THIRD}
@cert-authority *.trusted.net ssh-ed25519 {KEY}
a line that is none
"""


@pytest.mark.parametrize(
    ("names", "key", "verdict"),
    [
        (("n1",), KEY, HostKeyVerdict.KNOWN),
        (("10.0.0.1",), KEY, HostKeyVerdict.KNOWN),
        (("n1",), OTHER, HostKeyVerdict.CHANGED),
        (("[n1]:2222", "n1"), OTHER, HostKeyVerdict.KNOWN),
        (("[n1]:2222", "n1"), KEY, HostKeyVerdict.CHANGED),
        (("[n1]:2222", "10.0.0.1"), KEY, HostKeyVerdict.CHANGED),
        (("[n1]:23", "n1"), KEY, HostKeyVerdict.KNOWN),
        (("[n1]:23", "n1"), OTHER, HostKeyVerdict.UNKNOWN),
        (("a.example.net",), RSA, HostKeyVerdict.KNOWN),
        (("[n2]:23", "n2"), THIRD, HostKeyVerdict.REVOKED),
        (("cut",), OTHER, HostKeyVerdict.UNKNOWN),
        (("other-type",), OTHER, HostKeyVerdict.UNKNOWN),
        (("bad.example.net",), KEY, HostKeyVerdict.UNKNOWN),
        (("[a.example.net]:2222", "a.example.net"), OTHER, HostKeyVerdict.KNOWN),
        (("n2",), KEY, HostKeyVerdict.UNKNOWN),
        (("n2",), THIRD, HostKeyVerdict.REVOKED),
        (("n1",), THIRD, HostKeyVerdict.REVOKED),
        (("x.trusted.net",), KEY, HostKeyVerdict.UNKNOWN),
    ],
)
def test_verdicts(names: tuple[str, ...], key: str, verdict: HostKeyVerdict) -> None:
    assert KnownHosts((TEXT,)).verdict(names, key) is verdict


def test_which_authorities_are_valid_for_a_host() -> None:
    known = KnownHosts((TEXT, f"@cert-authority [own.trusted.net]:23 ssh-ed25519 {OTHER}\n"))
    assert known.authorities(("x.trusted.net",)) == {KEY}
    assert known.authorities(("[x.trusted.net]:23", "x.trusted.net")) == {KEY}
    assert known.authorities(("[own.trusted.net]:23", "own.trusted.net")) == {OTHER}
    assert not known.authorities(("n1",))


@pytest.mark.parametrize(
    ("line", "is_read"),
    [
        ("@cert-authority  n1 ssh-ed25519 {}", True),
        ("@cert-authority \tn1\tssh-ed25519 {}", True),
        ("@cert-authority\tn1\tssh-ed25519\t{}", True),
        ("@cert-authority\tn1 ssh-ed25519 {}", False),
        ("\t@cert-authority\tn1\tssh-ed25519\t{} a comment", False),
    ],
)
def test_the_marker_of_an_authority_ends_at_the_first_blank(line: str, is_read: bool) -> None:
    """At the first tab only in a line without a blank, as in OpenSSH."""
    assert bool(KnownHosts((line.format(KEY),)).authorities(("n1",))) is is_read


NAMES = ("n1", "[n1]:2222", "10.0.0.1", "fd00::1", "[fd00::1]:2222", "n1.example.net", "N1", "n[1]")
PATTERNS = (
    *NAMES,
    "*",
    "n?",
    "[n1]:*",
    "[*]:2222",
    "*.example.net",
    "10.0.0.*",
    "[fd00::*]:2222",
    "N*",
    "[N1]:2222",
    "",
)


def drawn(random: Random) -> str:
    lines = []
    for _ in range(random.randint(0, 6)):
        names = ",".join(
            random.choice(("", "", "", "!")) + random.choice(PATTERNS) for _ in range(random.choice((1, 1, 2, 3)))
        )
        kind, key = random.choice((("ssh-ed25519", KEY), ("ssh-ed25519", OTHER), ("ssh-rsa", RSA)))
        marker = random.choice(
            ("",) * 4 + ("@revoked ", "@cert-authority ", "@cert-authority\t", "@Revoked ", "@revoked @cert-authority ")
        )
        between, end = random.choice((" ", "\t", "  ")), random.choice(("", " a comment", "\r", "\t"))
        lines.append(
            f"{random.choice(('', ' ', '# '))}{marker}{names}{between}{kind}{random.choice((' ', between))}{key}{end}"
        )
    return "\n".join(lines) + random.choice(("\n", ""))


@pytest.mark.process
@pytest.mark.parametrize("first", sample("lines_of_known_hosts", range(0, 600, 30), 2))
def test_the_lines_of_a_name_are_those_that_ssh_keygen_finds(tmp_path: Path, first: int) -> None:
    for seed in range(first, first + 30):
        random, file = Random(f"lines of known_hosts/{seed}"), tmp_path / str(seed)  # noqa: S311 - reproducible on purpose
        file.write_text(drawn(random), encoding="utf-8", newline="")
        if seed % 3 == 0:
            subprocess.run(["ssh-keygen", "-q", "-H", "-f", file], check=False, capture_output=True)
        known, name = KnownHosts((file.read_text(encoding="utf-8"),)), random.choice(NAMES[:7])
        asked = subprocess.run(["ssh-keygen", "-F", name, "-f", file], capture_output=True, text=True, check=False)
        found = [line.split() for line in asked.stdout.splitlines() if not line.startswith("#")]
        verdicts = {key: known.verdict((name.lower(),), key) for key in (KEY, OTHER, RSA)}
        revoked = {words[3] for words in found if words[0] == "@revoked"}
        assert known.authorities((name.lower(),)) == {words[3] for words in found if words[0] == "@cert-authority"}
        assert {key for key, verdict in verdicts.items() if verdict is HostKeyVerdict.REVOKED} == revoked
        plain = {words[2] for words in found if not words[0].startswith("@")}
        assert {key for key, verdict in verdicts.items() if verdict is HostKeyVerdict.KNOWN} == plain - revoked


@pytest.mark.process
def test_hashed_names_as_ssh_keygen_writes_them(tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key"], check=True)
    kind, key = (tmp_path / "key.pub").read_text(encoding="utf-8").split()[:2]
    file = tmp_path / "known_hosts"
    file.write_text(f"n1 {kind} {key}\n[n2]:2222 {kind} {key}\n", encoding="utf-8")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", file], check=True, capture_output=True)
    known = KnownHosts((file.read_text(encoding="utf-8"),))
    assert known.verdict(("n1",), key) is HostKeyVerdict.KNOWN
    assert known.verdict(("[n2]:2222", "n2"), key) is HostKeyVerdict.KNOWN
    assert known.verdict(("n1",), OTHER) is HostKeyVerdict.CHANGED
    assert known.verdict(("n3",), key) is HostKeyVerdict.UNKNOWN
    assert known.kinds("n1", hashed=True) == {"ssh-ed25519"}
    assert known.kinds("n1", hashed=False) == frozenset()


def test_a_host_that_another_process_recorded_meanwhile_is_judged_by_that(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    files = KnownHostsFiles()
    assert files.of((file,)).verdict(("n1",), KEY) is HostKeyVerdict.UNKNOWN
    file.write_text(f"n1 ssh-ed25519 {OTHER}\n", encoding="utf-8")
    assert files.accept((file,), ("n1",), "ssh-ed25519", KEY) is HostKeyVerdict.CHANGED
    assert file.read_text(encoding="utf-8") == f"n1 ssh-ed25519 {OTHER}\n"
    assert files.accept((file,), ("n2",), "ssh-ed25519", KEY) is HostKeyVerdict.KNOWN
    assert KnownHostsFiles().of((file,)).verdict(("n2",), KEY) is HostKeyVerdict.KNOWN
    assert file.stat().st_mode & 0o777 == 0o644


def test_a_new_file_is_private(tmp_path: Path) -> None:
    file = tmp_path / "new" / "known_hosts"
    assert KnownHostsFiles().accept((file,), ("n1",), "ssh-ed25519", KEY) is HostKeyVerdict.KNOWN
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_host_key_that_cannot_be_recorded_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(RemoteError, match="could not be recorded"):
        KnownHostsFiles().accept((tmp_path / "file" / "below",), ("n1",), "ssh-ed25519", KEY)


def test_many_wildcards_take_no_longer() -> None:
    """A backtracking matcher would never finish here: 200 stars and 200 letters."""
    assert not matches("a" * 200, "*a" * 200 + "b")
    assert matches("a" * 200, "*a" * 200)


@pytest.mark.parametrize("name", ["[h]:22", "[h]:2222"])
def test_brackets_are_literal(name: str) -> None:
    assert matches(name, "[h]:*")
    assert not matches("h", "[h]")
