"""Firing alerts as values, their verdict with evidence, and how a plan shows the query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rollout.core.model.frozen import dataclass
from rollout.core.model.gates import AlertQuery
from rollout.core.model.verdict import SHOWN, Judged, Verdict
from rollout.core.text.terminal import counted, printable


@dataclass(frozen=True, slots=True)
class Alert:
    """A firing alert; its fingerprint is the same as long as its labels are."""

    fingerprint: str
    labels: Mapping[str, str]


def words(query: AlertQuery) -> Iterator[str]:
    """The query as a plan shows it."""
    yield from query.matchers
    if query.url:
        yield f"at {query.url}"


def judge_alerts(firing: Sequence[Alert], known: Iterable[str]) -> Judged:
    """Whether no alert fires that did not before; ``known`` are the fingerprints of those that did."""
    before = frozenset(known)
    new = [alert for alert in firing if alert.fingerprint not in before]
    old = len(firing) - len(new)
    fired = f"firing as before: {counted(old, 'alert')}" if old else "no alert fires"
    if not new:
        return Verdict.PASS, fired
    names = ", ".join(_alert(alert) for alert in new[:SHOWN])
    more = f" and {len(new) - SHOWN} more" if len(new) > SHOWN else ""
    return Verdict.FAIL, f"{counted(len(new), 'new alert')}: {names}{more}"


def _alert(alert: Alert) -> str:
    name = alert.labels.get("alertname", "unnamed")
    where = next((f" on {alert.labels[key]}" for key in ("node", "instance") if key in alert.labels), "")
    return printable(f"{name}{where}", 100)
