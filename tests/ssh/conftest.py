"""One server for the whole session, a fresh ``SshNodes`` for each test, and a check that nothing is left behind."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rollout.adapters.ssh import SshLimits, SshNodes
from tests.ssh.sshd import Sshd, require

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

    def make(ssh_config: Path, *, limits: SshLimits | None = None, accept_new: bool = False) -> SshNodes:
        made.append(SshNodes(ssh_config=ssh_config, limits=limits, accept_new=accept_new))
        return made[-1]

    before = set(threading.enumerate())
    yield make
    for nodes in made:
        nodes.close()
    end = time.monotonic() + 5
    while left := set(threading.enumerate()) - before:
        assert time.monotonic() < end, f"threads left: {left}"
        next(iter(left)).join(0.1)


@pytest.fixture
def nodes(shared_sshd: Sshd, make_nodes: Make) -> SshNodes:
    return make_nodes(shared_sshd.ssh_config)


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The socket of an empty agent that everything below uses."""
    path = tmp_path / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", path], stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 10
        while not path.exists():
            assert time.monotonic() < end
            time.sleep(0.02)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
        yield path
    finally:
        process.terminate()
        process.wait(10)
