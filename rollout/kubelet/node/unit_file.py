"""The parts of a systemd service unit that define how a kubelet is started (systemd.syntax(7), systemd.service(5)).

Fragment first, then drop-ins in the order systemd applies them; an empty assignment resets a list. Lines may be
continued with a backslash; comment lines inside a continued line are skipped (``config_parse`` in
src/shared/conf-parser.c, systemd 252). Text that versions of systemd read differently is a ``ValueError``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from functools import lru_cache

from rollout.core.model.frozen import dataclass
from rollout.kubelet.node import arguments

MOST_EXPANDED = 2 * 1024 * 1024
"""Characters of a command line with its variables: as many as Linux gives a program by default."""

_BLANKS = " \t\r\n"
_LINE_END = re.compile(r"\r\n|\n\r|\n|\r")
_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


Specifiers = tuple[tuple[str, str], ...]
"""Letters of systemd's specifiers with their values on one node (systemd.unit(5)): ``(("H", "node4"),)``."""

_PATTERN = "*?["
_NAME_END = re.compile(r"[:}]")
_SPECIFIER = re.compile(r"%(.?)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class UnitLine:
    """``key=value`` of the ``[Service]`` section, continued lines joined; ``line`` is the first of them."""

    key: str
    value: str
    line: int


@dataclass(frozen=True, slots=True)
class EnvironmentFile:
    path: str
    optional: bool  # written with a leading "-": it may be absent


@dataclass(frozen=True, slots=True)
class Piece:
    """One word of the expanded command line, and where it came from, for people."""

    text: str
    origin: str
    variable: str  # the split variable that contains it, or ""
    file: str  # the environment file that sets the variable, or the unit's file


@dataclass(frozen=True, slots=True)
class UnitStart:
    """The unit as a whole: the ``ExecStart=`` in force and its file, and the environment.

    ``set_by``: each variable of ``Environment=`` and the unit's file that sets it. ``command`` still has its specifiers.
    ``passed``: each variable of ``PassEnvironment=`` and its file and line.
    """

    command: str
    file: str
    environment: Mapping[str, str]
    set_by: Mapping[str, str]
    files: tuple[EnvironmentFile, ...]
    specifiers: Specifiers
    passed: Mapping[str, str] = field(default_factory=dict)


@lru_cache(maxsize=4096)
def service_lines(text: str) -> tuple[UnitLine, ...]:
    """The assignments of ``[Service]``, in order."""
    lines: list[UnitLine] = []
    section = ""
    for number, line in _joined(text):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
        elif section == "Service" and "=" in line:
            key, _, value = line.partition("=")
            lines.append(UnitLine(key.strip(_BLANKS), value.strip(_BLANKS), number))
    return tuple(lines)


def _joined(text: str) -> list[tuple[int, str]]:
    """Each line with the number of its first part."""
    lines: list[tuple[int, str]] = []
    held, first = "", 0
    for number, raw in enumerate(_LINE_END.split(text.removeprefix("\ufeff")), start=1):
        line = raw.lstrip(_BLANKS)
        if line[:1] in {"#", ";"} or (not line and not held):
            continue
        first = first if held else number
        if _continued(line, number):
            held += line[:-1].rstrip(_BLANKS) + " "
            continue
        if line.startswith(".include"):
            raise ValueError(f"a unit file includes another, which newer versions of systemd ignore (line {number})")
        lines.append((first, (held + line).strip(_BLANKS)))
        held = ""
    return [*lines, (first, held.strip(_BLANKS))] if held else lines


def _continued(line: str, number: int) -> bool:
    """Whether the line ends with a backslash that is not itself escaped."""
    stripped = line.rstrip(_BLANKS)
    odd = (len(stripped) - len(stripped.rstrip("\\"))) % 2 == 1
    if odd and stripped != line:
        raise ValueError(f"a line ends with a backslash and blanks, which does not continue it (line {number})")
    return odd


def start(texts: Mapping[str, str], specifiers: Specifiers = ()) -> UnitStart:
    """Fragment and drop-ins (path → text, in order) folded; ``ValueError`` gives the reason if we do not understand
    them.
    """
    commands: list[tuple[str, UnitLine]] = []
    environment: dict[str, str] = {}
    set_by: dict[str, str] = {}
    files: list[EnvironmentFile] = []
    passed: dict[str, str] = {}
    for path, line in _lines(texts):
        with _in_line(path, line):
            if line.key == "ExecStart":
                commands = [*commands, (path, line)] if line.value else []
            elif line.key == "Environment":
                assigned = _environment(line.value, specifiers)
                environment = {**environment, **assigned} if line.value else {}
                set_by = {**set_by, **dict.fromkeys(assigned, path)} if line.value else {}
            elif line.key == "EnvironmentFile":
                files = [*files, _environment_file(line.value, specifiers)] if line.value else []
            elif line.key == "PassEnvironment":
                names = dict.fromkeys(_passed(line.value, specifiers), f"{path} (line {line.line})")
                passed = {**passed, **names} if line.value else {}
            elif line.key == "UnsetEnvironment" and line.value:
                raise ValueError(
                    "UnsetEnvironment= removes environment variables, which rollout does not follow: remove this line"
                )
    if len(commands) != 1:
        places = [f"{path} (line {line.line})" for path, line in commands] or texts
        raise ValueError(f"the unit has {len(commands)} ExecStart= commands: {', '.join(places)}")
    ((file, command),) = commands
    with _in_line(file, command):
        exec_words(command.value, specifiers)
    return UnitStart(command.value, file, environment, set_by, tuple(files), specifiers, passed)


def patterns(texts: Mapping[str, str]) -> Iterator[str]:
    """Each ``EnvironmentFile=`` that is a pattern, and its place, for people."""
    for path, line in _lines(texts):
        if line.key == "EnvironmentFile" and any(mark in line.value for mark in _PATTERN):
            yield f"EnvironmentFile={line.value} in {path} (line {line.line})"


def _lines(texts: Mapping[str, str]) -> Iterator[tuple[str, UnitLine]]:
    for path, text in texts.items():
        try:
            lines = service_lines(text)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        yield from ((path, line) for line in lines)


@contextmanager
def _in_line(path: str, line: UnitLine) -> Iterator[None]:
    """A ``ValueError`` gets the place of the line that is not understood."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error} (line {line.line})") from None


def specifiers(unit: str, node: Mapping[str, str]) -> Specifiers:
    """The specifiers that are known on a node, for its unit ``unit``.

    ``node``: values of the node itself by letter (``H``, ``l``, ``m``, ``b``); an empty one is unknown. The directories
    and the user are those of the system's manager. Others depend on its environment, on the kernel or on the release.
    """
    whole = unit.rpartition(".")[0]
    prefix, _, instance = whole.partition("@")
    plain = {
        "n": unit,
        "N": whole,
        "p": prefix,
        "i": instance,
        "j": prefix.rpartition("-")[2],
        "t": "/run",
        "S": "/var/lib",
        "C": "/var/cache",
        "L": "/var/log",
        "E": "/etc",
        "u": "root",
        "U": "0",
        "g": "root",
        "G": "0",
        "h": "/root",
    }
    return (*sorted(plain.items()), *sorted((letter, value) for letter, value in node.items() if value))


def _environment(value: str, specifiers: Specifiers) -> dict[str, str]:
    _no_escapes(value, "Environment=")
    pairs = (word.text.partition("=") for word in arguments.split(value))
    return {name: _resolved(text, specifiers) for name, equals, text in pairs if equals and _NAME.fullmatch(name)}


def _passed(value: str, specifiers: Specifiers) -> list[str]:
    _no_escapes(value, "PassEnvironment=")
    return [_resolved(word.text, specifiers) for word in arguments.split(value)]


def check_known(start: UnitStart, environment: Mapping[str, str]) -> None:
    """``ValueError`` for a variable of the command that only systemd's own environment sets: its value is in no file."""
    for word in exec_words(start.command, start.specifiers):
        for name in _names(word):
            if name in start.passed and name not in environment:
                raise ValueError(
                    f"{start.passed[name]}: PassEnvironment= takes ${name}, which ExecStart= contains, from systemd's own"
                    " environment, and its value there is unknown; set it in Environment= or in an environment file"
                )


def unset_names(start: UnitStart, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The variables in braces in the command that nothing sets: systemd reads them as empty."""
    words = [word for word in exec_words(start.command, start.specifiers) if not _whole(word)]
    return tuple(dict.fromkeys(name for word in words for name in _names(word) if name not in environment))


def _no_escapes(value: str, where: str) -> None:
    """systemd reads C escapes here and warns of unknown ones; only an escaped quote or backslash is the same for us."""
    for found in _ESCAPE.finditer(value):
        if found[1] not in {"\\", '"', "'"}:
            raise ValueError(f"{where} contains the escape \\{found[1]}")


def _environment_file(value: str, specifiers: Specifiers) -> EnvironmentFile:
    path = _resolved(value.removeprefix("-"), specifiers)
    if any(mark in path for mark in _PATTERN):
        raise ValueError(
            f"EnvironmentFile={value} is a pattern, and rollout follows single files: name each file in a line"
        )
    if not path.startswith("/"):
        raise ValueError(f"EnvironmentFile={value} is not one absolute path")
    path = "/" + "/".join(part for part in path.split("/") if part not in {"", "."})  # as systemd shows it
    return EnvironmentFile(path, optional=value.startswith("-"))


def _resolved(text: str, specifiers: Specifiers) -> str:
    """``text`` with its specifiers replaced; ``ValueError`` for one with an unknown value."""
    if "%" not in text:
        return text
    known = {"%": "%", **dict(specifiers)}
    unknown = next((letter for letter in _SPECIFIER.findall(text) if letter not in known), None)
    if unknown is not None:
        word = text.partition("=")[0] if text.startswith("--") else "a value"  # which may be a secret
        raise ValueError(f"{word} contains systemd's specifier %{unknown}, and its value on this node is unknown")
    return _SPECIFIER.sub(lambda found: known[found[1]], text)


def expand(
    command: str,
    file: str,
    environment: Mapping[str, str],
    sources: Mapping[str, str],
    specifiers: Specifiers = (),
) -> tuple[Piece, ...]:
    """The words systemd would run (src/basic/env-util.c, ``replace_env_argv``).

    A word that begins with ``$`` names a variable up to its end and is replaced by it, split at blanks (nothing if
    unset); ``${NAME}`` anywhere is replaced without splitting; ``$$`` is a dollar sign. A colon ends a name in braces:
    ``${NAME:-text}`` is of shells, and systemd keeps it as it is. ``sources``: the file that sets
    a variable's value.
    """
    pieces: list[Piece] = []
    own, size = f"ExecStart in {file}", 0
    for word in exec_words(command, specifiers):
        if _whole(word):
            name = word[1:]
            where = sources.get(name, file)
            origin = f"{name} in {where}"
            value = environment.get(name, "")
            size = _within(size + len(value))
            try:
                pieces += [Piece(part.text, origin, name, where) for part in arguments.split(value)]
            except ValueError as error:
                raise ValueError(f"{origin}: {error}") from None
        else:
            set_in = dict.fromkeys(f"${{{name}}} in {sources[name]}" for name in _names(word) if name in sources)
            pieces.append(Piece(_braced(word, environment), ", ".join((own, *set_in)), "", file))
            size = _within(size + len(pieces[-1].text))
    return tuple(pieces)


def _within(size: int) -> int:
    """The size of a command line; ``ValueError``: a variable that is named again and again made it too long."""
    if size > MOST_EXPANDED:
        raise ValueError("the command line with its variables is longer than 2 MiB")
    return size


@lru_cache(maxsize=4096)
def exec_words(command: str, specifiers: Specifiers = ()) -> tuple[str, ...]:
    """The words of an ``ExecStart=`` value before variables are expanded."""
    if command[:1] in set("@-:+!|"):
        raise ValueError(
            f"ExecStart= begins with {command[0]!r}, and rollout does not follow a command with such a prefix"
        )
    _no_escapes(command, "ExecStart=")
    words = tuple(_resolved(word.text, specifiers) for word in arguments.split(command))
    if ";" in words:
        raise ValueError("ExecStart= contains several commands")
    return words


def _whole(word: str) -> bool:
    """Whether the word is a variable as a whole, without braces."""
    return word.startswith("$") and word[1:2] not in {"$", "{"}


def _names(word: str) -> tuple[str, ...]:
    """The variables that systemd replaces in a word."""
    return (word[1:],) if _whole(word) else tuple(part for part, is_name in _parts(word) if is_name)


def _braced(word: str, environment: Mapping[str, str]) -> str:
    if "$" not in word:
        return word
    out: list[str] = []
    size = 0
    for part, is_name in _parts(word):
        out.append(environment.get(part, "") if is_name else part)
        size = _within(size + len(out[-1]))
    return "".join(out)


def _parts(word: str) -> Iterator[tuple[str, bool]]:
    """Text, and names of variables in braces, in order (``replace_env_full``)."""
    at = 0
    while at < len(word):
        dollar = word.find("$", at)
        if dollar < 0 or dollar + 1 == len(word):
            yield word[at:], False
            return
        if dollar > at:
            yield word[at:dollar], False
        at = dollar + 2
        if word[dollar + 1] == "$":
            yield "$", False
        elif word[dollar + 1] != "{":
            yield word[dollar:at], False
        elif (end := _NAME_END.search(word, at)) is None:
            yield word[dollar:], False
            return
        else:
            yield (word[at : end.start()], True) if end[0] == "}" else (word[dollar : end.end()], False)
            at = end.end()


def quote(word: str) -> str:
    """``word`` for an ``ExecStart=`` line: nothing in it is expanded."""
    if any(mark in word for mark in "\n\r\0"):
        raise ValueError("a unit file cannot contain a line end")
    return arguments.quote(word.replace("%", "%%").replace("$", "$$"))


def merge(command: str, ours: tuple[str, ...]) -> str:
    """``command`` with each of our ``--flag=value`` in force, everything else unchanged."""
    return arguments.merge(command, tuple(argument.replace("%", "%%").replace("$", "$$") for argument in ours))


def inlined(command: str, values: Mapping[str, str]) -> str:
    """``command`` with these variables replaced by the words of their values; everything else unchanged."""
    for word in reversed(arguments.split(command)):
        if _whole(word.text) and word.text[1:] in values:
            words = " ".join(quote(part.text) for part in arguments.split(values[word.text[1:]]))
            command = command[: word.start] + words + command[word.end :]
    return command


def drop_in_order(path: str) -> str:
    """systemd applies drop-ins sorted by file name, in whichever directory they are."""
    return path.rsplit("/", 1)[-1]


def without(command: str, names: Collection[str]) -> str:
    """``command`` without the flags of these names that it contains literally."""
    program, *rest = arguments.split(command)
    at = rest[0].start if rest else program.end
    return (command[:at] + arguments.without(command[at:], names)).rstrip(_BLANKS)
