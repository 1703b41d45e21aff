"""Giving a kubelet that has none a ``--config`` file: what that changes besides, and who accepts it.

Without ``--config`` a kubelet keeps the defaults of its flags (``applyLegacyDefaults``, cmd/kubelet/app/options/options.go):
anonymous requests allowed, authorization AlwaysAllow, the read-only port 10255. With one it has those of v1beta1.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rollout.core.model.settings import Value
from rollout.kubelet import in_force, values
from rollout.kubelet.configuration.outcome import Outcome
from rollout.kubelet.node.layout import LayoutError

DEFAULTS = (
    "authentication.anonymous.enabled",
    "authentication.webhook.enabled",
    "authorization.mode",
    "readOnlyPort",
)
"""The fields whose default depends on whether there is a ``--config``.

Legacy flags keep the old defaults; a file is defaulted by v1beta1: k8s ``cmd/kubelet/app/options/options.go``
(``applyLegacyDefaults``) and ``pkg/kubelet/apis/config/v1beta1/defaults.go``, 1.20.2.
"""

_EMPTY: dict[str, Value] = {"readOnlyPort": 0}
"""What a kubelet means by a field that it does not show."""


def check_accepted(
    before: Outcome, after: Outcome, wanted: Mapping[str, Value], by_flag: Collection[str], accepted: Collection[str]
) -> tuple[str, ...]:
    """Notes on what changes by the new file alone, all of it accepted; else ``LayoutError``.

    What a setting says for this node (``wanted``, and the fields' paths ``by_flag``), or a flag that it has, does not change
    that way, so it needs nobody's word.
    """
    meant = {path for path in DEFAULTS if _says(wanted, path)} | set(by_flag)
    told = {path: said for path in _paths(before, after, wanted, meant) if (said := _change(before, after, path))}
    left = [said for path, said in told.items() if path not in accepted]
    if left:
        message = (
            f"the kubelet has no --config; one would also change {', '.join(left)}; the playbook does not accept that"
            " (`accept`); a field that has a flag can be set under the flag's name instead"
        )
        raise LayoutError("no-config-file", message)
    return tuple(f"{said}: by having a --config file, accepted in the playbook" for said in told.values())


def _says(wanted: Mapping[str, Value], path: str) -> bool:
    """Whether a setting speaks of this very value, not only of its neighbours in the same field."""
    value: Value = dict(wanted)
    for key in path.split("."):
        if not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    return True


def _paths(before: Outcome, after: Outcome, wanted: Collection[str], meant: Collection[str]) -> list[str]:
    """The four, and every other field that nobody wants: nothing may change unseen."""
    tops = {path.split(".")[0] for path in (*DEFAULTS, *meant)}
    others = (before.effective.keys() | after.effective.keys()) - tops - set(wanted)
    return [*(path for path in DEFAULTS if path not in meant), *sorted(others)]


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
