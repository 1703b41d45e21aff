"""``ProxyCommand`` of ssh_config as a program with arguments. No shell ever sees the line, so only plain words are accepted.

``ssh -W %h:%p BASTION`` is a ``ProxyJump``. Any other program runs only if the user's own configuration has its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rollout.adapters.owners import NOT_PRIVATE, not_private
from rollout.adapters.ssh.ascii_text import printable
from rollout.adapters.ssh.patterns import is_address
from rollout.core.reading.user_file import LONGEST, USER_FILE, UserSettings, read_user_settings
from rollout.errors import InputError, Place, Problem, RemoteError

MAX_BYTES = 4 * 1024 * 1024
NOT_SUPPORTED = "proxy-command-not-supported"
ProxyWords = tuple[str, ...]
"""A program and its arguments, with tokens such as ``%h``."""

# From a line to words, as a shell makes them of a line without anything special.

_BLANK = " \t"
_SPECIAL = frozenset("|&;<>()$`*?")
_AT_START = frozenset("~#")
_BRACES = re.compile(r"\{[^{}]*(?:,|\.\.)[^{}]*\}")
_FORWARD = ("%h:%p", "[%h]:%p")
_RESERVED = frozenset(("!", "{", "}", "exec", "eval", "command", "if", "while", "until", "for", "case", "cd", "export"))


def proxy_words(line: str) -> ProxyWords:
    """The words of a line. ``sh -c 'WORDS'`` is what is in it. Raises ``ValueError`` for all that needs a shell."""
    words = tuple(_words(line))
    while len(words) == 3 and words[1] == "-c" and words[0] in ("sh", "/bin/sh", "/usr/bin/sh"):
        words = tuple(_words(words[2]))
    if not words or not words[0] or words[0] in _RESERVED or "=" in words[0] or "%" in words[0]:
        raise ValueError("it must begin with a program")
    return words


def _words(line: str) -> Iterator[str]:
    at = 0
    while at < len(line):
        if line[at] in _BLANK:
            at += 1
        else:
            word, at = _word(line, at)
            yield word


def _word(line: str, at: int) -> tuple[str, int]:
    word, quote, bare = "", "", ""
    if line[at] in _AT_START:
        raise ValueError(f"it needs a shell ({line[at]})")
    while at < len(line) and (quote or line[at] not in _BLANK):
        char, after = line[at], line[at + 1 : at + 2]
        if char == quote:
            quote = ""
        elif not quote and char in "'\"":
            quote = char
        elif char == "\\" and quote != "'" and (not quote or after in ("$", "`", '"', "\\")):
            if not after:
                raise ValueError("it ends with a backslash")
            word, at = word + after, at + 1
        elif char in "\0\n\r" or (char in _SPECIAL and not quote) or (char in "$`" and quote == '"'):
            raise ValueError(f"it needs a shell ({printable(char)})")
        else:
            word += char
            bare += "" if quote else char
        at += 1
    if quote:
        raise ValueError("a quote is not closed")
    if _BRACES.search(bare) or ("[" in bare and bare != _FORWARD[1]):
        raise ValueError("it needs a shell ({ or [)")
    return word, at


# ``ssh -W`` as a ProxyJump.

_JUMP_USER = re.compile(r"(?!-)[^\s@:/,\"'\[\]]+")


def jump_of(words: ProxyWords) -> str | None:
    """The value of ``ProxyJump`` with the same effect: ``ssh -W %h:%p [-q] [-l USER] [-p PORT] [USER@]HOST``.

    As in ssh, the first user and the first port count. ``None``: another program, or another form of ssh.
    """
    if words[0].rpartition("/")[2] != "ssh" or (words[0] != "ssh" and not words[0].startswith("/")):
        return None
    found: dict[str, str] = {}
    left = list(words[1:])
    while left:
        word = left.pop(0)
        if word == "-q":
            continue
        option, value = (word[:2], word[2:]) if word[:1] == "-" else ("", word)
        if option in ("-W", "-l", "-p") and not value and left:
            value = left.pop(0)
        if not value or option not in ("-W", "-l", "-p", "") or (option == "" and "" in found):
            return None
        user, at, host = value.rpartition("@") if not option else ("", "", value)
        if at:
            found.setdefault("-l", user)
        found.setdefault(option, host)
    return _jump(found)


def _jump(found: Mapping[str, str]) -> str | None:
    host, port, user = found.get("", ""), found.get("-p", ""), found.get("-l", "")
    literal = ":" in host and is_address(host)
    if found.get("-W") not in _FORWARD or not host or (re.search(r"[:/,\[\]]", host) and not literal):
        return None
    if (port and not (port.isascii() and port.isdigit())) or ("-l" in found and not _JUMP_USER.fullmatch(user)):
        return None
    return (f"{user}@" if user else "") + (f"[{host}]" if literal else host) + (f":{port}" if port else "")


# The programs that the user allows.


@dataclass(frozen=True)
class ProxyCommands:
    """The lines that the user's own configuration allows, as words. ``unreadable``: why it could not be read."""

    allowed: frozenset[ProxyWords] = frozenset()
    unreadable: str = ""

    @classmethod
    def read(cls, path: Path | None = None) -> ProxyCommands:
        """Of ``USER_FILE``, or of a file like it, if there is one. Raises ``InputError`` for a mistake in it, or if others can change it.

        One that cannot be read is no error until a line needs it: most users have none.
        """
        path = path or Path(USER_FILE).expanduser()
        try:
            with path.open("rb") as file:
                if why := not_private(path, file.fileno()):
                    raise _problem("user-file-not-private", why, NOT_PRIVATE)
                text = file.read(MAX_BYTES).decode("utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return cls()
        except UnicodeDecodeError:
            raise _problem("file-unreadable", f"{path}: it is not UTF-8") from None
        except OSError as error:
            return cls(unreadable=printable(f"{path}: {error.strerror}", 500))
        return cls.of(read_user_settings(text, printable(str(path), 500)))

    @classmethod
    def of(cls, settings: UserSettings) -> ProxyCommands:
        return cls(frozenset(_checked(line, place) for line, place in settings.proxy_commands))

    @cached_property
    def _programs(self) -> Mapping[ProxyWords, tuple[str, ...]]:
        """Arguments → the programs that they are allowed for."""
        programs: dict[ProxyWords, tuple[str, ...]] = {}
        for words in self.allowed:
            programs[words[1:]] = (*programs.get(words[1:], ()), words[0])
        return programs

    def program(self, line: str, tokens: Mapping[str, str]) -> ProxyWords:
        """What to run for a line of ssh_config. Raises ``RemoteError`` unless the line is allowed.

        A program without a folder in ssh_config is the allowed one of that name: no ``PATH`` is searched.
        """
        wanted = words_of_config(line)
        if self.unreadable:
            raise RemoteError("file-unreadable", self.unreadable)
        found = [program for program in self._programs.get(wanted[1:], ()) if _same(program, wanted[0])]
        if not found:
            raise RemoteError(
                "proxy-command-not-allowed",
                f"{USER_FILE} does not allow this ProxyCommand (ssh_config: proxycommand {printable(line, 300)})",
            )
        return (min(found), *(_filled(word, tokens) for word in wanted[1:]))


def words_of_config(line: str) -> ProxyWords:
    """Raises ``RemoteError`` for a line that is no plain program with arguments."""
    try:
        if len(line) > LONGEST:
            raise ValueError(f"it is longer than {LONGEST} characters")
        return proxy_words(line)
    except ValueError as error:
        raise RemoteError(
            NOT_SUPPORTED,
            f"ProxyCommand must be a program with plain arguments: {error} (ssh_config: proxycommand {printable(line, 300)})",
        ) from None


def _checked(line: str, place: Place) -> ProxyWords:
    try:
        words = proxy_words(line)
        if not words[0].startswith("/"):
            raise ValueError("the program must be an absolute path")
        for word in words[1:]:
            _filled(word, dict.fromkeys(TOKENS, "x"))
    except (ValueError, RemoteError) as error:
        message = f"{printable(line, 300)}: {error}"
        raise InputError((Problem(NOT_SUPPORTED, message, place),)) from None
    return words


def _same(allowed: str, wanted: str) -> bool:
    return wanted in (allowed, allowed.rpartition("/")[2])


TOKENS = ("%%", "%h", "%n", "%p", "%r")
_PLAIN = re.compile(r"[A-Za-z0-9_:][A-Za-z0-9_.:@+-]*")


def _filled(word: str, tokens: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        if match[0] not in TOKENS:
            raise RemoteError(
                NOT_SUPPORTED, f"ProxyCommand may contain only the tokens {' '.join(TOKENS)}, not {printable(match[0])}"
            )
        text = tokens.get(match[0], "")
        if match[0] != "%%" and not _PLAIN.fullmatch(text):
            raise RemoteError(
                "proxy-command-unsafe-word",
                f"{printable(text, 80)} must not reach a ProxyCommand: {match[0]} may have letters, digits and _.:@+- and must not begin with a sign",
            )
        return "%" if match[0] == "%%" else text

    return re.sub("%.?", value, word)


def _problem(reference: str, message: str, hint: str = "") -> InputError:
    return InputError((Problem(reference, printable(message, 500), hint=hint),))


def shown(words: Iterable[str]) -> str:
    """The program, for people."""
    return printable(next(iter(words), ""), 120)
