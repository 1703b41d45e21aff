"""How a playbook writes a page."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rollout.core.reading.gate_keys import GateKeys, Url
from rollout.gates.page.query import HttpQuery


class PageKeys(GateKeys):
    http: Url | None = None
    status: Annotated[int, Field(ge=100, le=599)] | None = None
    contains: str | None = None

    def query(self, url: str) -> HttpQuery:  # noqa: ARG002 - the page's own is its kind's key
        return HttpQuery(self.http or "", self.status or 200, self.contains or "")
