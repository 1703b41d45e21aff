"""Is a field that is wanted in force? Gates that nobody wrote are, too: each is on or off by its minor's default."""

from __future__ import annotations

from rollout.core.model.settings import Value
from rollout.kubelet import in_force
from rollout.kubelet.configuration import gates
from rollout.kubelet.configuration.enabled_gates import enabled

_GATES = "featureGates"


def holds(field: str, shown: Value, wanted: Value, minor: int) -> bool:
    """``shown`` is what a kubelet 1.``minor`` shows of the field, ``None``: nothing."""
    if field != _GATES or not isinstance(wanted, dict):
        return in_force.holds(shown, wanted, (field,))
    written = {name: value is True for name, value in shown.items()} if isinstance(shown, dict) else {}
    known = {*gates.known(minor), *written}  # one that is unknown is not off: a kubelet does not start with it
    return all(name in known and enabled(name, written, minor) is value for name, value in wanted.items())
