"""What a change of one setting does on a node, and the table of all settings: every field, flag and key of a runtime.

A row costs no code. Its keys, all but the first and the last optional:

=======  ==========================================================================================================
takes    when a new value takes effect: a ``Takes``
needs    what must be there on the node
breaks   what changes beyond the kubelet
stays    what a rollback does not undo
cases    values and changes with a text of their own: ``when`` (see ``rollout.kubelet.conditions``), ``says``, the minors
         ``since`` and ``last``, and ``refuses``: such a change is refused unless the playbook accepts it
source   the file, issue or KEP that it was read in
=======  ==========================================================================================================
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any

from rollout.core.model.frozen import dataclass
from rollout.kubelet import fields
from rollout.kubelet.conditions import NodeValues, ValueCondition, all_hold, conditions


class Takes(StrEnum):
    """When a new value takes effect."""

    KUBELET = "kubelet"  # in the kubelet, from its restart on
    RUNNING = "running"  # in running pods too, at the restart
    LATER = "later"  # only in pods and containers that are created later
    PULLS = "pulls"  # in image pulls that begin later
    REGISTRATION = "registration"  # only when the kubelet creates its Node object
    NEVER = "never"  # not on a live node

    @property
    def words(self) -> str:
        return _WORDS[self]


_WORDS = {
    Takes.KUBELET: "in the kubelet, from its restart on",
    Takes.RUNNING: "in running pods too, at the restart",
    Takes.LATER: "only in pods that are created later",
    Takes.PULLS: "in image pulls that begin later",
    Takes.REGISTRATION: "only when the kubelet creates its Node object: a Node that exists keeps what it has",
    Takes.NEVER: "not on a live node",
}


@dataclass(frozen=True, slots=True)
class Case:
    """A value, or a change of it, with a text of its own. ``since`` and ``last`` are minors."""

    when: tuple[ValueCondition, ...]
    says: str
    since: int
    last: int
    refuses: bool

    def arises(self, before: NodeValues, after: NodeValues) -> bool:
        """Whether the change brings it about: it holds afterwards, and did not before."""
        if not self.since <= after.minor <= self.last or all_hold(self.when, after, before) is not True:
            return False
        return any(each.is_of_change for each in self.when) or all_hold(self.when, before) is not True


@dataclass(frozen=True, slots=True)
class SettingEffect:
    """See the module."""

    name: str
    takes: Takes
    needs: str
    breaks: str
    stays: str
    cases: tuple[Case, ...]
    source: str


@cache
def _table() -> Mapping[str, Mapping[str, SettingEffect]]:
    text = resources.files("rollout.kubelet.effects").joinpath("table.toml").read_text(encoding="utf-8")
    return {
        kind: {name: _effect(name, entry) for name, entry in entries.items()}
        for kind, entries in tomllib.loads(text).items()
    }


def of_setting(name: str) -> SettingEffect | None:
    """The row of a field (or of a part of it), or of a flag: that of the field that it sets. ``None``: no such setting."""
    flag = fields.flag(name)
    if flag is not None and name in _table()["flags"]:
        return _table()["flags"][name]
    field = flag.field if flag is not None else name
    return _table()["fields"].get(field.partition(".")[0])


def of_runtime(key: str) -> SettingEffect | None:
    """The row of a key of a runtime's configuration, or of a flag of its daemon."""
    return _table()["runtime"].get(key)


def every() -> Iterator[SettingEffect]:
    for entries in _table().values():
        yield from entries.values()


def _effect(name: str, entry: Mapping[str, Any]) -> SettingEffect:
    takes, source = Takes(entry["takes"]), entry["source"]
    texts = {key: entry.get(key, "") for key in ("needs", "breaks", "stays")}
    unknown = entry.keys() - {"takes", "source", "cases", *texts}
    if unknown:
        raise ValueError(f"{name}: unknown keys {', '.join(sorted(unknown))}")
    return SettingEffect(name, takes, **texts, cases=tuple(map(_case, entry.get("cases", ()))), source=source)


def _case(entry: Mapping[str, Any]) -> Case:
    last = fields.known_minors()[-1]
    return Case(
        conditions(entry["when"]),
        entry["says"],
        entry.get("since", 0),
        entry.get("last", last),
        entry.get("refuses", False),
    )
