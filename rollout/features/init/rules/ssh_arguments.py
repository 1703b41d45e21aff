"""Arguments of ``ssh``, as Ansible's variables contain them, and the lines of ssh_config with the same meaning."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_WITH_VALUE = frozenset("BbcDEeFIiJLlmOopQRSWw")
_KEYWORDS = {"i": "IdentityFile", "J": "ProxyJump", "l": "User", "p": "Port"}
_KEPT = {
    word.lower(): word
    for word in [
        "AddressFamily",
        "CertificateFile",
        "ConnectTimeout",
        "GlobalKnownHostsFile",
        "HostKeyAlias",
        "IdentitiesOnly",
        "IdentityFile",
        "Port",
        "ProxyCommand",
        "ProxyJump",
        "User",
        "UserKnownHostsFile",
    ]
}
LONGEST = 4096
"""Characters of a command line. ``shlex`` takes the square of a word's length, and no ssh command is as long."""
_OPTION = re.compile(r"\s*([A-Za-z0-9]+)(?:\s*=\s*|\s+)(.*?)\s*", re.DOTALL)
_VALUE = re.compile(r"[^\x00-\x1f\x7f\"\\#\ud800-\udfff]+")
_COMMAND = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]+")
_HOP = re.compile(
    r"(?:ssh://)?(?:(?P<user>[A-Za-z0-9._-]+)@)?(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.%]+\])(?::(?P<port>[0-9]{1,5}))?/?"
)


@dataclass(frozen=True, slots=True)
class SshArguments:
    """``lines``: keyword and value, the first of each counts. ``dropped``: options that are not taken over."""

    lines: tuple[tuple[str, str], ...]
    dropped: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    stdio: str = ""

    def first(self, keyword: str) -> str:
        """``""``: it is not set."""
        return next((value for name, value in self.lines if name == keyword), "")


def shell_words(text: str) -> list[str]:
    """Raises ``ValueError`` with the reason: the text has an open quote, or is longer than ``LONGEST``."""
    if len(text) > LONGEST:
        raise ValueError(f"longer than {LONGEST} characters")
    try:
        return shlex.split(text)
    except ValueError:
        raise ValueError("an open quote") from None


def read_arguments(words: Sequence[str]) -> SshArguments:
    """Options as ``getopt`` reads them; they may stand behind other words, too. ``stdio`` is the value of ``-W``."""
    lines: list[tuple[str, str]] = []
    dropped: list[str] = []
    rest: list[str] = []
    stdio = ""
    for letter, value in _options(words):
        if not letter:
            rest.append(value)
        elif letter == "W":
            stdio = value
        elif letter in "46":
            lines.append(("AddressFamily", "inet" if letter == "4" else "inet6"))
        elif letter in _KEYWORDS and _VALUE.fullmatch(value):
            lines.append((_KEYWORDS[letter], value))
        elif letter == "o" and (option := _OPTION.fullmatch(value)):
            name = _KEPT.get(option[1].lower())
            allowed = _COMMAND if name == "ProxyCommand" else _VALUE
            if name and allowed.fullmatch(option[2]) and not _is_forgetting(name, option[2]):
                lines.append((name, option[2]))
            else:
                dropped.append(option[1])
        else:
            dropped.append(f"-F {value}" if letter == "F" else f"-{letter}")
    return SshArguments(tuple(lines), tuple(dict.fromkeys(dropped)), tuple(rest), stdio)


def _is_forgetting(name: str, value: str) -> bool:
    """A file of known hosts that forgets every key: rollout always verifies host keys."""
    return name.endswith("KnownHostsFile") and "/dev/null" in value


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """``(letter, value)``; a word that is no option has the letter ``""``."""
    waiting = iter(words)
    for word in waiting:
        if not word.startswith("-") or word in {"-", "--"}:
            yield "", word
            continue
        for at, letter in enumerate(word[1:], 1):
            if letter in _WITH_VALUE:
                yield letter, word[at + 1 :] or next(waiting, "")
                break
            yield letter, ""


@dataclass(frozen=True, slots=True)
class Jump:
    """``ssh -W %h:%p … HOST`` as a ``ProxyJump``; ``lines`` are what ssh_config must set for HOST."""

    via: str
    host: str
    lines: tuple[tuple[str, str], ...]
    dropped: tuple[str, ...]


def jump_of(command: str) -> Jump | None:
    """``None``: the command is another one."""
    try:
        words = shell_words(command)
    except ValueError:
        return None
    if not words or words[0].rpartition("/")[2] != "ssh":
        return None
    given = read_arguments(words[1:])
    if given.stdio.strip("[]") not in {"%h:%p", "%h]:%p"} or len(given.words) != 1 or given.first("ProxyCommand"):
        return None
    hop = _HOP.fullmatch(given.words[0])
    if hop is None:
        return None
    user, port = given.first("User") or hop["user"], given.first("Port") or hop["port"]
    via = hop_text(hop["host"], user or "", port or "")
    before = given.first("ProxyJump")
    lines = tuple((name, value) for name, value in given.lines if name not in {"User", "Port", "ProxyJump"})
    return Jump(f"{before},{via}" if before else via, hop["host"].strip("[]"), lines, given.dropped)


def hop_text(host: str, user: str, port: str) -> str:
    """A bastion as ``ProxyJump`` names it."""
    shown = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"{f'{user}@' if user else ''}{shown}{f':{port}' if port and port != '22' else ''}"
