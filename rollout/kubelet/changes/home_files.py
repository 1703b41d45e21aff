"""Which files a change may write and which units it may touch: homes of settings, recognised by name and content.

A plan is a file that travels. Its digest detects damage, not a forger who seals it again. So a plan that is read from a
file is checked against these rules, which are rollout's own: nothing in the plan can widen them. They are wider than
one node needs, since a unit may give its files any name. The agent checks each path against the names that its own node
uses, right before the write.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from rollout.core.model.plan import Change, FileChange
from rollout.core.text.terminal import printable
from rollout.kubelet.changes import splice
from rollout.kubelet.changes.field_homes import KIND, OWN_DROP_IN
from rollout.kubelet.edits import MODE
from rollout.kubelet.node import arguments, env_file, layout
from rollout.kubelet.node.layout import LayoutError
from rollout.kubelet.runtimes.known import KNOWN

RESTARTED = frozenset({layout.UNIT}).union(*(runtime.restarted for runtime in KNOWN))
HUNG_UP = frozenset[str]().union(*(runtime.hung_up for runtime in KNOWN))

_OUR_DROP_INS = frozenset({layout.DROP_IN}).union(*(runtime.drop_ins for runtime in KNOWN))
_PLAIN = re.compile(r"(?:/[A-Za-z0-9_.:@%+=,-]+){2,}")  # the paths that the agent accepts
_MOST_VARIABLES = 16  # a kubelet's flags are in a few; each costs a reading of the file
_NO_HOME = (
    "it is not a home of a setting: not a configuration file of the kubelet, a container runtime or a registry, not an"
    " environment file in which only flags change, and not a systemd drop-in of rollout"
)


def foreign_files(change: Change, blobs: Mapping[str, bytes]) -> tuple[str, ...]:
    """Each file that no change of rollout writes: its path and why not. ``blobs``: digest → content."""
    found = ((file.path, _why_not(file, change, blobs)) for file in change.files)
    return tuple(f"{printable(path)}: {why}" for path, why in found if why)


def foreign_units(change: Change) -> tuple[str, ...]:
    """The units that no change of rollout restarts or sends a SIGHUP."""
    units = [*(unit for unit in change.units if unit not in RESTARTED)]
    return tuple(printable(unit) for unit in [*units, *(unit for unit in change.hangups if unit not in HUNG_UP)])


def _why_not(file: FileChange, change: Change, blobs: Mapping[str, bytes]) -> str:
    path = file.path
    if not _PLAIN.fullmatch(path) or {".", ".."} & set(path.split("/")):
        return "it is not an absolute path of plain letters"
    if file.mode != MODE:
        return f"it would be created with mode {printable(file.mode, 20)}; rollout creates files with {MODE}"
    if path in _OUR_DROP_INS or _is_kubelet_config(path, blobs[file.after], change):
        return ""
    try:
        before, after = (blobs[name].decode() if name else "" for name in (file.before, file.after))
    except UnicodeDecodeError:
        return _NO_HOME
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
    if len(changed) > _MOST_VARIABLES:
        return False
    text = before
    for name, value in changed.items():
        text = env_file.assign(text, name, value)
    return bool(changed) and text == after and all(_only_flags(value) for value in changed.values())


def _only_flags(value: str) -> bool:
    words = arguments.split(value)
    return not words or words[0].text.startswith("-")
