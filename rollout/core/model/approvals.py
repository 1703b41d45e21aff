"""Approvals as far as a run carries them: the signatures that it was started with, and what its nodes are refused for. ``rollout.features.approvals`` has the rules."""

from __future__ import annotations

from rollout.core.model.frozen import dataclass

USED = "approval-used"
"""Reference: the approvals of a plan carry no other run, or not this node, which another run has changed since."""


@dataclass(frozen=True, slots=True)
class Approval:
    """A signature that was found good: its ``person`` as in the file of signers, its key's fingerprint.

    ``signature``: as it is kept in a file and in the journal, see ``kept``.
    """

    person: str
    key: str
    signature: str
