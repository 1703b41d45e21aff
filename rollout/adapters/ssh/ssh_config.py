"""ssh_config as OpenSSH reads it with ``-F``: the first value wins, ``Match`` sees what was set above it.

A file is read once into stanzas. They are indexed by the names on ``Host`` lines, so that one of 2,000 hosts is looked up
in the few stanzas that may concern it.
"""

from __future__ import annotations

import re
import socket
from dataclasses import replace
from pathlib import Path

from rollout.adapters.ssh.ssh_conditions import Asked
from rollout.adapters.ssh.ssh_keywords import COLLECTED
from rollout.adapters.ssh.ssh_reading import Reader
from rollout.adapters.ssh.ssh_stanzas import File, Setting
from rollout.core.text.terminal import printable
from rollout.errors import InputError, RemoteError

Settings = dict[str, tuple[str, ...]]
"""What is set for one host, by keywords in lower case. ``hostname`` is always there."""

FAMILIES = {"any": socket.AF_UNSPEC, "inet": socket.AF_INET, "inet6": socket.AF_INET6}


class SshConfig:
    """A parsed ssh_config. ``lookup`` gives the settings of one host."""

    def __init__(self, file: File, *, twice: bool = False) -> None:
        """``twice``: a ``Match final`` asks to read it again with the name that ``HostName`` gave."""
        self._file = file
        self._twice = twice

    @classmethod
    def read(cls, path: Path | None, *, private: bool = False) -> SshConfig:
        """From a file; ``None`` is the empty configuration. Every mistake found is in the ``InputError``.

        ``private``: it is refused if others can write it, as every included file is.
        """
        reader = Reader()
        file = File() if path is None else reader.file(path, depth=0, always=True, private=private)
        if reader.problems:
            raise InputError(tuple(reader.problems))
        return cls(file, twice=reader.twice)

    def lookup(self, host: str, *, user: str | None = None, local_user: str = "") -> Settings:
        """``user``: who logs in, where that is settled already. Raises ``RemoteError``."""
        found: Settings = {} if user is None else {"user": (user,)}
        asked = Asked(host, host, host, local_user, local_user, last=False)
        _apply(self._file, found, asked)
        family = FAMILIES[found.get("addressfamily", ("any",))[0]]
        found["hostname"] = (_address(_host_name(found, host), family),)
        if self._twice:
            _apply(self._file, found, replace(asked, named=found["hostname"][0], last=True))
        return found


def _apply(file: File, found: Settings, asked: Asked) -> None:
    for stanza in file.perhaps_for(asked.named):
        host = asked.named if asked.last else _host_name(found, asked.named)
        now = replace(asked, host=host, user=found.get("user", (asked.local_user,))[0])
        if stanza.condition.holds(now):
            for line in stanza.lines:
                if isinstance(line, File):
                    _apply(line, found, asked)
                else:
                    _set(found, line)


def _set(found: Settings, line: Setting) -> None:
    if line.keyword in COLLECTED:
        found[line.keyword] = tuple(dict.fromkeys((*found.get(line.keyword, ()), *line.values)))
    elif line.values and not _too_late(found, line.keyword):
        found.setdefault(line.keyword, line.values)


def _too_late(found: Settings, keyword: str) -> bool:
    """ProxyJump and ProxyCommand exclude each other: the first wins. `ProxyJump none` leaves ProxyCommand its turn."""
    if keyword == "proxycommand":
        return found.get("proxyjump", ("none",)) != ("none",)
    return keyword == "proxyjump" and "proxycommand" in found


def _host_name(found: Settings, host: str) -> str:
    text = found.get("hostname", (host,))[0]
    if "hostname" not in found or "%" not in text:
        return text
    if not re.fullmatch("(?:[^%]|%[h%])*", text):
        raise RemoteError(
            "ssh-config-invalid", f"HostName {printable(text, 80)} in ssh_config may have %h and no other token"
        )
    return re.sub("%.", lambda token: host if token[0] == "%h" else "%", text)


def _address(name: str, family: int) -> str:
    """The one way to write it: of a name in lower case, of an address as the system prints it."""
    if not (set(name) & set(":%") or not set(name) - set("0123456789.")):
        return name.lower()
    try:
        found = socket.getaddrinfo(name, None, family, socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        return socket.getnameinfo(found[0][4], socket.NI_NUMERICHOST)[0]
    except (OSError, UnicodeError):
        return name
