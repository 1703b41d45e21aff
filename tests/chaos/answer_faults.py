"""A conversation breaks between a request and its answer: the node has the request, and the controller no answer to it."""

from __future__ import annotations

import threading

from tests.bed.node import Node
from tests.chaos.fault import Fault
from tests.chaos.instants import LOOK_EVERY

HELD = "/run/bed-answers"
HOLDS = "/run/bed-answering"
KILLED = "the elevated shell killed"
CUT = "the link cut"


class HoldAnswers(Fault):
    """From the instant on no answer leaves the node (see ``tests/chaos/sh``). Verbs go on.

    The answers leave when the deadline of every verb is over. In the other variants the link is cut, or the elevated
    shell killed, with the first answer.
    """

    def prepare(self) -> None:
        for node in self.nodes:
            node.exec("touch", HELD)

    def strike(self) -> None:
        word = "kill" if self.draw.variant == KILLED else "hold"
        for node in self.nodes:
            node.exec("sh", "-c", f"echo {word} >{HELD}")
        self._healed = threading.Event()
        self._cuts = threading.Thread(target=self._cut)
        if self.draw.variant == CUT:
            self._cuts.start()

    def _cut(self) -> None:
        """The instant of the run may be a step in the middle of a verb: its answer comes later."""
        while not self._healed.wait(LOOK_EVERY):
            for node in filter(_holds, self.nodes):
                node.cut()

    def heal(self) -> None:
        self._healed.set()
        if self.draw.variant == CUT:
            self._cuts.join()
        for node in self.nodes:
            node.exec("sh", "-c", f": >{HELD}")
            node.heal()


def _holds(node: Node) -> bool:
    return node.exec("ls", HOLDS, check=False) != ""
