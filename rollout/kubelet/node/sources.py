"""What a node's kubelet starts from, now and after a change: its snapshot and layout as
``configuration.outcome.Sources``.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Node
from rollout.core.model.snapshot import Snapshot
from rollout.core.text.terminal import printable
from rollout.kubelet.configuration import startup
from rollout.kubelet.configuration.outcome import File, KubeletOutcome, MessageLevel, Sources
from rollout.kubelet.node import arguments, fitness, layout
from rollout.kubelet.node.layout import LONGEST_PATH, Layout, LayoutError, text_of
from rollout.kubelet.versions import Version

DROP_INS_ALLOWED = "KUBELET_CONFIG_DROPIN_DIR_ALPHA"
"""The variable that kubelets 1.28 and 1.29 require in their environment before they accept ``--config-dir`` (KEP-3983).
"""

NODES_OWN = frozenset({"--hostname-override", "--node-ip"})
"""Flags that differ from node to node. A kubelet accepts any text, and its configuration does not depend on it."""

_CGROUP_V1 = {"v1": True, "v2": False}


def sources_of(snapshot: Snapshot, now: Layout) -> Sources:
    """The files, flags and environment that the kubelet would start from; ``LayoutError`` for what cannot be read."""
    # The variables that a kubelet looks up, as the running kubelet has them or the unit sets them.
    allowed = now.variables.get(DROP_INS_ALLOWED, "") or snapshot.facts.get("config-dir-alpha", "")
    return Sources(
        config=_config(snapshot, now),
        drop_ins=_drop_ins(snapshot, config_dir(now), now),
        flags=now.asked,
        environment={DROP_INS_ALLOWED: allowed} if allowed else {},
        cgroup_v1=_CGROUP_V1.get(snapshot.facts.get("cgroup", "")),
    )


def after(sources: Sources, then: Layout, written: Mapping[str, bytes]) -> Sources:
    """The same node once these files contain these bytes and its unit starts the command of ``then``."""
    config = sources.config
    path = then.config_path
    if path in written:
        config = File(path, written[path])
    drop_ins = sources.drop_ins
    directory = config_dir(then)
    if drop_ins is not None and directory:
        ours = {name: content for name, content in written.items() if name.startswith(directory + "/")}
        held = {file.path: file.content for file in drop_ins} | ours
        drop_ins = tuple(File(name, held[name]) for name in sorted(held, key=_walked))
    return replace(sources, config=config, drop_ins=drop_ins, flags=then.asked)


def config_dir(now: Layout) -> str:
    """The directory of ``--config-dir``, or ``""``."""
    directory = now.flag("--config-dir") or ""
    if not directory:
        return ""
    if not directory.startswith("/"):
        raise LayoutError(
            "layout-not-understood", f"--config-dir={printable(directory, LONGEST_PATH)} is not an absolute path"
        )
    return posixpath.normpath(directory)


def _config(snapshot: Snapshot, now: Layout) -> File | None:
    path = now.config_path
    if not path:
        return None
    if not path.startswith("/"):
        raise LayoutError("layout-not-understood", f"--config={printable(path, LONGEST_PATH)} is not an absolute path")
    return File(path, text_of(snapshot.files.get(path), path).encode())


def _drop_ins(snapshot: Snapshot, directory: str, now: Layout) -> tuple[File, ...] | None:
    """Every ``*.conf`` below the directory in the order in which the kubelet walks it (``filepath.WalkDir``).

    A copy that the next start makes anew has the content of its source.
    """
    if not directory:
        return None
    truncated = snapshot.facts.get("config-dir-truncated", "")
    if truncated:
        raise LayoutError(
            "config-dir-not-understood",
            f"{printable(directory, LONGEST_PATH)} contains more than the agent lists: {truncated}",
        )
    state = snapshot.files.get(directory)
    if state is None or state.kind != "directory":
        what = "is not in the snapshot; read the node again" if state is None else f"is not a directory ({state.kind})"
        raise LayoutError("config-dir-not-understood", f"--config-dir={printable(directory, LONGEST_PATH)} {what}")
    paths = [
        path
        for path, state in snapshot.files.items()
        if path.startswith(directory + "/") and path.endswith(".conf") and state.kind not in {"absent", "directory"}
    ]
    there = (path for path, state in snapshot.files.items() if state.kind not in {"absent", "directory"})
    copies = {copy: source for copy, source in now.copies(there).items() if copy.endswith(".conf")}
    read_from = {path: copies.get(path, path) for path in (*paths, *copies)}
    return tuple(
        File(path, text_of(snapshot.files.get(read_from[path]), read_from[path]).encode())
        for path in sorted(read_from, key=_walked)
    )


def _walked(path: str) -> tuple[str, ...]:
    return tuple(path.split("/"))


def outcome_of(version: Version, sources: Sources) -> KubeletOutcome:
    """The kubelet's outcome for these sources. Cached: a fleet has few distinct files, flags and versions."""
    environment = tuple(sorted(sources.environment.items()))
    return _outcome(
        version, sources.config, sources.drop_ins, _common_words(sources.flags), environment, sources.cgroup_v1
    )


def _common_words(words: tuple[str, ...]) -> tuple[str, ...]:
    """The command line without what distinguishes one node from another."""
    own = {at for flag in arguments.given(words) if flag.name in NODES_OWN for at in range(flag.start, flag.end)}
    return tuple(word for at, word in enumerate(words) if at not in own) if own else words


@lru_cache(maxsize=4096)
def _outcome(
    version: Version,
    config: File | None,
    drop_ins: tuple[File, ...] | None,
    flags: tuple[str, ...],
    environment: tuple[tuple[str, str], ...],
    cgroup_v1: bool | None,  # noqa: FBT001 - the host's, as in Sources; keys must be positional
) -> KubeletOutcome:
    return startup.outcome(version, Sources(config, drop_ins, flags, dict(environment), cgroup_v1))


# One node as planning sees it: how its kubelet is started, from what, and the kubelet's outcome.


@dataclass(frozen=True, slots=True)
class FitNode:
    """``outcome`` is the kubelet's outcome for ``sources`` today: it starts, else the node was refused."""

    node: Node
    snapshot: Snapshot
    version: Version
    layout: Layout
    sources: Sources
    outcome: KubeletOutcome


def find(snapshot: Snapshot, version: Version, node: Node) -> FitNode:
    """What was found, or ``LayoutError``. A kubelet that runs although we expect that it would not start is not
    understood.
    """
    now = layout.find(snapshot)
    if now.flag("--dynamic-config-dir"):
        text = f"--dynamic-config-dir={now.flag('--dynamic-config-dir')}"
        raise LayoutError("config-dir-in-use", f"{text}: the kubelet's configuration comes from the API server")
    given = sources_of(snapshot, now)
    outcome = outcome_of(version, given)
    if not outcome.starts:
        fitness.check(now, ())
        message = (
            f"this kubelet runs, but by rollout's check it would not start with the files on the node: {fatal(outcome)}"
        )
        raise LayoutError("config-not-understood", message)
    return FitNode(node, snapshot, version, now, given, outcome)


def ignored(snapshot: Snapshot, version: Version) -> str:
    """For a refusal: what this kubelet ignores of its files as they are now, and where; ``""`` if it cannot be known."""
    try:
        outcome = outcome_of(version, sources_of(snapshot, layout.find(snapshot)))
    except LayoutError:
        return ""
    if not outcome.starts:
        return ""
    warnings = [each for each in outcome.messages if each.level is MessageLevel.WARNING]
    if not outcome.ignored and not warnings:
        return "; as far as rollout knows, its files as they are now contain nothing that it would ignore"
    what = ", ".join(outcome.ignored or dict.fromkeys(" ".join(each.text.split()) for each in warnings))
    places = [each.place for each in warnings if each.place]
    where = ", ".join(dict.fromkeys(f"{place.file}:{place.line}:{place.column}" for place in places[:MOST_PLACES]))
    return printable(f": {what}{f' ({where})' if where else ''}", MOST_IGNORED)


MOST_PLACES = 5
MOST_IGNORED = 1000
"""Characters of what a refusal says is ignored."""


def fatal(outcome: KubeletOutcome) -> str:
    """Why the kubelet does not start, with its own messages."""
    fatal_texts = [message.text for message in outcome.messages if message.level is MessageLevel.FATAL]
    return "; ".join(fatal_texts) or "no reason given"
