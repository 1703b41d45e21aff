"""Whether rollout and the kubelet agree on a case, and the differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rollout.kubelet.configuration.outcome import KubeletOutcome, MessageLevel
from rollout.kubelet.configuration.startup import outcome
from rollout.kubelet.versions import known
from tests.kubelet.real_kubelet.cases import Case
from tests.kubelet.real_kubelet.verdict import Effective, Verdict

KUBELET = known("1.20.2")
OWN_CERTIFICATE = ("tlsCertFile", "tlsPrivateKeyFile")
"""If they are not set, a kubelet makes a certificate and writes these paths into its configuration."""


def disagreements(case: Case, verdict: Verdict) -> tuple[str, ...]:
    """Each difference in a line of its own; none: we agree."""
    return tuple(_differences(verdict, outcome(KUBELET, case.sources)))


def _differences(verdict: Verdict, ours: KubeletOutcome) -> Iterator[str]:
    if verdict.starts != ours.starts:
        yield f"the kubelet {_does(verdict.starts)}{_because(verdict.said)}; rollout: it {_does(ours.starts)}{_because(_fatal(ours))}"
    elif verdict.starts:
        yield from _warnings(verdict, ours)
        yield from _effective(verdict.effective, ours.effective)
    elif verdict.said.startswith(("invalid configuration: ", "[")):
        yield from _complaints(verdict.said, ours)


def _complaints(said: str, ours: KubeletOutcome) -> Iterator[str]:
    """Validation reports all errors at once, in an order of its own; other refusals are reported one at a time."""
    texts = sorted(
        (message.text for message in ours.messages if message.level is MessageLevel.FATAL), key=len, reverse=True
    )
    if any(text.startswith("failed to load") for text in texts):
        return  # refused a step earlier: a kubelet's decoder accepts apiVersion __internal, which is not used in files
    left = said.removeprefix("[").removesuffix("]")
    for text in texts:
        if text not in left:
            yield f"the kubelet does not report {text!r}, but {said!r}"
        left = left.replace(text, "", 1)
    if left.strip(", "):
        yield f"the kubelet also reports {left!r}"


def _does(starts: bool) -> str:
    return "starts" if starts else "does not start"


def _because(said: str) -> str:
    return f" ({' '.join(said.split())[:300]})" if said else ""


def _fatal(ours: KubeletOutcome) -> str:
    return "; ".join(message.text for message in ours.messages if message.level is MessageLevel.FATAL)


def _warnings(verdict: Verdict, ours: KubeletOutcome) -> Iterator[str]:
    """The kubelet names only the first unknown field, by its last part, and none where a key is a duplicate."""
    ignored = any(path == verdict.unknown or path.endswith(f".{verdict.unknown}") for path in ours.ignored)
    if verdict.twice:
        if not any(message.level is MessageLevel.WARNING for message in ours.messages):
            yield f"the kubelet warns of the duplicate keys {', '.join(verdict.twice)}; rollout of none"
    elif (verdict.unknown is not None or ours.ignored) and not ignored:
        yield f"the kubelet warns of the unknown field {verdict.unknown}; rollout of {', '.join(ours.ignored) or 'none'}"


def _effective(theirs: Effective | None, ours: Mapping[str, Any]) -> Iterator[str]:
    if theirs is None:
        return
    for name in sorted({*theirs, *ours}):
        if name in OWN_CERTIFICATE and name not in ours:
            continue
        if name not in ours:
            yield f"{name}: in force is {theirs[name]!r}; rollout has no value"
        elif name not in theirs:
            yield f"{name}: not in force; rollout has {ours[name]!r}"
        elif not _same(theirs[name], ours[name]):
            yield f"{name}: in force is {theirs[name]!r}; rollout has {ours[name]!r}"


def _same(theirs: Any, ours: Any) -> bool:
    """A bool is no number here; JSON has one kind of number."""
    if isinstance(theirs, dict) and isinstance(ours, Mapping):
        return theirs.keys() == ours.keys() and all(_same(theirs[key], ours[key]) for key in theirs)
    if isinstance(theirs, list) and isinstance(ours, list | tuple):
        return len(theirs) == len(ours) and all(map(_same, theirs, ours))
    return isinstance(theirs, bool) == isinstance(ours, bool) and bool(theirs == ours)
