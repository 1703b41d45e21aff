"""Gates as written in a playbook. A bare name is a node gate; a wave gate names the source that it queries."""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Annotated, Self, assert_never, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from rollout.core.model.gates import (
    API_GATES,
    NODES,
    AlertQuery,
    Gate,
    GateKind,
    GateScope,
    HttpQuery,
    PrometheusQuery,
    WaveKind,
    Worse,
)
from rollout.core.reading.schema_words import PERCENT, one_of, text
from rollout.core.reading.validation import Written, kind_of, wrong
from rollout.core.reading.value_types import Duration, LabelName, Name, between, choice
from rollout.core.text.suggest import did_you_mean
from rollout.core.text.terminal import printable

DEFAULT_TIMEOUT = 10.0
DEFAULT_TOLERANCE = 0.2
API_TIMEOUT = 20.0
"""Seconds to read a node through the API server: three requests, each of which is slow on a busy server."""

_WAVE_KINDS: tuple[WaveKind, ...] = get_args(WaveKind)
BUILT_IN_GATES = tuple(kind.value for kind in GateKind if kind not in _WAVE_KINDS)
_LONGEST_URL = 2_000
_MATCHER = re.compile(r"""\s*[A-Za-z_][A-Za-z0-9_.]*\s*(?:=~|!~|!=|=)\s*+(?:"(?:[^"\\\n]|\\.)*"|[^"{},\s=~!]*)\s*""")
_SHARE = re.compile(r"(?P<number>[0-9]{1,4}(?:\.[0-9]{1,6})?) ?%")


def _url(value: object) -> str:
    if not isinstance(value, str):
        raise wrong("wrong-type", f"KEY must be a URL, not {kind_of(value)}")
    try:
        parts = urlsplit(value)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        fits = False
    if not fits or len(value) > _LONGEST_URL or not value.isascii() or not value.isprintable() or " " in value:
        raise wrong(
            "bad-url", f"KEY: `{printable(value, 80)}` is not a URL; write for example https://prometheus.example.net"
        )
    if parts.username is not None:
        raise wrong(
            "secret-in-url",
            "KEY must not contain a user or password: plans and journals store the URL",
            "use tokenFile",
        )
    return value


def _matcher(value: str) -> str:
    if not _MATCHER.fullmatch(value):
        raise wrong(
            "bad-matcher", f"`{printable(value, 60)}` is not a matcher", "write for example 'severity=\"critical\"'"
        )
    return value.strip()


def _tolerance(value: object) -> float:
    match = _SHARE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise wrong("bad-share", f"KEY: `{printable(str(value), 60)}` is not a percentage; write for example 20%")
    return float(match["number"]) / 100


def _worse(value: object) -> Worse:
    return Worse(choice(value, tuple(way.value for way in Worse)))


def _query(value: str) -> str:
    if not value.strip():
        raise wrong("bad-query", "KEY is empty")
    return value


Timeout = Annotated[Duration, between(0.1, 600, "between 100ms and 10m")]
Url = Annotated[str, BeforeValidator(_url), text("https?://[^ ]+")]
Words = Annotated[list[str], Field(min_length=1)]
Threshold = Annotated[float, Field(allow_inf_nan=False)]


def _goes_with(kind: WaveKind) -> Set[str]:
    """The other keys that a gate of this kind may have."""
    match kind:
        case GateKind.PROMETHEUS:
            return {"at_most", "at_least", "worse", "tolerance", "url"}
        case GateKind.ALERTMANAGER:
            return {"silence", "node_label", "url"}
        case GateKind.HTTP:
            return {"status", "contains"}
        case GateKind.COMMAND:
            return frozenset()
        case _ as never:
            assert_never(never)


class NodeGate(Written):
    model_config = ConfigDict(json_schema_extra=one_of("command"))

    check: SkipJsonSchema[str | None] = None  # never written: see node_gate
    command: Words | None = None
    name: Name | None = None
    timeout: Timeout | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.check is None) == (self.command is None):
            raise wrong("bad-gate", "KEY must be a gate's name or have a `command`")
        return self

    def gate(self) -> Gate:
        """The gate that it defines."""
        if self.check is not None:
            kind = GateKind(self.check)
            seconds = API_TIMEOUT if kind in API_GATES else DEFAULT_TIMEOUT
            return Gate(kind, GateScope.NODE, kind.value, (), self.timeout or seconds)
        command = tuple(self.command or ())
        timeout = DEFAULT_TIMEOUT if self.timeout is None else self.timeout
        return Gate(GateKind.COMMAND, GateScope.NODE, self.name or _called(command), command, timeout)


class WaveGate(Written):
    """One of ``prometheus``, ``alertmanager``, ``http`` and ``command``, with its keys."""

    model_config = ConfigDict(json_schema_extra=one_of(*(kind.value for kind in _WAVE_KINDS)))

    prometheus: Annotated[str, AfterValidator(_query), Field(max_length=20_000)] | None = None
    at_most: Threshold | None = Field(None, alias="atMost")
    at_least: Threshold | None = Field(None, alias="atLeast")
    worse: Annotated[Worse, BeforeValidator(_worse)] | None = None
    tolerance: Annotated[float, BeforeValidator(_tolerance), PERCENT] | None = None
    alertmanager: list[Annotated[str, AfterValidator(_matcher)]] | None = None
    silence: Annotated[Duration, between(60, 86_400, "between 1m and 24h")] | None = None
    node_label: LabelName | None = Field(None, alias="nodeLabel")
    http: Url | None = None
    status: Annotated[int, Field(ge=100, le=599)] | None = None
    contains: str | None = None
    url: Url | None = None
    command: Words | None = None
    name: Name | None = None
    timeout: Timeout | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = [kind for kind in _WAVE_KINDS if getattr(self, kind) is not None]
        if len(kinds) != 1:
            raise wrong("bad-gate", f"KEY must have one of {', '.join(_WAVE_KINDS)}")
        for kind in _WAVE_KINDS:
            for key in _goes_with(kind) - _goes_with(kinds[0]):
                if kind != kinds[0] and getattr(self, key) is not None:
                    raise wrong("bad-gate", f"KEY: `{_alias(key)}` goes with `{kind}`, not with `{kinds[0]}`")
        self._check_query()
        return self

    def _check_query(self) -> None:
        if self.prometheus is None:
            return
        if self.at_most is None and self.at_least is None and self.worse is None:
            raise wrong("bad-gate", "KEY has no threshold", "set atMost, atLeast, or worse: higher")
        if self.worse is not None and NODES not in self.prometheus:
            raise wrong("bad-gate", f"KEY compares nodes, but its query has no {NODES}", f'write {{node=~"{NODES}"}}')
        if self.worse is None and self.tolerance is not None:
            raise wrong("bad-gate", "KEY: `tolerance` goes with `worse`")

    def gate(self) -> Gate:
        """The gate that it defines."""
        kind = next(kind for kind in _WAVE_KINDS if getattr(self, kind) is not None)
        command = tuple(self.command or ())
        return Gate(
            kind,
            GateScope.WAVE,
            self.name or (_called(command) if command else kind.value),
            command,
            DEFAULT_TIMEOUT if self.timeout is None else self.timeout,
            prometheus=self._prometheus(),
            alertmanager=self._alertmanager(),
            http=HttpQuery(self.http, self.status or 200, self.contains or "") if self.http else None,
        )

    def _prometheus(self) -> PrometheusQuery | None:
        if self.prometheus is None:
            return None
        tolerance = DEFAULT_TOLERANCE if self.tolerance is None else self.tolerance
        return PrometheusQuery(self.prometheus, self.url or "", self.at_most, self.at_least, self.worse, tolerance)

    def _alertmanager(self) -> AlertQuery | None:
        if self.alertmanager is None:
            return None
        return AlertQuery(tuple(self.alertmanager), self.url or "", self.silence or 0.0, self.node_label or "node")


def node_gate(value: object) -> object:
    """``unit`` is short for ``{check: unit}``."""
    if isinstance(value, str):
        if value in _WAVE_KINDS[:-1]:
            raise wrong("bad-gate", f"`{value}` is a gate of a wave, not of each node", "put it under `wave`")
        return {"check": choice(value, (*BUILT_IN_GATES, "{command: […]}"))}
    if isinstance(value, dict) and (kind := next((kind for kind in _WAVE_KINDS[:-1] if kind in value), "")):
        raise wrong("bad-gate", f"`{kind}` is a gate of a wave, not of each node", "put it under `wave`")
    return value


def wave_gate(value: object) -> object:
    """A bare name is not a wave gate."""
    if isinstance(value, str):
        if value in BUILT_IN_GATES:
            raise wrong("bad-gate", f"`{value}` is a gate of each node, not of a wave", "put it under `node`")
        meant = did_you_mean(value, _WAVE_KINDS)
        raise wrong("bad-gate", f"KEY must be a map with one of {', '.join(_WAVE_KINDS)}", meant)
    return value


def _called(command: tuple[str, ...]) -> str:
    return printable(command[0].rsplit("/", 1)[-1], 60)


def _alias(key: str) -> str:
    return WaveGate.model_fields[key].alias or key
