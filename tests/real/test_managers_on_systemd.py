"""Marks of another configuration manager, as real systemd writes them."""

from __future__ import annotations

import pytest

from rollout.adapters.ssh import SshNodes
from tests.bed.plugin import RealNodes
from tests.real.agent_calls import OnNode

pytestmark = pytest.mark.root

_UNIT = r"[Service]\nExecStart=/bin/sleep 600\n[Install]\nWantedBy=multi-user.target\n"
FILE = "/usr/local/lib/systemd/system/puppet.service"


def test_a_puppet_agent_installed_enabled_running_and_removed(ssh: SshNodes, real_nodes: RealNodes) -> None:
    node = real_nodes(1)[0]
    here = OnNode(ssh, node, "run-managers", 1)

    def mark() -> str:
        return here.snapshot().facts.get("manager-puppet", "")

    assert mark() == ""
    node.exec("sh", "-c", f"mkdir -p {FILE.rpartition('/')[0]}; printf '{_UNIT}' >{FILE}; systemctl daemon-reload")
    try:
        assert mark() == "puppet.service"
        node.exec("systemctl", "enable", "--now", "puppet.service")
        assert mark() == "puppet.service:enabled:active"
        node.exec("systemctl", "stop", "puppet.service")
        assert mark() == "puppet.service:enabled"
    finally:
        node.exec("sh", "-c", f"systemctl disable --now puppet.service; rm -f {FILE}; systemctl daemon-reload")
    assert mark() == ""
