"""A node with an sshd that accepts one session at a time. At the next request it has not seen the end of the last one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rollout.core.model.report import RemoteCommand
from tests.adapters.ssh.conftest import Make
from tests.adapters.ssh.sshd import TRUE, Sshd, lasting, patient, target
from tests.controllers import until

pytestmark = pytest.mark.process


def test_commands_one_after_the_other(own_sshd: Sshd, make_nodes: Make) -> None:
    own_sshd.options = "MaxSessions 1\n"
    own_sshd.start()
    nodes = make_nodes(own_sshd.ssh_config)
    assert {nodes.run(target(), TRUE).reference for _ in range(15)} == {""}


def test_a_session_that_stays_open_is_kept_and_another_connection_is_opened(
    own_sshd: Sshd, make_nodes: Make, tmp_path: Path
) -> None:
    own_sshd.options = "MaxSessions 1\n"
    own_sshd.start()
    nodes = make_nodes(own_sshd.ssh_config, limits=patient(refusals=0.2))
    begun = tmp_path / "begun"
    with ThreadPoolExecutor(1) as pool:
        with lasting(tmp_path) as while_we_look:
            long = pool.submit(nodes.run, target(), RemoteCommand(f"touch {begun}; {while_we_look}", b"", 600))
            until(begun.exists, 60, "the only session is taken")
            assert nodes.run(target(), TRUE).status == 0
        assert long.result().status == 0
    assert own_sshd.accepted() == 2


def test_a_node_that_accepts_no_session_is_reported(own_sshd: Sshd, make_nodes: Make) -> None:
    own_sshd.options = "MaxSessions 0\n"
    own_sshd.start()
    answer = make_nodes(own_sshd.ssh_config, limits=patient(refusals=0.2)).run(target(), TRUE)
    assert (answer.started, answer.reference) == (False, "no-channel")
    assert own_sshd.accepted() == 2
