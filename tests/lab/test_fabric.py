"""A lab node is an ordinary SSH server: Fabric works with the generated ssh_config, like ssh and rollout."""

from __future__ import annotations

import pytest
from fabric import Config, Connection
from paramiko import RejectPolicy

from tests.lab.labs import Lab

pytestmark = pytest.mark.process


def test_fabric_runs_a_command_on_a_node(lab: Lab) -> None:
    config = Config(runtime_ssh_path=str(lab.directory / "ssh_config"))
    with Connection("lab-08", config=config) as connection:
        connection.client.load_host_keys(str(lab.directory / "known_hosts"))
        connection.client.set_missing_host_key_policy(RejectPolicy())  # Fabric's default accepts any host key
        assert connection.run("systemctl is-active kubelet", hide=True, in_stream=False).stdout.strip() == "active"
