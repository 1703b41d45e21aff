"""dockerd, below dockershim and cri-dockerd: concurrent downloads in daemon.json, read again at SIGHUP (``daemon/reload.go``).

dockerd does not start with an option both in daemon.json and on its command line, so a flag there is refused. dockershim
is part of kubelets before 1.24: the progress deadline is a flag of the kubelet.
"""

from __future__ import annotations

from rollout.core.model.playbook import Disruption
from rollout.core.model.snapshot import Snapshot
from rollout.kubelet.edits import Edit, reason
from rollout.kubelet.intents import DEADLINE, DEADLINE_FLAG, DOWNLOADS, MIRRORS
from rollout.kubelet.node import layout
from rollout.kubelet.node.layout import LayoutError
from rollout.kubelet.runtimes import direction, json_edit, node_files, service
from rollout.kubelet.runtimes.description import FIRST, Description, Number, Row, Runtime, Wanted
from rollout.kubelet.runtimes.outcome import RuntimeChange

_UNIT = "docker.service"
_FILE = "/etc/docker/daemon.json"
_KEY = "max-concurrent-downloads"
_DEFAULT = 3


def change(snapshot: Snapshot, wanted: Wanted) -> RuntimeChange:
    """The key and a SIGHUP, nothing where it is in force or not wanted, or ``LayoutError``."""
    setting = wanted.get(DOWNLOADS)
    if setting is None:
        return RuntimeChange()
    command = service.find(snapshot, _UNIT)
    given = command.flag(f"--{_KEY}")
    if given is not None:
        raise LayoutError(
            "dockerd-flag", f"dockerd runs with --{_KEY}={given}; it would not start with the key in a file as well"
        )
    path = command.flag("--config-file") or _FILE
    before = node_files.text(snapshot.files, path)
    now = json_edit.read(before or "", path).get(_KEY)
    if now is not None and direction.same(setting, now):
        return RuntimeChange()
    if now is None and direction.same(setting, _DEFAULT) and not setting.pin:
        return RuntimeChange(notes=(direction.by_default(setting, str(_DEFAULT), "dockerd"),))
    after = json_edit.assign(before or "", _KEY, int(str(setting.value)), path)
    why = reason(_KEY, "not set" if now is None else str(now), str(setting.value), setting)
    edit = Edit(path, None if before is None else before.encode(), after.encode(), (why,))
    way = direction.direction(
        setting, _DEFAULT if now is None else now, path if now is not None else "dockerd's default"
    )
    return RuntimeChange((edit,), hangups=(_UNIT,), disruption=Disruption.RELOAD, notes=(way,))


def is_daemon_json(path: str, text: str) -> bool:
    """Whether a change of dockerd writes a file of this path and text."""
    return _KEY in json_edit.read(text, path)


HUNG_UP = frozenset({_UNIT})
READERS = {DOWNLOADS: _UNIT}
_NO_MIRRORS = "dockerd's registry-mirrors covers docker.io only; rollout does not write it"


def rows(runtime: Runtime, end: Number) -> tuple[Row, ...]:
    """The homes of what dockerd does for this runtime; ``end`` is the end of its known versions."""
    return (
        Row(DOWNLOADS, runtime, FIRST, end, _KEY, str(_DEFAULT), _FILE, _UNIT, Disruption.RELOAD),
        Row(MIRRORS, runtime, FIRST, end, refusal=_NO_MIRRORS),
    )


_END: Number = (1000, 0, 0)

DOCKERSHIM = Description(
    Runtime.DOCKERSHIM,
    "docker",
    change,
    end=_END,
    rows=(
        Row(DEADLINE, Runtime.DOCKERSHIM, FIRST, _END, DEADLINE_FLAG, "1m0s", "the kubelet's flags",
            layout.UNIT, Disruption.RESTART_KUBELET),
        *rows(Runtime.DOCKERSHIM, _END),
    ),
    labels=("dockershim", "docker"),
    built_in_until=23,
    successor=Runtime.CRI_DOCKERD,
    usual_version="20.10.24",
    hung_up=HUNG_UP,
    readers=READERS,
    is_home=(is_daemon_json,),
)  # fmt: skip
