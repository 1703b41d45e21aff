"""The command that plans nodes again, as they were planned: with the playbook and the nodes of that plan."""

from __future__ import annotations

import shlex

SAME_SETTINGS = "with the same --set options (if any)"
"""A plan records the results of ``--set``, not its words. A command without them would plan another change."""


def plan_again(cluster: str, limit: str, playbook: str) -> str:
    """The command that plans nodes anew; ``SAME_SETTINGS`` stands beside it. ``limit`` ``""``: all; ``playbook`` ``""``: not known."""
    chosen = f" --limit {shlex.quote(limit)}" if limit else ""
    return f"rollout plan --cluster {cluster} --playbook {shlex.quote(playbook) if playbook else 'NAME'}{chosen}"
