"""Names of commands that were merged or renamed. They work in this version, and say on standard error what to type instead."""

from __future__ import annotations

from collections.abc import Sequence

OLD_NAMES = {
    "budget": ("diagnose", "pod"),
    "catch-up": ("resume", "--recover-only"),
    "completion": ("show", "completion"),
    "config": ("show", "config"),
    "engine": ("regions",),
    "forget": ("uninstall",),
    "freeze": ("cluster", "freeze"),
    "metrics": ("show", "metrics"),
    "recover": ("resume", "--recover-only"),
    "schema": ("show", "schema"),
    "unfreeze": ("cluster", "unfreeze"),
    "unlock": ("cluster", "unlock"),
    "watch-late": ("watch", "--late"),
}
"""Name → the words that are typed instead."""

_CLUSTER_WAS_AN_ARGUMENT = ("freeze", "unfreeze")
_TAKE_A_VALUE = (
    "--reason",
    "--ssh-config",
    "--sudo-password-file",
    "--engine",
    "--scheduler",
    "--certificates",
    "--kubeconfig",
    "--state",
    "--journal",
    "--output",
    "-o",
)


def renamed(words: Sequence[str]) -> list[str]:
    """A command line with today's names."""
    name, rest = (words[0], list(words[1:])) if words else ("", [])
    new = OLD_NAMES.get(name)
    if new is None:
        return list(words)
    if name in _CLUSTER_WAS_AN_ARGUMENT and not any(word.startswith("--cluster") for word in rest):
        rest = _with_cluster(rest)
    if name == "budget":  # its pod was an option
        rest = [word.removeprefix("--pod=") for word in rest if word != "--pod"]
    return [*new, *rest]


def _with_cluster(words: Sequence[str]) -> list[str]:
    """``rno --yes`` as ``--cluster rno --yes``: the first word that is neither an option nor its value."""
    for at, word in enumerate(words):
        if not word.startswith("-") and (at == 0 or words[at - 1] not in _TAKE_A_VALUE):
            return [*words[:at], "--cluster", *words[at:]]
    return list(words)


def told(words: Sequence[str]) -> str:
    """What is said of the old name that these words begin with; ``""``: it is none."""
    new = OLD_NAMES.get(words[0]) if words else None
    if new is None:
        return ""
    return f"`rollout {words[0]}` is now `rollout {' '.join(new)}`; the old name ends with the next version"
