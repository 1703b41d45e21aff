"""The fields that the playbook's template makes from a node's settings, checked, and which of them must be written."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from functools import lru_cache

from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Node
from rollout.core.model.playbook import Templates
from rollout.core.model.settings import Setting, Value
from rollout.core.reading import rendering
from rollout.core.text import json_text
from rollout.errors import InputError, Place
from rollout.kubelet import fields, homes, values
from rollout.kubelet.changes import splice
from rollout.kubelet.configuration import feature_gates
from rollout.kubelet.configuration.feature_gates import enabled
from rollout.kubelet.configuration.findings import place
from rollout.kubelet.configuration.outcome import File, KubeletOutcome, Layer
from rollout.kubelet.node.layout import LayoutError
from rollout.kubelet.node.sources import FitNode

# A ``--config`` file for a kubelet that has none: its side effects, and whether they are accepted.
#
# Without ``--config`` a kubelet keeps the defaults of its flags (``applyLegacyDefaults``,
# cmd/kubelet/app/options/options.go): anonymous requests allowed, authorization AlwaysAllow, the read-only port 10255.
# With one it has those of v1beta1.


DEFAULTS = (
    "authentication.anonymous.enabled",
    "authentication.webhook.enabled",
    "authorization.mode",
    "readOnlyPort",
)
"""The fields with a default that depends on whether there is a ``--config``.

Legacy flags keep the old defaults; a file gets the defaults of v1beta1: k8s ``cmd/kubelet/app/options/options.go``
(``applyLegacyDefaults``) and ``pkg/kubelet/apis/config/v1beta1/defaults.go``, 1.20.2.
"""

_EMPTY: dict[str, Value] = {"readOnlyPort": 0}
"""What a kubelet assumes for a field that it does not show."""


def check_accepted(
    before: KubeletOutcome,
    after: KubeletOutcome,
    wanted: Mapping[str, Value],
    by_flag: Collection[str],
    accepted: Collection[str],
    needed: Mapping[str, Collection[str]],
) -> tuple[str, ...]:
    """Notes on what the new file alone changes, if all is accepted; else ``LayoutError``.

    ``needed``: the fields that need the file, and the flags of this kubelet that set the same.

    A value that a setting sets for this node (``wanted``, and the fields' paths ``by_flag``), or that a flag sets, does
    not change by the file, so nobody needs to accept it.
    """
    intended = {path for path in DEFAULTS if _sets(wanted, path)} | set(by_flag)
    # The four, and every other field that no setting sets: nothing may change unnoticed.
    tops = {path.split(".")[0] for path in (*DEFAULTS, *intended)}
    others = (before.effective.keys() | after.effective.keys()) - tops - set(wanted)
    told = {
        path: difference
        for path in [*(path for path in DEFAULTS if path not in intended), *sorted(others)]
        if (difference := _change(before, after, path))
    }
    left = [difference for path, difference in told.items() if path not in accepted]
    if left:
        instead = [f"{' or '.join(flags)} instead of {name}" for name, flags in needed.items() if flags]
        message = (
            f"the kubelet has no --config file, and {', '.join(needed)} would need one; adding it would also change"
            f" {', '.join(left)}; the playbook does not accept that (`accept`)"
            + (f"; a flag needs no file: set {', '.join(instead)}" if instead else "")
        )
        raise LayoutError("no-config-file", message, about=tuple(needed))
    return tuple(
        f"{difference}: side effect of a new --config file, accepted in the playbook" for difference in told.values()
    )


def _sets(wanted: Mapping[str, Value], path: str) -> bool:
    """Whether a setting sets this exact value, not only its neighbours in the same field."""
    value: Value = dict(wanted)
    for key in path.split("."):
        if not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    return True


def _change(before: KubeletOutcome, after: KubeletOutcome, path: str) -> str:
    """``readOnlyPort 10255 → 0``, or ``""`` if it does not change."""
    old, new = _at(before, path), _at(after, path)
    same = values.is_in_force(old, new, tuple(path.split("."))) and values.is_in_force(new, old, tuple(path.split(".")))
    return "" if same else f"{path} {values.shown(old)} → {values.shown(new)}"


def _at(outcome: KubeletOutcome, path: str) -> Value:
    top, *rest = path.split(".")
    value = outcome.effective.get(top, _EMPTY.get(top))
    for key in rest:
        value = value.get(key) if isinstance(value, dict) else None
    return value


# The playbook's templates rendered for one node, cached: a fleet has few distinct sets of settings.


_COMMENT = re.compile(r"\{#.*?(?:#\}|\Z)", re.DOTALL)
_NODE = re.compile(r"\bnode\b")


@dataclass(frozen=True, slots=True)
class Rendered:
    """A template's output for its variables (as JSON), and how to find the line of the template that caused an error."""

    text: str
    template: str
    name: str
    variables: str

    def refused(
        self, message: str, *, line: int = 0, words: tuple[str, ...] = (), about: tuple[str, ...] = ()
    ) -> LayoutError:
        """A refusal, because the template does not contain the setting. It names the line that wrote ``line`` of the
        output, else the first line with one of ``words``.
        """
        at = self._behind(line) if line else next(filter(None, map(self._line_of, words)), 1)
        return LayoutError("template-not-understood", message, place=Place(self.name, at, 1), about=about)

    def _behind(self, line: int) -> int:
        """An error at the end of the text belongs to its last line."""
        last = self.text.rstrip().count("\n") + 1
        return rendering.line_behind(self.template, self.name, json_text.parse(self.variables), min(line, last))

    def _line_of(self, word: str) -> int:
        """Where the template first contains this word outside its comments; 0: nowhere."""
        text = _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), self.template)
        match = re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text)
        return text.count("\n", 0, match.start()) + 1 if match else 0


def rendered(text: str, name: str, variables: Mapping[str, Value], node: Node) -> Rendered:
    """The text for this node; ``name`` is the template's name, for messages. ``LayoutError`` if it fails on this node."""
    seen: dict[str, Value] = {"name": node.name, "rack": node.rack, "zone": node.zone, "labels": dict(node.labels)}
    try:
        return _rendered(text, name, json.dumps({**variables, "node": seen if uses_node(text) else {}}))
    except InputError as error:
        problem = error.problems[0]
        raise LayoutError(problem.reference, problem.message, place=problem.place) from None


@lru_cache(maxsize=64)
def uses_node(text: str) -> bool:
    """Whether a template may render differently for two nodes with the same settings."""
    return bool(_NODE.search(_COMMENT.sub("", text)))


@lru_cache(maxsize=4096)
def _rendered(text: str, name: str, variables: str) -> Rendered:
    return Rendered(rendering.render(text, name, json_text.parse(variables)), text, name, variables)


# Is a wanted field in force? Gates that are not written are in force, too: each is on or off by its minor's default.


_GATES = "featureGates"


def holds(field: str, shown: Value, wanted: Value, minor: int) -> bool:
    """``shown`` is a kubelet 1.``minor``'s value of the field, ``None``: nothing."""
    if field != _GATES or not isinstance(wanted, dict):
        return values.is_in_force(shown, wanted, (field,))
    written = {name: value is True for name, value in shown.items()} if isinstance(shown, dict) else {}
    known = {
        *feature_gates.known_gates(minor),
        *written,
    }  # an unknown gate is not off: a kubelet does not start with it
    return all(name in known and enabled(name, written, minor) is value for name, value in wanted.items())


_WRITTEN = frozenset({Layer.FILE, Layer.DROP_IN})


def overlay(fit: FitNode, wanted: Mapping[str, Value], templates: Templates) -> Mapping[str, Value]:
    """Every field that must be in force: as set, and only fields that this kubelet knows."""
    if not wanted:
        return {}
    variables: dict[str, Value] = {"fields": dict(wanted)}
    rendered_file = rendered(templates.kubelet_config, templates.kubelet_config_name, variables, fit.node)
    try:
        said = splice.read(rendered_file.text.encode())
    except splice.SpliceError as error:
        raise rendered_file.refused(f"invalid template output: {error}", line=error.line) from None
    for field in sorted(set(said) - fields.known_fields(fit.version.minor) | set(said) & set(homes.NOT_OURS)):
        ours = field not in homes.NOT_OURS
        why = f"unknown field for kubelet {fit.version.short}" if ours else "rollout does not manage it"
        message = f"the template renders {field}: {why}"
        raise rendered_file.refused(message, line=_line(rendered_file, field))
    for field, value in wanted.items():
        if field not in said:
            raise rendered_file.refused(f"the template drops the setting {field}", words=("fields",), about=(field,))
        if not values.same((field,), said[field], value):
            message = f"the template renders {field}: {values.shown(said[field])}, the setting is {values.shown(value)}"
            raise rendered_file.refused(message, line=_line(rendered_file, field), about=(field,))
    for field, value in said.items():
        known = fields.field(field)
        mistake = values.mistake(field, known.kind, value) if known else ""
        if mistake:
            raise rendered_file.refused(mistake, line=_line(rendered_file, field), about=(field,))
    return said


def _line(rendered_file: Rendered, field: str) -> int:
    """Where a field is in the rendered text."""
    located = place(File(rendered_file.name, rendered_file.text.encode()), (field,))
    return located.line if located else 0


def needed(
    outcome: KubeletOutcome, fields_wanted: Mapping[str, Value], settings: Mapping[str, Setting], minor: int
) -> Mapping[str, Value]:
    """What must be written: what is not in force, and what is pinned and in force only by a default or a flag.

    A field that already has the wanted value by default is not written: a kubelet is not restarted without need.
    """
    return {
        name: value
        for name, value in fields_wanted.items()
        if not holds(name, outcome.effective.get(name), value, minor) or _unpinned(outcome, name, settings)
    }


def _unpinned(outcome: KubeletOutcome, name: str, settings: Mapping[str, Setting]) -> bool:
    setting, origin = settings.get(name), outcome.origins.get(name)
    return setting is not None and setting.pin and (origin is None or origin.layer not in _WRITTEN)


def with_defaults(
    outcome: KubeletOutcome, asked: Mapping[str, Value], needed: Mapping[str, Value]
) -> Mapping[str, Value]:
    """What must be written into a first ``--config`` file: its defaults differ from those in force."""
    flags = {name for name, origin in outcome.origins.items() if origin.layer is Layer.FLAG}
    return {name: value for name, value in asked.items() if name in needed or name not in flags}


def by_others(
    outcome: KubeletOutcome, fields_wanted: Mapping[str, Value], written: Mapping[str, Value]
) -> tuple[str, ...]:
    """Notes on fields that have the wanted value although no file sets them."""
    notes = []
    for name in fields_wanted.keys() - written.keys():
        origin = outcome.origins.get(name)
        if origin is None or origin.layer is Layer.DEFAULT:
            notes.append(f"{name} already has this value by default and is not written; `pin: true` writes it")
        elif origin.layer is Layer.FLAG:
            notes.append(f"{name} already has this value from {origin.where} and is not written; `pin: true` writes it")
    return tuple(sorted(notes))
