"""One name explained, from the tables that also define where it is written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any

from rollout.core.model.playbook import Disruption, worst
from rollout.core.model.settings import Value
from rollout.core.text import suggest
from rollout.errors import UsageError
from rollout.kubelet import fields, homes, intents
from rollout.kubelet.configuration import feature_gates, schema
from rollout.kubelet.configuration.defaulting import defaults, gated, with_file, without_file
from rollout.kubelet.defects.matching import KUBELET
from rollout.kubelet.defects.rows import Defect
from rollout.kubelet.defects.rows import known as known_defects
from rollout.kubelet.defects.words import about
from rollout.kubelet.effects.rows import SettingEffect, of_setting
from rollout.kubelet.explained.references import references
from rollout.kubelet.runtimes.description import Row, Runtime, RuntimeVersion
from rollout.kubelet.runtimes.known import KNOWN, ROWS
from rollout.kubelet.values import value_at

# Facts on settings that the tables do not contain: purpose, traps, source (``words.json``).


@dataclass(frozen=True, slots=True)
class SettingWords:
    """``defaults`` are a flag's, (first minor, text), in order; defaults of fields are in ``kubelet_defaults.json``."""

    what: str = ""
    defaults: tuple[tuple[int, str], ...] = ()
    traps: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class IntentWords:
    """``aliases`` are the names of an intent in its homes, which are no flags; ``runtime_traps``, from the descriptions of runtimes, are by name."""

    kind: str
    aliases: tuple[str, ...]
    words: SettingWords
    runtime_traps: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@cache
def _data() -> Mapping[str, Any]:
    text = resources.files("rollout.kubelet.explained").joinpath("words.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


def words_of(name: str) -> SettingWords:
    """The entry of a field or flag in ``words.json``; empty for most of them."""
    entry = _data()["settings"].get(name)
    return _words(entry) if entry else SettingWords()


def said() -> tuple[str, ...]:
    """The fields and flags in ``words.json``."""
    return tuple(_data()["settings"])


@cache
def intent_words() -> Mapping[str, IntentWords]:
    """Every intent in ``words.json``, by name."""
    return {name: _words_of_intent(name, entry) for name, entry in _data()["intents"].items()}


def _words_of_intent(name: str, entry: Mapping[str, Any]) -> IntentWords:
    traps = {known.runtime.value: known.traps[name] for known in KNOWN if name in known.traps}
    keys = (row.key for row in ROWS if row.intent == name and row.key and not row.key.startswith("--"))
    aliases = dict.fromkeys((*keys, *entry["aliases"]))
    return IntentWords(entry["type"], tuple(aliases), _words(entry), traps)


def _words(entry: Mapping[str, Any]) -> SettingWords:
    defaults = tuple((since, text) for since, text in entry.get("defaults", ()))
    return SettingWords(entry["what"], defaults, tuple(entry["traps"]), entry["source"])


# A field's default by minor, from the table that also computes the effective configuration.


NOT_SET = "not set"


def field_defaults(path: str) -> tuple[tuple[int, str], ...]:
    """(first minor, text) of each default in turn; ``()`` for a name that is no field.

    ``path`` is a field, or one inside it (``authentication.anonymous.enabled``).
    """
    top = fields.field(path.partition(".")[0])
    if top is None:
        return ()
    known = (minor for minor in fields.known_minors() if top.since <= minor <= top.last and defaults(minor))
    return tuple(_steps((minor, _text(path, minor)) for minor in known))


def _steps(texts: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    before = ""
    for minor, text in texts:
        if text != before:
            yield minor, text
        before = text


def _text(path: str, minor: int) -> str:
    with_config, without = _shown(value_at(with_file(minor, {}), path)), _shown(value_at(without_file(minor), path))
    text = with_config if with_config == without else f"{with_config} with --config, {without} without"
    return text + "".join(_by_gate(path, minor))


def _by_gate(path: str, minor: int) -> Iterator[str]:
    """The default while its gate has the other value."""
    for rule in gated(minor):
        if path in (rule.path[0], ".".join(rule.path)):
            on = feature_gates.default(rule.gate, minor)
            other = _shown(value_at(with_file(minor, {rule.gate: not on}), path))
            yield f"; {other} with the gate {rule.gate} {'off' if on else 'on'}"


def _shown(value: Value) -> str:
    if value is None:
        return NOT_SET
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


_CONFIG = "a field of the --config file (and of drop-ins where --config-dir is set)"
_FLAG = "on the kubelet's command line: KUBELET_EXTRA_ARGS, or ExecStart of its unit"


class What(StrEnum):
    FIELD = "field"
    FLAG = "flag"
    INTENT = "intent"


@dataclass(frozen=True, slots=True)
class Explanation:
    """``since``, ``last``: minors (``None``: no known bound; doubtful minors are left out). ``here``: for one minor."""

    name: str
    what: What
    kind: str
    purpose: str
    since: int | None
    last: int | None
    gone: str  # when it was removed, as far as known: "1.24", "after 1.20, by 1.36"; "" = it still exists
    here: str
    defaults: tuple[tuple[int, str], ...]
    lives: str
    homes: tuple[Row, ...]
    home_traps: tuple[tuple[str, str], ...]  # runtime, trap
    twins: tuple[str, ...]
    wins: str
    disruption: Disruption
    may_drain: bool  # a stricter value can reject pods that run
    not_ours: str  # why rollout does not set it; "" = it does
    traps: tuple[str, ...]
    source: str
    defects: tuple[Defect, ...] = ()

    @property
    def effect(self) -> SettingEffect | None:
        """What its change does; ``None`` for an intent, which has the rows of its keys."""
        return None if self.what is What.INTENT else of_setting(self.name)

    @property
    def every_trap(self) -> tuple[str, ...]:
        """Those of its homes too."""
        return (*self.traps, *(f"on {runtime}: {trap}" for runtime, trap in self.home_traps))


def explain(
    name: str,
    minor: int | None = None,
    runtime: Runtime | None = None,
    version: RuntimeVersion | None = None,
    own: tuple[Defect, ...] = (),
) -> Explanation:
    """Explains ``name``, for a kubelet 1.``minor`` and a ``runtime`` (and its ``version``) where they are given.

    ``own``: known defects of the project.

    ``UsageError`` ``setting-unknown`` for a name that no kubelet and no intent has, ``kubelet-unknown`` for a minor that the
    table does not contain.
    """
    if minor is not None and minor not in fields.known_minors():
        known = fields.known_minors()
        raise UsageError("kubelet-unknown", f"rollout knows kubelets 1.{known[0]} to 1.{known[-1]}, not 1.{minor}")
    explanation = _found(name)
    return replace(
        explanation,
        here=_here(explanation, minor),
        defaults=_defaults(explanation.defaults, minor),
        homes=tuple(row for row in explanation.homes if _is_for(row, runtime, version)),
        home_traps=tuple(trap for trap in explanation.home_traps if runtime is None or trap[0] == runtime.value),
        defects=tuple(
            row
            for row in about((*known_defects(), *own), _names(explanation))
            if _concerns(row, minor, runtime, version)
        ),
    )


def _names(explanation: Explanation) -> frozenset[str]:
    """Under which names conditions of known defects have this setting."""
    keys = (row.key for row in explanation.homes if row.key)
    return frozenset((explanation.name, *explanation.twins, *keys))


def _concerns(row: Defect, minor: int | None, runtime: Runtime | None, version: RuntimeVersion | None) -> bool:
    """Whether some kubelet of this minor, or this runtime, has the defect; without them: true."""
    if row.component == KUBELET:
        return minor is None or row.in_minor(1, minor)
    if runtime is not None and row.component in {each.value for each in Runtime} and row.component != runtime.value:
        return False
    return version is None or row.component != (runtime and runtime.value) or row.has(version.number)


def every_name() -> tuple[str, ...]:
    """All names that can be explained."""
    aliases = (alias for words in intent_words().values() for alias in words.aliases)
    return (*intents.INTENTS, *aliases, *fields.every_name(), *_inner())


def _is_for(row: Row, runtime: Runtime | None, version: RuntimeVersion | None) -> bool:
    if runtime is not None and row.runtime is not runtime:
        return False
    return version is None or row.since <= version.number < row.before


def _found(name: str) -> Explanation:
    intent = next((known for known, known_words in intent_words().items() if name in (known, *known_words.aliases)), "")
    if intent:
        words = intent_words()[intent]
        rows = tuple(row for row in ROWS if row.intent == intent)
        return Explanation(
            name=intent,
            what=What.INTENT,
            kind=words.kind,
            purpose=words.words.what,
            since=None,
            last=None,
            gone="",
            here="",
            defaults=(),
            lives="depends on the node's runtime",
            homes=rows,
            home_traps=tuple((runtime, trap) for runtime, traps in words.runtime_traps.items() for trap in traps),
            twins=(),
            wins="",
            disruption=worst(*(row.disruption for row in rows if not row.refusal)),
            may_drain=False,
            not_ours="",
            traps=words.words.traps,
            source=words.words.source,
        )
    if (flag := fields.flag(name) or fields.flag(f"--{name}")) is not None:
        last = None if flag.removed is None else flag.removed - 1
        twins = (flag.field,) if flag.field else ()
        explanation = _kubelets(flag.name, What.FLAG, flag.kind, flag.since, last, _FLAG, twins)
        twin = words_of(flag.field) if flag.field else SettingWords()
        said = words_of(flag.name)
        return replace(
            explanation,
            gone=flag.removed_text,
            purpose=said.what or twin.what,
            defaults=said.defaults or (field_defaults(flag.field) if flag.field else ()),
            traps=said.traps or twin.traps,
            source=said.source or twin.source,
        )
    if (field := fields.field(name)) is not None:
        return _field(field)
    if name in _inner():
        top = fields.field(name.partition(".")[0])
        around = _field(top) if top else None
        said = words_of(name)
        flags = _inner()[name]
        kind = next((flag.kind for flag in map(fields.flag, flags) if flag), _gated().get(name, ""))
        explanation = _kubelets(
            name, What.FIELD, kind, around.since if around else None, around.last if around else None, _CONFIG, flags
        )
        return replace(explanation, purpose=said.what or (f"part of {around.name}: {around.purpose}" if around else ""))
    hint = suggest.did_you_mean(name, (*every_name(), *references(), *(row.id for row in known_defects())))
    message = f"unknown setting {name!r}: not a field, a flag or an intent, and not the reference of a message"
    raise UsageError("setting-unknown", message, hint=hint)


def _inner() -> dict[str, tuple[str, ...]]:
    """``authentication.anonymous.enabled`` → the flags that override it.

    These are the fields inside other fields that a flag or a default of a gate names.
    """
    flags_of: dict[str, tuple[str, ...]] = dict.fromkeys(_gated(), ())
    for name in fields.every_name():
        flag = fields.flag(name)
        if flag is not None and "." in flag.field:
            flags_of[flag.field] = (*flags_of.get(flag.field, ()), name)
    return flags_of


def _gated() -> dict[str, str]:
    """The fields inside other fields with a default that depends on a gate, with their kinds."""
    rules = {rule.path: minor for minor in fields.known_minors() for rule in gated(minor) if rule.path[1:]}
    return {".".join(path): _kind_at(path, minor) for path, minor in rules.items()}


def _kind_at(path: tuple[str, ...], minor: int) -> str:
    kind = schema.FieldType(schema.Form.OBJECT, schema.ROOT)
    for name in path:
        kind = schema.fields_of(kind.type_name, minor)[name]
    return kind.form.value


def _field(field: fields.Field) -> Explanation:
    last = field.last if field.last < fields.known_minors()[-1] else None
    return _kubelets(field.name, What.FIELD, field.kind, field.since, last, _CONFIG, field.flags)


def _kubelets(
    name: str, what: What, kind: str, since: int | None, last: int | None, lives: str, twins: tuple[str, ...]
) -> Explanation:
    words = words_of(name)
    strict = not homes.MAY_REJECT_PODS.isdisjoint((name, *twins))
    wins = ("the flag overrides the field" if what is What.FIELD else "this flag overrides the field") if twins else ""
    return Explanation(
        name=name,
        what=what,
        kind=kind,
        purpose=words.what,
        since=since,
        last=last,
        gone=f"1.{last + 1}" if last else "",
        here="",
        defaults=field_defaults(name) if what is What.FIELD else words.defaults,
        lives=lives,
        homes=(),
        home_traps=(),
        twins=twins,
        wins=wins,
        disruption=Disruption.RESTART_KUBELET,
        may_drain=strict,
        not_ours=homes.NOT_OURS.get(name, ""),
        traps=words.traps,
        source=words.source,
    )


def _here(explanation: Explanation, minor: int | None) -> str:
    if minor is None or explanation.what is What.INTENT:
        return ""
    fatal = explanation.what is What.FLAG
    if explanation.since is not None and minor < explanation.since:
        return f"unknown for kubelet 1.{minor} (added later): {_consequence(fatal=fatal)}"
    if explanation.last is not None and minor > explanation.last:
        if " " in explanation.gone:
            return f"may be unknown for kubelet 1.{minor} (removed {explanation.gone}): {_consequence(fatal=fatal)}"
        return f"unknown for kubelet 1.{minor} (removed): {_consequence(fatal=fatal)}"
    return f"known to kubelet 1.{minor}"


def _consequence(*, fatal: bool) -> str:
    return "the kubelet would not start" if fatal else "the kubelet ignores it with a warning"


def _defaults(all_of_them: tuple[tuple[int, str], ...], minor: int | None) -> tuple[tuple[int, str], ...]:
    if minor is None:
        return all_of_them
    return tuple([entry for entry in all_of_them if entry[0] <= minor][-1:])
