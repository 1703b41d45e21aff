"""Giving a kubelet that has none a ``--config`` file: what that changes besides, and who accepts it.

Without ``--config`` a kubelet keeps the defaults of its flags (``applyLegacyDefaults``, cmd/kubelet/app/options/options.go):
anonymous requests allowed, authorization AlwaysAllow, the read-only port 10255. With one it has those of v1beta1.
"""

from __future__ import annotations

from collections.abc import Collection

from rollout.core.model.settings import Value
from rollout.kubelet import in_force, values
from rollout.kubelet.configuration.outcome import Outcome
from rollout.kubelet.layout import LayoutError

DEFAULTS = (
    "authentication.anonymous.enabled",
    "authentication.webhook.enabled",
    "authorization.mode",
    "readOnlyPort",
)
"""The fields whose default depends on whether there is a ``--config``."""

_EMPTY: dict[str, Value] = {"readOnlyPort": 0}
"""What a kubelet means by a field that it does not show."""


def check_accepted(
    before: Outcome, after: Outcome, wanted: Collection[str], accepted: Collection[str]
) -> tuple[str, ...]:
    """Notes on what changes by the new file alone, all of it accepted; else ``LayoutError``.

    What a flag or a setting says on this node does not change that way, so it needs nobody's word.
    """
    told = {path: said for path in _paths(before, after, wanted) if (said := _change(before, after, path))}
    left = [said for path, said in told.items() if path not in accepted]
    if left:
        message = (
            f"the kubelet has no --config; one would also change {', '.join(left)}; the playbook does not accept that"
            " (`acceptDefaults`); a field that has a flag can be set under the flag's name instead"
        )
        raise LayoutError("no-config-file", message)
    return tuple(f"{said}: by having a --config file, accepted in the playbook" for said in told.values())


def _paths(before: Outcome, after: Outcome, wanted: Collection[str]) -> list[str]:
    """The four, and every other field that is not wanted: nothing may change unseen."""
    tops = {path.split(".")[0] for path in DEFAULTS}
    others = (before.effective.keys() | after.effective.keys()) - tops
    return [path for path in (*DEFAULTS, *sorted(others)) if path.split(".")[0] not in wanted]


def _change(before: Outcome, after: Outcome, path: str) -> str:
    """``readOnlyPort 10255 → 0``, or ``""`` when it stays."""
    old, new = _at(before, path), _at(after, path)
    same = in_force.holds(old, new, tuple(path.split("."))) and in_force.holds(new, old, tuple(path.split(".")))
    return "" if same else f"{path} {values.shown(old)} → {values.shown(new)}"


def _at(outcome: Outcome, path: str) -> Value:
    top, *rest = path.split(".")
    value = outcome.effective.get(top, _EMPTY.get(top))
    for key in rest:
        value = value.get(key) if isinstance(value, dict) else None
    return value
