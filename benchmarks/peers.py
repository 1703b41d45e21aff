"""The same change by other tools: two files, a restart of the kubelet, and its health. No guard, no rollback.

Each takes what it needs from ``peer_files``: the list of nodes with their addresses, and the new files of each node.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

FLAGS = "/etc/default/kubelet"
FLAGS_TEXT = 'KUBELET_EXTRA_ARGS="--image-pull-progress-deadline=5m"\n'
HEALTH = "http://127.0.0.1:10248/healthz"
FORKS = 50
"""Ansible's parallel nodes: more were slower on two cores."""
_OPTIONS = "-o ControlMaster=auto -o ControlPersist=60s -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
ANSIBLE_CFG = (
    f"[defaults]\nforks = {FORKS}\nhost_key_checking = false\nstdout_callback = minimal\n"
    f"[connection]\npipelining = true\n[ssh_connection]\npipelining = true\nssh_args = {_OPTIONS}\n"
)


@dataclass(frozen=True, slots=True)
class Target:
    """A node. ``config``: the path of its kubelet's file; ``text``: its new content."""

    name: str
    address: str
    config: str
    text: str


@dataclass(frozen=True, slots=True)
class Peer:
    """``words`` makes its command line. ``settings``: what was chosen for it, for the table."""

    name: str
    settings: str
    files: Callable[[Path, Sequence[Target], Path], None]
    words: Callable[[Path], tuple[str, ...]]


def _ansible_files(folder: Path, targets: Sequence[Target], key: Path) -> None:
    hosts = {each.name: {"ansible_host": each.address, "config": each.config, "text": each.text} for each in targets}
    common = {
        "ansible_user": "ops",
        "ansible_ssh_private_key_file": str(key),
        "ansible_python_interpreter": "/usr/bin/python3",
    }
    (folder / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts, "vars": common}}))
    (folder / "play.yml").write_text(f"""\
- hosts: all
  gather_facts: false
  become: true
  strategy: free
  tasks:
    - copy: {{content: "{{{{ text }}}}", dest: "{{{{ config }}}}"}}
    - copy: {{content: {json.dumps(FLAGS_TEXT)}, dest: {FLAGS}}}
    - systemd_service: {{name: kubelet, state: restarted}}
    - uri: {{url: "{HEALTH}"}}
      register: health
      until: health.status == 200
      retries: 30
      delay: 1
""")
    (folder / "ansible.cfg").write_text(ANSIBLE_CFG)


def _pyinfra_files(folder: Path, targets: Sequence[Target], key: Path) -> None:
    (folder / "new").mkdir(exist_ok=True)
    hosts = []
    for each in targets:
        (folder / "new" / each.name).write_text(each.text)
        data = {
            "ssh_hostname": each.address, "ssh_user": "ops", "ssh_key": str(key), "ssh_strict_host_key_checking": "no",
            "config": each.config,
        }  # fmt: skip
        hosts.append((each.name, data))
    (folder / "flags").write_text(FLAGS_TEXT)
    (folder / "inventory.py").write_text(f"nodes = {hosts!r}\n")
    (folder / "deploy.py").write_text(f"""\
from pyinfra import host
from pyinfra.operations import files, server, systemd
files.put(src=f"new/{{host.name}}", dest=host.data.config, _sudo=True)
files.put(src="flags", dest={FLAGS!r}, _sudo=True)
systemd.service(service="kubelet", restarted=True, running=True, _sudo=True)
server.shell(commands=["for i in $(seq 60); do curl -fsS -m 5 {HEALTH} && exit 0; sleep 0.5; done; exit 1"])
""")


def _pssh_files(folder: Path, targets: Sequence[Target], key: Path) -> None:
    floor = (Path(__file__).parent / "floor.sh").read_text(encoding="utf-8")
    value = "false" if "serializeImagePulls: false" in targets[0].text else "true"
    line = f"sudo -n sh -c {shlex.quote(f'VALUE={value}' + chr(10) + floor)}"
    (folder / "floor_by_pssh.py").write_text(f"""\
from pssh.clients import ParallelSSHClient
client = ParallelSSHClient({[each.address for each in targets]!r}, user="ops", pkey={str(key)!r}, pool_size=200, num_retries=1)
output = client.run_command({line!r})
client.join(output)
failed = [each.host for each in output if each.exit_code != 0]
raise SystemExit(f"failed: {{failed}}" if failed else 0)
""")


PEERS: Mapping[str, Peer] = {
    "ansible-core": Peer(
        "ansible-core",
        f"{FORKS} forks, pipelining, ControlPersist, strategy free, no facts",
        _ansible_files,
        lambda tools: (str(tools / "ansible-playbook"), "-i", "hosts.json", "play.yml"),
    ),
    "pyinfra": Peer(
        "pyinfra",
        "its default: all nodes at once",
        _pyinfra_files,
        lambda tools: (str(tools / "pyinfra"), "-y", "inventory.py", "deploy.py"),
    ),
    "parallel-ssh": Peer(
        "parallel-ssh",
        "the safe floor's script, pool of 200",
        _pssh_files,
        lambda tools: (str(tools / "python"), "floor_by_pssh.py"),
    ),
}
