"""The playbook file's shape, key by key. ``playbook_file`` checks the keys together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from rollout.core.model.gate_kinds import known
from rollout.core.model.playbook import (
    ACCEPTED_BY_REFERENCE,
    DEFAULT_DRAIN,
    DEFAULT_PULLS,
    Busy,
    Cause,
    Disruption,
    EvictToo,
    OnLateHarm,
    RevertScope,
    Shadowed,
)
from rollout.core.reading.condition_keys import WrittenConditions
from rollout.core.reading.schema_words import SETTINGS, OrDuration, OrName, OrWord, any_of, one_of
from rollout.core.reading.validation import Written, wrong
from rollout.core.reading.value_types import Duration, Name, Percent, Registry, ShareText, between, choice

_WAVES = ("canary", "perRack", "upTo", "rest")
_DAY = 86_400.0
_MONTH = 30 * _DAY
_MOST_ASKED = 10_000_000

DISRUPTIONS = tuple(kind.value for kind in Disruption)

_ACCEPTABLE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+|--[a-z][a-z-]*|/[^ ]+|[a-z][A-Za-z0-9]*(\.[^. ]+)*")
"""A reference or a known defect, a flag, a file, a field or a part of it."""

Soak = Annotated[Duration, between(0, _DAY, "between 0s and 24h")]
Guard = Annotated[Duration, between(5, 180, "between 5s and 180s")]


def _wave(value: object) -> object:
    """``canary`` is short for ``{canary: true}``."""
    if not isinstance(value, str):
        return value
    if value in ("perRack", "upTo"):
        raise wrong("bad-wave", f"`{value}` needs a value", "perRack: 1" if value == "perRack" else "upTo: 5%")
    return {choice(value, _WAVES): True}


def _revert(value: object) -> RevertScope:
    return RevertScope(choice(value, tuple(scope.value for scope in RevertScope)))


def _cause(value: object) -> Cause:
    return Cause(choice(value, tuple(cause.value for cause in Cause)))


def _disruption(value: object) -> Disruption:
    return Disruption(choice(value, DISRUPTIONS))


def _shadowed(value: object) -> Shadowed:
    return Shadowed(choice(value, tuple(member.value for member in Shadowed)))


def _on_late_harm(value: object) -> OnLateHarm:
    return OnLateHarm(choice(value, tuple(member.value for member in OnLateHarm)))


def _busy(value: object) -> Busy:
    return Busy(choice(value, tuple(member.value for member in Busy)))


def _pulls(value: object) -> object:
    """``override`` is short for ``{within: 0s, then: override}``, ``skip`` likewise."""
    return {"within": "0s", "then": _busy(value)} if isinstance(value, str) else value


def _drain(value: object) -> object:
    """``15m`` is short for ``{within: 15m}``."""
    return {"within": value} if isinstance(value, str) else value


def _evict_too(value: object) -> EvictToo:
    return EvictToo(choice(value, tuple(kind.value for kind in EvictToo)))


def _accepted(value: object) -> object:
    """A bare name is short for ``{setting: NAME}``."""
    return {"setting": value} if isinstance(value, str) else value


def _acceptable(value: object) -> str:
    if not isinstance(value, str) or not _ACCEPTABLE.fullmatch(value):
        raise wrong(
            "bad-accept",
            "KEY names nothing that can be accepted",
            f"name a setting, a file, a known defect, or one of {', '.join(ACCEPTED_BY_REFERENCE)}",
        )
    return value


class WrittenData(Written):
    """How many pods must start, and how many image pulls must succeed, on the nodes of a wave before its soak ends.

    At least one of the two is set. ``within``: how long they may take.
    """

    model_config = ConfigDict(json_schema_extra=any_of("podStarts", "pulls"))

    pod_starts: Annotated[int, Field(ge=1, le=_MOST_ASKED)] | None = Field(None, alias="podStarts")
    pulls: Annotated[int, Field(ge=1, le=_MOST_ASKED)] | None = None
    within: Annotated[Duration, between(1, _DAY, "between 1s and 24h")] = 1800.0

    @model_validator(mode="after")
    def _demands_something(self) -> Self:
        if self.pod_starts is None and self.pulls is None:
            raise wrong("no-data-demanded", "KEY must have podStarts, pulls or both")
        return self


class WrittenWave(Written):
    """One of ``canary``, ``rest``, ``perRack: COUNT``, ``upTo: PERCENT``, with a soak of its own if set."""

    model_config = ConfigDict(json_schema_extra=one_of("canary", "perRack", "upTo", "rest"))

    canary: Literal[True] | None = None
    per_rack: Annotated[int, Field(ge=1, le=10_000)] | None = Field(None, alias="perRack")
    up_to: Percent | None = Field(None, alias="upTo")
    rest: Literal[True] | None = None
    soak: Soak | None = None
    must_have_data: WrittenData | None = Field(None, alias="mustHaveData")
    hold: bool = False

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if sum(value is not None for value in (self.canary, self.per_rack, self.up_to, self.rest)) != 1:
            raise wrong("bad-wave", "KEY must be one of canary, perRack, upTo or rest")
        return self


Wave = Annotated[WrittenWave, BeforeValidator(_wave), OrWord(("canary", "rest"))]


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
    """Shares for all causes together; a cause with its own share under ``causes`` does not count there."""

    causes: dict[Annotated[Cause, BeforeValidator(_cause)], Shares] = Field(default_factory=dict)


if TYPE_CHECKING:
    from rollout.core.reading.gate_keys import AnyGates as WrittenGates
else:
    WrittenGates = known().written()


class WrittenPulls(Written):
    """How long rollout waits for a node that pulls images, and what happens if it still pulls then."""

    within: Annotated[Duration, between(0, _DAY, "between 0s and 24h")] = DEFAULT_PULLS.within
    then: Annotated[Busy, BeforeValidator(_busy)] = DEFAULT_PULLS.then


EvictTooWord = Annotated[
    EvictToo, BeforeValidator(_evict_too), WithJsonSchema({"enum": [kind.value for kind in EvictToo]})
]


class WrittenDrain(Written):
    """How long a drain may take, and which pods are evicted although the eviction loses them or their data."""

    within: Annotated[Duration, between(1, _DAY, "between 1s and 24h")] = DEFAULT_DRAIN.within
    evict_too: list[EvictTooWord] = Field(default_factory=list, alias="evictToo")


class WrittenCap(Written):
    """The most pulls of the nodes of one zone (``perZone``), else of the fleet, from one registry, else from each."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["parallelPulls"]}, {"required": ["qps"]}]})

    registry: Registry | None = None
    per_zone: bool = Field(default=False, alias="perZone")
    parallel_pulls: Annotated[int, Field(ge=1, le=_MOST_ASKED)] | None = Field(None, alias="parallelPulls")
    qps: Annotated[int, Field(ge=1, le=_MOST_ASKED)] | None = None

    @model_validator(mode="after")
    def _caps_something(self) -> Self:
        if self.parallel_pulls is None and self.qps is None:
            raise wrong("bad-cap", "KEY caps nothing", "set parallelPulls, qps or both")
        return self


class WrittenAccept(Written):
    """A refusal that does not count: its setting, file or reference, and the reason for the acceptance."""

    setting: Annotated[
        str, BeforeValidator(_acceptable), WithJsonSchema({"type": "string", "pattern": f"^({_ACCEPTABLE.pattern})$"})
    ]
    reason: str = ""


class OnFailure(Written):
    revert: Annotated[RevertScope, BeforeValidator(_revert)] = RevertScope.WAVE


class WrittenTemplates(Written):
    kubelet_config: str = Field("kubelet-config.yaml.j2", alias="kubeletConfig")
    flags_env: str = Field("kubelet-flags.env.j2", alias="flagsEnv")
    drop_in: str = Field("kubelet-drop-in.conf.j2", alias="dropIn")


class _Policy(Written):
    stand_ins: ClassVar[Mapping[str, Any]] = {"name": "name", "settings": {}}

    name: Name
    settings: Annotated[dict[str, Any], SETTINGS]  # read with places by value_types.read_settings
    templates: WrittenTemplates = Field(default_factory=lambda: WrittenTemplates.model_validate({}))
    waves: Annotated[list[Wave], Field(min_length=1)] | None = None
    limits: WrittenLimits = Field(default_factory=lambda: WrittenLimits.model_validate({}))
    budgets: WrittenBudgets = WrittenBudgets()
    gates: WrittenGates = WrittenGates()
    on_failure: OnFailure = Field(OnFailure(), alias="onFailure")
    soak: Soak = 60.0
    must_have_data: WrittenData | None = Field(None, alias="mustHaveData")
    passes: Annotated[int, Field(ge=1, le=100)] = 3
    guard: Guard = 120.0
    keep: Annotated[int, Field(ge=1, le=50)] = 3
    rehearsal: bool = True
    control_plane: bool = Field(default=False, alias="controlPlane")
    cordoned: bool = False
    disruption: Annotated[Disruption, BeforeValidator(_disruption), WithJsonSchema({"enum": [*DISRUPTIONS]})] = (
        Disruption.RESTART_KUBELET
    )
    drain: Annotated[WrittenDrain, BeforeValidator(_drain), OrDuration()] = Field(
        default_factory=lambda: WrittenDrain.model_validate({})
    )
    pulls_in_flight: Annotated[WrittenPulls, BeforeValidator(_pulls), OrWord(("skip", "override"))] = Field(
        default_factory=lambda: WrittenPulls.model_validate({}), alias="pullsInFlight"
    )
    shadowed_by_flag: Annotated[Shadowed, BeforeValidator(_shadowed)] = Field(Shadowed.REFUSE, alias="shadowedByFlag")
    kubeadm_config_map: bool = Field(default=False, alias="kubeadmConfigMap")
    accept: list[Annotated[WrittenAccept, BeforeValidator(_accepted), OrName()]] = Field(default_factory=list)
    registry_caps: list[WrittenCap] = Field(default_factory=list, alias="registryCaps")


class Playbook(WrittenConditions, _Policy):  # pydantic lists the fields of the last base first
    watch_for: Annotated[Duration, between(60, _MONTH, "between 1m and 720h")] | None = Field(None, alias="watchFor")
    on_late_harm: Annotated[OnLateHarm, BeforeValidator(_on_late_harm)] | None = Field(None, alias="onLateHarm")

    @model_validator(mode="after")
    def _watched(self) -> Self:
        if self.on_late_harm is not None and self.watch_for is None:
            raise wrong("bad-late-harm", "`onLateHarm` needs `watchFor`", "watchFor: 72h")
        return self
