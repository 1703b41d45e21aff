"""Registry mirrors on containerd: ``<config_path>/<host>/hosts.toml``, read at each pull (``docs/hosts.md``), no restart.

config.toml changes too where ``config_path`` is not set (no default before 2.2), and where it names several directories
to a containerd that pulls through its transfer service: 2.1 to 2.3 treat those as one name and find nothing
(containerd #12415), also with their own default ``/etc/containerd/certs.d:/etc/docker/certs.d``.
"""

from __future__ import annotations

import json
import posixpath
import re
import tomllib
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from rollout.core.model.plan import FileChange
from rollout.core.model.settings import Setting
from rollout.core.model.snapshot import Snapshot
from rollout.kubelet.node.layout import LayoutError
from rollout.kubelet.runtimes import node_files, toml_edit
from rollout.kubelet.runtimes.containerd import configuration
from rollout.kubelet.runtimes.containerd.configuration import CRI_V2, CRI_V3, Config, KeyPlace
from rollout.kubelet.runtimes.description import Row
from rollout.kubelet.runtimes.node_files import Files
from rollout.kubelet.runtimes.outcome import Part, TomlKey
from rollout.kubelet.values import reason

# hosts.toml: mirrors in the order in which containerd tries them; lines of other authors are kept byte for byte.
#
# containerd uses the order of ``[host."URL"]`` tables in the file (``getSortedHosts``) and tries the registry
# itself last, whether ``server`` is given or not. Ours come first, in their order; other hosts stay behind them
# in theirs. From 2.0 on a host without a header of its own, by dotted keys or an inline table, is none.
#
# A mirror's path is the root of its API. containerd adds ``/v2`` to a path that does not end so
# (``https://m/v2/cache`` would become ``/v2/cache/v2``) unless its table contains ``override_path = true``
# (``parseHostConfig``).


_NEEDED = ("pull", "resolve")
_HEADER = re.compile(r"^[ \t]*\[[ \t]*host[ \t]*\..*\][ \t\r]*(?:#.*)?$", re.MULTILINE)


def hosts(text: str, path: str) -> tuple[str, ...]:
    """The mirrors of a file, in order."""
    return tuple(_tables(toml_edit.read(text, path), path))


def merged(text: str, wanted: tuple[str, ...], path: str) -> str:
    """``text`` with these mirrors first; only tables are added. ``LayoutError`` where that cannot give the order."""
    before = toml_edit.read(text, path)
    there = _tables(before, path)
    names = {_plain(name): name for name in there}
    for mirror in wanted:
        _check_capable(mirror, there.get(names.get(_plain(mirror), "")), path)
        if _plain(mirror) in names:
            _start(text, names[_plain(mirror)], path)
    rest = [name for name in there if _plain(name) not in {_plain(mirror) for mirror in wanted}]
    order = [*(names.get(_plain(mirror), _plain(mirror)) for mirror in wanted), *rest]
    if [name for name in order if name in there] != list(there):
        raise LayoutError("mirrors-order", f"{path} has {', '.join(there)} in another order; rollout only adds to it")
    after = _with(text, order, frozenset(there), path)
    _prove(before, after, order, path)
    return after


def _plain(url: str) -> str:
    return url.rstrip("/")


def _has_root(url: str) -> bool:
    """Whether containerd would use another path than the mirror's."""
    path = urlsplit(_plain(url)).path
    return bool(path) and not path.endswith("/v2")


def _table(url: str) -> dict[str, Any]:
    """The table for a mirror."""
    return {"capabilities": list(_NEEDED), **({"override_path": True} if _has_root(url) else {})}


def _tables(document: Mapping[str, Any], path: str) -> Mapping[str, Mapping[str, Any]]:
    found = document.get("host", {})
    if not isinstance(found, dict) or not all(isinstance(entry, dict) for entry in found.values()):
        raise LayoutError("toml-unprovable", f"{path}: host is not a map of tables")
    return found


def _check_capable(mirror: str, table: Mapping[str, Any] | None, path: str) -> None:
    """An existing mirror must be one to pull from, with its path in use; without written capabilities it has all."""
    if table is None:
        return
    if _has_root(mirror) and table.get("override_path") is not True:
        asked = f"{urlsplit(_plain(mirror)).path}/v2"
        message = f"{path} has {mirror} without `override_path = true`: containerd asks it at {asked}"
        raise LayoutError("mirror-path", message)
    capabilities = table.get("capabilities")
    if capabilities and not set(_NEEDED) <= {str(entry).lower() for entry in capabilities}:
        raise LayoutError("mirror-not-capable", f"{path} has {mirror} without the capabilities {' and '.join(_NEEDED)}")


def _with(text: str, order: list[str], there: frozenset[str], path: str) -> str:
    """From the last to the first: each missing table goes before the next one, or at the end."""
    end = "\r\n" if "\r\n" in text else "\n"
    for at in range(len(order) - 1, -1, -1):
        if order[at] in there:
            continue
        lines = [f"  {key} = {json.dumps(value)}" for key, value in _table(order[at]).items()]
        block = end.join([f'[host."{order[at]}"]', *lines, ""])
        if at + 1 < len(order):
            before = _start(text, order[at + 1], path)
            text = text[:before] + block + end + text[before:]
        else:
            gap = "" if not text else end if text.endswith("\n") else end + end
            text = text + gap + block
    return text


def _start(text: str, host: str, path: str) -> int:
    """The position of this host's first table, with the comment lines directly above it."""
    for found in _HEADER.finditer(text):
        try:
            named = tomllib.loads(found[0].strip()).get("host", {})
        except tomllib.TOMLDecodeError:
            continue
        if host in named:
            return _with_comments(text, found.start())
    raise LayoutError("toml-unprovable", f"{path}: {host} has no table of its own; containerd 2 ignores such a host")


def _with_comments(text: str, at: int) -> int:
    while at:
        above = text.rfind("\n", 0, at - 1) + 1
        if not text[above:at].lstrip(" \t").startswith("#"):
            return at
        at = above
    return at


def _prove(before: Mapping[str, Any], after: str, order: list[str], path: str) -> None:
    there = _tables(before, path)
    wanted = {name: there.get(name, _table(name)) for name in order}
    document = toml_edit.read(after, path)
    if document != {**before, "host": wanted} or list(_tables(document, path)) != order:
        raise LayoutError(
            "toml-unprovable", f"{path} as edited would not read back as the old file with the new mirrors"
        )


ROOT = "/etc/containerd/certs.d"
_SEVERAL = "containerd treats a config_path of several directories as one name while it pulls through its transfer service (#12415)"


def part(snapshot: Snapshot, config: Config, setting: Setting, row: Row) -> Part:
    """The hosts.toml of each registry, and ``config_path`` where containerd would not read there."""
    if snapshot.facts.keys() & {"hosts-truncated", "host-folders-truncated"}:
        raise LayoutError("layout-not-understood", "more hosts.toml files than the agent lists")
    place = config.image_key("registry", row.key)
    now = str(place.value or ("" if _keeps_empty(config, place) else row.default))
    _check_old_way(config, place)
    assignments, notes = _config_path(config, setting, place, now)
    root = str(assignments[0].value) if assignments else now
    wanted = setting.value if isinstance(setting.value, dict) else {}
    made = [_host(snapshot.files, root, host, wanted[host], setting) for host in sorted(wanted)]
    edits = tuple(edit for edit, _ in made if edit is not None)
    return Part(assignments, edits, (*notes, *(note for _, found in made for note in found)))


def _keeps_empty(config: Config, place: KeyPlace) -> bool:
    """``config_path = ""`` is the default to later versions; to 2.2.0 and 2.2.1 only in a table of version 2 (``migrateConfig``)."""
    early = (2, 2, 0) <= config.containerd.number < (2, 2, 2)
    return early and place.value == "" and place.keys[: len(CRI_V3)] == CRI_V3


def _check_old_way(config: Config, place: KeyPlace) -> None:
    """``registry.mirrors`` or ``configs``: an error or ignored with ``config_path`` (``ValidatePluginConfig``)."""
    if place.value:
        return
    for file in config.files:
        for table in (CRI_V2, CRI_V3):
            for key in ("mirrors", "configs"):
                if toml_edit.value_at(file.document, (*table, "registry", key)):
                    message = f"{file.path} sets registry.{key}, the deprecated form, which cannot be combined with config_path"
                    raise LayoutError("containerd-old-mirrors", message)


def _config_path(
    config: Config, setting: Setting, place: KeyPlace, now: str
) -> tuple[tuple[TomlKey, ...], tuple[str, ...]]:
    roots = [root for root in now.split(":") if root]
    if roots and (len(roots) == 1 or configuration.local_because(config)):
        return (), ()
    new = roots[0] if roots else ROOT
    why = reason("registry.config_path", str(place.value or "not set"), new, setting)
    return (TomlKey(place.path, place.keys, new, why),), (_SEVERAL,) if roots else ()


def _host(
    files: Files, roots: str, host: str, endpoints: object, setting: Setting
) -> tuple[FileChange | None, tuple[str, ...]]:
    path, notes = _path(files, [_spelled(files, root) for root in roots.split(":") if root], host)
    wanted = tuple(str(endpoint) for endpoint in endpoints) if isinstance(endpoints, list) else ()
    before = node_files.text(files, path)
    after = merged(before or "", wanted, path)
    if after == (before or ""):
        return None, ()
    old = ", ".join(hosts(before, path)) if before else ""
    why = reason(f"mirrors of {host}", old or "none", ", ".join(hosts(after, path)), setting)
    edit = FileChange(path, None if before is None else before.encode(), after.encode(), (why,))
    certificates = f"{path} is new: certificates beside it are no longer read unless it names them"
    return edit, (*notes, certificates) if before is None else notes


def _spelled(files: Files, root: str) -> str:
    """The directory as the snapshot names its files: ``config_path = "/etc/containerd/certs.d/"`` is the usual one, too."""
    plain = posixpath.normpath(root)
    return plain if plain in files else root


def _path(files: Files, roots: list[str], host: str) -> tuple[str, tuple[str, ...]]:
    """The first directory that containerd finds for this host (``hostPaths``), or the one that rollout creates."""
    names = (*_names(host), "_default")
    for root in roots:
        found = next((name for name in names if node_files.is_there(files, f"{root}/{name}")), "")
        if found == "_default":
            return f"{root}/{host}/hosts.toml", (f"{host} no longer uses {root}/_default, which applied to it",)
        if found:
            return f"{root}/{found}/hosts.toml", ()
    return f"{roots[0]}/{host}/hosts.toml", ()


def _names(host: str) -> tuple[str, ...]:
    """``registry:5000`` may be in ``registry_5000_``, which comes first (``hostDirectory``)."""
    name, colon, port = host.rpartition(":")
    return (f"{name}_{port}_", host) if colon and name else (host,)
