"""The faults of a node: when they strike and how they end. Faults of different parts may be set together.

A fault strikes at once, some seconds later, or at a moment of the agent's transaction (``disk`` reports it). With a
duration it ends by itself. Nothing here is random: the same faults on the same nodes give the same run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial

from rollout import known_faults
from rollout.lab import disk, kubelet_faults, pods, pulls
from rollout.lab.keys import Key
from rollout.lab.listener import OUTPUT_KINDS, Door
from rollout.lab.loop import Loop
from rollout.lab.node import LabNode

REFUSE, HANG, DROP, STRANGER = "refuse", "hang-before-banner", "drop-mid-apply", "host-key-change"
PORT_TAKEN = "health-port-taken"
REBOOT, DIES, CLOCK = known_faults.REBOOT.name, "dies-and-returns", known_faults.CLOCK_STEP.name
NOW, APPLY = "now", "apply"
MOMENTS = (NOW, APPLY, *disk.MOMENTS)


@dataclass(frozen=True, slots=True)
class LabFault:
    """``after`` and ``lasting`` are seconds; the kind defines their meaning; ``at`` is one of ``MOMENTS``."""

    kind: str
    after: float
    lasting: float | None = None
    at: str = NOW


@dataclass(frozen=True, slots=True)
class Ward:
    """A node and its listener."""

    loop: Loop
    node: LabNode
    door: Door


@dataclass(frozen=True, slots=True)
class LabFaultKind:
    """``part`` is the broken part. ``after`` is the default; ``delays``: ``after`` is the delay of the fault's start."""

    part: str
    strike: Callable[[Ward, LabFault], None]
    mend: Callable[[Ward], None]
    after: float = 0.0
    delays: bool = True


class Faults:
    """The faults of each node; a new one replaces all old ones unless it is added to them."""

    def __init__(self, loop: Loop, ward: Callable[[str], Ward]) -> None:
        self._loop, self._ward = loop, ward
        self._set: dict[str, dict[str, LabFault]] = {}

    def set(self, names: Iterable[str], fault: LabFault) -> None:
        """Replace the nodes' other faults."""
        for name in names:
            self.clear([name])
            self._begin(name, fault)

    def add(self, names: Iterable[str], fault: LabFault) -> None:
        """Add to the nodes' faults of other parts."""
        for name in names:
            self._mend(name, KINDS[fault.kind].part)
            self._begin(name, fault)

    def clear(self, names: Iterable[str]) -> None:
        """End faults: the network works again; a kubelet that exited recovers at its next start."""
        for name in names:
            for part in list(self._set.get(name, ())):
                self._mend(name, part)

    def by_kind(self) -> dict[str, list[str]]:
        """Kind → nodes with this fault, also if it has not started yet."""
        nodes: dict[str, list[str]] = {}
        for name, faults in sorted(self._set.items()):
            for fault in faults.values():
                nodes.setdefault(fault.kind, []).append(name)
        return nodes

    def listed(self) -> list[dict[str, object]]:
        """Every fault as requested, with its nodes."""
        groups: dict[LabFault, list[str]] = {}
        for name, faults in sorted(self._set.items()):
            for fault in faults.values():
                groups.setdefault(fault, []).append(name)
        return [{**asdict(fault), "nodes": names} for fault, names in groups.items()]

    def _begin(self, name: str, fault: LabFault) -> None:
        kind, ward = KINDS[fault.kind], self._ward(name)
        self._set.setdefault(name, {})[kind.part] = fault
        strike = partial(self._strike, name, fault)
        if fault.at != NOW:
            ward.node.await_moment(fault.at, strike)
        elif kind.delays and fault.after:
            self._loop.at(self._loop.now() + fault.after, strike)
        else:
            strike()

    def _strike(self, name: str, fault: LabFault) -> None:
        kind = KINDS[fault.kind]
        if self._set.get(name, {}).get(kind.part) is not fault:
            return
        ward = self._ward(name)
        kind.strike(ward, fault)
        ward.node.settle()
        if fault.kind in _GOES_BY_ITSELF:
            self._forget(name, kind.part)
        elif fault.lasting is not None and fault.kind != disk.SLOW:
            self._loop.at(self._loop.now() + fault.lasting, partial(self._mend_if, name, fault))

    def _mend_if(self, name: str, fault: LabFault) -> None:
        if self._set.get(name, {}).get(KINDS[fault.kind].part) is fault:
            self._mend(name, KINDS[fault.kind].part)

    def _mend(self, name: str, part: str) -> None:
        fault = self._forget(name, part)
        if fault is not None:
            ward = self._ward(name)
            ward.node.await_nothing(fault.at)
            KINDS[fault.kind].mend(ward)

    def _forget(self, name: str, part: str) -> LabFault | None:
        faults = self._set.get(name, {})
        fault = faults.pop(part, None)
        if not faults:
            self._set.pop(name, None)
        return fault


def _open(ward: Ward) -> None:
    ward.node.cut_after = None
    ward.door.speak()
    if not ward.node.is_off:
        ward.door.open()


def _refuse(ward: Ward, _fault: LabFault) -> None:
    ward.door.shut()


def _hang(ward: Ward, _fault: LabFault) -> None:
    ward.door.dumb = True


def _drop(ward: Ward, fault: LabFault) -> None:
    ward.node.cut_after = fault.after


def _become_a_stranger(ward: Ward, _fault: LabFault) -> None:
    ward.node.stranger = Key.generate()


def _be_oneself(ward: Ward) -> None:
    ward.node.stranger = None


def _ail(ward: Ward, fault: LabFault) -> None:
    for service in ward.node.machine.kubelets():
        ward.node.machine.ailments.set(fault.kind, service.start.fingerprint, fault.after)


def _flap(ward: Ward, fault: LabFault) -> None:
    ward.node.machine.ailments.flap(fault.after, ward.loop.now())


def _recover(ward: Ward) -> None:
    ward.node.machine.ailments.clear()


def _take_port(ward: Ward, _fault: LabFault) -> None:
    for service in ward.node.machine.kubelets():
        ward.node.take_port(service.start.healthz_port)


def _free_port(ward: Ward) -> None:
    ward.node.take_port(0)


def _cut_power(ward: Ward, fault: LabFault) -> None:
    """The node boots ``lasting`` (``reboot``: ``after``) seconds later; after a second cut the later time counts."""
    away = fault.after if fault.kind == REBOOT else 5.0 if fault.lasting is None else fault.lasting
    ward.door.shut()
    boot = ward.node.power_cut()

    def back() -> None:
        if ward.node.boot == boot:
            ward.door.open()
            ward.node.power_on()

    ward.loop.at(ward.loop.now() + away, back)


def _break_disk(ward: Ward, fault: LabFault) -> None:
    disk.check()
    ward.node.disk.kind = fault.kind
    ward.node.disk.seconds = 1.0 if fault.lasting is None else fault.lasting
    ward.node.end_conversations()


def _repair_disk(ward: Ward) -> None:
    ward.node.disk.kind = ""
    ward.node.end_conversations()


def _babble(ward: Ward, fault: LabFault) -> None:
    ward.node.spoil(fault.kind)


def _be_plain(ward: Ward) -> None:
    ward.node.spoil("")


def _step_clock(ward: Ward, fault: LabFault) -> None:
    ward.node.clock_step = fault.after


def _set_clock(ward: Ward) -> None:
    ward.node.clock_step = 0.0


def _sicken_pods(ward: Ward, fault: LabFault) -> None:
    ward.node.machine.pods.set(fault.kind, ward.loop.now())


def _heal_pods(ward: Ward) -> None:
    ward.node.machine.pods.clear(ward.loop.now())


def _hold_pods(ward: Ward, fault: LabFault) -> None:
    ward.node.machine.pods.end_by(fault.kind, fault.after)


def _let_pods_go(ward: Ward) -> None:
    ward.node.machine.pods.end_by("", 0)


def _pull(ward: Ward, _fault: LabFault) -> None:
    ward.node.machine.pull(ward.loop.now())


def _stop_pulling(ward: Ward) -> None:
    ward.node.machine.end_pull(ward.loop.now())


def _nothing(_ward: Ward) -> None:
    pass


_GOES_BY_ITSELF = frozenset({REBOOT, DIES})

KINDS: Mapping[str, LabFaultKind] = {
    REFUSE: LabFaultKind("way", _refuse, _open),
    HANG: LabFaultKind("way", _hang, _open),
    DROP: LabFaultKind("way", _drop, _open, 0.3, delays=False),
    STRANGER: LabFaultKind("way", _become_a_stranger, _be_oneself),
    kubelet_faults.NEVER_HEALTHY: LabFaultKind("kubelet", _ail, _recover),
    kubelet_faults.SICK_IN_SOAK: LabFaultKind("kubelet", _ail, _recover, 2.0, delays=False),
    kubelet_faults.DEAF_IN_SOAK: LabFaultKind("kubelet", _ail, _recover, 2.0, delays=False),
    kubelet_faults.FLAPPING: LabFaultKind("kubelet", _flap, _recover, 3.0, delays=False),
    PORT_TAKEN: LabFaultKind("port", _take_port, _free_port),
    REBOOT: LabFaultKind("power", _cut_power, _nothing, 0.3, delays=False),
    DIES: LabFaultKind("power", _cut_power, _nothing),
    disk.SLOW: LabFaultKind("disk", _break_disk, _repair_disk),
    disk.FULL: LabFaultKind("disk", _break_disk, _repair_disk),
    disk.READ_ONLY: LabFaultKind("disk", _break_disk, _repair_disk),
    **{kind: LabFaultKind("ending", _hold_pods, _let_pods_go) for kind in pods.ENDINGS},
    pods.SLOW: LabFaultKind("ending", _hold_pods, _let_pods_go, 3.0, delays=False),
    pulls.PULLING: LabFaultKind("pull", _pull, _stop_pulling),
    CLOCK: LabFaultKind("clock", _step_clock, _set_clock, 86400.0, delays=False),
    **{kind: LabFaultKind("output", _babble, _be_plain) for kind in OUTPUT_KINDS},
    **{kind: LabFaultKind("pods", _sicken_pods, _heal_pods) for kind in pods.KINDS},
}
