"""Certificates for a scheduler and its peers, and addresses that are refused before anything is sent."""

from __future__ import annotations

import socket
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509

from rollout.errors import UsageError
from rollout.features.regions.client import certificates, scheduler
from rollout.features.regions.client.certificates import ROLES, CertificateFiles, make_certificates
from rollout.features.regions.client.scheduler import DaskScheduler


def refused(address: str, files: CertificateFiles | None) -> str:
    with pytest.raises(UsageError) as raised:
        DaskScheduler(address, files)
    return raised.value.reference


def test_each_role_has_its_own_key_under_one_authority(tmp_path: Path) -> None:
    made = make_certificates(tmp_path / "certs", ("localhost", "127.0.0.1", "db.example.net"))
    assert [folder.name for folder in made] == list(ROLES)
    found = [CertificateFiles(folder) for folder in made]
    for files in found:
        files.check()
        authority = x509.load_pem_x509_certificate(Path(files.authority).read_bytes())
        own = x509.load_pem_x509_certificate(Path(files.certificate).read_bytes())
        own.verify_directly_issued_by(authority)
        assert Path(files.key).stat().st_mode & 0o777 == 0o600
    assert len({Path(files.key).read_text() for files in found}) == len(ROLES)
    with pytest.raises(UsageError, match="not empty"):
        make_certificates(tmp_path / "certs", ())


def test_an_expired_certificate_is_refused_with_its_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "LIFE", timedelta(minutes=-1))
    (folder, *_) = make_certificates(tmp_path / "certs", ("localhost",))
    assert refused("tls://127.0.0.1:8786", CertificateFiles(folder)) == "certificate-expired"


def test_a_certificate_that_is_missing_or_no_certificate_is_refused(tmp_path: Path) -> None:
    assert refused("tls://127.0.0.1:8786", CertificateFiles(tmp_path)) == "certificate-unusable"
    (folder, *_) = make_certificates(tmp_path / "certs", ("localhost",))
    (folder / "cert.pem").write_text("no certificate")
    assert refused("tls://127.0.0.1:8786", CertificateFiles(folder)) == "certificate-unusable"


@pytest.mark.parametrize("address", ["", "host:8786", "http://127.0.0.1:80", "tcp://", "ucx://127.0.0.1:1"])
def test_what_is_no_address_of_a_scheduler_is_refused(address: str) -> None:
    assert refused(address, None) == "scheduler-address"


@pytest.mark.parametrize("address", ["tcp://10.0.0.1:8786", "tcp://example.net:8786", "tls://127.0.0.1:8786"])
def test_nothing_but_loopback_is_reached_without_certificates(address: str) -> None:
    assert refused(address, None) == "engine-needs-tls"


@pytest.mark.process
def test_a_scheduler_that_accepts_and_never_answers_is_refused_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "CONNECT_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert refused(f"tcp://127.0.0.1:{silent.getsockname()[1]}", None) == "scheduler-unusable"
