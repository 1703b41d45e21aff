"""What ``verify`` finds on some nodes, without their snapshots."""

from __future__ import annotations

from collections.abc import Mapping

from rollout.app import verify
from rollout.app.isolation import Keep, keep_nothing
from rollout.app.node_access import NodeAccess
from rollout.app.node_histories import FilesOf
from rollout.app.ports import Nodes
from rollout.app.verify import Known
from rollout.core.model.snapshot import Unread
from rollout.core.model.verification import NodeCheck


def verify_fleet(
    access: NodeAccess,
    nodes: Nodes,
    known: Mapping[str, Known],
    keep: Keep = keep_nothing,
    files_of: FilesOf = lambda _: {},
) -> tuple[Mapping[str, NodeCheck], tuple[Unread, ...]]:
    found = verify.verify_fleet(access, nodes, known, keep, files_of)
    return found.checks, found.unread
