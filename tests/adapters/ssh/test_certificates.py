"""Certificates of users and of hosts on a real server, including certificates that are not accepted."""

from __future__ import annotations

import getpass
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rollout.core.model.report import RemoteAnswer
from tests.adapters.ssh.conftest import Make
from tests.adapters.ssh.keys import authority, sign
from tests.adapters.ssh.sshd import TRUE, Sshd, make_key, public, target
from tests.adapters.ssh.test_identities import add, locked
from tests.adapters.ssh.test_troubles import refused

pytestmark = pytest.mark.process

ME = getpass.getuser()
Past = ("-V", "20200101:20210101")


def trusting(server: Sshd, trusted: Path) -> None:
    """The server accepts only certificates of this authority, no plain keys."""
    server.options = f"TrustedUserCAKeys {trusted}.pub"
    (server.folder / "authorized_keys").unlink()
    server.start()


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_a_users_certificate_beside_the_key(own_sshd: Sshd, make_nodes: Make, kind: str) -> None:
    own_sshd.user_key = make_key(own_sshd.folder / "mine", kind)
    own_sshd.write_ssh_config()
    trusted = authority(own_sshd.folder)
    trusting(own_sshd, trusted)
    assert refused(make_nodes(own_sshd.ssh_config).run(target(), TRUE)) == "auth-failed"
    sign(trusted, own_sshd.user_key, "-n", ME)
    assert make_nodes(own_sshd.ssh_config).run(target(), TRUE).status == 0


def test_a_certificate_file_that_ssh_config_names(own_sshd: Sshd, make_nodes: Make) -> None:
    trusted = authority(own_sshd.folder)
    trusting(own_sshd, trusted)
    sign(trusted, own_sshd.user_key, "-n", ME).rename(own_sshd.folder / "elsewhere")
    own_sshd.write_ssh_config(f"CertificateFile {own_sshd.folder}/elsewhere")
    assert make_nodes(own_sshd.ssh_config).run(target(), TRUE).status == 0


@pytest.mark.parametrize("kind", ["ed25519", "rsa"])
def test_a_certificate_that_the_agent_holds(
    own_sshd: Sshd,
    make_nodes: Make,
    agent: Path,
    kind: str,
) -> None:
    own_sshd.user_key = make_key(own_sshd.folder / "mine", kind)
    trusted = authority(own_sshd.folder)
    trusting(own_sshd, trusted)
    certificate = sign(trusted, own_sshd.user_key, "-n", ME)
    add(own_sshd.user_key)
    certificate.unlink()
    own_sshd.user_key.unlink()
    own_sshd.write_ssh_config("IdentitiesOnly no")
    assert make_nodes(own_sshd.ssh_config).run(target(), TRUE).status == 0


def test_a_certificate_file_for_a_key_that_only_the_agent_has(
    own_sshd: Sshd,
    make_nodes: Make,
    agent: Path,
) -> None:
    trusted = authority(own_sshd.folder)
    trusting(own_sshd, trusted)
    add(own_sshd.user_key)
    locked(own_sshd.user_key)
    sign(trusted, own_sshd.user_key, "-n", ME)
    own_sshd.write_ssh_config()
    assert make_nodes(own_sshd.ssh_config).run(target(), TRUE).status == 0


def test_an_expired_certificate_is_reported(own_sshd: Sshd, make_nodes: Make) -> None:
    trusted = authority(own_sshd.folder)
    trusting(own_sshd, trusted)
    sign(trusted, own_sshd.user_key, "-n", ME, *Past)
    answer = make_nodes(own_sshd.ssh_config).run(target(), TRUE)
    assert refused(answer) == "auth-failed"
    assert "expired on 20" in answer.message


def test_a_file_that_is_not_a_certificate_is_reported(own_sshd: Sshd, make_nodes: Make) -> None:
    trusting(own_sshd, authority(own_sshd.folder))
    (own_sshd.folder / "broken").write_text("ssh-ed25519-cert-v01@openssh.com AAAAnotone\n", encoding="utf-8")
    own_sshd.write_ssh_config(f"CertificateFile {own_sshd.folder}/broken")
    answer = make_nodes(own_sshd.ssh_config).run(target(), TRUE)
    assert refused(answer) == "auth-failed"
    assert "broken is not a usable certificate" in answer.message


Certify = Callable[..., RemoteAnswer]


@pytest.fixture
def certified(own_sshd: Sshd, make_nodes: Make) -> Certify:
    """A node with a host certificate, and its answer with ``lines`` in known_hosts."""

    def run(*options: str, lines: str = "@cert-authority 127.0.0.1 {ca}", kind: str = "ed25519", ca: str = "ed25519",
            accept_new: bool = False) -> RemoteAnswer:  # fmt: skip
        own_sshd.host_key = make_key(own_sshd.folder / "host2", kind)
        trusted = authority(own_sshd.folder, ca)
        certificate = sign(trusted, own_sshd.host_key, *(options or ("-h", "-n", "127.0.0.1")))
        own_sshd.options = f"HostCertificate {certificate}"
        own_sshd.start()
        text = lines.format(ca=public(trusted), host=public(own_sshd.host_key), port=own_sshd.port)
        own_sshd.known_hosts.write_text(f"{text}\n", encoding="utf-8")
        return make_nodes(own_sshd.ssh_config, accept_new=accept_new).run(target(), TRUE)

    return run


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
@pytest.mark.parametrize("ca", ["ed25519", "ecdsa", "rsa"])
def test_a_hosts_certificate_proves_it(certified: Certify, kind: str, ca: str) -> None:
    assert certified(kind=kind, ca=ca).status == 0


@pytest.mark.parametrize(
    ("lines", "reference"),
    [
        ("@cert-authority [127.0.0.1]:{port} {ca}", ""),
        ("@cert-authority *.net,127.* {ca}", ""),
        ("@cert-authority * {ca}\n@revoked * {ca}", "host-certificate-refused"),
        ("@cert-authority * {ca}\n@revoked * {host}", "host-key-revoked"),
        ("@cert-authority *.example.net {ca}", "host-key-unknown"),
        ("@cert-authority * {host}", "host-certificate-refused"),
        ("@cert-authority * {host}\n127.0.0.1 {host}", ""),
        ("127.0.0.1 {host}", ""),
    ],
)
def test_which_lines_of_known_hosts_count(certified: Certify, lines: str, reference: str) -> None:
    assert certified(lines=lines).reference == reference


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("-h", "-n", "10.0.0.1,other"), "it is for 10.0.0.1, other, not for 127.0.0.1"),
        (("-h",), "it is for no name"),
        (("-h", "-n", "127.0.0.1", *Past), "expired on 20"),
        (("-h", "-n", "127.0.0.1", "-V", "20400101:20410101"), "is not valid before 20"),
        (("-h", "-n", "127.0.0.1", "-O", "critical:new@example=1"), "critical options"),
        (("-n", "127.0.0.1"), "not a host certificate"),
    ],
)
def test_a_host_certificate_that_is_not_accepted(
    certified: Certify, own_sshd: Sshd, options: tuple[str, ...], says: str
) -> None:
    """Even --accept-new does not accept such a host's key."""
    answer = certified(*options, accept_new=True)
    assert refused(answer) == "host-certificate-refused"
    assert says in answer.message
    assert own_sshd.accepted() == 0


def test_a_host_without_the_certificate_that_is_expected(own_sshd: Sshd, make_nodes: Make) -> None:
    own_sshd.start()
    own_sshd.known_hosts.write_text(f"@cert-authority * {public(own_sshd.user_key)}\n", encoding="utf-8")
    answer = make_nodes(own_sshd.ssh_config).run(target(), TRUE)
    assert refused(answer) == "host-certificate-refused"
    assert "presents no certificate" in answer.message


def test_a_forged_certificate_is_not_accepted(own_sshd: Sshd, make_nodes: Make) -> None:
    """It has the name of a trusted authority and the signature of another one."""
    trusted = authority(own_sshd.folder)
    (own_sshd.folder / "evil").mkdir()
    evil = authority(own_sshd.folder / "evil")
    shutil.copy(f"{own_sshd.host_key}.pub", own_sshd.folder / "plain.pub")
    certificate = sign(evil, own_sshd.host_key, "-h", "-n", "127.0.0.1")
    _put_in(certificate, public(evil), public(trusted))
    own_sshd.options = f"HostCertificate {certificate}"
    own_sshd.start()
    own_sshd.known_hosts.write_text(f"@cert-authority * {public(trusted)}\n", encoding="utf-8")
    answer = make_nodes(own_sshd.ssh_config).run(target(), TRUE)
    assert refused(answer) == "host-certificate-refused"


def _put_in(certificate: Path, old: str, new: str) -> None:
    import base64

    kind, text = certificate.read_text(encoding="utf-8").split()[:2]
    blob = base64.b64decode(text)
    changed = blob.replace(base64.b64decode(old.split()[1]), base64.b64decode(new.split()[1]))
    assert changed != blob
    certificate.write_text(f"{kind} {base64.b64encode(changed).decode()}\n", encoding="utf-8")
