"""Files that configure connections: kubeconfig, ssh_config, known_hosts."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from rollout.adapters.kubernetes.kubeconfig import load_kubeconfig
from rollout.adapters.ssh.known_hosts import KnownHosts
from rollout.adapters.ssh.resolve import Resolver
from rollout.adapters.ssh.ssh_config import SshConfig
from rollout.app.ports import Target as Target_
from tests.hostile.property import CANARY, Target

KUBECONFIG = f"""\
apiVersion: v1
kind: Config
current-context: c
contexts: [{{name: c, context: {{cluster: k, user: u}}}}]
clusters:
- name: k
  cluster: {{server: "https://10.0.0.1:6443", certificate-authority-data: QUJD, tls-server-name: api}}
users:
- name: u
  user:
    token: {CANARY}
    client-certificate-data: QUJD
    client-key-data: {CANARY}
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: plugin
      args: [get, token]
      env: [{{name: PASSWORD, value: {CANARY}}}]
"""
SSH_CONFIG = """\
IgnoreUnknown UseKeychain,Add*
Host n1 n2
  HostName %h.example
  User admin
  Port 2222
  IdentityFile ~/.ssh/id
Host *.rack !n3
  ProxyJump bastion
Match host n1 !user "root,x*"
  ConnectTimeout 1m5s
Match final all
  Include absent/*.conf
Host *
  UserKnownHostsFile "/a b/known" /c
"""
KEY = "AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ"
KNOWN_HOSTS = f"""\
n1,10.0.0.1 ssh-ed25519 {KEY}
[n2]:2222,*.rack,!n3 ssh-ed25519 {KEY} comment
|1|JfKTdBh7rNbXkVAQCRp4OQoPfmI=|USECr3SWf1JUPsms5AqfD5QfxkM= ssh-ed25519 {KEY}
@revoked * ssh-ed25519 {KEY}
@cert-authority *.example ssh-ed25519 {KEY}
"""


@cache
def _folder() -> Path:
    """Removed with this process."""
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    folder = tempfile.mkdtemp(prefix="rollout-hostile-", dir=memory)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _file(name: str, data: bytes) -> Path:
    path = _folder() / name
    path.write_bytes(data)
    return path


def _kubeconfig(data: bytes) -> tuple[str, ...]:
    return (load_kubeconfig(str(_file("kubeconfig", data))).where,)


def _ssh_config(data: bytes) -> tuple[str, ...]:
    config = SshConfig.read(_file("ssh_config", data))
    for host in ("n1", "x.rack", "n3"):
        config.lookup(host, local_user="ops")
        Resolver(config).resolve(Target_(host, host))
    return ()


def _known_hosts(data: bytes) -> tuple[str, ...]:
    known = KnownHosts((data.decode("utf-8", "replace"),))
    for name in ("n1", "[n2]:2222", "x.rack"):
        known.verdict((name,), KEY)
        known.kinds(name, hashed=True)
        known.authorities((name,))
    return ()


TARGETS = (
    Target("kubeconfig", _kubeconfig, lambda: (KUBECONFIG.encode(),)),
    Target("ssh-config", _ssh_config, lambda: (SSH_CONFIG.encode(),)),
    Target("known-hosts", _known_hosts, lambda: (KNOWN_HOSTS.encode(),)),
)
