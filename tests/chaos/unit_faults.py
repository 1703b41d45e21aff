"""Unusual kubelet units: drop-ins and links in /run, which are not part of a run's change."""

from __future__ import annotations

import re

from tests.bed.node import Node
from tests.chaos.fault import Fault
from tests.chaos.file_faults import configuration
from tests.chaos.site import PATIENCE
from tests.controllers import until

DROP_INS = "/run/systemd/system/kubelet.service.d"
BURST = 3


def add(node: Node, text: str) -> None:
    """Write a drop-in and reload systemd."""
    node.exec(
        "sh",
        "-c",
        f"mkdir -p {DROP_INS} && printf '%s\\n' \"$0\" >{DROP_INS}/bed.conf && systemctl daemon-reload",
        text,
    )


def remove(node: Node) -> None:
    """Remove the drop-in, and start the kubelet if it is stopped."""
    start = "systemctl is-active -q kubelet || { systemctl reset-failed kubelet; systemctl start kubelet; }"
    node.exec("sh", "-c", f"rm -rf {DROP_INS}; systemctl daemon-reload; {start}")


class Rewrite(Fault):
    """Each start of the kubelet first runs a foreign script that changes its configuration."""

    throughout = True
    explains = frozenset(
        {"unhealthy", "gate-effectiveConfig", "not-as-ordered", "not-confirmed-in-time", "foreign-bytes"}
    )
    keeps = re.compile(r"kept\.\d")  # bytes that are neither rollout's nor the old ones

    def prepare(self) -> None:
        for node in self.nodes:
            path = configuration(node)
            change = "s/serializeImagePulls: false/serializeImagePulls: true/"
            if self.draw.variant == "other bytes":
                change = "s/serializeImagePulls: false$/serializeImagePulls: false # seen/"
            add(node, f"[Service]\nExecStartPre=/bin/sed -i '{change}' {path}")

    def heal(self) -> None:
        for node in self.nodes:
            remove(node)


class Mask(Fault):
    """systemd does not start the kubelet any more; a running kubelet continues."""

    explains = frozenset({"unit-masked", "unhealthy", "not-restarted", "not-confirmed-in-time"})

    @property
    def throughout(self) -> bool:  # type: ignore[override]  # by the variant
        return self.draw.variant == "before the run"

    def prepare(self) -> None:
        if self.throughout:
            self._mask()

    def strike(self) -> None:
        if not self.throughout:
            self._mask()

    def _mask(self) -> None:
        for node in self.nodes:
            node.exec("systemctl", "mask", "--runtime", "-q", "kubelet")

    def heal(self) -> None:
        for node in self.nodes:
            node.exec("systemctl", "unmask", "--runtime", "-q", "kubelet")
            remove(node)


class NoRestart(Fault):
    """systemd does not restart a kubelet that has ended. In one variant it is killed at the instant."""

    throughout = True
    explains = frozenset(
        {"unhealthy", "gate-process", "gate-healthz", "gate-unit", "not-confirmed-in-time", "unit-not-running"}
    )

    def prepare(self) -> None:
        for node in self.nodes:
            add(node, "[Service]\nRestart=no")

    def strike(self) -> None:
        if self.draw.variant == "and the kubelet killed":
            for node in self.nodes:
                node.exec("systemctl", "kill", "-s", "KILL", "--kill-who=main", "kubelet", check=False)

    def heal(self) -> None:
        for node in self.nodes:
            remove(node)


class LimitStarts(Fault):
    """The kubelet was started as often as its unit allows: the next start is refused."""

    throughout = True
    explains = frozenset({"unhealthy"})

    def prepare(self) -> None:
        for node in self.nodes:
            add(node, f"[Unit]\nStartLimitIntervalSec=1h\nStartLimitBurst={BURST}")
            node.exec(
                "sh",
                "-c",
                f"systemctl reset-failed kubelet; for n in {' '.join('x' * BURST)}; do systemctl restart kubelet; done",
            )
            until(node.is_up, PATIENCE, "its kubelet runs")

    def heal(self) -> None:
        for node in self.nodes:
            remove(node)
