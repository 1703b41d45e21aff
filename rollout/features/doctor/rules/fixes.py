"""What fixes a failed check of ``rollout doctor``: a command, or the lines of an ssh_config or a sudoers file."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass

from rollout.core.model.ways_in import Way
from rollout.core.reading.user_file import PROXY_COMMANDS, USER_FILE
from rollout.core.text.terminal import printable

NO_WAY = Way("HOST", "HOST", 22, "USER")
"""Stands for the way to a back end."""


@dataclass(frozen=True, slots=True)
class ToFix:
    """The nodes with one trouble: their nodeset, the way to the first of them, and the cluster of all.

    ``drawn_from``: the nodes of the sample's ``--limit``, where only a sample was read; ``""``: all nodes of the cluster.
    """

    cluster: str
    nodes: str
    way: Way
    drawn_from: str | None = None

    @property
    def doctor(self) -> str:
        return f"rollout doctor --cluster {shlex.quote(self.cluster)} --limit {shlex.quote(self.nodes)}"

    @property
    def accepting(self) -> str:
        """Each node has a host key of its own, so those of a sample are not enough."""
        if self.drawn_from is None:
            return f"{self.doctor} --accept-new"
        limit = f" --limit {shlex.quote(self.drawn_from)}" if self.drawn_from else ""
        return f"rollout doctor --cluster {shlex.quote(self.cluster)}{limit} --all --accept-new"

    @property
    def ssh(self) -> str:
        port = f" -p {self.way.port}" if self.way.port != 22 else ""
        return f"{port} {shlex.quote(f'{self.way.user}@{self.way.host}')}"

    @property
    def known_as(self) -> str:
        return self.way.host if self.way.port == 22 else f"[{self.way.host}]:{self.way.port}"

    def on_nodes(self, line: str) -> str:
        nodes, cluster = shlex.quote(self.nodes), shlex.quote(self.cluster)
        return f"rollout exec {nodes} --cluster {cluster} --sudo -- {line}"

    def config(self, *lines: str) -> str:
        return "\n".join(("in ssh_config:", f"  Host {self.way.address}", *(f"    {line}" for line in lines)))


def _passwordless(to: ToFix) -> str:
    return (
        f"{to.doctor} --ask-sudo-password\n"
        f"or on the node, with visudo: {to.way.user} ALL=(root) NOPASSWD: ALL\n"
        "or in the inventory, if the user needs no sudo: ssh: {sudo: false}"
    )


def _permitted(to: ToFix) -> str:
    return f"on the node, in /etc/doas.conf: permit nopass {to.way.user} as root"


def _logs_in(to: ToFix) -> str:
    locked = "ssh-add ~/.ssh/KEY   # if the key needs a passphrase"
    return f"{locked}\nor ssh-copy-id{to.ssh}\nor {to.config('User USER', 'IdentityFile ~/.ssh/KEY')}"


_RUN_IT: dict[str, Callable[[ToFix], str]] = {
    "proxy-command-not-supported": lambda to: to.config("ProxyJump BASTION"),
    "proxy-command-not-allowed": lambda to: (
        f"in {USER_FILE}: {PROXY_COMMANDS} = ['/PATH/PROGRAM ARGUMENTS']   # the line of ssh_config, if you trust it\n"
        f"or {to.config('ProxyJump BASTION')}"
    ),
    "proxy-command-failed": lambda to: f"ssh -v{to.ssh} true",
    "bastion-host-key-unknown": lambda to: to.accepting,
    "bastion-refused": lambda to: (
        f"ssh -v {shlex.quote(to.way.via)} true\nor {to.config(f'ProxyJump USER@{to.way.via}')}"
    ),
    "gssapi-not-supported": lambda to: to.config("GSSAPIAuthentication no"),
    "bastion-loop": lambda to: to.config("ProxyJump none"),
    "name-not-known": lambda to: to.config("HostName ADDRESS"),
    "connection-refused": lambda to: (
        f"on the node: systemctl enable --now ssh   # sshd on Red Hat\nor {to.config('Port PORT')}"
    ),
    "connect-timeout": lambda to: f"nc -vz {to.way.host} {to.way.port}\nor {to.config('ProxyJump BASTION')}",
    "host-unreachable": lambda to: f"ip route get {to.way.host}\nor {to.config('ProxyJump BASTION')}",
    "no-banner": lambda to: f"nc -v {to.way.host} {to.way.port}   # SSH-2.0-… is right\nor {to.config('Port PORT')}",
    "host-key-unknown": lambda to: to.accepting,
    "host-key-changed": lambda to: (
        f"ssh-keygen -R {shlex.quote(to.known_as)} -f {shlex.quote(to.way.known_hosts)}   # only if the node was installed anew"
    ),
    "host-key-revoked": lambda _: "on the node: rm /etc/ssh/ssh_host_*; ssh-keygen -A; systemctl restart ssh",
    "auth-failed": _logs_in,
    "auth-too-many-keys": lambda to: to.config("IdentityFile ~/.ssh/KEY", "IdentitiesOnly yes"),
    "auth-timeout": lambda to: f"ssh -v{to.ssh} true",
    "handshake-failed": lambda to: f"ssh -v{to.ssh} true",
    "handshake-timeout": lambda to: f"ssh -v{to.ssh} true",
    "no-channel": lambda _: "on the node, in /etc/ssh/sshd_config: MaxSessions 10",
    "no-shell": lambda to: f"on the node: usermod -s /bin/sh {to.way.user}",
    "no-sudo": _passwordless,
    "no-doas": lambda to: f"ssh{to.ssh} doas -n true",
    "doas-needs-password": _permitted,
    "doas-not-allowed": _permitted,
    "sudo-needs-tty": lambda to: f"on the node, with visudo: Defaults:{to.way.user} !requiretty",
    "sudo-not-allowed": lambda to: f"on the node, with visudo: {to.way.user} ALL=(root) ALL",
    "sudo-password-wrong": lambda to: f"{to.doctor} --ask-sudo-password",
    "sudo-failed": lambda to: f"ssh{to.ssh} sudo -n true",
    "too-many-files": lambda _: "ulimit -n 4096",
    "clock-offset": lambda to: to.on_nodes("timedatectl set-ntp true"),
    "no-room": lambda to: to.on_nodes("df -h /var/lib"),
    "need-daemon-reload": lambda to: to.on_nodes("systemctl daemon-reload"),
    "unit-masked": lambda to: to.on_nodes("systemctl unmask kubelet"),
    "kubelet-not-running": lambda to: to.on_nodes("journalctl -u kubelet -n 50 --no-pager"),
    "kubelet-unhealthy": lambda to: to.on_nodes("journalctl -u kubelet -n 50 --no-pager"),
    "healthz-not-its-own": lambda to: to.on_nodes("ss -ltnp"),
    "config-lenient": lambda to: to.on_nodes("journalctl -u kubelet -n 50 --no-pager"),
    "runtime-not-running": lambda to: to.on_nodes("systemctl --failed --no-pager"),
    "armed-by-another": lambda _: "rollout status",
    "log-unreadable": lambda _: "in the playbook: accept: [log-unreadable]",
    "kubeconfig-rights": lambda _: "kubectl apply -f FILE   # with the ClusterRole in docs/gates.md",
}


def fix(reference: str, to: ToFix) -> str:
    """Lines for people; ``""`` where the reason itself names what to do."""
    found = _RUN_IT.get(reference)
    return "\n".join(f"{_indent(line)}{printable(line, 400)}" for line in found(to).splitlines()) if found else ""


def _indent(line: str) -> str:
    return " " * (len(line) - len(line.lstrip(" ")))
