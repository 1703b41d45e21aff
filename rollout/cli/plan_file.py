"""A plan file that is named on the command line."""

from __future__ import annotations

import re
from pathlib import Path

import click

from rollout.core.model.plan import Plan
from rollout.core.plans import plan_codec
from rollout.errors import UsageError

_DIGEST = re.compile(r"[0-9a-f]{12,64}")


def _given_digest(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str:
    """An empty digest is a mistake, such as an unset shell variable. It never means any plan."""
    if value is None:
        return ""
    if not _DIGEST.fullmatch(value.lower()):
        raise UsageError(
            "digest-not-usable",
            f"--digest takes 12 to 64 hexadecimal digits of the plan's digest, not {value[:80]!r}",
            hint="`rollout plan` prints the digest",
        )
    return value.lower()


digest_option = click.option(
    "--digest",
    default=None,
    metavar="HEX",
    callback=_given_digest,
    help="Accept only the plan with this digest, as `rollout plan` printed it (at least 12 digits).",
)


def check_digest(plan: Plan, digest: str, path: Path) -> None:
    """``UsageError`` if the file contains another plan than ``digest`` names (a prefix is enough; ``""``: any plan)."""
    found = plan_codec.digest(plan)
    if not found.startswith(digest):
        raise UsageError(
            "plan-digest",
            f"nothing was touched: {path} is the plan {found}, not the plan {digest} that --digest names",
            hint="apply the file that was reviewed, or review this one",
        )
