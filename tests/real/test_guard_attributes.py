"""Label, access list, attributes, mode and owner of a file are the target's, in the new file and in the old."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from tests.bed.node import CONFIG
from tests.real.agent_calls import CONFIG_PATH, OnNode, armed_before_its_guard, eventually, receipt

pytestmark = pytest.mark.root

NEW_CONFIG = CONFIG.replace("serializeImagePulls: true", "serializeImagePulls: false").encode()
LABEL = b"system_u:object_r:kubernetes_file_t:s0\0"
NOBODY = 0xFFFFFFFF
# user::rw- user:1000:r-- group::r-- mask::r-- other::---
ACCESS = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", tag, rights, who)
    for tag, rights, who in ((1, 6, NOBODY), (2, 4, 1000), (4, 4, NOBODY), (16, 4, NOBODY), (32, 0, NOBODY))
)
GIVEN = {"security.selinux": LABEL, "user.owner": b"a team", "system.posix_acl_access": ACCESS}


def _has(path: Path) -> tuple[int, int, int, dict[str, bytes]]:
    found = path.stat()
    return found.st_mode, found.st_uid, found.st_gid, {name: os.getxattr(path, name) for name in os.listxattr(path)}


@pytest.mark.parametrize("way_back", ["revert", "guard"])
def test_new_and_old_files_have_the_attributes_of_their_target(on_node: OnNode, way_back: str) -> None:
    target = on_node.node.root / CONFIG_PATH.lstrip("/")
    folder = target.parent
    os.chown(target, 12, 34)
    for name, value in GIVEN.items():
        os.setxattr(target, name, value)
    os.setxattr(folder, "user.owner", b"the same team")
    before, around = _has(target), _has(folder)
    assert before[3] == GIVEN, "this file system supports them"
    tx, changes = f"tx-{way_back}", {CONFIG_PATH: NEW_CONFIG}
    there: list[object] = []
    if way_back == "revert":
        assert on_node.apply(tx, changes).healthy
        there = [target.read_bytes(), _has(target)]
        on_node.revert(tx)
    else:
        tx = armed_before_its_guard(
            on_node, tx, changes, then=lambda _: there.extend([target.read_bytes(), _has(target)])
        )
    assert there[-2:] == [NEW_CONFIG, before]
    eventually(lambda: receipt(on_node, tx).state.value == "reverted")
    assert target.read_text() == CONFIG
    assert (_has(target), _has(folder)) == (before, around)
    os.removexattr(folder, "user.owner")
    for name in GIVEN:
        os.removexattr(target, name)
    os.chown(target, 0, 0)
