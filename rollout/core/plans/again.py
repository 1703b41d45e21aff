"""The command that plans nodes again, as they were planned: with the playbook, the settings and the nodes of that plan."""

from __future__ import annotations

import shlex

from rollout.core.model.plan import PlanWords
from rollout.core.text.redaction import without_secrets
from rollout.core.text.terminal import printable


def plan_again(cluster: str, limit: str, words: PlanWords) -> str:
    """The command that plans nodes anew; ``same_settings`` stands beside it. ``limit`` ``""``: all."""
    chosen = f" --limit {shlex.quote(limit)}" if limit else ""
    said = "".join(f" --set {shlex.quote(each)}" for each in words.overrides or () if _may_be_shown(each))
    playbook = shlex.quote(words.playbook) if words.playbook else "NAME"
    return f"rollout plan --cluster {cluster} --playbook {playbook}{said}{chosen}"


def same_settings(words: PlanWords) -> str:
    """What a person must add to ``plan_again``, which would plan another change without it; ``""``: nothing."""
    if words.overrides is not None and all(map(_may_be_shown, words.overrides)):
        return ""
    return ", with each --set of the first plan"


def _may_be_shown(override: str) -> bool:
    """Whether it is one line without a secret, and can be typed as it stands."""
    return "`" not in override and without_secrets(printable(override, len(override))) == override
