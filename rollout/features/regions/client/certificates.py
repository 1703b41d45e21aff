"""Certificates of a scheduler, its workers and controllers: one folder for each role, one authority for all."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from rollout.adapters.owners import check_ours
from rollout.adapters.private_files import write_privately
from rollout.core.text.terminal import printable
from rollout.errors import UsageError

AUTHORITY = "ca.pem"
CERTIFICATE = "cert.pem"
KEY = "key.pem"
ROLES = ("scheduler", "worker", "controller")
LIFE = timedelta(days=30)
EARLIER = timedelta(minutes=5)
"""A certificate is valid from a little before it is made, for clocks that are a little behind."""


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """The folder of one role."""

    folder: Path

    @property
    def authority(self) -> str:
        return str(self.folder / AUTHORITY)

    @property
    def certificate(self) -> str:
        return str(self.folder / CERTIFICATE)

    @property
    def key(self) -> str:
        return str(self.folder / KEY)

    def check(self) -> None:
        """``UsageError`` for a file that is missing or no certificate, and for a certificate that is not valid now.

        ``InputError`` for a file that another user decides about.
        """
        for path in (self.authority, self.certificate, self.key):
            check_ours(Path(path))
        for path in (self.authority, self.certificate):
            try:
                certificate = x509.load_pem_x509_certificate(Path(path).read_bytes())
            except (OSError, ValueError) as error:
                hint = "`rollout regions certs` makes certificates for a lab"
                raise UsageError("certificate-unusable", printable(f"{path}: {error}", 300), hint=hint) from None
            now = datetime.now(UTC)
            if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
                until = f"{certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
                raise UsageError(
                    "certificate-expired", f"{path} is not valid now; it ended at {until}", hint="renew it"
                )
        if not Path(self.key).is_file():
            raise UsageError("certificate-unusable", f"there is no {self.key}")


def make_certificates(folder: Path, names: tuple[str, ...]) -> tuple[Path, ...]:
    """A new authority and a certificate for each role, valid for ``names`` (hosts and addresses) and for 30 days.

    ``UsageError`` if the folder has some already.
    """
    if folder.exists() and any(folder.iterdir()):
        raise UsageError("folder-not-empty", f"{folder} is not empty; nothing was written", hint="name a new folder")
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _signed("rollout-lab", authority_key, authority_key, None, ())
    written = []
    for role in ROLES:
        own = folder / role
        own.mkdir(mode=0o700, parents=True)
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _signed(f"rollout-{role}", key, authority_key, authority, names)
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        write_privately(own / AUTHORITY, authority.public_bytes(Encoding.PEM))
        write_privately(own / CERTIFICATE, certificate.public_bytes(Encoding.PEM))
        write_privately(own / KEY, secret)
        written.append(own)
    return tuple(written)


def _signed(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
    authority: x509.Certificate | None,
    names: tuple[str, ...],
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(authority.subject if authority else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLIER)
        .not_valid_after(now + LIFE)
        .add_extension(x509.BasicConstraints(ca=authority is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName([_general(name) for name in names]), critical=False)
    return builder.sign(signer, hashes.SHA256())


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
