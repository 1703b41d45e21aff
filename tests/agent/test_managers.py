"""What the agent finds of other tools that configure a node."""

from __future__ import annotations

import pytest

from rollout.core.model.snapshot import Snapshot
from tests.agent.node import CONFIG, Node

pytestmark = pytest.mark.process


def facts(node: Node) -> dict[str, str]:
    found = node.snapshot()
    assert isinstance(found, Snapshot), found
    return {key: text for key, text in found.facts.items() if key.startswith(("manager-", "os", "reboot-"))}


def test_a_node_without_other_managers(node: Node) -> None:
    node.write("/etc/crontab", b"17 * * * * root run-parts /etc/cron.hourly\n# 5 * * * * root ansible-pull\n")
    assert facts(node) == {}


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/etc/puppetlabs/puppet/puppet.conf", "puppet"),
        ("/etc/chef/client.rb", "chef"),
        ("/etc/salt/minion", "salt"),
        ("/etc/machine-config-daemon/currentconfig", "mco"),
        ("/etc/kubernetes/kubelet.env", "kubespray"),
    ],
)
def test_files(node: Node, path: str, name: str) -> None:
    node.write(path, b"x\n")
    assert facts(node) == {f"manager-{name}": path}


@pytest.mark.parametrize(
    ("unit", "name"),
    [
        ("nodeadm-run.service", "nodeadm"),
        ("kops-configuration.service", "kops"),
        ("kube-node-configuration.service", "cos"),
        ("rancher-system-agent.service", "rancher"),
        ("rke2-agent.service", "rke2"),
        ("k3s.service", "k3s"),
    ],
)
def test_units_of_tools_that_render_files(node: Node, unit: str, name: str) -> None:
    node.write(f"/etc/systemd/system/{unit}", b"[Service]\n")
    assert facts(node) == {f"manager-{name}": unit}


def test_the_name_of_the_node_is_its_kernels(node: Node) -> None:
    """systemd writes it for %H; ``/etc/hostname`` may differ where DHCP gives the name."""
    node.write("/proc/sys/kernel/hostname", b"by-dhcp\n")
    found = node.snapshot()
    assert isinstance(found, Snapshot), found
    assert found.facts["hostname"] == "by-dhcp"


def test_units_as_they_are(node: Node) -> None:
    """Installed, enabled, active: files of systemd itself show it, so that systemd need not be asked."""
    node.write("/lib/systemd/system/puppet.service", b"[Service]\n")
    assert facts(node) == {"manager-puppet": "puppet.service"}
    link = node.at("/etc/systemd/system/multi-user.target.wants/puppet.service")
    link.parent.mkdir()
    link.symlink_to("/lib/systemd/system/puppet.service")
    assert facts(node) == {"manager-puppet": "puppet.service:enabled"}
    invocation = node.at("/run/systemd/units/invocation:puppet.service")
    invocation.parent.mkdir(parents=True)
    invocation.symlink_to("0123456789abcdef0123456789abcdef")
    node.write("/opt/puppetlabs/puppet/cache/state/agent_disabled.lock", b"{}")
    lock = "/opt/puppetlabs/puppet/cache/state/agent_disabled.lock"
    assert facts(node) == {"manager-puppet": f"puppet.service:enabled:active {lock}"}


@pytest.mark.parametrize(
    ("path", "line", "name"),
    [
        ("/etc/cron.d/pull", "*/20 * * * * root /usr/bin/ansible-pull -U git://x", "ansible-pull"),
        ("/var/spool/cron/crontabs/root", "0 * * * * /opt/puppetlabs/bin/puppet  agent --onetime", "puppet"),
        ("/etc/crontab", "0 * * * * root chef-client", "chef"),
        ("/etc/cron.daily/salt", "exec salt-call state.apply", "salt"),
    ],
)
def test_cron(node: Node, path: str, line: str, name: str) -> None:
    node.write(path, f"# comment\n{line}\n".encode())
    assert facts(node) == {f"manager-{name}": "cron"}


@pytest.mark.parametrize(("line", "system"), [(b"ID=talos", "talos"), (b'ID="bottlerocket"', "bottlerocket")])
def test_the_operating_system(node: Node, line: bytes, system: str) -> None:
    node.write("/etc/os-release", b"NAME=x\n" + line + b"\nVERSION_ID=1\n")
    assert facts(node) == {"os": system}


def test_an_operating_system_with_an_odd_name_is_not_reported(node: Node) -> None:
    node.write("/etc/os-release", b"ID=$(reboot) \x1b[2J\n")
    assert facts(node) == {}


def test_a_pending_reboot(node: Node) -> None:
    node.write("/run/reboot-required", b"*** System restart required ***\n")
    assert facts(node) == {"reboot-pending": "/run/reboot-required"}


def test_other_names_of_a_file_are_shown(node: Node) -> None:
    found = node.snapshot()
    assert isinstance(found, Snapshot)
    assert "hard-links" not in found.facts
    node.at("/var/lib/kubelet/copy.yaml").hardlink_to(node.at(CONFIG))
    found = node.snapshot()
    assert isinstance(found, Snapshot)
    assert found.facts["hard-links"] == CONFIG
