"""How a playbook writes what Alertmanager is asked."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from rollout.core.reading.gate_keys import GateKeys
from rollout.core.reading.validation import wrong
from rollout.core.reading.value_types import Duration, LabelName, between
from rollout.core.text.terminal import printable
from rollout.gates.alertmanager.query import AlertQuery

_MATCHER = re.compile(r"""\s*[A-Za-z_][A-Za-z0-9_.]*\s*(?:=~|!~|!=|=)\s*+(?:"(?:[^"\\\n]|\\.)*"|[^"{},\s=~!]*)\s*""")


def _matcher(value: str) -> str:
    if not _MATCHER.fullmatch(value):
        raise wrong(
            "bad-matcher", f"`{printable(value, 60)}` is not a matcher", "write for example 'severity=\"critical\"'"
        )
    return value.strip()


class AlertKeys(GateKeys):
    takes_url = True

    alertmanager: list[Annotated[str, AfterValidator(_matcher)]] | None = None
    silence: Annotated[Duration, between(60, 86_400, "between 1m and 24h")] | None = None
    node_label: LabelName | None = Field(None, alias="nodeLabel")

    def query(self, url: str) -> AlertQuery:
        return AlertQuery(tuple(self.alertmanager or ()), url, self.silence or 0.0, self.node_label or "node")
