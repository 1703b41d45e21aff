"""ssh_config as OpenSSH reads it with ``-F``: the first value wins, ``Match`` sees the values set above it.

A file is parsed once into stanzas. They are indexed by the names on ``Host`` lines, so that a look-up among 2,000 hosts
reads only the few relevant stanzas.
"""

from __future__ import annotations

import glob
import os
import re
import socket
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from rollout.adapters.files import opened, paths_matching, whole
from rollout.adapters.owners import NOT_PRIVATE, REMEDY, not_private, others_hold
from rollout.adapters.ssh.patterns import listed
from rollout.adapters.ssh.ssh_conditions import (
    HostLine,
    MatchContext,
    NotSupportedError,
    SshCondition,
    host_line,
    match_line,
)
from rollout.adapters.ssh.ssh_keywords import ALIASES, COLLECTED, READ, WITHOUT_MEANING_HERE
from rollout.core.text.terminal import printable
from rollout.errors import InputError, Place, Problem, RemoteError

# From the files of an ssh_config to stanzas. Every mistake is found, also in stanzas for other hosts, as in
# OpenSSH.


# A parsed ssh_config: stanzas, with an index by the names on their ``Host`` lines.


@dataclass(frozen=True, slots=True)
class SshSetting:
    keyword: str
    values: tuple[str, ...]


@dataclass(slots=True)
class Stanza:
    condition: SshCondition
    lines: list[SshSetting | SshConfigFile] = field(default_factory=list)


@dataclass(slots=True)
class SshConfigFile:
    """``general``: indices of stanzas that must be evaluated; ``named``: indices for each literal name."""

    stanzas: list[Stanza] = field(default_factory=list)
    general: list[int] = field(default_factory=list)
    named: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def begin(self, condition: SshCondition) -> None:
        names = condition.names
        for numbers in [self.general] if names is None else [self.named[name] for name in names]:
            numbers.append(len(self.stanzas))
        self.stanzas.append(Stanza(condition))

    def perhaps_for(self, name: str) -> Iterator[Stanza]:
        numbers = sorted([*self.general, *self.named.get(name, ())])
        return (self.stanzas[number] for number in numbers)


# One line of ssh_config as words, split exactly as OpenSSH does: one rule for the keyword, another for the rest.


BLANK = " \t\r\n"
ENDS_OF_A_KEYWORD = frozenset(BLANK + '"=')


def keyword_of(line: str) -> tuple[str, str] | None:
    """The keyword in lower case and the rest of the line; ``None`` for an empty line. Raises ``ValueError``."""
    keyword, rest = _first(line.rstrip(BLANK + "\f"))
    if not keyword:
        keyword, rest = _first(rest)
    if not keyword or keyword.startswith("#"):
        return None
    if not rest:
        raise ValueError("the line has no value")
    return keyword.lower(), rest


def words_of(rest: str) -> tuple[str, ...]:
    """The rest after a keyword: both kinds of quotes, escapes, a comment at the end. Raises ``ValueError``."""
    words: list[str] = []
    at = 0
    while (at := _past_blanks(rest, at)) < len(rest) and rest[at] != "#":
        word, at = _word(rest, at)
        words.append(word)
    return tuple(words)


def _first(text: str) -> tuple[str, str]:
    """``KEYWORD value``, ``KEYWORD=value``, ``KEYWORD = value``; the keyword may be in double quotes."""
    at = next((at for at, char in enumerate(text) if char in ENDS_OF_A_KEYWORD), len(text))
    if text[at : at + 1] == '"':
        head, quote, rest = text[at + 1 :].partition('"')
        if not quote:
            raise ValueError("a quote is not closed")
        return text[:at] + head, rest.lstrip(BLANK)
    rest = text[at + 1 :].lstrip(BLANK)
    if text[at : at + 1] != "=" and rest.startswith("="):
        rest = rest[1:].lstrip(BLANK)
    return text[:at], rest


def _word(text: str, at: int) -> tuple[str, int]:
    word, quote = "", ""
    while at < len(text):
        char, after = text[at], text[at + 1 : at + 2]
        if char == "\\" and after and (after in "'\"\\" or (after == " " and not quote)):
            word += after
            at += 1
        elif not quote and char in " \t":
            break
        elif not quote and char in "'\"":
            quote = char
        elif char == quote:
            quote = ""
        else:
            word += char
        at += 1
    if quote:
        raise ValueError("a quote is not closed")
    return word, at


def _past_blanks(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\t"):
        at += 1
    return at


DEEPEST = 16
MOST_FILES = 1000
MOST_BYTES = 16 * 1024 * 1024
"""Of one file."""
_MOST_WILD = 3
"""Folders of a pattern with ``*``: of ``/*/*/*/*/*`` the whole disk would be read."""
MOST_PROBLEMS = 20
"""Files that include each other are read along every path; this many mistakes are enough to report."""


class Reader:
    """Reads a file and all that it includes, and collects every mistake."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.twice = False
        self._ignored: tuple[str, ...] = ()
        self._files = 0

    def file(self, path: Path, *, depth: int, always: bool, private: bool) -> SshConfigFile:
        """``always``: lines above the first condition apply to every host."""
        file = SshConfigFile()
        file.begin(HostLine(("*",)))
        for number, line in enumerate(self._lines(path, private=private), 1):
            place = Place(str(path), number, 1)
            try:
                self._line(line, file, depth=depth, always=always)
            except NotSupportedError as error:
                self._problem("ssh-config-not-supported", str(error), place)
            except ValueError as error:
                self._problem("ssh-config-invalid", f"{_start(line)}: {error}", place)
            if len(self.problems) >= MOST_PROBLEMS:
                break
        return file

    def matching(self, pattern: Path, *, private: bool) -> SshConfigFile:
        """All files that a path with ``*`` in its name matches, in the order of their names."""
        paths = paths_matching(pattern)
        if not paths:
            self._problem("ssh-config-unreadable", f"cannot read {pattern}: no file matches it")
        file = SshConfigFile()
        file.begin(HostLine(("*",)))
        file.stanzas[-1].lines += [self.file(path, depth=1, always=True, private=private) for path in paths]
        return file

    def _lines(self, path: Path, *, private: bool) -> list[str]:
        self._files += 1
        if self._files > MOST_FILES:
            if self._files == MOST_FILES + 1:
                self._problem("ssh-config-not-supported", f"more than {MOST_FILES} files are included")
            return []
        try:
            if not private and (why := others_hold(path)):
                self._problem("file-not-yours", f"{path}: {why}", hint=REMEDY)
                return []
            with opened(path) as file:
                if private and (why := not_private(path, file.fileno())):
                    self._problem("ssh-config-not-private", why, hint=NOT_PRIVATE)
                    return []
                return whole(file, MOST_BYTES).decode("utf-8", "surrogateescape").split("\n")
        except IsADirectoryError:
            if private:  # matched by a pattern of an Include
                return []
            self._problem("ssh-config-unreadable", f"cannot read {path}: it is a folder")
        except OSError as error:
            self._problem("ssh-config-unreadable", f"cannot read {path}: {error.strerror}")
        return []

    def _line(self, line: str, file: SshConfigFile, *, depth: int, always: bool) -> None:
        cut = keyword_of(line)
        if cut is None:
            return
        if "\0" in line:
            raise ValueError("the line has a NUL character")
        keyword, rest = ALIASES.get(cut[0], cut[0]), cut[1]
        words = words_of(rest)
        always = always and file.stanzas[-1].condition.always
        if keyword == "host":
            file.begin(host_line(words))
        elif keyword == "match":
            file.begin(match_line(rest))
            self.twice = self.twice or file.stanzas[-1].condition.asks_again
        elif keyword == "include":
            file.stanzas[-1].lines += self._included(words, depth=depth, always=always)
        else:
            file.stanzas[-1].lines += self._setting(keyword, words, rest, always=always)

    def _setting(self, keyword: str, words: tuple[str, ...], rest: str, *, always: bool) -> Iterator[SshSetting]:
        if keyword in READ:
            values = READ[keyword](words, rest)
            if keyword == "ignoreunknown":
                if not always:
                    raise NotSupportedError(
                        "IgnoreUnknown for some hosts only is not supported; move it to the top of the file"
                    )
                self._ignored = self._ignored or tuple(values[0].lower().split(","))
            yield SshSetting(keyword, values)
        elif keyword not in WITHOUT_MEANING_HERE and not listed(keyword, self._ignored):
            raise ValueError("is not a keyword of ssh_config; `IgnoreUnknown` above it would skip it")

    def _included(self, words: tuple[str, ...], *, depth: int, always: bool) -> list[SshConfigFile]:
        if depth >= DEEPEST:
            raise NotSupportedError("Include is nested too deeply")
        files: list[SshConfigFile] = []
        for word in words:
            if not word:
                raise ValueError("has an empty value")
            if "%" in word or "${" in word:
                raise NotSupportedError(f"Include with a token or a variable is not supported: {word}")
            if "\\" in word or "[[:" in word:
                raise NotSupportedError(f"Include with a backslash or a class of characters is not supported: {word}")
            pattern = Path("~/.ssh").expanduser() / os.path.expanduser(word)  # noqa: PTH111 - an unknown user stays as written
            if sum(glob.has_magic(part) for part in pattern.parts) > _MOST_WILD:
                raise NotSupportedError(f"Include with more than {_MOST_WILD} patterns in one path is not supported")
            try:
                paths = sorted(glob.glob(str(pattern)))  # noqa: PTH207
            except RecursionError:
                raise ValueError("names a folder that is nested too deeply") from None
            files += [self.file(Path(path), depth=depth + 1, always=always, private=True) for path in paths]
        return files

    def _problem(self, reference: str, message: str, place: Place | None = None, hint: str = "") -> None:
        self.problems.append(Problem(reference, printable(message, 300), place, hint))


def _start(line: str) -> str:
    return re.split(r"[\s=]", line.strip(), maxsplit=1)[0]


Settings = dict[str, tuple[str, ...]]
"""The settings of one host, by keyword in lower case. ``hostname`` is always set."""

FAMILIES = {"any": socket.AF_UNSPEC, "inet": socket.AF_INET, "inet6": socket.AF_INET6}


class SshConfig:
    """A parsed ssh_config. ``lookup`` gives the settings of one host."""

    def __init__(self, file: SshConfigFile, *, twice: bool = False) -> None:
        """``twice``: a ``Match final`` requires a second pass with the name from ``HostName``."""
        self._file = file
        self._twice = twice

    @classmethod
    def read(cls, path: Path | None, *, private: bool = False) -> SshConfig:
        """From a file, or from all that ``*`` in its name matches; ``None`` is the empty configuration. Every mistake found is in the ``InputError``.

        It decides which host gets a password and which key is trusted: refused if another user controls it, a link to
        it or a folder above it. ``private``: also if its group can write it, like every included file.
        """
        reader = Reader()
        if path is None:
            file = SshConfigFile()
        elif "*" in path.name and not path.exists():
            file = reader.matching(path, private=private)
        else:
            file = reader.file(path, depth=0, always=True, private=private)
        if reader.problems:
            raise InputError(tuple(reader.problems))
        return cls(file, twice=reader.twice)

    def lookup(self, host: str, *, user: str | None = None, local_user: str = "") -> Settings:
        """``user``: the login user, if already decided. Raises ``RemoteError``."""
        settings: Settings = {} if user is None else {"user": (user,)}
        asked = MatchContext(host, host, host, local_user, local_user, last=False)
        _apply(self._file, settings, asked)
        family = FAMILIES[settings.get("addressfamily", ("any",))[0]]
        settings["hostname"] = (_address(_host_name(settings, host), family),)
        if self._twice:
            _apply(self._file, settings, replace(asked, named=settings["hostname"][0], last=True))
        return settings


def _apply(file: SshConfigFile, settings: Settings, asked: MatchContext) -> None:
    for stanza in file.perhaps_for(asked.named):
        host = asked.named if asked.last else _host_name(settings, asked.named)
        now = replace(asked, host=host, user=settings.get("user", (asked.local_user,))[0])
        if stanza.condition.holds(now):
            for line in stanza.lines:
                if isinstance(line, SshConfigFile):
                    _apply(line, settings, asked)
                else:
                    if line.keyword in COLLECTED:
                        settings[line.keyword] = tuple(dict.fromkeys((*settings.get(line.keyword, ()), *line.values)))
                    elif line.values and not _too_late(settings, line.keyword):
                        settings.setdefault(line.keyword, line.values)


def _too_late(settings: Settings, keyword: str) -> bool:
    """ProxyJump and ProxyCommand exclude each other: the first wins. After `ProxyJump none` ProxyCommand counts."""
    if keyword == "proxycommand":
        return settings.get("proxyjump", ("none",)) != ("none",)
    return keyword == "proxyjump" and "proxycommand" in settings


def _host_name(settings: Settings, host: str) -> str:
    text = settings.get("hostname", (host,))[0]
    if "hostname" not in settings or "%" not in text:
        return text
    if not re.fullmatch("(?:[^%]|%[h%])*", text):
        raise RemoteError(
            "ssh-config-invalid", f"HostName {printable(text, 80)} in ssh_config may contain no token except %h"
        )
    return re.sub("%.", lambda token: host if token[0] == "%h" else "%", text)


def _address(name: str, family: int) -> str:
    """The canonical form: names in lower case, addresses as the system prints them."""
    is_number = bool(set(name) & set(":%")) or not set(name) - set("0123456789.")
    if not is_number and not re.fullmatch("[0-9][0-9A-Fa-fXx.]*", name):
        return name.lower()
    try:
        addresses = socket.getaddrinfo(name, None, family, socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        return socket.getnameinfo(addresses[0][4], socket.NI_NUMERICHOST)[0]
    except (OSError, UnicodeError):
        return name if is_number else name.lower()
