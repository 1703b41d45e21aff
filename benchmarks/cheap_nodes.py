"""Thousands of cheap nodes: one real sshd on this machine, and a folder with the files of a node for each address.

A node's files are below ``ROLLOUT_ROOT``, which the agent and the stand-ins of the tests respect. The login shell sets it
by the address at which a connection arrives.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.loopback import PORT, address, loopback_sshd
from tests.agent.node import CONFIG, FLAGS, STANDINS, Node, order
from tests.bed.node import CONFIG as KUBELET

ENTER = """\
#!/bin/sh
set -- "$2" $SSH_CONNECTION
export ROLLOUT_ROOT="{folder}/nodes/$4" PATH="{folder}/tools:$PATH"
exec sh -c "$1"
"""
"""The login shell: ``-c COMMAND``. The third word of SSH_CONNECTION is the address of the node."""
CLOCKED = {
    "ExecMainStartTimestampMonotonic=$started": 'ExecMainStartTimestampMonotonic=$(cat "$D/$prefix$started."*)',
    '  mv "$D/$prefix$started."* "$D/$prefix$1.$2"\n': """\
  mv "$D/$prefix$started."* "$D/$prefix$1.$2"
  read -r up _ </proc/uptime
  echo "$((${up%.*}${up#*.} + 2))0000" >"$D/$prefix$1.$2"
""",
}
"""Text of the stand-in of systemctl → the same with this machine's clock: a unit's state has the microseconds of its start."""
LOGGED = {
    "  begin=": """\
  set +f
  started=$(cat "$ROLLOUT_ROOT/run/standin/pid."*)
  begin=""",
}
"""The same of journalctl: the kubelet's first lines come after its start."""
UNIT = f"[Service]\nEnvironmentFile=-{FLAGS}\nExecStart=/usr/bin/kubelet --config={CONFIG}\n"
OLD, NEW = KUBELET.encode(), KUBELET.replace("Pulls: true", "Pulls: false").encode()
TX, RUN = "20260101-000000-bench-1", "20260101-000000-bench"


class CheapNodes:
    """``names`` and ``addresses`` of the nodes in ``folder``; ``lay_out`` makes their files anew."""

    def __init__(self, folder: Path, count: int, ssh_config: Path) -> None:
        self.folder = folder
        self.ssh_config = ssh_config
        self.port = PORT
        self.names = tuple(f"cheap-{number:05d}" for number in range(count))
        self.addresses = tuple(map(address, range(count)))

    def root(self, at: int) -> Path:
        return self.folder / "nodes" / self.addresses[at]

    def lay_out(self, prototype: Path) -> None:
        """Every node as ``prototype``, with a machine-id of its own."""
        shutil.rmtree(self.folder / "nodes", ignore_errors=True)
        (self.folder / "nodes").mkdir()
        for at in range(len(self.names)):
            subprocess.run(["cp", "-a", str(prototype), str(self.root(at))], check=True)
            (self.root(at) / "etc/machine-id").write_text(f"{at + 1:032x}\n")
            for state in (self.root(at) / "run/standin").glob("pid.*"):
                state.write_text(started_now())  # a kubelet that is older than its files would count as not restarted

    def inventory(self, cluster: str) -> str:
        """With racks of 50 nodes."""
        lines = [f"  {name}: {{address: {place}}}\n" for name, place in zip(self.names, self.addresses, strict=True)]
        racks = [f"  rack{at // 50}: [{', '.join(self.names[at : at + 50])}]\n" for at in range(0, len(self.names), 50)]
        return f"cluster: {cluster}\napiServer: v1.20.15\nssh: {{user: root}}\nnodes:\n{''.join(lines)}racks:\n{''.join(racks)}"


def started_now() -> str:
    """The state of a unit that starts right after now: microseconds since the boot of this machine."""
    return f"{int((float(Path('/proc/uptime').read_text().split()[0]) + 0.02) * 1e6)}\n"


def prototype(folder: Path, tools: Path) -> Node:
    """The files of a node that no tool has changed, with these tools, and with the clock of this machine."""
    node = Node.make(folder, "sh")
    node.bin = tools
    node.at("/proc/uptime").unlink()
    node.at("/proc/uptime").symlink_to("/proc/uptime")
    node.write(CONFIG, OLD)
    node.write("/etc/systemd/system/kubelet.service", UNIT.encode())
    node.standin("pid.100.running", started_now())
    return node


def change(node: Node) -> None:
    """Make a confirmed change, by the agent."""
    old, new = {CONFIG: OLD, FLAGS: b"OLD=1\n"}, {CONFIG: NEW, FLAGS: b"NEW=1\n"}
    node.apply(order(TX, RUN, 1, old=old, new=new))
    node.confirm(TX, RUN, 1)
    node.cleanup(RUN, 1)
    if node.receipt(TX).get("state") != "confirmed":
        raise SystemExit(f"the agent could not change the first node: {node.receipt(TX)}")


def _change(standin: Path, texts: Mapping[str, str]) -> None:
    text = standin.read_text()
    for before, after in texts.items():
        if before not in text:
            raise SystemExit(f"the stand-in of {standin.name} has no {before}")
        text = text.replace(before, after)
    standin.write_text(text)


@contextmanager
def cheap_nodes(folder: Path, count: int, sockets: int = 1) -> Iterator[CheapNodes]:
    """The sshd of ``count`` nodes, until the end. ``sockets``: see ``loopback_sshd``."""
    tools, enter = folder / "tools", folder / "enter"
    shutil.copytree(STANDINS, tools)
    (tools / "sync").unlink()  # every tool waits for this machine's disk
    (tools / "sh").symlink_to("/bin/sh")
    _change(tools / "systemctl", CLOCKED)
    _change(tools / "journalctl", LOGGED)
    enter.write_text(ENTER.format(folder=folder))
    enter.chmod(0o755)
    with loopback_sshd(folder, str(enter), sockets) as config:
        yield CheapNodes(folder, count, config)
