"""Which feature gates are on, as ``featuregate.SetFromMap`` sets them: key by key over the defaults.

An unknown gate and a locked one set to the other value are fatal. ``AllAlpha`` and ``AllBeta`` set the gates of their stage
that nobody named. Source: component-base ``featuregate/feature_gate.go``.
"""

from __future__ import annotations

from collections.abc import Mapping

from rollout.kubelet.configuration import gates
from rollout.kubelet.configuration.gates import ALL_ALPHA, ALL_BETA, Stage

_STAGES = {ALL_ALPHA: Stage.ALPHA, ALL_BETA: Stage.BETA}


def mistakes(written: Mapping[str, bool], minor: int) -> tuple[str, ...]:
    """What the kubelet says of each gate it cannot set; the first one it meets stops it.

    Where not all gates of a minor are known, this is no more than a suspicion (``gates.certain``).
    """
    known = gates.known(minor)
    return tuple(said for name in sorted(written) if (said := _mistake(name, written[name], known)))


def _mistake(name: str, value: bool, known: Mapping[str, gates.Gate]) -> str:  # noqa: FBT001 (a gate's value)
    gate = known.get(name)
    if gate is None:
        return f"unrecognized feature gate: {name}"
    if gate.locked and gate.default is not value:
        said, locked = ("true" if flag else "false" for flag in (value, gate.default))
        return f"cannot set feature gate {name} to {said}, feature is locked to {locked}"
    return ""


def enabled(name: str, written: Mapping[str, bool], minor: int) -> bool:
    """Is the gate on? One that this minor does not know is off: what hangs on it does not exist yet, or no longer asks."""
    if name in written:
        return written[name]
    gate = gates.known(minor).get(name)
    if gate is None:
        return False
    for all_of_stage, stage in _STAGES.items():
        if gate.stage is stage and all_of_stage in written:
            return written[all_of_stage]
    return gate.default
