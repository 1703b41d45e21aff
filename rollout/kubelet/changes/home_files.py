"""The files that are homes of settings: which one a node's fields go into, and which ones a change may write at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field

from rollout.core.model.frozen import dataclass
from rollout.core.model.plan import MODE, Change, FileChange
from rollout.core.model.settings import Setting, Value
from rollout.core.text.terminal import printable
from rollout.kubelet import values
from rollout.kubelet.changes import splice
from rollout.kubelet.configuration.outcome import File, Layer
from rollout.kubelet.homes import InFlag
from rollout.kubelet.node import arguments, env_file, layout, rancher, sources
from rollout.kubelet.node.layout import LayoutError, text_of
from rollout.kubelet.node.sources import FitNode
from rollout.kubelet.runtimes.known import KNOWN
from rollout.kubelet.values import reason

# Which file a node's fields go into, the least invasive first.
#
# A kubelet with ``--config-dir`` gets a drop-in of ours there, and its own file stays unchanged. Where a drop-in
# cannot do it (a kubelet 1.28 merges no zero values), the fields go into the ``--config`` file. A kubelet with
# neither gets a new ``--config`` file if the playbook accepts that this changes defaults. ``--config-dir`` itself
# is never added: from 1.32 on it resets lists that are explicitly empty.


OWN_DROP_IN = "99-rollout.conf"
NEW_CONFIG = "/var/lib/kubelet/config.yaml"
KIND = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
HEADER = (
    "# Written by rollout; fields of your own belong in a file of your own.\n"
    + "".join(f"{name}: {value}\n" for name, value in KIND.items())
).encode()

PULLS, SERIAL = "maxParallelImagePulls", "serializeImagePulls"
_BESIDE = Setting(SERIAL, value=False, source=f"required by {PULLS} in a drop-in")


@dataclass(frozen=True, slots=True)
class FieldHome:
    """The file; ``content`` is ``None`` when it does not exist yet. ``below``: what files set that it overrides."""

    path: str
    content: bytes | None
    layer: Layer
    below: Mapping[str, Value] = field(default_factory=dict)

    @property
    def flags(self) -> tuple[InFlag, ...]:
        """The additional flags that make the kubelet read the file."""
        is_new = self.layer is Layer.FILE and self.content is None
        return (InFlag("--config", self.path, "string"),) if is_new else ()

    def edit(self, fields: Mapping[str, Value], settings: Mapping[str, Setting], template: str) -> FileChange | None:
        """The file with these fields merged in, or ``None`` if it already contains them."""
        before = HEADER if self.content is None else self.content
        try:
            spliced = splice.splice(before, splice.written(fields), values.same)
        except splice.SpliceError as error:
            raise LayoutError(error.reference, f"{self.path}: {error}") from None
        if spliced.content == self.content:
            return None
        reasons = tuple(
            _reason(path, _at(dict(self.below), path) if old is None else old, new, settings, template)
            for path, old, new in spliced.changed
        )
        return FileChange(self.path, self.content, spliced.content, reasons)


def homes(fit: FitNode) -> tuple[FieldHome, ...]:
    """Possible homes of fields on this node, in the order to try; the last resort is a new ``--config`` file."""
    homes = [_main(fit.sources.config)] if fit.sources.config is not None else []
    if fit.sources.drop_ins is not None:
        homes = [_drop_in(fit, sources.config_dir(fit.layout)), *homes]
    return tuple(homes) or (_new(fit),)


def _main(config: File) -> FieldHome:
    try:
        document = splice.read(config.content)
    except splice.SpliceError as error:
        raise LayoutError(error.reference, f"{config.path}: {error}") from None
    for name, value in KIND.items():
        if document.get(name) != value:
            message = f"{config.path} sets {name}: {document.get(name)!r}, not {value}"
            raise LayoutError("not-a-kubelet-config", message)
    return FieldHome(config.path, config.content, Layer.FILE)


def _drop_in(fit: FitNode, directory: str) -> FieldHome:
    path = f"{directory}/{OWN_DROP_IN}"
    held = {file.path: file.content for file in fit.sources.drop_ins or ()}
    by_file = (name for name, origin in fit.outcome.origins.items() if origin.layer in {Layer.FILE, Layer.DROP_IN})
    below = {name: fit.outcome.effective.get(name) for name in by_file}
    return FieldHome(path, held.get(path), Layer.DROP_IN, below)


def _new(fit: FitNode) -> FieldHome:
    state = fit.snapshot.files.get(NEW_CONFIG)
    if state is not None and state.kind == "absent":
        return FieldHome(NEW_CONFIG, None, Layer.FILE)
    if state is not None:
        text_of(state, NEW_CONFIG)
    what = "exists but is not used by this kubelet" if state is not None else "is not in the snapshot"
    raise LayoutError("no-config-file", f"the kubelet has no --config, and {NEW_CONFIG} {what}")


def beside(
    home: FieldHome, fields: Mapping[str, Value], fit: FitNode
) -> tuple[Mapping[str, Value], Mapping[str, Setting]]:
    """Fields that a drop-in requires in addition. The base already has its defaults when it is merged, so
    ``maxParallelImagePulls`` above 1 meets ``serializeImagePulls: true`` there and the kubelet would not start (seen on
    1.36.3). An explicitly written ``true`` is not overridden.
    """
    pulls = fields.get(PULLS)
    origin = fit.outcome.origins.get(SERIAL)
    said_true = fit.outcome.effective.get(SERIAL) is True and origin is not None and origin.layer is not Layer.DEFAULT
    if home.layer is not Layer.DROP_IN or not isinstance(pulls, int) or pulls < 2 or SERIAL in fields or said_true:
        return fields, {}
    return {**fields, SERIAL: False}, {SERIAL: _BESIDE}


def _at(found: Value, path: tuple[str, ...]) -> Value:
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _reason(path: tuple[str, ...], old: Value, new: Value, settings: Mapping[str, Setting], template: str) -> str:
    setting = settings.get(path[0]) or Setting(path[0], new, source=f"template {template}")
    return reason(".".join(path), "not set" if old is None else values.shown(old), values.shown(new), setting)


# Which files a change may write and which units it may touch: homes of settings, recognised by name and content.
#
# A plan is a file that travels. Its digest detects damage, not a forger who seals it again. So a plan that is read from
# a file is checked against these rules, which are rollout's own: nothing in the plan can widen them. They are wider
# than one node needs, since a unit may give its files any name. The agent checks each path against the names that its
# own node uses, right before the write.


RESTARTED = layout.KUBELET_UNITS.union(*(runtime.restarted for runtime in KNOWN))
HUNG_UP = frozenset[str]().union(*(runtime.hung_up for runtime in KNOWN))

_OUR_DROP_INS = frozenset({layout.DROP_IN}).union(*(runtime.drop_ins for runtime in KNOWN))
_OUR_ARGUMENTS = frozenset(each.own_file for each in rancher.EMBEDDINGS.values())
_PLAIN = re.compile(r"(?:/[A-Za-z0-9_.:@%+=,-]+){2,}")  # the paths that the agent accepts
_MOST_VARIABLES = 16  # a kubelet's flags are in a few; each costs a reading of the file
_NO_HOME = (
    "it is not a home of a setting: not a configuration file of the kubelet, a container runtime or a registry, not an"
    " environment file in which only flags change, and not a systemd drop-in of rollout"
)


def foreign_files(change: Change) -> tuple[str, ...]:
    """Each file that no change of rollout writes: its path and why not."""
    refusals = ((file.path, _why_not(file, change)) for file in change.files)
    return tuple(f"{printable(path)}: {why}" for path, why in refusals if why)


def foreign_units(change: Change) -> tuple[str, ...]:
    """The units that no change of rollout restarts or sends a SIGHUP."""
    units = [*(unit for unit in change.units if unit not in RESTARTED)]
    return tuple(printable(unit) for unit in [*units, *(unit for unit in change.hangups if unit not in HUNG_UP)])


def _why_not(file: FileChange, change: Change) -> str:
    path = file.path
    if not _PLAIN.fullmatch(path) or {".", ".."} & set(path.split("/")):
        return "it is not an absolute path of plain letters"
    if file.mode != MODE:
        return f"it would be created with mode {printable(file.mode, 20)}; rollout creates files with {MODE}"
    if path in _OUR_DROP_INS or _is_kubelet_config(path, file.after, change):
        return ""
    try:
        before, after = (file.before or b"").decode(), file.after.decode()
    except UnicodeDecodeError:
        return _NO_HOME
    if path in _OUR_ARGUMENTS:
        return "" if rancher.is_ours(after) else f"it would hold more than {rancher.KEY}+"
    by_runtime = any(_holds(is_home, path, after) for runtime in KNOWN for is_home in runtime.is_home)
    return "" if by_runtime or _holds(_is_environment, before, after) else _NO_HOME


def _is_kubelet_config(path: str, content: bytes, change: Change) -> bool:
    if path != change.config_path and not path.endswith(f"/{OWN_DROP_IN}"):
        return False
    try:
        document = splice.read(content)
    except splice.SpliceError:
        return False
    return all(document.get(name) == value for name, value in KIND.items())


def _holds(kind: Callable[[str, str], bool], *of: str) -> bool:
    try:
        return kind(*of)
    except (LayoutError, ValueError):
        return False


def _is_environment(before: str, after: str) -> bool:
    """Whether the two differ only in assignments of flags, or in assignments that are now empty."""
    old, new = env_file.values(before), env_file.values(after)
    changed = {name: value for name, value in new.items() if old.get(name) != value}
    if before == after:  # a change that only restarts
        return any(value and _only_flags(value) for value in new.values())
    if len(changed) > _MOST_VARIABLES:
        return False
    text = before
    for name, value in changed.items():
        text = env_file.assign(text, name, value)
    return bool(changed) and text == after and all(_only_flags(value) for value in changed.values())


def _only_flags(value: str) -> bool:
    words = arguments.split(value)
    return not words or words[0].text.startswith("-")
