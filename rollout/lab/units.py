"""Reading systemd unit files as systemd does: fragment, drop-ins, list resets, time spans, ``systemctl``'s spelling."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

# Expansion of a unit's command line: ``Environment=``, ``EnvironmentFile=`` and systemd's expansion of
# ``$WORDS``.


_BRACED = re.compile(r"\$(?:\$|\{([A-Za-z_][A-Za-z0-9_]*)\})")
_WORD = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")


class MissingFileError(Exception):
    """An environment file without the leading ``-`` is missing: the unit fails before anything runs."""


def environment(tree: Tree, unit: Unit) -> dict[str, str]:
    """Every variable of the unit's commands; files are read now, as at each start, and override ``Environment=``."""
    texts: dict[str, str] = {}
    for value in unit.every("Environment"):
        for word in _words(value):
            name, equals, text = word.partition("=")
            if equals:
                texts[name] = text
    for value in unit.every("EnvironmentFile"):
        content = tree.read(value.removeprefix("-"))
        if content is not None:
            texts.update(parse_file(content.decode("utf-8", "replace")))
        elif not value.startswith("-"):
            raise MissingFileError(value)
    return texts


def parse_file(text: str) -> dict[str, str]:
    """An environment file: ``NAME=value`` lines, quotes, comments, a backslash that continues a line."""
    values = {}
    for line in text.replace("\\\n", "").splitlines():
        bare = line.strip()
        name, equals, value = bare.partition("=")
        if bare and bare[0] not in "#;" and equals:
            values[name.strip()] = "".join(_words(value)) if value[:1] in {'"', "'"} else value.strip()
    return values


def argv(command: str, variables: dict[str, str]) -> tuple[str, ...]:
    """An ``ExecStart=`` line as arguments: ``$NAME`` alone is split at spaces, ``${NAME}`` is inserted unchanged."""
    arguments: list[str] = []
    for word in _words(command.lstrip("-@:+!")):
        alone = _WORD.fullmatch(word)
        if alone:
            arguments.extend(_words(variables.get(alone[1], "")))
        else:
            arguments.append(_BRACED.sub(lambda found: variables.get(found[1], "") if found[1] else "$", word))
    return tuple(arguments)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # systemd's parser is relaxed: an unbalanced quote is a plain character
        return text.split()


SEARCH = (
    "/etc/systemd/system",
    "/run/systemd/system",
    "/run/systemd/transient",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
)
_SPAN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)")
_SIZE = re.compile(r"(\d+)([KMGTPE]?)")
INFINITE = float("inf")
NO = frozenset({"no", "false", "off", "0"})
_SECONDS = {"": 1.0, "s": 1.0, "sec": 1.0, "ms": 0.001, "us": 1e-6, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


class Tree(Protocol):
    """A node's files under the node's own paths."""

    def read(self, path: str) -> bytes | None:
        """The bytes of a regular file, or ``None``."""

    def names(self, path: str) -> tuple[str, ...]:
        """The sorted names in a directory; empty when the directory does not exist."""

    def is_folder(self, path: str) -> bool:
        """Whether this is a directory."""

    def stamp(self, path: str) -> int | None:
        """When the file was last written (µs), or ``None`` when it does not exist; systemd compares this."""

    def target(self, path: str) -> str | None:
        """The target of a symbolic link, or ``None``."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit as loaded: a restart uses these bytes until the next ``daemon-reload``."""

    name: str
    load_state: str = "not-found"
    fragment: str = ""
    drop_ins: tuple[str, ...] = ()
    stamps: tuple[tuple[str, int | None], ...] = ()
    entries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def last(self, key: str, default: str = "") -> str:
        """The effective value of a single-value key."""
        values = self.entries.get(key, ())
        return values[-1] if values else default

    def every(self, key: str) -> tuple[str, ...]:
        """All values of a list key; an empty assignment resets earlier ones."""
        return self.entries.get(key, ())

    def words(self, key: str) -> tuple[str, ...]:
        """All words of a list key, such as the names of units."""
        return tuple(word for value in self.every(key) for word in value.split())

    def span(self, key: str, default: float) -> float:
        """A time span in seconds."""
        return seconds(self.last(key)) if self.last(key) else default


def load(tree: Tree, name: str) -> Unit:
    """Find a unit's fragment and drop-ins and read them in systemd's order."""
    fragment = next((f"{folder}/{name}" for folder in SEARCH if _present(tree, f"{folder}/{name}")), "")
    if not fragment:
        return Unit(name)
    if tree.target(fragment) == "/dev/null":
        return Unit(name, "masked", fragment)
    paths = drop_ins(tree, name)
    entries = _merged(tree, (fragment, *paths), {})
    return Unit(name, "loaded", fragment, paths, _stamps(tree, (fragment, *paths)), entries)


def transient(tree: Tree, name: str, entries: Mapping[str, tuple[str, ...]]) -> Unit:
    """A unit without a file, with the drop-ins that exist for its name."""
    paths = drop_ins(tree, name)
    return Unit(name, "loaded", f"/run/systemd/transient/{name}", paths, entries=_merged(tree, paths, entries))


def _merged(tree: Tree, paths: tuple[str, ...], before: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
    entries = dict(before)
    for path in paths:
        for key, value in _assignments((tree.read(path) or b"").decode("utf-8", "replace")):
            entries[key] = (*entries.get(key, ()), value) if value else ()
    return entries


def changed(tree: Tree, unit: Unit) -> bool:
    """Whether the files on disk differ from the loaded ones (``NeedDaemonReload``)."""
    if unit.load_state != "loaded":
        return False
    return _stamps(tree, (unit.fragment, *drop_ins(tree, unit.name))) != unit.stamps


def enablement(tree: Tree, unit: Unit) -> str:
    """``UnitFileState``: as ``systemctl is-enabled`` prints it, or empty without a unit file."""
    if unit.load_state == "masked":
        return "masked"
    if unit.load_state != "loaded":
        return ""
    if unit.fragment.startswith("/run/systemd/transient/"):
        return "transient"
    for folder in tree.names("/etc/systemd/system"):
        if folder.endswith((".wants", ".requires")) and unit.name in tree.names(f"/etc/systemd/system/{folder}"):
            return "enabled"
    return "disabled" if unit.every("WantedBy") else "static"


def seconds(text: str) -> float:
    """A systemd time span (``10``, ``1min 30s``, ``100ms``) in seconds; ``ValueError`` for anything else."""
    if text.strip() == "infinity":
        return float("inf")
    total, position = 0.0, 0
    while position < len(text.rstrip()):
        match = _SPAN.match(text, position)
        if match is None or match[2] not in _SECONDS:
            raise ValueError(f"not a time span: {text}")
        total += float(match[1]) * _SECONDS[match[2]]
        position = match.end()
    return total


def size_text(text: str) -> str:
    """A number of bytes (``64M``; base 1024) as ``systemctl show`` prints it."""
    match = _SIZE.fullmatch(text.strip())
    return str(int(match[1]) << 10 * " KMGTPE".index(match[2] or " ")) if match else text


def quota_text(percent: str) -> str:
    """``CPUQuota=`` as ``CPUQuotaPerSecUSec``: ``50%`` is ``500ms``, nothing is ``infinity``."""
    return span_text(float(percent.rstrip("%")) / 100 if percent else INFINITE)


def span_text(value: float) -> str:
    """A time span as ``systemctl show`` prints it: ``10s``, ``1min 30s``, ``100ms``."""
    if value == float("inf"):
        return "infinity"
    parts, rest = [], round(value * 1000)
    for size, word in ((3_600_000, "h"), (60_000, "min"), (1000, "s"), (1, "ms")):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{word}")
    return " ".join(parts) or "0"


def _present(tree: Tree, path: str) -> bool:
    return tree.stamp(path) is not None or tree.target(path) is not None


def _stamps(tree: Tree, paths: tuple[str, ...]) -> tuple[tuple[str, int | None], ...]:
    return tuple((path, tree.stamp(path)) for path in paths)


def drop_ins(tree: Tree, name: str) -> tuple[str, ...]:
    """``*.conf`` by file name, of ``NAME.d``, then of names that begin alike (``rollout-.service.d``), then of all of its
    kind (``service.d``); the first directory wins for a name in two directories.
    """
    stem, _, kind = name.rpartition(".")
    alike = [f"{stem[: at + 1]}.{kind}" for at in range(len(stem) - 2, -1, -1) if stem[at] == "-"]
    entries: dict[str, str] = {}
    for owner in (name, *alike, kind):
        for folder in SEARCH:
            for entry in tree.names(f"{folder}/{owner}.d"):
                if entry.endswith(".conf"):
                    entries.setdefault(entry, f"{folder}/{owner}.d/{entry}")
    return tuple(entries[entry] for entry in sorted(entries))


def _assignments(text: str) -> Iterator[tuple[str, str]]:
    for line in text.replace("\\\n", " ").splitlines():
        bare = line.strip()
        if bare and bare[0] not in "#;[" and "=" in bare:
            key, _, value = bare.partition("=")
            yield key.strip(), value.strip()
