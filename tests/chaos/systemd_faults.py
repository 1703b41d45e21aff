"""Faults of systemd itself: it is frozen, switched to another target and back, or booted into another one."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

from tests.bed.drop_ins import KINDS, Place, foreign
from tests.bed.node import Node
from tests.chaos.fault import Fault
from tests.chaos.site import PATIENCE
from tests.controllers import until

SYSTEM = "etc/systemd/system"
OWN_TARGET = """\
[Unit]
Requires=basic.target
After=basic.target
Wants=kubelet.service docker.service ssh.service systemd-user-sessions.service
AllowIsolate=yes
"""
"""As on appliances: multi-user.target is never reached."""


class StopSystemd(Fault):
    """PID 1 is frozen: services run, and systemd answers no request."""

    def strike(self) -> None:
        for node in self.nodes:
            node.stop_systemd()

    def heal(self) -> None:
        for node in self.nodes:
            node.continue_systemd()


class Isolate(Fault):
    """Every service that the target does not want is stopped, the kubelet too. Then the usual ones are started again."""

    def makes_unhealthy(self) -> bool:
        return True

    def strike(self) -> None:
        for node in self.nodes:
            node.exec("systemctl", "isolate", "--no-block", "rescue.target")

    def heal(self) -> None:
        for node in self.nodes:
            node.exec("systemctl", "isolate", "--no-block", "multi-user.target")
        for node in self.nodes:
            node.wait()
            until(node.is_up, PATIENCE, "its kubelet runs")


class DropIn(Fault):
    """A hardened image: from before the run until the guard must have fired, a drop-in restricts all services but those of the node."""

    def prepare(self) -> None:
        self._made = ExitStack()
        for node in self.nodes:
            self._made.enter_context(foreign(node, Place.SERVICES, KINDS[self.draw.variant]))

    def strike(self) -> None:
        if self.controller:
            self.controller.kill()

    def heal(self) -> None:
        self._made.close()


class OtherTarget(Fault):
    """The node loses its power, and boots into the variant's target."""

    def prepare(self) -> None:
        for node in self.nodes:
            own = Path(node.root, SYSTEM, "fleet.target")
            own.write_text(OWN_TARGET, encoding="utf-8")
            node.exec("sh", "-c", f"systemctl daemon-reload && systemctl -q set-default {self.draw.variant} && sync")

    def strike(self) -> None:
        for node in self.nodes:
            node.powercut()
        time.sleep(self.draw.seconds)
        for node in self.nodes:
            node.heal()
            node.boot()

    def heal(self) -> None:
        for node in self.nodes:
            node.wait()
            until(node.is_up, PATIENCE, "its kubelet runs")
            self._undo(node)

    def _undo(self, node: Node) -> None:
        for name in ("fleet.target", "default.target"):
            Path(node.root, SYSTEM, name).unlink(missing_ok=True)
        node.exec("systemctl", "daemon-reload")
