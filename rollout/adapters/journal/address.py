"""Where a journal is: in a folder of this machine, or in a PostgreSQL that several machines share.

An address contains no password, because it shows up in process lists and shell histories. libpq finds passwords by
itself in PGPASSFILE (~/.pgpass) or in a service.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from rollout.core.text.terminal import printable
from rollout.errors import UsageError

SCHEMES = ("postgresql", "postgres")
_SECRETS = frozenset({"password", "sslpassword"})


@dataclass(frozen=True, slots=True)
class PostgresUrl:
    """``postgresql://user@host/database?…``, as libpq reads it. Only ``reading`` creates it."""

    url: str

    @classmethod
    def reading(cls, text: str) -> PostgresUrl:
        """``UsageError`` for an invalid URL or one with a password; the message never repeats the password."""
        try:
            parts = urlsplit(text)
            password, query = (
                parts.password,
                {name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)},
            )
        except ValueError:
            raise _no_url() from None
        if parts.scheme not in SCHEMES or not text.startswith(f"{parts.scheme}://"):
            raise _no_url()
        if password is not None or query & _SECRETS:
            hint = "put it into PGPASSFILE (~/.pgpass), or name a service: postgresql://?service=rollout"
            raise UsageError(
                "journal-password", "the journal's URL contains a password: other users could read it", hint=hint
            )
        return cls(text)

    def __str__(self) -> str:
        """For people: without options."""
        return printable(self.url.partition("?")[0], 200)


def _no_url() -> UsageError:
    return UsageError("journal-url", "--journal is not a PostgreSQL URL", hint="postgresql://user@host/database")
