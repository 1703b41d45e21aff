"""The lab's process: ``python -m rollout.lab.serve DIRECTORY``, started by ``lab up`` in the background."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from rollout.lab import children, keys, kubelet, resources, sshd, tools_dir, trees
from rollout.lab import spec as lab_spec
from rollout.lab.api import KINDS as KINDS_OF_API
from rollout.lab.api import Api
from rollout.lab.control import Control
from rollout.lab.faults import KINDS, NOW, Fault
from rollout.lab.fleet import Fleet
from rollout.lab.loop import Loop
from rollout.lab.spec import LabSpec

SPEC, READY = "spec.json", "lab.json"
WATCH = 1.0
"""Seconds between two looks whether our directory is still there."""


def main(directory: Path) -> None:
    """Make the trees, serve the nodes, and end on request or when the directory is gone."""
    os.umask(0o022)
    os.chdir("/")
    children.reserve()
    sshd.prepare()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    spec = lab_spec.read(directory / SPEC)
    tools_dir.install(directory)
    trees.build(spec, directory)
    loop = Loop()
    signal.signal(signal.SIGTERM, lambda *_: loop.stop())
    signal.signal(signal.SIGINT, lambda *_: loop.stop())
    fleet = Fleet(loop, spec, directory)
    numbers = random.sample(range(20000, 30000), 200)
    fleet.open(numbers)
    user = keys.write_client_files(directory, spec.nodes, fleet.keys, fleet.port)
    fleet.admit(user.public)
    fleet.power_on()
    lookup = fleet.lookup()
    api = Api(loop, directory, spec.cluster, partial(resources.answer, lookup))
    Control(loop, directory, lambda request: _answer(fleet, api, request))

    def ready() -> None:
        _announce(directory, spec, fleet.port)
        _watch(loop, directory, (directory / READY).stat().st_ino)

    loop.at(loop.now() + kubelet.START_UP, ready)  # a plan made at once finds every kubelet healthy
    loop.run()
    fleet.close()
    os._exit(0)  # SSH threads may still be blocked in reads


def _answer(fleet: Fleet, api: Api, request: dict[str, object]) -> dict[str, object]:
    names = request.get("nodes")
    if request["op"] == "status":
        return {**fleet.status(), "api": api.kind or "ok"}
    if request["op"] == "api":
        return _break_api(api, request)
    if request["op"] == "stop":
        fleet.loop.at(fleet.loop.now() + 0.05, fleet.loop.stop)
        return {}
    if not isinstance(names, list):
        raise ValueError("nodes")
    unknown = [name for name in names if name not in fleet.nodes]
    if unknown:
        raise ValueError(f"not in the lab: {', '.join(unknown[:5])}")
    if request["op"] == "clear":
        fleet.faults.clear(names)
        return {}
    order = fleet.faults.add if request.get("add") else fleet.faults.set
    order(names, _fault(request))
    return {}


def _break_api(api: Api, request: dict[str, object]) -> dict[str, object]:
    kind, seconds = request.get("kind"), request.get("after")
    if kind is None:
        api.mend()
    elif kind in KINDS_OF_API:
        api.break_down(str(kind), float(seconds) if isinstance(seconds, int | float) else 5.0)
    else:
        raise ValueError(f"no fault of the API: {kind}")
    return {}


def _fault(request: dict[str, object]) -> Fault:
    """``kind``, and if wanted ``after``, ``lasting`` (seconds) and ``at`` (a moment)."""
    kind, after, lasting = str(request["kind"]), request.get("after"), request.get("lasting")
    return Fault(
        kind,
        float(after) if isinstance(after, int | float) else KINDS[kind].after,
        float(lasting) if isinstance(lasting, int | float) else None,
        str(request.get("at") or NOW),
    )


def _announce(directory: Path, spec: LabSpec, port: int) -> None:
    ready = {
        "version": 1,
        "pid": os.getpid(),
        "cluster": spec.cluster,
        "nodes": len(spec.nodes),
        "port": port,
        "control": "control.sock",
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    draft = directory / f".{READY}"
    draft.write_text(json.dumps(ready, indent=2) + "\n", encoding="utf-8")
    draft.rename(directory / READY)


def _watch(loop: Loop, directory: Path, inode: int) -> None:
    """Stop when somebody removed the directory (or put another lab in its place)."""

    def look() -> None:
        try:
            same = (directory / READY).stat().st_ino == inode
        except OSError:
            same = False
        if not same:
            loop.stop()
        loop.at(loop.now() + WATCH, look)

    look()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
