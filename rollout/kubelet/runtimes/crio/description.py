"""CRI-O: the progress deadline in our drop-in under crio.conf.d, in force unless a later place sets another value.

``internal/criocli`` and ``pkg/config`` (1.30.11 to 1.36.3): crio.conf, then every file under crio.conf.d in lexical
order, then environment (``CONTAINER_PULL_PROGRESS_TIMEOUT``) and flags; the later wins. SIGHUP does not reload this key
(``pkg/config/reload.go``), so crio restarts. Keys and defaults: ``pkg/config/config.go`` of 1.30.10 to 1.36.3.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

from rollout.core.model.frozen import dataclass
from rollout.core.model.plan import Change, FileChange
from rollout.core.model.playbook import Disruption
from rollout.core.model.settings import Setting, Value
from rollout.core.model.snapshot import Snapshot
from rollout.kubelet.intents import DEADLINE, DOWNLOADS, MIRRORS
from rollout.kubelet.node.layout import LayoutError
from rollout.kubelet.runtimes import direction, node_files, service, toml_edit
from rollout.kubelet.runtimes.crio import stand_in
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
    Wanted,
)
from rollout.kubelet.runtimes.service import Command
from rollout.kubelet.values import reason

_UNIT = "crio.service"
MAIN, DIRECTORY = "/etc/crio/crio.conf", "/etc/crio/crio.conf.d"
DROP_IN = f"{DIRECTORY}/99-rollout.conf"
_TABLE = ("crio", "image")
_ELSEWHERE = (("config", "c", "CONTAINER_CONFIG", MAIN), ("config-dir", "d", "CONTAINER_CONFIG_DIR", DIRECTORY))
_SHORT = "the default of 10s in this CRI-O ends pulls that pause; 1.30.14, 1.31.9 and 1.32.4 turned it off again"


@dataclass(frozen=True, slots=True)
class _Said:
    """The value in force and its place; ``value`` is ``None`` where only the default applies."""

    value: Any
    path: str


def _change(snapshot: Snapshot, wanted: Wanted) -> Change:
    """The drop-in and a restart of crio, nothing where the value is in force, or ``LayoutError``."""
    version = CRIO.version(snapshot.runtimes)
    if version is None:
        raise LayoutError("runtime-version-unknown", "the node does not report its CRI-O version")
    row = CRIO.row(DEADLINE, version)
    if row is None or row.refusal:
        raise LayoutError("setting-unsupported", row.refusal if row else f"rollout does not know CRI-O {version.text}")
    setting, command = wanted[DEADLINE], service.find(snapshot, _UNIT)
    _check_where(command)
    said = _said(snapshot, command, row)
    if said.value is not None and direction.same(setting, said.value):
        return Change()
    if said.value is None and direction.same(setting, row.default) and not setting.pin:
        return Change(notes=(direction.by_default(setting, row.default, "CRI-O"),))
    return _written(snapshot, setting, row, said)


def _values(snapshot: Snapshot) -> Mapping[str, Value]:
    version, command = CRIO.version(snapshot.runtimes), service.find(snapshot, _UNIT)
    row = CRIO.row(DEADLINE, version)
    if row is None:
        raise LayoutError("runtime-version-unknown", "the node does not report a CRI-O version that rollout knows")
    if row.refusal:
        return {}
    _check_where(command)
    said = _said(snapshot, command, row).value
    return {row.key: row.default if said is None else said}


def _check_where(command: Command) -> None:
    for name, short, variable, usual in _ELSEWHERE:
        told = command.go_flag(name, short) or command.variables.get(variable)
        if told and posixpath.normpath(told) != usual:
            raise LayoutError("crio-config-elsewhere", f"crio runs with --{name} {told}; rollout supports only {usual}")


def _said(snapshot: Snapshot, command: Command, row: Row) -> _Said:
    """Flags override the environment, the environment overrides files, the last file wins."""
    variable, flagged = "CONTAINER_PULL_PROGRESS_TIMEOUT", command.go_flag("pull-progress-timeout")
    if flagged is not None:
        return _Said(flagged, "--pull-progress-timeout on crio's command line")
    if command.variables.get(variable):
        return _Said(command.variables[variable], f"{variable} in crio's environment")
    found = _Said(None, "CRI-O's default")
    for path in (MAIN, *_drop_ins(snapshot)):
        text = node_files.text(snapshot.files, path)
        value = None if text is None else toml_edit.value_at(toml_edit.read(text, path), (*_TABLE, row.key))
        found = found if value is None else _Said(f"{value}ns" if type(value) is int else value, path)
    return found


def _drop_ins(snapshot: Snapshot) -> tuple[str, ...]:
    if "crio-conf-truncated" in snapshot.facts:
        raise LayoutError("layout-not-understood", f"{DIRECTORY} contains more files than the agent lists")
    return node_files.below(snapshot.files, DIRECTORY)


def _written(snapshot: Snapshot, setting: Setting, row: Row, said: _Said) -> Change:
    """Writes our drop-in, unless the current place would override it."""
    in_directory = said.path.startswith(f"{DIRECTORY}/")
    beaten = said.path.split("/") > DROP_IN.split("/") if in_directory else said.value is not None and said.path != MAIN
    if beaten:
        raise LayoutError(
            "crio-config-shadowed", f"{said.path} sets {row.key} to {said.value} and would override {DROP_IN}"
        )
    before = node_files.text(snapshot.files, DROP_IN)
    after = toml_edit.assign(before or "", (*_TABLE, row.key), str(setting.value), DROP_IN)
    now = row.default if said.value is None else said.value
    why = reason(row.key, "not set" if said.value is None else str(said.value), str(setting.value), setting)
    edit = FileChange(DROP_IN, None if before is None else before.encode(), after.encode(), (why,))
    notes = (direction.direction(setting, now, said.path), *((_SHORT,) if row.default == "10s" else ()))
    return Change((edit,), units=(_UNIT,), disruption=Disruption.RESTART_RUNTIME, notes=notes)


_END: Number = (2, 0, 0)
_NO_KEY = "pull_progress_timeout exists from 1.30.11, 1.31.3 and 1.32.0; this CRI-O has no such key"
_NO_DOWNLOADS = "rollout knows no limit on concurrent downloads for CRI-O"
_NO_MIRRORS = "on CRI-O mirrors are set in /etc/containers/registries.conf.d; rollout does not write it"


def _none(intent: str, since: Number, before: Number, refusal: str) -> Row:
    return Row(intent, Runtime.CRIO, since, before, refusal=refusal)


def _deadline(since: Number, before: Number, default: str) -> Row:
    key, restart = "pull_progress_timeout", Disruption.RESTART_RUNTIME
    return Row(DEADLINE, Runtime.CRIO, since, before, key, default, DROP_IN, _UNIT, restart)


DAEMON = Daemon(_UNIT, "crio", stand_in.DAEMON, logs_requests=True, agent_part="crio", keepers=("conmon", "conmonrs"))

CRIO = Description(
    Runtime.CRIO,
    "crio",
    _change,
    pull_tools=(PullTool.CRICTL,),
    end=_END,
    rows=(
        _none(DEADLINE, FIRST, (1, 30, 11), _NO_KEY),
        _deadline((1, 30, 11), (1, 30, 14), "10s"),
        _deadline((1, 30, 14), (1, 31, 0), "0s"),
        _none(DEADLINE, (1, 31, 0), (1, 31, 3), _NO_KEY),
        _deadline((1, 31, 3), (1, 31, 9), "10s"),
        _deadline((1, 31, 9), (1, 32, 0), "0s"),
        _deadline((1, 32, 0), (1, 32, 4), "10s"),
        _deadline((1, 32, 4), _END, "0s"),
        _none(DOWNLOADS, FIRST, _END, _NO_DOWNLOADS),
        _none(MIRRORS, FIRST, _END, _NO_MIRRORS),
    ),
    labels=("cri-o", "crio"),
    sockets=("crio",),
    endpoint="unix:///var/run/crio/crio.sock",
    usual_version="1.30.14",
    restarted=frozenset({_UNIT}),
    drop_ins=frozenset({DROP_IN}),
    readers={DEADLINE: _UNIT},
    daemon=DAEMON,
    logs=(
        PullMessage(
            PullStep.CUT,
            "Timed out on waiting up to ",
            r"(?P<deadline>\S+) for image pull progress updates",
            by="CRI-O",
        ),
        PullMessage(PullStep.RECEIVED, "Pulling image: ", r"(?P<image>\S+)"),
        PullMessage(
            PullStep.ENDED, "Pulled image: ", r"(?P<image>\S+)"
        ),  # its digest; server/image_pull.go, 1.18 to 1.36
        PullMessage(
            PullStep.ASKED, "Trying to access ", r'"(?P<image>(?P<host>[\w.-]{1,253}(?::\d{1,5})?)/[^"]{1,512})"$'
        ),
        PullMessage(PullStep.STARTED, "Starting CRI-O, version: ", r"(?P<version>\d+\.\d+\.\d+)", by="CRI-O"),
    ),
    id_scheme="cri-o",
    stop_asked=("Stopping container: ", r"(?P<id>[0-9a-f]{6,64}) \(timeout: (?P<grace>-?\d{1,9})s\)"),
    cuts=CutWords(
        "CRI-O",
        line="Timed out on waiting up to",
        ask_version="crio --version",
        keyless="CRI-O 1.30.0 to 1.30.10 and 1.31.0 to 1.31.2 cancel after 10 s and have no key for it (cri-o#8760): an upgrade to 1.30.11, "
        "1.31.3 or later fixes it. Other versions have a key for it.",
        phases=(
            "copying system image from manifest list",
            "copying config",
            "writing blob",
            "reading blob",
            "initializing source",
        ),
        least=10.0,
    ),
    traps={DEADLINE: ("where the default is off, any value tightens", "SIGHUP does not reload it")},
    stand_in=stand_in.RUNTIME,
    values=_values,
)
