"""Concurrent downloads on dockerd: ``max-concurrent-downloads`` in daemon.json, read again at SIGHUP (``daemon/reload.go``).

dockerd does not start with an option both in daemon.json and on its command line, so a flag there is refused.
"""

from __future__ import annotations

from rollout.core.model.playbook import Disruption
from rollout.core.model.settings import Setting
from rollout.core.model.snapshot import Snapshot
from rollout.kubelet.edits import Edit, reason
from rollout.kubelet.node.layout import LayoutError
from rollout.kubelet.runtimes import direction, json_edit, node_files, service
from rollout.kubelet.runtimes.outcome import RuntimeChange

UNIT = "docker.service"
FILE = "/etc/docker/daemon.json"
KEY = "max-concurrent-downloads"
DEFAULT = 3


def change(snapshot: Snapshot, setting: Setting) -> RuntimeChange:
    """The key and a SIGHUP, nothing where it is in force, or ``LayoutError``."""
    command = service.find(snapshot, UNIT)
    given = command.flag(f"--{KEY}")
    if given is not None:
        raise LayoutError(
            "dockerd-flag", f"dockerd runs with --{KEY}={given}; it would not start with the key in a file as well"
        )
    path = command.flag("--config-file") or FILE
    before = node_files.text(snapshot.files, path)
    now = json_edit.read(before or "", path).get(KEY)
    if now is not None and direction.same(setting, now):
        return RuntimeChange()
    if now is None and direction.same(setting, DEFAULT) and not setting.pin:
        return RuntimeChange(notes=(direction.by_default(setting, str(DEFAULT), "dockerd"),))
    after = json_edit.assign(before or "", KEY, int(str(setting.value)), path)
    why = reason(KEY, "not set" if now is None else str(now), str(setting.value), setting)
    edit = Edit(path, None if before is None else before.encode(), after.encode(), (why,))
    way = direction.direction(
        setting, DEFAULT if now is None else now, path if now is not None else "dockerd's default"
    )
    return RuntimeChange((edit,), hangups=(UNIT,), disruption=Disruption.RELOAD, notes=(way,))
