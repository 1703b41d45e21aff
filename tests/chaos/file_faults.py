"""Faults of files during a transaction: immutable files, lost writes, and foreign writes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from rollout.core.run.state import NodeRecord
from tests.bed.node import Node
from tests.chaos.fault import Fault
from tests.chaos.findings import Known, Seen
from tests.chaos.look import is_confirmed, is_under_way

CONFIGS = ("/var/lib/kubelet/config.yaml", "/etc/kubernetes/kubelet-config.yaml")
"""The files of the two layouts; a node has one of them."""


class MakeImmutable(Fault):
    """Files of the change can neither be renamed nor written, because of a file attribute."""

    explains = frozenset({"not-given-back", "not-renameable", "unhealthy"})
    keeps = re.compile(r"old\.\d")  # a link to the file that cannot be removed either, until the next run cleans

    def strike(self) -> None:
        for node in self.nodes:
            node.exec("sh", "-c", f"chattr +{self.draw.variant[1]} {' '.join(self._paths(node))}")

    def heal(self) -> None:
        """Also from links to the files."""
        for node in self.nodes:
            links = "$(find /var/lib/rollout -type f)"
            node.exec("sh", "-c", f"chattr -ia {' '.join(self._paths(node))} {links}")

    def unexplained(self, record: NodeRecord) -> str:
        """The message must name the file for the operator."""
        named = any(path in record.message for node in self.nodes for path in self.site.targets(node))
        if record.reference in ("not-given-back", "not-renameable") and not named:
            return f"[{record.reference}] names no file of the change: {record.message}"
        return super().unexplained(record)

    def _paths(self, node: Node) -> Sequence[str]:
        """The files that exist now; the configuration always exists."""
        return [path for path in sorted(self.site.targets(node)) if (node.root / path.lstrip("/")).exists()]


class LoseSync(Fault):
    """The disk reports lost writes. See ``tests/chaos/sync``."""

    explains = frozenset({"not-durable", "state-not-writable"})  # the other one: it could not be claimed

    def strike(self) -> None:
        for node in self.nodes:
            node.exec("sh", "-c", f"echo {self.draw.variant} >/run/bed-lost")

    def heal(self) -> None:
        for node in self.nodes:
            node.exec("rm", "-f", "/run/bed-lost")

    def mend(self) -> None:
        """As its message requests: reboot the node, which then checks its files again."""
        for node in self.nodes:
            stuck = node.exec("sh", "-c", "cat /var/lib/rollout/tx/*/stuck 2>/dev/null || :")
            if "not-durable" in stuck and is_under_way(node):
                node.reboot()
                node.wait()


class SlowSync(LoseSync):
    """A sync that is killed, or takes seconds, shows nothing of the disk: no node needs anybody for that. See ``tests/chaos/sync``."""

    explains = frozenset(
        {
            "not-durable",
            "durability-unknown",
            "state-not-writable",
            "too-late",
            "not-confirmed-in-time",
            "gate-unknown",
            "answer-cut-off",
        }
    )

    def mend(self) -> None:
        """Nothing: the node writes again by itself."""


class WriteBack(Fault):
    """A configuration manager: each second it restores the kubelet's configuration from before the run."""

    explains = frozenset({"drifted", "not-as-ordered", "gate-effectiveConfig", "unhealthy", "not-confirmed-in-time"})

    def prepare(self) -> None:
        for node in self.nodes:
            node.exec("sh", "-c", f"cp -a {configuration(node)} /run/bed-old")

    def strike(self) -> None:
        for node in self.nodes:
            path = configuration(node)
            write = f"cat /run/bed-old >{path}"
            if self.draw.variant == "by rename":
                write = f"cp -a /run/bed-old {path}.managed && /usr/bin/mv -f {path}.managed {path}"
            loop = f"while :; do cmp -s /run/bed-old {path} || {{ {write}; }}; sleep 1; done"
            node.exec("systemd-run", "-q", "--unit=bed-manager", "sh", "-c", loop)

    def heal(self) -> None:
        for node in self.nodes:
            node.exec("sh", "-c", f"systemctl stop bed-manager; rm -f {configuration(node)}.managed")

    def own(self, seen: Seen, known: Known) -> Seen:
        """A confirmed file may have been overwritten since."""
        tree = dict(seen.tree)
        for path in CONFIGS:
            if path in tree and is_confirmed(seen) and tree[path] == known.old.tree.get(path):
                tree[path] = known.new.tree[path]
        return replace(super().own(seen, known), tree=tree)


def configuration(node: Node) -> str:
    """The path of the kubelet's configuration."""
    return next(path for path in CONFIGS if (node.root / path.lstrip("/")).exists())
