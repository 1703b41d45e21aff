"""containerd's configuration as containerd loads it: the main file, its imports, and the file that decides a key.

``LoadConfig`` (1.x ``services/server/config``, 2.x ``cmd/containerd/server/config``): the main file, then its imports in
order, then theirs; the later file wins. In 1.x a plugin's table in a later file replaces the whole table of an earlier
one; in 2.x tables are merged key by key. The table of version 2 becomes that of version 3, and overrides it where both are
given. From 2.3 on each file is migrated from its own ``version``; 2.0 to 2.2 first merge all files, and then migrate the
result from the version that was given last, so that one file of version 3 makes them ignore every table of version 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from rollout.core.model.frozen import dataclass
from rollout.core.model.snapshot import Snapshot
from rollout.kubelet.node.layout import LayoutError
from rollout.kubelet.runtimes import node_files, toml_edit
from rollout.kubelet.runtimes.description import RuntimeVersion
from rollout.kubelet.runtimes.service import Command
from rollout.kubelet.runtimes.toml_edit import KeyPath

# Whether this containerd pulls through its transfer service, or as a client of its own ("local pull").
#
# From 2.1 the transfer service is the default, and some keys of the CRI's image table make containerd fall back
# with a warning (``CheckLocalImagePullConfigs``, ``internal/cri/config/config.go`` of 2.1.0 and 2.3.4). This
# decides from which table a limit of downloads is read, and whether a ``config_path`` of several directories
# works (containerd #12415).


DOWNLOADS_KEY = "max_concurrent_downloads"

_FALLBACKS: tuple[tuple[tuple[str, ...], Callable[[Any], bool]], ...] = (
    (("use_local_image_pull",), lambda value: value is True),
    (("disable_snapshot_annotations",), lambda value: value is False),
    (("discard_unpacked_layers",), lambda value: value is True),
    (("registry", "mirrors"), bool),
    (("registry", "configs"), bool),
    (("registry", "auths"), bool),
    ((DOWNLOADS_KEY,), lambda value: value != 3),
    (("image_pull_with_sync_fs",), lambda value: value is True),
)
_ONLY_V3 = frozenset({"use_local_image_pull"})
_UNDER_CONTAINERD = frozenset({"disable_snapshot_annotations", "discard_unpacked_layers"})


def local_because(config: Config) -> tuple[str, ...]:
    """The keys that make this containerd pull locally, or the version without another way; ``()``: transfer service."""
    if config.containerd.number < (2, 1, 0):
        return ("containerd before 2.1",)
    return tuple(".".join(keys) for keys, falls_back in _FALLBACKS if _any(config, keys, falls_back))


def _any(config: Config, keys: tuple[str, ...], falls_back: Callable[[Any], bool]) -> bool:
    set_values = [value for file, table in config.tables if (value := _value(config, file, table, keys)) is not None]
    return bool(set_values) and falls_back(set_values[-1])


def _value(config: Config, file: ConfigFile, table: KeyPath, keys: tuple[str, ...]) -> Any:
    """The value in this table as 2.x migrates it: keys of version 2 under ``containerd`` move if it names runtimes.

    From 2.3 on those of the same file count.
    """
    if table == CRI_V3:
        return toml_edit.value_at(file.document, (*CRI_V3, *keys))
    if keys[0] in _ONLY_V3:
        return None
    if keys[0] not in _UNDER_CONTAINERD:
        return toml_edit.value_at(file.document, (*CRI_V2, *keys))
    migrated = (file,) if config.containerd.number >= _EACH_BY_ITS_OWN else config.files
    named = any(_holds(each, (*CRI_V2, "containerd", "runtimes")) for each in migrated)
    return toml_edit.value_at(file.document, (*CRI_V2, "containerd", *keys)) if named else None


MAIN = "/etc/containerd/config.toml"
CRI_V2: KeyPath = ("plugins", "io.containerd.grpc.v1.cri")
CRI_V3: KeyPath = ("plugins", "io.containerd.cri.v1.images")
TRANSFER: KeyPath = ("plugins", "io.containerd.transfer.v1.local")
_MOST_FILES = 64
_EACH_BY_ITS_OWN = (2, 3, 0)
"""From here on each file is migrated from its own version (``LoadConfigWithPlugins``)."""


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """One file; ``version`` is the one in the file, 0 when it contains none."""

    path: str
    text: str
    document: Mapping[str, Any]

    @property
    def version(self) -> int:
        number = self.document.get("version", 0)
        return number if isinstance(number, int) else -1


@dataclass(frozen=True, slots=True)
class KeyPlace:
    """The place that decides a key: a file, the key's path in it, and its value there (``None``: not set anywhere)."""

    path: str
    keys: KeyPath
    value: Any


@dataclass(frozen=True, slots=True)
class Config:
    """Every file in load order, main file first; ``made``: no file exists and containerd runs on its defaults."""

    containerd: RuntimeVersion
    files: tuple[ConfigFile, ...]
    made: bool

    @property
    def merges(self) -> bool:
        """Are plugins' tables merged key by key?"""
        return self.containerd.number >= (2, 0, 0)

    @property
    def images(self) -> KeyPath:
        """The CRI's image table for new keys."""
        return CRI_V2 if self.files[0].version == 2 else CRI_V3

    @property
    def version(self) -> int:
        """The version that was given last, by which 1.x and 2.0 to 2.2 read all files."""
        return [file.version for file in self.files if file.version][-1]

    @property
    def tables(self) -> tuple[tuple[ConfigFile, KeyPath], ...]:
        """The CRI's image tables that 2.x reads, by file; a later one overrides."""
        if self.containerd.number >= _EACH_BY_ITS_OWN:
            return tuple(
                (file, table)
                for file in self.files
                for table in (CRI_V3, CRI_V2)
                if table == CRI_V3 or file.version < 4
            )
        read = (CRI_V3, CRI_V2) if self.version == 2 else (CRI_V3,)
        return tuple((file, table) for table in read for file in self.files)

    def image_key(self, *keys: str) -> KeyPlace:
        """The place that decides a key of the CRI's image table."""
        if not self.merges:
            return self._in_last_table(CRI_V2, keys)
        for file in self.files:
            self._check_tables(file, keys)
        held = self._holding(keys[0])
        found = [(file, table) for file, table in held if _holds(file, (*table, *keys))]
        if not found:
            file, table = held[-1] if held and held[-1][1] != self.images else (self.files[0], self.images)
            return KeyPlace(file.path, (*table, *keys), None)
        file, table = found[-1]
        return KeyPlace(file.path, (*table, *keys), toml_edit.value_at(file.document, (*table, *keys)))

    def _holding(self, key: str) -> list[tuple[ConfigFile, KeyPath]]:
        """The tables with this key; up to 2.2 that of version 2 replaces the whole one of version 3 (``migrateConfig``)."""
        held = [(file, table) for file, table in self.tables if _holds(file, (*table, key))]
        replaced = self.containerd.number < _EACH_BY_ITS_OWN and any(table == CRI_V2 for _, table in held)
        return [(file, table) for file, table in held if table == CRI_V2 or not replaced]

    def transfer_key(self, key: str) -> KeyPlace:
        """The place that decides a key of the transfer service's table (2.x)."""
        file = next((file for file in reversed(self.files) if _holds(file, (*TRANSFER, key))), self.files[0])
        return KeyPlace(file.path, (*TRANSFER, key), toml_edit.value_at(file.document, (*TRANSFER, key)))

    def _in_last_table(self, table: KeyPath, keys: KeyPath) -> KeyPlace:
        file = next((file for file in reversed(self.files) if _holds(file, table)), self.files[0])
        return KeyPlace(file.path, (*table, *keys), toml_edit.value_at(file.document, (*table, *keys)))

    def _check_tables(self, file: ConfigFile, keys: tuple[str, ...]) -> None:
        """A table of another version than its file is read by some versions of containerd and not by others."""
        held = [table for table in (CRI_V2, CRI_V3) if _holds(file, (*table, *keys))]
        fits = file.version < 2 or (CRI_V2 in held) == (file.version == 2)
        if len(held) > 1 or (held and not fits):
            name = f'[plugins."{held[0][1]}"]'
            raise LayoutError(
                "containerd-config",
                f"{file.path} (version {file.version}) sets the key in {name}, a table of another version",
            )
        if held and (file, held[0]) not in self.tables:
            message = (
                f'{file.path} sets the key in [plugins."{held[0][1]}"], which containerd {self.containerd.text} ignores:'
                f" it reads all files as version {self.version}, the last one that they give"
            )
            raise LayoutError("containerd-config", message)


def load(snapshot: Snapshot, command: Command, containerd: RuntimeVersion) -> Config:
    """The node's configuration, or ``LayoutError``: a file not known, not TOML, or of a version rollout does not edit."""
    flagged = command.go_flag("config", "c")
    text = node_files.text(snapshot.files, flagged or MAIN)
    if text is None and flagged:
        raise LayoutError("containerd-config", f"containerd runs with --config {flagged}, which does not exist")
    if text is None:
        version = 3 if containerd.major >= 2 else 2
        return Config(containerd, (ConfigFile(MAIN, "", {"version": version}),), made=True)
    main = ConfigFile(flagged or MAIN, text, toml_edit.read(text, flagged or MAIN))
    config = Config(containerd, _with_imports(snapshot, main, containerd), made=False)
    _check_version(config)
    return config


def _with_imports(snapshot: Snapshot, main: ConfigFile, containerd: RuntimeVersion) -> tuple[ConfigFile, ...]:
    loaded = {main.path: main}
    pending = [(main.path, path) for path in _imports(snapshot, main, containerd)]
    while pending:
        (importer, path), *pending = pending
        if path in loaded:
            continue
        text = node_files.text(snapshot.files, path)
        if text is None or len(loaded) >= _MOST_FILES:
            raise LayoutError(
                "containerd-config",
                f"{importer} imports {path}, which does not exist or is not among the files that the agent lists",
            )
        loaded[path] = ConfigFile(path, text, toml_edit.read(text, path))
        pending += [(path, imported) for imported in _imports(snapshot, loaded[path], containerd)]
    return tuple(loaded.values())


def _imports(snapshot: Snapshot, file: ConfigFile, containerd: RuntimeVersion) -> list[str]:
    """The files that this one imports, in containerd's order (``resolveImports``): only ``*`` is a pattern.

    A relative pattern is below containerd's working directory in 1.6.20 and 1.7.0, beside the file in 1.6.39 and 1.7.24.
    """
    imports = file.document.get("imports", [])
    if not isinstance(imports, list) or not all(isinstance(entry, str) for entry in imports):
        raise LayoutError("containerd-config", f"{file.path}: imports is not a list of paths")
    wandering = [entry for entry in imports if "*" in entry and not entry.startswith("/")]
    if wandering and containerd.major < 2:
        message = (
            f"{file.path} imports {wandering[0]}, a relative pattern: releases of containerd 1.x resolve it differently"
        )
        raise LayoutError("containerd-config", message)
    return [path for entry in imports for path in _matches(snapshot, node_files.beside(file.path, entry))]


def _matches(snapshot: Snapshot, path: str) -> list[str]:
    if "*" not in path:
        return [path]
    if any(mark in path for mark in "?[\\"):
        raise LayoutError("containerd-config", f"imports {path}: only * is understood in a pattern")
    if any(name.startswith("containerd-") and name.endswith("-truncated") for name in snapshot.facts):
        raise LayoutError("containerd-config", f"imports {path}: more files than the agent lists")
    return sorted(
        found
        for found, state in snapshot.files.items()
        if found.count("/") == path.count("/")
        and fnmatchcase(found, path)
        and state.kind not in {"absent", "directory"}
    )


def _holds(file: ConfigFile, keys: KeyPath) -> bool:
    return toml_edit.value_at(file.document, keys) is not None


def _check_version(config: Config) -> None:
    """Refuse versions, and mixtures of them, that this containerd does not read, or that it does not start with."""
    main, versions = config.files[0], [file.version for file in config.files if file.version]
    latest = 2 if not config.merges else 4 if config.containerd.number >= _EACH_BY_ITS_OWN else 3
    if main.version < 2:
        said = "gives no version (so 1)" if main.version == 0 else f"is of version {main.version}"
        raise LayoutError("containerd-config", f"{main.path} {said}; rollout edits files with version = 2 or later")
    if any(not 2 <= version <= latest for version in versions):
        known = "version 2" if latest == 2 else f"versions 2 to {latest}"
        message = (
            f"containerd {config.containerd.text} reads config {known}, {main.path} and its imports have {versions}"
        )
        raise LayoutError("containerd-config", message)
    short = next(((file, key, name) for file in config.files for key, name in _short_names(config, file)), None)
    if short is not None:
        file, key, name = short
        message = f'{file.path}: {key} has "{name}"; containerd {config.containerd.text} does not start with such a short name in version {main.version}'
        raise LayoutError("containerd-config", message)
    newer = next((file for file in config.files if file.version > main.version), None)
    if newer is not None:
        does = (
            "does not start"
            if config.containerd.number >= _EACH_BY_ITS_OWN
            else f"ignores the tables of version {main.version}"
        )
        raise LayoutError(
            "containerd-config",
            f"{newer.path} is of version {newer.version} and {main.path}, which imports it, of version {main.version}:"
            f" containerd {config.containerd.text} {does} with that",
        )


def _short_names(config: Config, file: ConfigFile) -> Iterator[tuple[str, str]]:
    """Plugins' names of version 1 (``cri``), with their key (``ValidateV2``, ``ValidateVersion``).

    2.x translates those of files without a version, and ignores such tables of others.
    """
    if config.merges and file.version < 2:
        return
    for key in ("disabled_plugins", "required_plugins", *(() if config.merges else ("plugins",))):
        names = file.document.get(key)
        if isinstance(names, list | Mapping):
            yield from ((key, name) for name in names if isinstance(name, str) and "." not in name)
