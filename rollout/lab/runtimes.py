"""Container runtimes of the lab's nodes, from their descriptions: programs, units, files, starts, and kubeadm's
kubelet flags.

``runtime`` is a name in a node's label.
"""

from __future__ import annotations

from collections.abc import Mapping

from rollout.kubelet.runtimes.description import Description
from rollout.kubelet.runtimes.known import DAEMONS, KNOWN
from rollout.kubelet.runtimes.stand_in import DaemonStandIn, RuntimeExitError
from rollout.lab import configs
from rollout.lab.kubelet import ProgramStart
from rollout.lab.units import Tree

STAND_INS: Mapping[str, DaemonStandIn] = {daemon.unit: daemon.stand_in for daemon in DAEMONS}
"""By unit."""


def described(runtime: str) -> Description:
    """The runtime with this label."""
    return next(known for known in KNOWN if runtime in known.labels)


def text(unit: str, restart_sec: float) -> str:
    """The unit's file. RestartSec is its own, or that of the lab's kubelets if shorter."""
    daemon = STAND_INS[unit]
    return daemon.unit_file.replace("{pause}", f"{min(daemon.restart_sec, restart_sec):g}")


def folders(runtime: str) -> tuple[str, ...]:
    """The folder for layers of a running pull."""
    return described(runtime).stand_in.folders


def programs(runtime: str, label: str) -> Mapping[str, str]:
    """The runtime's programs and the version that each prints."""
    return described(runtime).stand_in.programs(version(runtime, label))


def pull_tools(runtime: str) -> tuple[str, ...]:
    """The programs that pull through it."""
    return described(runtime).pull_tools


def services(runtime: str) -> tuple[str, ...]:
    """The units of all its daemons."""
    units = {daemon.program: daemon.unit for daemon in DAEMONS}
    return tuple(units[program] for program in programs(runtime, ""))


def version(runtime: str, said: str) -> str:
    """The version of the runtime's program, also without a version label; ``""`` if docker's are fixed."""
    return said or described(runtime).stand_in.version


def files(runtime: str, said: str) -> Mapping[str, str]:
    """The runtime's own configuration."""
    return described(runtime).stand_in.files(version(runtime, said))


def socket(runtime: str) -> str:
    """The kubelet's endpoint of the runtime, a URL; ``""`` for one that is in the kubelet itself."""
    return described(runtime).stand_in.endpoint or described(runtime).endpoint


def flags(runtime: str, minor: int) -> tuple[str, ...]:
    """The flags that kubeadm of this minor writes into KUBELET_KUBEADM_ARGS."""
    pause = (f"--pod-infra-container-image={_pause(minor)}",) if minor < 35 else ()
    own = described(runtime).stand_in.kubelet_flags
    if not socket(runtime):
        return (*own, *pause)
    endpoint = (f"--container-runtime-endpoint={socket(runtime)}",) if minor < configs.ENDPOINT_FROM else ()
    return (*(("--container-runtime=remote",) if minor < 27 else ()), *endpoint, *own, *pause)


def _pause(minor: int) -> str:
    return "registry.k8s.io/pause:3.10" if minor >= 32 else "k8s.gcr.io/pause:3.2"


# Start and SIGHUP as functions: command line and files in; journal lines and outcome out.


def start(unit: str, version: str, arguments: tuple[str, ...], tree: Tree) -> ProgramStart:
    """Start a runtime of this ``version`` (``""``: any) with a command line on a node's files."""
    try:
        STAND_INS[unit].read(version, arguments, tree)
    except RuntimeExitError as error:
        return ProgramStart((f'time="2026-11-20T09:00:00Z" level=fatal msg="{error}"',), 1)
    return ProgramStart()


def reload(unit: str, arguments: tuple[str, ...], tree: Tree) -> tuple[str, ...] | None:
    """Its log lines after a SIGHUP; ``None``: it does not handle the signal and dies."""
    daemon = STAND_INS.get(unit)
    if daemon is None or daemon.reload is None:
        return None
    try:
        level, text = "info", daemon.reload(arguments, tree)
    except RuntimeExitError as error:
        level, text = "error", str(error)
    return (f'time="2026-11-20T09:00:00Z" level={level} msg="{text}"',)
