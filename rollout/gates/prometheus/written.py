"""How a playbook writes a query of Prometheus."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from rollout.core.reading.gate_keys import GateKeys
from rollout.core.reading.schema_words import PERCENT
from rollout.core.reading.validation import wrong
from rollout.core.reading.value_types import choice
from rollout.core.text.terminal import printable
from rollout.gates.prometheus.query import NODES, PrometheusQuery, Worse

DEFAULT_TOLERANCE = 0.2
_SHARE = re.compile(r"(?P<number>[0-9]{1,4}(?:\.[0-9]{1,6})?) ?%")


def _query(value: str) -> str:
    if not value.strip():
        raise wrong("bad-query", "KEY is empty")
    return value


def _tolerance(value: object) -> float:
    match = _SHARE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise wrong("bad-share", f"KEY: `{printable(str(value), 60)}` is not a percentage; write for example 20%")
    return float(match["number"]) / 100


def _worse(value: object) -> Worse:
    return Worse(choice(value, tuple(way.value for way in Worse)))


Threshold = Annotated[float, Field(allow_inf_nan=False)]


class PrometheusKeys(GateKeys):
    takes_url = True

    prometheus: Annotated[str, AfterValidator(_query), Field(max_length=20_000)] | None = None
    at_most: Threshold | None = Field(None, alias="atMost")
    at_least: Threshold | None = Field(None, alias="atLeast")
    worse: Annotated[Worse, BeforeValidator(_worse)] | None = None
    tolerance: Annotated[float, BeforeValidator(_tolerance), PERCENT] | None = None

    def query(self, url: str) -> PrometheusQuery:
        query = self.prometheus or ""
        if self.at_most is None and self.at_least is None and self.worse is None:
            raise wrong("bad-gate", "KEY has no threshold", "set atMost, atLeast, or worse: higher")
        if self.worse is not None and NODES not in query:
            raise wrong("bad-gate", f"KEY compares nodes, but its query has no {NODES}", f'write {{node=~"{NODES}"}}')
        if self.worse is None and self.tolerance is not None:
            raise wrong("bad-gate", "KEY: `tolerance` goes with `worse`")
        tolerance = DEFAULT_TOLERANCE if self.tolerance is None else self.tolerance
        return PrometheusQuery(query, url, self.at_most, self.at_least, self.worse, tolerance)
