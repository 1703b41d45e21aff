"""Keys from files and from a real ssh-agent."""

from __future__ import annotations

import gc
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from rollout.adapters.ssh import SshNodes, identities
from rollout.adapters.ssh.identities import _load
from tests.adapters.ssh.conftest import Make
from tests.adapters.ssh.keys import HardwareAgent
from tests.adapters.ssh.sshd import PATIENT, TRUE, Sshd, make_key, target

pytestmark = pytest.mark.process


def add(key: Path) -> None:
    subprocess.run(["ssh-add", "-q", key], check=True, stdin=subprocess.DEVNULL, capture_output=True)


def locked(key: Path) -> None:
    """The private key on disk gets a passphrase; the agent has the key unlocked."""
    subprocess.run(
        ["ssh-keygen", "-q", "-p", "-P", "", "-N", "a passphrase", "-f", key], check=True, capture_output=True
    )


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_every_type_of_key_from_a_file(own_sshd: Sshd, make_nodes: Make, kind: str) -> None:
    own_sshd.user_key = make_key(own_sshd.folder / "another", kind)
    shutil.copy(own_sshd.folder / "another.pub", own_sshd.folder / "authorized_keys")
    own_sshd.write_ssh_config()
    own_sshd.start()
    assert make_nodes(own_sshd.ssh_config).run(target(), TRUE).status == 0


def test_a_locked_key_that_the_agent_holds(own_sshd: Sshd, make_nodes: Make, agent: Path) -> None:
    add(own_sshd.user_key)
    locked(own_sshd.user_key)
    own_sshd.start()
    nodes = make_nodes(own_sshd.ssh_config)
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda n: nodes.run(target(f"n{n}"), TRUE), range(12)))
    assert [answer.status for answer in answers] == [0] * 12


def test_other_keys_of_the_agent_unless_identities_only(own_sshd: Sshd, make_nodes: Make, agent: Path) -> None:
    add(own_sshd.user_key)
    own_sshd.user_key = own_sshd.folder / "not-there"
    own_sshd.write_ssh_config()
    own_sshd.start()
    assert make_nodes(own_sshd.ssh_config).run(target(), TRUE).reference == "auth-failed"
    own_sshd.write_ssh_config("IdentitiesOnly no")
    assert make_nodes(own_sshd.ssh_config).run(target(), TRUE).status == 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # paramiko drops that socket unclosed
def test_a_hanging_agent_is_abandoned(
    own_sshd: Sshd, make_nodes: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identities, "AGENT_SECONDS", 0.5)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(os.fspath(tmp_path / "silent"))
        silent.listen()
        monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "silent"))
        own_sshd.start()
        assert make_nodes(own_sshd.ssh_config).run(target(), TRUE).status == 0
    gc.collect()


@pytest.fixture
def hardware(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HardwareAgent]:
    held = HardwareAgent(tmp_path / "hardware")
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "hardware"))
    yield held
    held.stop()


@pytest.mark.parametrize("named", [False, True])
def test_a_hardware_key_that_the_agent_holds(own_sshd: Sshd, hardware: HardwareAgent, named: bool) -> None:
    """``named``: by IdentityFile (a stub without a secret) and IdentitiesOnly."""
    (own_sshd.folder / "authorized_keys").write_text(f"{hardware.public}\n", encoding="utf-8")
    own_sshd.user_key = own_sshd.folder / "id_sk"
    own_sshd.user_key.with_name("id_sk.pub").write_text(f"{hardware.public}\n", encoding="utf-8")
    own_sshd.write_ssh_config("" if named else "IdentitiesOnly no")
    own_sshd.start()
    told: list[str] = []
    with (
        closing(SshNodes(ssh_config=own_sshd.ssh_config, limits=PATIENT, notice=told.append)) as nodes,
        ThreadPoolExecutor(6) as pool,
    ):
        answers = list(pool.map(lambda n: nodes.run(target(f"n{n}"), TRUE), range(6)))
    assert [answer.status for answer in answers] == [0] * 6
    assert hardware.signed == 6
    assert told == ["the hardware key my-key may wait for a touch"]


def test_a_hardware_key_without_an_agent_is_reported(own_sshd: Sshd, make_nodes: Make, tmp_path: Path) -> None:
    held = HardwareAgent(tmp_path / "hardware")
    held.stop()
    own_sshd.user_key = own_sshd.folder / "id_sk"
    own_sshd.user_key.write_text("a stub\n", encoding="utf-8")
    own_sshd.user_key.chmod(0o600)
    own_sshd.user_key.with_name("id_sk.pub").write_text(f"{held.public}\n", encoding="utf-8")
    own_sshd.write_ssh_config()
    own_sshd.start()
    answer = make_nodes(own_sshd.ssh_config).run(target(), TRUE)
    assert answer.reference == "auth-failed"
    assert "is a hardware key; add it to an agent" in answer.message


@pytest.mark.parametrize("mode", [0o640, 0o604])
def test_a_private_key_that_others_may_read_is_refused_as_openssh_does(
    own_sshd: Sshd, make_nodes: Make, mode: int
) -> None:
    own_sshd.start()
    own_sshd.user_key.chmod(mode)
    ssh = ["ssh", "-F", str(own_sshd.ssh_config), "-o", "BatchMode=yes", "n1", "true"]
    assert subprocess.run(ssh, capture_output=True, check=False).returncode == 255
    answer = make_nodes(own_sshd.ssh_config).run(target(), TRUE)
    assert answer.reference == "auth-failed"
    assert f"chmod 600 {own_sshd.user_key}"[:60] in answer.message
    own_sshd.user_key.chmod(0o600)
    assert subprocess.run(ssh, capture_output=True, check=False).returncode == 0
    assert make_nodes(own_sshd.ssh_config).run(target(), TRUE).status == 0


def test_a_public_key_in_the_place_of_a_private_one_is_not_called_private(tmp_path: Path) -> None:
    """ssh-keygen writes it for everybody to read."""
    public = tmp_path / "k.pub"
    public.write_text("ssh-ed25519 AAAA\n")
    public.chmod(0o644)
    assert "is a public key, and no agent has its private key" in str(_load(public, b"AAA"))
    assert "hardware key" in str(_load(public, b"\0\0\0\x1a" + identities.HARDWARE.encode()))
