"""What a change of a node does, by the table of effects: a few short lines for a plan, and values that are refused."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from rollout.core.model.frozen import dataclass
from rollout.kubelet import fields
from rollout.kubelet.conditions import NodeValues
from rollout.kubelet.effects.rows import Case, SettingEffect, Takes, of_runtime, of_setting

HARMFUL = "harmful-setting"
NO_EFFECT = "no-effect-on-node"
_MOST = 6


@dataclass(frozen=True, slots=True)
class Changed:
    """A setting that the change alters, and its row."""

    name: str
    effect: SettingEffect


def changed(before: NodeValues, after: NodeValues) -> tuple[Changed, ...]:
    """Every field, flag and key of the runtime with another value afterwards, wanted or not."""
    names = [
        *(name for name in sorted({*before.effective, *after.effective}) if _differ(before, after, name)),
        *(name for name in sorted({*before.flags, *after.flags}) if _differ(before, after, name)),
    ]
    settings = {effect.name: Changed(name, effect) for name in names if (effect := of_setting(name)) is not None}
    keys = sorted({*(before.runtime or {}), *(after.runtime or {})})
    keys = [key for key in keys if _differ(before, after, f"runtime:{key}")]
    return (*settings.values(), *(Changed(key, effect) for key in keys if (effect := of_runtime(key)) is not None))


def _differ(before: NodeValues, after: NodeValues, path: str) -> bool:
    return before.at(path) != after.at(path)


def arising(before: NodeValues, after: NodeValues) -> Iterator[tuple[str, Case]]:
    """The cases that the change brings about, with their settings."""
    for setting in changed(before, after):
        yield from ((setting.name, case) for case in setting.effect.cases if case.arises(before, after))


def refused(before: NodeValues, after: NodeValues, accepted: Collection[str]) -> str:
    """Why a change is refused, with what the playbook could accept; ``""``: it is not."""
    refusing = [(name, case) for name, case in arising(before, after) if case.refuses and not accepts(accepted, name)]
    if not refusing:
        return ""
    names = ", ".join(dict.fromkeys(name for name, _ in refusing))
    return (
        f"{'; '.join(f'{name}: {case.says}' for name, case in refusing)}. `accept: [{names}]` in the playbook allows it"
    )


_RENEWED = frozenset({
    "kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
    "node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type", "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
})  # fmt: skip
"""Labels that a kubelet corrects on a Node that exists, too: ``updateDefaultLabels`` (pkg/kubelet/kubelet_node_status.go)."""


def without_effect(before: NodeValues, after: NodeValues, accepted: Collection[str]) -> str:
    """Why a change does nothing on a Node that exists, if all of it does nothing there; ``""``: it does something, or is accepted."""
    settings = changed(before, after)
    late = [setting for setting in settings if setting.effect.takes in (Takes.REGISTRATION, Takes.NEVER)]
    if not late or len(late) < len(settings) or any(_acts_at_once(setting.name, before, after) for setting in late):
        return ""
    names = [setting.name for setting in late if not accepts(accepted, setting.name)]
    if not names:
        return ""
    return (
        f"{'; '.join(_late(tuple(late)))}. The kubelet would be restarted for nothing: change the Node itself, with kubectl. "
        f"`accept: [{', '.join(names)}]` in the playbook writes it for Nodes that are made later"
    )


def _acts_at_once(name: str, before: NodeValues, after: NodeValues) -> bool:
    """A kubelet that begins to register makes a Node; and some labels are its own."""
    if name == "--node-labels":
        old, new = (_labels(values.flags.get(name, "")) for values in (before, after))
        return bool(_RENEWED & {label for label in new if old.get(label) != new[label]})
    return name == "registerNode"


def _labels(text: str) -> dict[str, str]:
    return dict(part.strip().partition("=")[::2] for part in text.split(","))


def accepts(accepted: Collection[str], name: str) -> bool:
    """Whether the playbook accepts a change of this setting, under its own name or that of its flag."""
    field = fields.field(name)
    return name in accepted or any(flag in accepted for flag in (field.flags if field else ()))


def notes(before: NodeValues, after: NodeValues) -> tuple[str, ...]:
    """One line for each kind of settings that do not take effect at once, for each case, and for what a rollback leaves."""
    settings = changed(before, after)
    return (
        *_late(settings),
        *(f"{name}: {case.says}" for name, case in arising(before, after)),
        *_not_undone(settings),
    )


def late(before: NodeValues, after: NodeValues) -> tuple[str, ...]:
    """The changed settings that only pods get that are created later."""
    return tuple(setting.name for setting in changed(before, after) if setting.effect.takes is Takes.LATER)


def _late(settings: tuple[Changed, ...]) -> Iterator[str]:
    for takes, words in (
        (Takes.LATER, "only pods that are created later get it; running pods keep what they have"),
        (
            Takes.REGISTRATION,
            "read only when the kubelet creates its Node object: a Node that exists keeps what it has",
        ),
        (Takes.NEVER, "no effect on a live node"),
    ):
        names = [setting.name for setting in settings if setting.effect.takes is takes]
        if names:
            yield f"{_listed(names)}: {words}"


def _not_undone(settings: tuple[Changed, ...]) -> Iterator[str]:
    stays: dict[str, list[str]] = {}
    for setting in settings:
        if setting.effect.stays:
            stays.setdefault(setting.effect.stays, []).append(setting.name)
    if stays:
        yield f"a rollback does not undo: {'; '.join(f'{what} ({_listed(names)})' for what, names in stays.items())}"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return f"{', '.join(names[:_MOST])}{more}"
