"""Registry mirrors on containerd: ``<config_path>/<host>/hosts.toml``, read at each pull (``docs/hosts.md``), no restart.

config.toml changes too where ``config_path`` is not set (no default before 2.2), and where it names several directories
to a containerd that pulls through its transfer service: 2.1 to 2.3 take those for one name and find nothing
(containerd #12415), their own default ``/etc/containerd/certs.d:/etc/docker/certs.d`` included.
"""

from __future__ import annotations

from rollout.core.model.settings import Setting
from rollout.core.model.snapshot import Snapshot
from rollout.kubelet.edits import Edit, reason
from rollout.kubelet.intents import Row
from rollout.kubelet.node.layout import LayoutError
from rollout.kubelet.runtimes import hosts_toml, node_files, pull_mode, toml_edit
from rollout.kubelet.runtimes.containerd_config import CRI_V2, CRI_V3, Config, Place
from rollout.kubelet.runtimes.node_files import Files
from rollout.kubelet.runtimes.part import Assignment, Part

ROOT = "/etc/containerd/certs.d"
_SEVERAL = "containerd takes a config_path of several directories for one name while it pulls through its transfer service (#12415)"


def part(snapshot: Snapshot, config: Config, setting: Setting, row: Row) -> Part:
    """The hosts.toml of each registry, and ``config_path`` where containerd would not look there."""
    if snapshot.facts.keys() & {"hosts-truncated", "host-folders-truncated"}:
        raise LayoutError("layout-not-understood", "more hosts.toml than the agent tells")
    place = config.image_key("registry", row.key)
    now = str(place.value or row.default)
    _check_old_way(config, place)
    assignments, notes = _config_path(config, setting, place, now)
    root = str(assignments[0].value) if assignments else now
    wanted = setting.value if isinstance(setting.value, dict) else {}
    made = [_host(snapshot.files, root, host, wanted[host], setting) for host in sorted(wanted)]
    edits = tuple(edit for edit, _ in made if edit is not None)
    return Part(assignments, edits, (*notes, *(note for _, found in made for note in found)))


def _check_old_way(config: Config, place: Place) -> None:
    """``registry.mirrors`` or ``configs``: an error beside ``config_path``, or ignored by it (``ValidatePluginConfig``)."""
    if place.value:
        return
    for file in config.files:
        for table in (CRI_V2, CRI_V3):
            for key in ("mirrors", "configs"):
                if toml_edit.value_at(file.document, (*table, "registry", key)):
                    message = (
                        f"{file.path} sets registry.{key}, the old way, which does not go together with config_path"
                    )
                    raise LayoutError("containerd-old-mirrors", message)


def _config_path(
    config: Config, setting: Setting, place: Place, now: str
) -> tuple[tuple[Assignment, ...], tuple[str, ...]]:
    roots = [root for root in now.split(":") if root]
    if roots and (len(roots) == 1 or pull_mode.local_because(config)):
        return (), ()
    new = roots[0] if roots else ROOT
    why = reason("registry.config_path", str(place.value or "not set"), new, setting)
    return (Assignment(place.path, place.keys, new, why),), (_SEVERAL,) if roots else ()


def _host(
    files: Files, roots: str, host: str, endpoints: object, setting: Setting
) -> tuple[Edit | None, tuple[str, ...]]:
    path, notes = _path(files, [root for root in roots.split(":") if root], host)
    wanted = tuple(str(endpoint) for endpoint in endpoints) if isinstance(endpoints, list) else ()
    before = node_files.text(files, path)
    after = hosts_toml.merged(before or "", wanted, path)
    if after == (before or ""):
        return None, ()
    old = ", ".join(hosts_toml.hosts(before, path)) if before else ""
    why = reason(f"mirrors of {host}", old or "none", ", ".join(hosts_toml.hosts(after, path)), setting)
    edit = Edit(path, None if before is None else before.encode(), after.encode(), (why,))
    certificates = f"{path} is new: certificates lying beside it are no longer read unless it names them"
    return edit, (*notes, certificates) if before is None else notes


def _path(files: Files, roots: list[str], host: str) -> tuple[str, tuple[str, ...]]:
    """The first directory that containerd finds for this host (``hostPaths``), or the one that rollout makes for it."""
    names = (*_names(host), "_default")
    for root in roots:
        found = next((name for name in names if node_files.is_there(files, f"{root}/{name}")), "")
        if found == "_default":
            return f"{root}/{host}/hosts.toml", (f"{host} no longer goes by {root}/_default, which spoke for it",)
        if found:
            return f"{root}/{found}/hosts.toml", ()
    return f"{roots[0]}/{host}/hosts.toml", ()


def _names(host: str) -> tuple[str, ...]:
    """``registry:5000`` may lie in ``registry_5000_``, which comes first (``hostDirectory``)."""
    name, colon, port = host.rpartition(":")
    return (f"{name}_{port}_", host) if colon and name else (host,)
