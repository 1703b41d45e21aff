"""The message for each connection error: the cause, and what to do. A real sshd causes each."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rollout.adapters.ssh.troubles import TROUBLES, told
from rollout.core.model.snapshot import Unread
from rollout.core.text.message_folding import nameless
from rollout.kubelet.agent.agent_answer import parse_snapshot
from tests.adapters.ssh.conftest import Make
from tests.adapters.ssh.sshd import TRUE, Sshd, free_port, make_key, target


@pytest.fixture
def without_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


def said(make_nodes: Make, server: Sshd) -> tuple[str, str]:
    answer = make_nodes(server.ssh_config).run(target(), TRUE)
    assert not answer.started
    return answer.reference, answer.message


@pytest.mark.process
def test_a_refused_connection_is_reported(own_sshd: Sshd, make_nodes: Make) -> None:
    own_sshd.port = free_port()
    own_sshd.write_ssh_config()
    reference, message = said(make_nodes, own_sshd)
    assert reference == "connection-refused"
    assert message.startswith(f"connection refused (at 127.0.0.1:{own_sshd.port}); check that sshd")


@pytest.mark.process
def test_a_name_that_does_not_resolve_is_reported(own_sshd: Sshd, make_nodes: Make) -> None:
    own_sshd.write_ssh_config("Host n1\n  HostName absent.invalid\n")
    reference, message = said(make_nodes, own_sshd)
    assert reference == "name-not-known"
    assert message.startswith("the name does not resolve (at absent.invalid): ")


@pytest.mark.process
def test_the_message_about_an_unknown_host_key_names_how_to_accept_it(own_sshd: Sshd, make_nodes: Make) -> None:
    own_sshd.start()
    own_sshd.known_hosts.write_text("", encoding="utf-8")
    reference, message = said(make_nodes, own_sshd)
    assert reference == "host-key-unknown"
    assert f"none is in {own_sshd.known_hosts}; `--accept-new`" in message
    assert f"(at [127.0.0.1]:{own_sshd.port}, which presents ssh-ed25519 SHA256:" in message


@pytest.mark.process
@pytest.mark.usefixtures("without_agent")
def test_a_key_that_the_node_does_not_accept(own_sshd: Sshd, make_nodes: Make) -> None:
    own_sshd.start()
    own_sshd.user_key = make_key(own_sshd.folder / "other")
    own_sshd.write_ssh_config()
    reference, message = said(make_nodes, own_sshd)
    assert reference == "auth-failed"
    assert "1 key to offer: it accepted none of them; check the user and the keys" in message
    assert "broke" not in message


@pytest.mark.process
@pytest.mark.usefixtures("without_agent")
def test_a_missing_key_file_is_named(own_sshd: Sshd, make_nodes: Make) -> None:
    own_sshd.start()
    own_sshd.user_key = own_sshd.folder / "absent"
    own_sshd.write_ssh_config()
    reference, message = said(make_nodes, own_sshd)
    assert reference == "auth-failed"
    assert f"there is no private key to offer; there is no {own_sshd.folder}/absent" in message


@pytest.mark.process
def test_too_many_keys_of_an_agent(own_sshd: Sshd, make_nodes: Make, agent: Path) -> None:
    own_sshd.options = "MaxAuthTries 3"
    own_sshd.start()
    keys = [make_key(own_sshd.folder / f"key{number}") for number in range(5)]
    subprocess.run(["ssh-add", "-q", *keys], check=True, capture_output=True)
    own_sshd.user_key = own_sshd.folder / "absent"
    own_sshd.write_ssh_config("Host n1\n  IdentitiesOnly no\n")
    reference, message = said(make_nodes, own_sshd)
    assert reference == "auth-too-many-keys"
    assert "(MaxAuthTries)" in message
    assert "`IdentitiesOnly yes`" in message


@pytest.mark.process
def test_a_user_who_may_not_use_keys(own_sshd: Sshd, make_nodes: Make) -> None:
    own_sshd.options = "PubkeyAuthentication no\nPasswordAuthentication yes"
    own_sshd.start()
    reference, message = said(make_nodes, own_sshd)
    assert reference == "auth-failed"
    assert "it accepts no public keys for this user, only password" in message


@pytest.mark.process
def test_a_login_shell_that_runs_nothing(own_sshd: Sshd, make_nodes: Make) -> None:
    own_sshd.options = "ForceCommand echo 'This account is currently not available.'; exit 1"
    own_sshd.start()
    found = parse_snapshot("n1", make_nodes(own_sshd.ssh_config).run(target(), TRUE))
    assert isinstance(found, Unread)
    assert (
        "printed instead: This account is currently not available.; check that the user's login shell" in found.message
    )


def test_the_errors_of_many_nodes_fold_into_one() -> None:
    for reference in TROUBLES:
        one, other = (nameless(told(reference, "x", at=f"10.0.0.{n}:22").message, f"n{n}") for n in (1, 2))
        assert one == other


@pytest.mark.parametrize("reference", sorted(TROUBLES))
def test_a_message_is_one_line_that_begins_with_its_cause(reference: str) -> None:
    message = told(reference, "why", at="n1:22").message
    assert message.startswith(f"{TROUBLES[reference].cause} (at n1:22): why")
    assert "\n" not in message
