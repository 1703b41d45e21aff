"""What a kind of wave gate adds to a playbook, and the types of its values."""

from __future__ import annotations

from typing import Annotated, ClassVar
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field

from rollout.core.model.gates import Gate, GateQuery
from rollout.core.reading.schema_words import text
from rollout.core.reading.validation import Written, kind_of, wrong
from rollout.core.reading.value_types import Duration, between
from rollout.core.text.terminal import printable

_LONGEST_URL = 2_000


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


Timeout = Annotated[Duration, between(0.1, 600, "between 100ms and 10m")]
Url = Annotated[str, BeforeValidator(_url), text("https?://[^ ]+")]
Words = Annotated[list[str], Field(min_length=1)]


class WrittenGate(Written):
    """A gate as written."""

    def gate(self) -> Gate:
        """The gate that it defines."""
        raise NotImplementedError


class GateKeys(WrittenGate):
    """The keys of one kind; the first has the name of the kind, and only a gate of this kind has it.

    ``takes_url``: with ``url`` a gate asks another server than the inventory's. A subclass is a part of the model of all wave gates.
    """

    takes_url: ClassVar[bool] = False

    def query(self, url: str) -> GateQuery:
        """What a gate with these keys asks. Raises what ``wrong`` makes if they do not fit together. ``url`` ``""``: not set."""
        raise NotImplementedError


class AnyGates(Written):
    """The ``gates`` of a playbook; ``rollout.gates.written`` has the model with the keys of all kinds."""

    node: list[WrittenGate] | None = None
    wave: list[WrittenGate] = Field(default_factory=list)
    without: list[str] = Field(default_factory=list)
