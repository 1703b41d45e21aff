"""Every reader of foreign bytes, each with its normal input."""

from __future__ import annotations

from tests.hostile.property import Target
from tests.hostile.targets import from_back_ends, from_logs, from_nodes, from_people, on_disk, ssh_files

TARGETS: dict[str, Target] = {
    target.name: target
    for room in (from_people, from_nodes, from_logs, from_back_ends, on_disk, ssh_files)
    for target in room.TARGETS
}
