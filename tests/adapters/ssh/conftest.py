"""One server for the session, a new ``SshNodes`` for each test, and a check that nothing is left behind."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rollout.adapters.ssh import SshLimits, SshNodes
from tests.adapters.ssh.sshd import PATIENT, Sshd, require
from tests.controllers import until

Make = Callable[..., SshNodes]


@pytest.fixture(scope="session")
def shared_sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    require()
    server = Sshd(tmp_path_factory.mktemp("sshd"))
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def own_sshd(tmp_path: Path) -> Iterator[Sshd]:
    """Not started yet: for tests that configure or stop it."""
    require()
    server = Sshd(tmp_path)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def make_nodes() -> Iterator[Make]:
    """Makes ``SshNodes`` that are closed at the end; then no thread of theirs may be left."""
    made: list[SshNodes] = []

    def make(ssh_config: Path, *, limits: SshLimits = PATIENT, accept_new: bool = False) -> SshNodes:
        made.append(SshNodes(ssh_config=ssh_config, limits=limits, accept_new=accept_new))
        return made[-1]

    before = set(threading.enumerate())
    yield make
    for nodes in made:
        nodes.close()
    until(lambda: not set(threading.enumerate()) - before, 60, "no thread is left")


@pytest.fixture
def nodes(shared_sshd: Sshd, make_nodes: Make) -> SshNodes:
    return make_nodes(shared_sshd.ssh_config)


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The socket of an empty ssh-agent. All following code uses this agent."""
    path = tmp_path / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", path], stdout=subprocess.DEVNULL)
    try:
        until(path.exists, 60, "the agent listens")
        monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
        yield path
    finally:
        process.terminate()
        process.wait(60)
