"""Alertmanager: no alert starts to fire. What is asked, firing alerts as values, and their verdict with evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rollout.core.model.frozen import dataclass
from rollout.core.model.gates import GateQuery
from rollout.core.model.inventory import Endpoints
from rollout.core.model.verdict import SHOWN, Judged, Verdict
from rollout.core.text.terminal import counted, printable


@dataclass(frozen=True, slots=True)
class AlertQuery(GateQuery):
    """Alerts that match all of ``matchers`` (``severity="critical"``) must not start to fire; silenced ones do not count.

    ``silence`` seconds (0: none): a silence of that length is set for the wave's nodes before the wave and lifted at the
    run's end; ``node_label`` is the alerts' label that holds the node's name. ``url`` ``""``: the inventory's.
    """

    matchers: tuple[str, ...]
    url: str = ""
    silence: float = 0.0
    node_label: str = "node"

    kind = "alertmanager"
    back_end = "Alertmanager"
    asks_http = True

    def words(self) -> tuple[str, ...]:
        return (*self.matchers, f"at {self.url}") if self.url else self.matchers

    def lacks_back_end(self, endpoints: Endpoints) -> bool:
        return not (self.url or endpoints.alerts)


@dataclass(frozen=True, slots=True)
class Alert:
    """A firing alert; its fingerprint is the same as long as its labels are."""

    fingerprint: str
    labels: Mapping[str, str]


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
