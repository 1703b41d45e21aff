"""The same change by other tools: files, a restart of the kubelet, and its health. No guard, no rollback.

``PEERS`` writes what each tool needs, and its command line.
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
_ANSIBLE_CFG = f"""\
[defaults]
forks = {FORKS}
host_key_checking = false
stdout_callback = minimal
strategy = free
[connection]
pipelining = true
[ssh_connection]
pipelining = true
ssh_args = {_OPTIONS}
"""
_RESTART, _CHECK = "systemctl restart kubelet.service", f"curl -fsS -m 5 {HEALTH}"


@dataclass(frozen=True, slots=True)
class Target:
    """A node. ``files``: the path of each file that changes → its new content; the kubelet's configuration is the first one."""

    name: str
    address: str
    files: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Fleet:
    """Nodes and their login. ``script``: the change as one shell script, for tools that only run commands.

    ``cheap``: systemctl and curl on the nodes are stand-ins, so tools that have modules for both call the commands.
    """

    targets: Sequence[Target]
    user: str
    key: Path
    port: int
    script: str
    cheap: bool

    @property
    def sudo(self) -> bool:
        return self.user != "root"


@dataclass(frozen=True, slots=True)
class Peer:
    """``words`` makes its command line. ``settings``: what was chosen for it, for the table."""

    settings: str
    files: Callable[[Path, Fleet], None]
    words: Callable[[Path], tuple[str, ...]]


def _ansible_files(folder: Path, fleet: Fleet) -> None:
    hosts = {
        each.name: {
            "ansible_host": each.address,
            "new": [{"path": path, "text": text} for path, text in each.files.items()],
        }
        for each in fleet.targets
    }
    common = {
        "ansible_user": fleet.user,
        "ansible_port": fleet.port,
        "ansible_ssh_private_key_file": str(fleet.key),
        "ansible_python_interpreter": "/usr/bin/python3",
    }
    copies = "".join(
        f'    - copy: {{content: "{{{{ new[{at}].text }}}}", dest: "{{{{ new[{at}].path }}}}"}}\n'
        for at in range(len(fleet.targets[0].files))
    )
    restart = f"command: {_RESTART}" if fleet.cheap else "systemd_service: {name: kubelet, state: restarted}"
    healthy, passed = (
        (f"command: {_CHECK}", "health.rc == 0")
        if fleet.cheap
        else (f'uri: {{url: "{HEALTH}"}}', "health.status == 200")
    )
    (folder / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts, "vars": common}}))
    (folder / "play.yml").write_text(f"""\
- hosts: all
  gather_facts: false
  become: {str(fleet.sudo).lower()}
  tasks:
{copies}    - {restart}
    - {healthy}
      register: health
      until: {passed}
      retries: 30
      delay: 1
""")
    (folder / "ansible.cfg").write_text(_ANSIBLE_CFG)


def _pyinfra_files(folder: Path, fleet: Fleet) -> None:
    (folder / "new").mkdir(exist_ok=True)
    hosts = []
    for each in fleet.targets:
        for at, text in enumerate(each.files.values()):
            (folder / "new" / f"{each.name}.{at}").write_text(text)
        data = {
            "ssh_hostname": each.address, "ssh_port": fleet.port, "ssh_user": fleet.user, "ssh_key": str(fleet.key),
            "ssh_strict_host_key_checking": "no", "new": list(each.files),
        }  # fmt: skip
        hosts.append((each.name, data))
    (folder / "inventory.py").write_text(f"nodes = {hosts!r}\n")
    puts = "".join(
        f'files.put(src=f"new/{{host.name}}.{at}", dest=host.data.new[{at}], _sudo={fleet.sudo})\n'
        for at in range(len(fleet.targets[0].files))
    )
    service = f"server.shell(commands=[{_RESTART!r}])"
    if not fleet.cheap:
        service = f'systemd.service(service="kubelet", restarted=True, running=True, _sudo={fleet.sudo})'
    (folder / "deploy.py").write_text(f"""\
from pyinfra import host
from pyinfra.operations import files, server, systemd
{puts}{service}
server.shell(commands=["for i in $(seq 60); do {_CHECK} && exit 0; sleep 0.5; done; exit 1"])
""")


def _clush_files(folder: Path, fleet: Fleet) -> None:
    (folder / "addresses").write_text("".join(f"{each.address}\n" for each in fleet.targets))
    options = (
        f"-i {fleet.key} -p {fleet.port} -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
    )
    words = ("--hostfile", "addresses", "-f", str(FORKS), "-S", "-q", "-l", fleet.user, "-o", options, _as_root(fleet))
    (folder / "by_clush.sh").write_text(f'exec "$1" {shlex.join(words)}\n')


def _as_root(fleet: Fleet) -> str:
    return f"{'sudo -n ' if fleet.sudo else ''}sh -c {shlex.quote(fleet.script)}"


def _pssh_files(folder: Path, fleet: Fleet) -> None:
    addresses = [each.address for each in fleet.targets]
    (folder / "script_by_pssh.py").write_text(f"""\
from pssh.clients import ParallelSSHClient
client = ParallelSSHClient(
    {addresses!r}, user={fleet.user!r}, port={fleet.port}, pkey={str(fleet.key)!r}, pool_size=200, num_retries=1
)
output = client.run_command({_as_root(fleet)!r})
client.join(output)
failed = [each.host for each in output if each.exit_code != 0]
raise SystemExit(f"failed: {{failed}}" if failed else 0)
""")


def _mitogen(tools: Path) -> tuple[str, ...]:
    """The settings by which ansible-core finds Mitogen's strategy."""
    (strategies,) = tools.parent.glob("lib/python3*/site-packages/ansible_mitogen/plugins/strategy")
    return f"ANSIBLE_STRATEGY_PLUGINS={strategies}", "ANSIBLE_STRATEGY=mitogen_free"


PEERS: Mapping[str, Peer] = {
    "ansible-core": Peer(
        f"{FORKS} forks, pipelining, ControlPersist, strategy free, no facts",
        _ansible_files,
        lambda tools: (str(tools / "ansible-playbook"), "-i", "hosts.json", "play.yml"),
    ),
    "ansible-core with Mitogen": Peer(
        f"{FORKS} forks, strategy mitogen_free, no facts",
        _ansible_files,
        lambda tools: ("env", *_mitogen(tools), str(tools / "ansible-playbook"), "-i", "hosts.json", "play.yml"),
    ),
    "pyinfra": Peer(
        "its default: all nodes at once",
        _pyinfra_files,
        lambda tools: (str(tools / "pyinfra"), "-y", "inventory.py", "deploy.py"),
    ),
    "clush": Peer(
        f"one script, fan-out of {FORKS}",
        _clush_files,
        lambda tools: ("sh", "by_clush.sh", str(tools / "clush")),
    ),
    "parallel-ssh": Peer(
        "one script, pool of 200",
        _pssh_files,
        lambda tools: (str(tools / "python"), "script_by_pssh.py"),
    ),
}
