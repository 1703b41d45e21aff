"""From the files of an ssh_config to stanzas. Every mistake is found, those in stanzas for others too, as OpenSSH does."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from rollout.adapters.ssh.patterns import listed
from rollout.adapters.ssh.ssh_conditions import HostLine, NotSupportedError, host_line, match_line
from rollout.adapters.ssh.ssh_keywords import ALIASES, READ, WITHOUT_MEANING_HERE
from rollout.adapters.ssh.ssh_stanzas import File, Setting
from rollout.adapters.ssh.ssh_words import keyword_of, words_of
from rollout.core.text.terminal import printable
from rollout.errors import Place, Problem

DEEPEST = 16
MOST_FILES = 1000
MOST_PROBLEMS = 20
"""Files that include each other are read in every way there is; this many mistakes are enough to say so."""
OURS_AND_ROOTS = "must belong to you or to root, and others must not be able to write it"


class Reader:
    """Reads a file and all that it includes, and collects every mistake."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.twice = False
        self._ignored: tuple[str, ...] = ()
        self._files = 0

    def file(self, path: Path, *, depth: int, always: bool, private: bool) -> File:
        """``always``: what it says above its first condition is for every host."""
        file = File()
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

    def _lines(self, path: Path, *, private: bool) -> list[str]:
        self._files += 1
        if self._files > MOST_FILES:
            if self._files == MOST_FILES + 1:
                self._problem("ssh-config-not-supported", f"more than {MOST_FILES} files are included")
            return []
        try:
            with path.open("rb") as file:
                if private and _others_may_write(os.fstat(file.fileno())):
                    self._problem("ssh-config-not-private", f"{path} {OURS_AND_ROOTS}")
                    return []
                return file.read().decode("utf-8", "surrogateescape").split("\n")
        except IsADirectoryError:
            if private:  # found by a pattern of an Include
                return []
            self._problem("ssh-config-unreadable", f"cannot read {path}: it is a folder")
        except OSError as error:
            self._problem("ssh-config-unreadable", f"cannot read {path}: {error.strerror}")
        return []

    def _line(self, line: str, file: File, *, depth: int, always: bool) -> None:
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

    def _setting(self, keyword: str, words: tuple[str, ...], rest: str, *, always: bool) -> Iterator[Setting]:
        if keyword in READ:
            values = READ[keyword](words, rest)
            if keyword == "ignoreunknown":
                self._ignore(values, always=always)
            yield Setting(keyword, values)
        elif keyword not in WITHOUT_MEANING_HERE and not listed(keyword, self._ignored):
            raise ValueError("is no keyword of ssh_config; `IgnoreUnknown` above it would have it passed over")

    def _included(self, words: tuple[str, ...], *, depth: int, always: bool) -> list[File]:
        if depth >= DEEPEST:
            raise NotSupportedError("Include goes too deep")
        files: list[File] = []
        for word in words:
            if not word:
                raise ValueError("has an empty value")
            if "%" in word or "${" in word:
                raise NotSupportedError(f"Include with a token or a variable is not supported: {word}")
            pattern = Path("~/.ssh").expanduser() / os.path.expanduser(word)  # noqa: PTH111 - who is unknown stays as written
            found = sorted(glob.glob(str(pattern)))  # noqa: PTH207
            files += [self.file(Path(path), depth=depth + 1, always=always, private=True) for path in found]
        return files

    def _ignore(self, values: tuple[str, ...], *, always: bool) -> None:
        if not always:
            raise NotSupportedError(
                "IgnoreUnknown for some hosts only is not supported; move it to the top of the file"
            )
        self._ignored = self._ignored or tuple(values[0].lower().split(","))

    def _problem(self, reference: str, message: str, place: Place | None = None) -> None:
        self.problems.append(Problem(reference, printable(message, 300), place))


def _others_may_write(found: os.stat_result) -> bool:
    return found.st_uid not in (0, os.getuid()) or bool(found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _start(line: str) -> str:
    return re.split(r"[\s=]", line.strip(), maxsplit=1)[0]
