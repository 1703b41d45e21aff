"""The playbook file's shape, key by key. What the keys mean together is ``playbook_file``'s."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from rollout.core.playbook import Cause, GateKind, RevertScope
from rollout.core.suggest import did_you_mean
from rollout.core.terminal import printable
from rollout.core.words import Duration, Name, Percent, ShareText, between
from rollout.core.written import Written, wrong

_WAVES = ("canary", "perRack", "upTo", "rest")
_WITH_KEYS = frozenset({GateKind.PROMETHEUS, GateKind.ALERTMANAGER, GateKind.HTTP, GateKind.COMMAND})
_BUILT_IN_GATES = tuple(kind.value for kind in GateKind if kind not in _WITH_KEYS)
_DAY = 86_400.0

Soak = Annotated[Duration, between(0, _DAY, "between 0s and 24h")]
Guard = Annotated[Duration, between(5, 180, "between 5s and 180s")]
Timeout = Annotated[Duration, between(0.1, 600, "between 100ms and 10m")]


def _choice(value: object, choices: tuple[str, ...]) -> str:
    if value not in choices:
        shown = printable(str(value), 60)
        raise wrong(
            "bad-choice",
            f"KEY must be {', '.join(choices[:-1])} or {choices[-1]}, not `{shown}`",
            did_you_mean(shown, choices),
        )
    return str(value)


def _wave(value: object) -> object:
    """``canary`` is short for ``{canary: true}``."""
    if not isinstance(value, str):
        return value
    if value in ("perRack", "upTo"):
        raise wrong("bad-wave", f"`{value}` needs a value", "perRack: 1" if value == "perRack" else "upTo: 5%")
    return {_choice(value, _WAVES): True}


def _gate(value: object) -> object:
    """``unit`` is short for ``{check: unit}``."""
    return {"check": _choice(value, (*_BUILT_IN_GATES, "{command: […]}"))} if isinstance(value, str) else value


def _revert(value: object) -> RevertScope:
    return RevertScope(_choice(value, tuple(scope.value for scope in RevertScope)))


def _cause(value: object) -> Cause:
    return Cause(_choice(value, tuple(cause.value for cause in Cause)))


class WrittenWave(Written):
    """One of ``canary``, ``rest``, ``perRack: COUNT``, ``upTo: PERCENT``, with a ``soak`` of its own if said."""

    canary: Literal[True] | None = None
    per_rack: Annotated[int, Field(ge=1, le=10_000)] | None = Field(None, alias="perRack")
    up_to: Percent | None = Field(None, alias="upTo")
    rest: Literal[True] | None = None
    soak: Soak | None = None
    hold: bool = False

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if sum(value is not None for value in (self.canary, self.per_rack, self.up_to, self.rest)) != 1:
            raise wrong("bad-wave", "KEY must be one of canary, perRack, upTo or rest")
        return self


class WrittenLimits(Written):
    per_rack: ShareText | None = Field(None, alias="perRack")
    per_zone: ShareText | None = Field(None, alias="perZone")
    in_flight: Annotated[int, Field(ge=1, le=10_000)] | None = Field(None, alias="inFlight")
    pace: Annotated[float, Field(gt=0, le=1_000)] | None = None
    preflight: ShareText | None = None


class Shares(Written):
    wave: ShareText | None = None
    rack: ShareText | None = None
    fleet: ShareText | None = None


class WrittenBudgets(Shares):
    """Shares for all causes together; a cause under ``causes`` leaves them where it has a share of its own."""

    causes: dict[Annotated[Cause, BeforeValidator(_cause)], Shares] = Field(default_factory=dict)


class NodeGate(Written):
    check: str | None = None  # never written: see _gate
    command: Annotated[list[str], Field(min_length=1)] | None = None
    name: Name | None = None
    timeout: Timeout | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.check is None) == (self.command is None):
            raise wrong("bad-gate", "KEY must be a gate's name or have a `command`")
        return self


class WaveGate(Written):
    command: Annotated[list[str], Field(min_length=1)]
    name: Name | None = None
    timeout: Timeout | None = None


class WrittenGates(Written):
    node: Annotated[list[Annotated[NodeGate, BeforeValidator(_gate)]], Field(min_length=1)] | None = None
    wave: list[WaveGate] = Field(default_factory=list)


class OnFailure(Written):
    revert: Annotated[RevertScope, BeforeValidator(_revert)] = RevertScope.WAVE


class WrittenTemplates(Written):
    kubelet_config: str = Field("kubelet-config.yaml.j2", alias="kubeletConfig")
    flags_env: str = Field("kubelet-flags.env.j2", alias="flagsEnv")
    drop_in: str = Field("kubelet-drop-in.conf.j2", alias="dropIn")


class Playbook(Written):
    stand_ins: ClassVar[Mapping[str, Any]] = {"name": "name", "settings": {}}

    name: Name
    settings: dict[str, Any]  # read with places by words.read_settings
    templates: WrittenTemplates = Field(default_factory=lambda: WrittenTemplates.model_validate({}))
    waves: Annotated[list[Annotated[WrittenWave, BeforeValidator(_wave)]], Field(min_length=1)] | None = None
    limits: WrittenLimits = Field(default_factory=lambda: WrittenLimits.model_validate({}))
    budgets: WrittenBudgets = WrittenBudgets()
    gates: WrittenGates = WrittenGates()
    on_failure: OnFailure = Field(OnFailure(), alias="onFailure")
    soak: Soak = 60.0
    passes: Annotated[int, Field(ge=1, le=100)] = 3
    guard: Guard = 120.0
    keep: Annotated[int, Field(ge=1, le=50)] = 3
    rehearsal: bool = True
    control_plane: bool = Field(default=False, alias="controlPlane")
    cordoned: bool = False
