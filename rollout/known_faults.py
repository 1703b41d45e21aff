"""The faults that more than one harness causes, each with one name.

The lab causes them on nodes with the real agent (``rollout lab fault``), the simulator on model nodes
(``rollout simulate``), and ``make chaos`` on real systemd nodes. A fault of one harness only has its name there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KnownFault:
    """``also``: other words for it, which commands accept and do not print."""

    name: str
    what: str
    also: tuple[str, ...] = ()


# a node
REBOOT = KnownFault("reboot", "the node loses its power and boots later", ("reboots",))
NODE_FREEZES = KnownFault("node-freezes", "all processes of the node stop for some time; its clock runs on")
AGENT_KILLED = KnownFault("agent-killed", "processes of the agent get SIGKILL; the node lives")
NEVER_HEALTHY = KnownFault("never-healthy", "the kubelet does not run with the new configuration")
DRIFTS = KnownFault("drifts", "another program writes the files of the change")
PULLING = KnownFault("pulling", "an image is being pulled")
PDB_BLOCKS = KnownFault("pdb-blocks", "a disruption budget refuses the evictions of the node's pods")
FULL_DISK = KnownFault("full-disk", "no write gets another block")
READ_ONLY = KnownFault("read-only", "nothing on the disk can be changed")
CLOCK_STEP = KnownFault("clock-step", "the wall clock of the node is wrong by a step")
# what is between or beside the nodes
LINK_CUT = KnownFault("link-cut", "no packet reaches the node")
API_DOWN = KnownFault("api-down", "the API server does not answer")
CONTROLLER_KILLED = KnownFault("controller-killed", "the controller gets SIGKILL")
CONTROLLER_FROZEN = KnownFault("controller-frozen", "the controller is stopped, perhaps for longer than its lease")

ALL = (
    REBOOT,
    NODE_FREEZES,
    AGENT_KILLED,
    NEVER_HEALTHY,
    DRIFTS,
    PULLING,
    PDB_BLOCKS,
    FULL_DISK,
    READ_ONLY,
    CLOCK_STEP,
    LINK_CUT,
    API_DOWN,
    CONTROLLER_KILLED,
    CONTROLLER_FROZEN,
)

SYNONYMS: Mapping[str, str] = {word: fault.name for fault in ALL for word in fault.also}


def named(word: str) -> str:
    """The name of the fault, if ``word`` is another word for it; else ``word``."""
    return SYNONYMS.get(word, word)
