"""Gates as written in a playbook. A bare name is a node gate; a wave gate names the source that it queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, create_model, model_validator
from pydantic.json_schema import SkipJsonSchema

from rollout.core.model.gate_kinds import known
from rollout.core.model.gates import Gate, GateQuery, GateScope
from rollout.core.reading.gate_keys import GateKeys, Timeout, Url, Words, WrittenGate
from rollout.core.reading.schema_words import OrWord, one_of
from rollout.core.reading.validation import Written, kind_of, wrong
from rollout.core.reading.value_types import Name, choice
from rollout.core.text.suggest import did_you_mean
from rollout.core.text.terminal import printable
from rollout.gates import table
from rollout.gates.command.query import CommandQuery

DEFAULT_TIMEOUT = 10.0


def _named(keys: type[Written], field: str) -> str:
    """A field as it is written."""
    return keys.model_fields[field].alias or field


_KEYS = {_named(keys, next(iter(keys.model_fields))): keys for keys in table.keys_of_waves()}
"""Kind → its keys. A command has none but those of every gate."""
_WAVE_ONLY = tuple(_KEYS)
_WAVE_KINDS = (*_WAVE_ONLY, CommandQuery.kind)
DEFAULTS = tuple(gate.name for gate in (*table.DEFAULT_GATES, *table.API_GATES))
"""The gates that may be switched off."""
BUILT_IN_GATES = tuple(kind for kind in known().queries if kind not in _WAVE_KINDS)


def _field(kind: str) -> str:
    return next(iter(_KEYS[kind].model_fields)) if kind in _KEYS else kind


def _goes_with(kind: str) -> tuple[str, ...]:
    """The fields of the other keys that a gate of this kind may have."""
    if kind not in _KEYS:
        return ()
    return (*list(_KEYS[kind].model_fields)[1:], *(("url",) if _KEYS[kind].takes_url else ()))


class NodeGate(WrittenGate):
    model_config = ConfigDict(json_schema_extra=one_of("command"))

    check: SkipJsonSchema[str | None] = None  # never written: see _node_gate
    command: Words | None = None
    name: Name | None = None
    timeout: Timeout | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.check is None) == (self.command is None):
            raise wrong("bad-gate", "KEY must be a gate's name or have a `command`")
        return self

    def gate(self) -> Gate:
        if self.check is not None:
            check: Callable[[str], GateQuery] = known().queries[self.check]
            query = check(self.check)
            seconds = table.API_SECONDS if query.asks_api else DEFAULT_TIMEOUT
            return Gate(query, GateScope.NODE, self.check, self.timeout or seconds)
        command = CommandQuery(tuple(self.command or ()))
        timeout = DEFAULT_TIMEOUT if self.timeout is None else self.timeout
        return Gate(command, GateScope.NODE, self.name or _called(command), timeout)


class _WaveGate(GateKeys):
    """What may be written for a gate of any kind. It also has the keys of the kinds: see ``WaveGate``."""

    model_config = ConfigDict(json_schema_extra=one_of(*_WAVE_KINDS))

    url: Url | None = None
    command: Words | None = None
    name: Name | None = None
    timeout: Timeout | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = self._kinds()
        if len(kinds) != 1:
            raise wrong("bad-gate", f"KEY must have one of {', '.join(_WAVE_KINDS)}")
        for kind in _WAVE_KINDS:
            for field in _goes_with(kind):
                if field not in _goes_with(kinds[0]) and getattr(self, field) is not None:
                    key = _named(type(self), field)
                    raise wrong("bad-gate", f"KEY: `{key}` goes with `{kind}`, not with `{kinds[0]}`")
        self._asks(kinds[0])
        return self

    def _kinds(self) -> list[str]:
        return [kind for kind in _WAVE_KINDS if getattr(self, _field(kind)) is not None]

    def _asks(self, kind: str) -> GateQuery:
        return _KEYS[kind].query(self, self.url or "") if kind in _KEYS else CommandQuery(tuple(self.command or ()))

    def gate(self) -> Gate:
        query = self._asks(self._kinds()[0])
        name = _called(query) if query.program else query.kind
        return Gate(query, GateScope.WAVE, self.name or name, DEFAULT_TIMEOUT if self.timeout is None else self.timeout)


def _node_gate(value: object) -> object:
    """``unit`` is short for ``{check: unit}``."""
    if isinstance(value, str):
        if value in _WAVE_ONLY:
            raise wrong("bad-gate", f"`{value}` is a gate of a wave, not of each node", "put it under `wave`")
        return {"check": choice(value, (*BUILT_IN_GATES, "{command: […]}"))}
    if isinstance(value, dict) and (kind := next((kind for kind in _WAVE_ONLY if kind in value), "")):
        raise wrong("bad-gate", f"`{kind}` is a gate of a wave, not of each node", "put it under `wave`")
    return value


def _without(value: object) -> str:
    """The name of a default gate."""
    if not isinstance(value, str):
        raise wrong("wrong-type", f"KEY must be the name of a gate that is on by default, not {kind_of(value)}")
    return choice(value, DEFAULTS)


def _wave_gate(value: object) -> object:
    """A bare name is not a wave gate."""
    if isinstance(value, str):
        if value in BUILT_IN_GATES:
            raise wrong("bad-gate", f"`{value}` is a gate of each node, not of a wave", "put it under `node`")
        meant = did_you_mean(value, _WAVE_KINDS)
        raise wrong("bad-gate", f"KEY must be a map with one of {', '.join(_WAVE_KINDS)}", meant)
    return value


def _called(query: GateQuery) -> str:
    return printable(query.program[0].rsplit("/", 1)[-1], 60)


if TYPE_CHECKING:
    WaveGate = _WaveGate
else:  # pydantic lists the fields of the last base first
    WaveGate = create_model(
        "WaveGate",
        __base__=(_WaveGate, *reversed(_KEYS.values())),
        __doc__=f"One of {', '.join(f'``{kind}``' for kind in _WAVE_ONLY)} and ``{CommandQuery.kind}``, with its keys.",
    )

NodeGateOrWord = Annotated[NodeGate, BeforeValidator(_node_gate), OrWord(BUILT_IN_GATES)]


class WrittenGates(Written):
    node: Annotated[list[NodeGateOrWord], Field(min_length=1)] | None = None
    wave: list[Annotated[WaveGate, BeforeValidator(_wave_gate)]] = Field(default_factory=list)
    without: list[Annotated[str, BeforeValidator(_without), WithJsonSchema({"enum": [*DEFAULTS]})]] = Field(
        default_factory=list
    )
