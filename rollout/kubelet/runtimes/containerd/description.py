"""containerd: keys of config.toml or of a file that it imports, and hosts.toml (``mirrors``).

Read in the sources of 1.6.39, 1.7.0, 1.7.10, 2.0.0, 2.1.0, 2.2.0 and 2.3.4 (``internal/cri/config``,
``plugins/transfer``). The file and table are found on the node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rollout.core.model.plan import Change, FileChange
from rollout.core.model.playbook import Disruption
from rollout.core.model.settings import Setting, Value
from rollout.core.model.snapshot import Snapshot
from rollout.kubelet.intents import DEADLINE, DOWNLOADS, MIRRORS
from rollout.kubelet.node.layout import LayoutError
from rollout.kubelet.runtimes import direction, service, toml_edit
from rollout.kubelet.runtimes.containerd import configuration, mirrors, stand_in
from rollout.kubelet.runtimes.containerd.configuration import Config, KeyPlace
from rollout.kubelet.runtimes.description import (
    FIRST,
    CutWords,
    Daemon,
    Description,
    Number,
    PullMessage,
    PullStep,
    PullTool,
    Row,
    Runtime,
    SilentPart,
    VersionedText,
    Wanted,
)
from rollout.kubelet.runtimes.outcome import Part, TomlKey
from rollout.kubelet.values import reason

_UNIT = "containerd.service"
_TRANSFER_DEADLINE = (
    "imagePullProgressDeadline covers only layers that report progress, from containerd 2.1 on (transfer service):"
    " it does not end a pull that hangs before the first layer"
)
_TRANSFER_TABLE = (
    "maxConcurrentDownloads is set in the transfer service's table: in the CRI's, containerd 2.1 and later would fall"
    " back to local pulls"
)


def _change(snapshot: Snapshot, wanted: Wanted) -> Change:
    """The change for these intents on this containerd: config.toml is read at its start, hosts.toml at each pull."""
    version = CONTAINERD.version(snapshot.runtimes)
    if version is None:
        raise LayoutError("runtime-version-unknown", "the node does not report its containerd version")
    config = configuration.load(snapshot, service.find(snapshot, _UNIT), version)
    parts = [_part(snapshot, config, setting) for _, setting in sorted(wanted.items())]
    assignments = tuple(each for part in parts for each in part.assignments)
    files = (*_written(config, assignments), *(file for part in parts for file in part.files))
    notes = tuple(note for part in parts for note in part.notes)
    if not assignments:
        return Change(files, notes=notes)
    return Change(files, units=(_UNIT,), disruption=Disruption.RESTART_RUNTIME, notes=notes)


def _part(snapshot: Snapshot, config: Config, setting: Setting) -> Part:
    row = CONTAINERD.row(setting.name, config.containerd)
    if row is None or row.refusal:
        raise LayoutError(
            "setting-unsupported", row.refusal if row else f"rollout does not know containerd {config.containerd.text}"
        )
    if setting.name == MIRRORS:
        return mirrors.part(snapshot, config, setting, row)
    return _KEYS[setting.name](config, setting, row)


def _deadline(config: Config, setting: Setting, row: Row) -> Part:
    trap = () if configuration.local_because(config) else (_TRANSFER_DEADLINE,)
    return _key(setting, row, config.image_key(row.key), trap)


def _downloads(config: Config, setting: Setting, row: Row) -> Part:
    """Sets the table that this containerd reads: the transfer service's, or the CRI's where it pulls locally."""
    local = configuration.local_because(config)
    if not local:
        return _key(setting, row, config.transfer_key(row.key), (_TRANSFER_TABLE,))
    place = config.image_key(row.key)
    if config.containerd.number < (2, 1, 0):
        return _key(setting, row, place, ())
    if local == (row.key,) and str(setting.value) == row.default:
        message = f"{row.key} in the CRI's table of {place.path} keeps containerd on local pulls; the value 3 would end that. Remove the key by hand"
        raise LayoutError("containerd-config", message)
    return _key(setting, row, place, (f"this containerd pulls locally because of {', '.join(local)}",))


def _key(setting: Setting, row: Row, place: KeyPlace, traps: tuple[str, ...]) -> Part:
    """Sets one key; nothing where the file or the default already has the value."""
    if place.value is not None and direction.same(setting, place.value):
        return Part()
    default = int(row.default) if isinstance(setting.value, int) else row.default
    if place.value is None and direction.same(setting, default) and not setting.pin:
        return Part(notes=(direction.by_default(setting, row.default, "containerd"),))
    now = row.default if place.value is None else place.value
    origin = "containerd's default" if place.value is None else place.path
    old = "not set" if place.value is None else str(place.value)
    why = reason(row.key, old, str(setting.value), setting)
    value = setting.value if isinstance(setting.value, int) else str(setting.value)
    assignment = TomlKey(place.path, place.keys, value, why)
    return Part((assignment,), notes=(direction.direction(setting, now, origin), *traps))


def _values(snapshot: Snapshot) -> Mapping[str, Value]:
    """Keys of the CRI's image table and of the transfer service's, with the defaults of this version.

    ``local_pull``: it pulls as a client of its own. ``registry_mirrors``: the deprecated table.
    """
    version = CONTAINERD.version(snapshot.runtimes)
    if version is None:
        raise LayoutError("runtime-version-unknown", "the node does not report its containerd version")
    config = configuration.load(snapshot, service.find(snapshot, _UNIT), version)
    deadline, paths = CONTAINERD.row(DEADLINE, version), CONTAINERD.row(MIRRORS, version)
    local = bool(configuration.local_because(config))
    downloads = (
        config.image_key(configuration.DOWNLOADS_KEY) if local else config.transfer_key(configuration.DOWNLOADS_KEY)
    )
    found: dict[str, Value] = {
        "local_pull": local,
        "image_pull_progress_timeout": config.image_key("image_pull_progress_timeout").value,
        "config_path": config.image_key("registry", "config_path").value,
        "registry_mirrors": config.image_key("registry", "mirrors").value,
        "snapshotter": config.image_key("snapshotter").value,
        configuration.DOWNLOADS_KEY: downloads.value,
        "concurrent_layer_fetch_buffer": config.transfer_key("concurrent_layer_fetch_buffer").value,
        "max_concurrent_unpacks": config.transfer_key("max_concurrent_unpacks").value,
    }
    rows = (deadline, "image_pull_progress_timeout"), (paths, "config_path")
    defaults = {key: row.default for row, key in rows if row is not None and row.default}
    return {key: defaults.get(key) if value is None else value for key, value in found.items()}


_KEYS: Mapping[str, Callable[[Config, Setting, Row], Part]] = {DEADLINE: _deadline, DOWNLOADS: _downloads}


def _written(config: Config, assignments: tuple[TomlKey, ...]) -> tuple[FileChange, ...]:
    """Each file once, with all its keys."""
    written = []
    for file in config.files:
        ours = [each for each in assignments if each.path == file.path]
        text = f"version = {file.version}\n" if config.made else file.text
        for each in ours:
            text = toml_edit.assign(text, each.keys, each.value, each.path)
        before = None if config.made else file.text.encode()
        if ours:
            written.append(FileChange(file.path, before, text.encode(), tuple(each.reason for each in ours)))
    return tuple(written)


def _is_hosts(path: str, text: str) -> bool:
    return path.endswith("/hosts.toml") and bool(mirrors.hosts(text, path))


def _is_config(path: str, text: str) -> bool:
    return isinstance(toml_edit.read(text, path).get("plugins"), dict)


_END: Number = (3, 0, 0)
_IMAGES = "the CRI images table of /etc/containerd/config.toml"
_TRANSFER_PLACE = "[plugins.'io.containerd.transfer.v1.local'] of /etc/containerd/config.toml"
_HOSTS = "/etc/containerd/certs.d/HOST/hosts.toml"
_NO_TIMEOUT = (
    "image_pull_progress_timeout exists from containerd 1.7.0; an older one ignores it and pulls without a limit"
)
_NO_CONFIG_PATH = "registry.config_path exists from containerd 1.5.0; an older one does not read hosts.toml"


def _none(intent: str, before: Number, refusal: str) -> Row:
    return Row(intent, Runtime.CONTAINERD, FIRST, before, refusal=refusal)


def _deadlines(since: Number, before: Number, default: str) -> Row:
    key, restart = "image_pull_progress_timeout", Disruption.RESTART_RUNTIME
    return Row(DEADLINE, Runtime.CONTAINERD, since, before, key, default, _IMAGES, _UNIT, restart)


def _limits(since: Number, before: Number, place: str) -> Row:
    key, restart = configuration.DOWNLOADS_KEY, Disruption.RESTART_RUNTIME
    return Row(DOWNLOADS, Runtime.CONTAINERD, since, before, key, "3", place, _UNIT, restart)


def _config_paths(since: Number, before: Number, default: str) -> Row:
    return Row(MIRRORS, Runtime.CONTAINERD, since, before, "config_path", default, _HOSTS, _UNIT)


DAEMON = Daemon(
    _UNIT,
    "containerd",
    stand_in.DAEMON,
    logs_requests=True,
    agent_part="containerd",
    keepers=("containerd-shim",),  # containerd-shim-runc-v2 and those of other runtimes, cut off
    embedded_log=stand_in.EMBEDDED_LOG,
)
_IMAGE = r'"(?P<image>[^"]+)"'
# internal/cri/server/images/image_pull.go, and pkg/cri of 1.x.
_LOGS = (
    PullMessage(
        PullStep.CUT,
        "cancel pulling image ",
        r"(?P<image>\S+) because of no progress in (?P<deadline>\S+)",
        by="containerd",
    ),
    PullMessage(
        PullStep.ENDED, "PullImage ", rf"{_IMAGE} returns image reference ", behind=" returns image reference "
    ),
    PullMessage(PullStep.ENDED, "PullImage ", rf"{_IMAGE} failed(?P<failed>)", behind=" failed"),
    PullMessage(PullStep.RECEIVED, "PullImage ", rf"{_IMAGE}$"),
    PullMessage(
        PullStep.ENDED,
        "Pulled image ",
        rf'{_IMAGE} with image id .*, size "(?P<size>\d+)" in (?P<took>[\d.hmnuµs]+)',
        behind="with image id",
    ),
    PullMessage(
        PullStep.STOPPED,
        "stop pulling image ",
        r"(?P<image>\S+): active requests=(?P<requests>\d+), bytes read=(?P<bytes>\d+)",
    ),
    PullMessage(PullStep.NEXT_HOST, "trying next host", "$"),
    PullMessage(PullStep.NEXT_HOST, "trying next host", r" after status: (?P<error>\d{3} .*)"),
    PullMessage(PullStep.NEXT_HOST, "trying next host", r" - response was http\.StatusNotFound$"),
    PullMessage(PullStep.NEXT_HOST, "fetch failed", "$"),  # of the last host, from 2.1 on
    PullMessage(
        PullStep.UNLIMITED, "no timeout and will not start pulling image ", r"(?P<image>\S+) reporter$", by="containerd"
    ),
    PullMessage(PullStep.STARTED, "starting containerd", "$", by="containerd"),
)
_TRANSFER: Number = (2, 1, 0)
"""From here on the transfer service pulls, unless ``use_local_image_pull`` or a key of the old table is set."""
_MIRROR = "Fix or remove that mirror in hosts.toml, which needs no restart."
_FIX_MIRROR = VersionedText(_MIRROR, unsure=_MIRROR)
# S: core/transfer and internal/cri/server/images/image_pull.go, 2.1 to 2.3; the issues name the versions.
_CUTS = CutWords(
    "containerd",
    line="cancel pulling image",
    ask_version="containerd --version",
    phases=("failed to pull and unpack image",),
    parts={
        SilentPart.UNPACK: VersionedText(
            "containerd 2.2 and later may count unpacking as silence (containerd#13909): `use_local_image_pull = true` of its CRI "
            "images plugin ends that, and a longer deadline only makes it rarer.",
            since=(2, 2, 0),
            unsure="Where it is containerd 2.2 or later, it may count unpacking as silence (containerd#13909): "
            "`use_local_image_pull = true` of its CRI images plugin ends that, and a longer deadline only makes it rarer.",
        ),
        SilentPart.CHUNK: VersionedText(
            "containerd 2.1 and later fetch a layer in chunks where `concurrent_layer_fetch_buffer` is set. A chunk that starves is "
            "counted as silence although bytes flow (containerd#12811). Without that key it does not occur.",
            since=_TRANSFER,
            unsure="Where it is containerd 2.1 or later, it fetches a layer in chunks if `concurrent_layer_fetch_buffer` is set. A chunk that "
            "starves is counted as silence although bytes flow (containerd#12811). Without that key it does not occur.",
        ),
        SilentPart.TRANSFER: VersionedText(
            "Where `concurrent_layer_fetch_buffer` is set, a chunk that starves while other bytes flow looks the same (containerd#12802).",
            since=_TRANSFER,
            unsure="In containerd 2.1 or later with `concurrent_layer_fetch_buffer`, a chunk that starves while other bytes flow looks the same "
            "(containerd#12802).",
        ),
        SilentPart.MIRROR: _FIX_MIRROR,
    },
    unlimited=VersionedText(
        "With the transfer service, the default of containerd 2.1 and later, a deadline of 0s blocks every pull at its first step "
        "(containerd#14158). With `use_local_image_pull = true` it only switches the deadline off.",
        since=_TRANSFER,
        unsure="From containerd 2.1 on, 0s blocks every pull at its first step where the transfer service pulls (containerd#14158). Before, "
        "and where containerd pulls locally, it only switches the deadline off.",
    ),
)
_TRAPS = {
    DEADLINE: (
        "unpacking does not count; from 2.1 on neither does resolving: a registry that hangs before the first byte may not be cut",
        "0s is off",
    ),
    DOWNLOADS: (
        "before 2.1, and where containerd pulls locally, it is a key of the CRI images table; a value other than 3 there makes containerd 2.1 and later pull locally",
    ),
    MIRRORS: (
        "files below config_path need no restart; a change of config_path itself does",
        "a config_path of several directories, the default from 2.2 on too, is taken for one name by the transfer service of 2.1 and later (containerd #12415)",
        "together with registry.mirrors in config.toml containerd does not start",
        "a mirror's path is the root of its API and is written with override_path = true; containerd would add /v2 to one that does not end so",
    ),
}

CONTAINERD = Description(
    Runtime.CONTAINERD,
    "containerd",
    _change,
    pull_tools=(PullTool.CRICTL, PullTool.CTR),
    end=_END,
    rows=(
        _none(DEADLINE, (1, 7, 0), _NO_TIMEOUT),
        _deadlines((1, 7, 0), (1, 7, 10), "1m0s"),
        _deadlines((1, 7, 10), _END, "5m0s"),
        _limits(FIRST, (2, 1, 0), _IMAGES),
        _limits((2, 1, 0), _END, _TRANSFER_PLACE),
        _none(MIRRORS, (1, 5, 0), _NO_CONFIG_PATH),
        _config_paths((1, 5, 0), (2, 2, 0), ""),
        _config_paths((2, 2, 0), _END, "/etc/containerd/certs.d:/etc/docker/certs.d"),
    ),
    labels=("containerd",),
    sockets=("containerd",),
    endpoint="unix:///run/containerd/containerd.sock",
    default_since=27,
    embedded="config-v3.toml.tmpl (config.toml.tmpl with containerd 1) in agent/etc/containerd of its data folder",
    usual_version="1.7.28",
    restarted=frozenset({_UNIT}),
    readers={DOWNLOADS: _UNIT, DEADLINE: _UNIT},
    is_home=(_is_hosts, _is_config),
    daemon=DAEMON,
    logs=_LOGS,
    id_scheme="containerd",
    negative_grace="containerd kills at once, without the time that the pod asked for (kubernetes#118172)",
    stop_asked=("StopContainer for ", r'"(?P<id>[0-9a-f]{6,64})" with timeout (?P<grace>-?\d{1,9}) \(s(?:econds)?\)'),
    kills_alone_before=(1, 2, 6),  # containerd/cri#1098
    cuts=_CUTS,
    traps=_TRAPS,
    stand_in=stand_in.RUNTIME,
    values=_values,
)
