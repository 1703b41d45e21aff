"""Changes to these nodes: a kubelet 1.36, an sh that can change a verb's time or delay a confirm, a failing sync."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.bed.node import WORDS, Node
from tests.bed.shell import run

HERE = Path(__file__).parent
FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
"""Of Debian's package libfaketime."""

_NEWER = {
    "usr/bin/kubelet": {"v1.20.15": "v1.36.1"},
    "var/lib/kubelet/kubeadm-flags.env": {" ".join(WORDS): "--hostname-override=bed"},
    "etc/systemd/system/kubelet.service": {" \\\n  ".join(WORDS): "--hostname-override=bed"},
}  # fmt: skip


def prepare(node: Node) -> None:
    """Set up a node that has just booted. Durable when this returns."""
    for name, exchanges in _NEWER.items():
        path = node.root / name
        if path.exists():
            text = path.read_text()
            for old, new in exchanges.items():
                text = text.replace(old, new)
            path.write_text(text)
    for source, target, mode in (
        (HERE / "sh", "bin/sh", 0o755),
        (HERE / "sync", "bin/sync", 0o755),
        (FAKETIME, f"lib/{FAKETIME.name}", 0o644),
    ):
        place = node.root / "usr/local" / target
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, place)
        place.chmod(mode)
    run("sync", "-f", str(node.disk.written))
    node.exec("sh", "-c", "systemctl daemon-reload && systemctl restart kubelet")
