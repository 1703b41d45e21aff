"""The lab's keys and the files for an SSH client: generated for one lab, removed with it."""

from __future__ import annotations

import base64
import io
import ipaddress
import os
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import paramiko
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import NameOID

from rollout.lab.spec import NodeSpec

# A certificate authority of one lab, and the API server's certificate and kubeconfig.


_LIFE = timedelta(days=30)


def serving(address: str, directory: Path) -> tuple[ssl.SSLContext, bytes]:
    """A TLS context for a server at this address, and the authority's certificate (PEM)."""
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _certificate("rollout-lab-ca", authority_key, authority_key, None, None)
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _certificate("rollout-lab", key, authority_key, authority, address)
    path = directory / "apiserver.pem"
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    write_private(path, certificate.public_bytes(Encoding.PEM) + secret)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context, authority.public_bytes(Encoding.PEM)


def kubeconfig(cluster: str, url: str, authority: bytes, token: str) -> bytes:
    """A kubeconfig with one context, the lab's."""
    server = {"server": url, "certificate-authority-data": base64.b64encode(authority).decode()}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": server}],
        "users": [{"name": "rollout", "user": {"token": token}}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": "rollout"}}],
        "current-context": cluster,
    }
    return yaml.safe_dump(document, sort_keys=False).encode()


def write_private(path: Path, data: bytes) -> None:
    """A private file (0600)."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate | None,
    address: str | None,
) -> x509.Certificate:
    """The authority's own certificate without ``issuer`` and ``address``."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    is_authority, now = address is None, datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=2))
        .not_valid_after(now + _LIFE)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        .add_extension(_usage(signs=is_authority), critical=True)
    )
    if address is not None:
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        builder = builder.add_extension(names, critical=False)
    return builder.sign(signer, hashes.SHA256())


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


USER = "ops"

_COMMON = """\
Host *
  Port {port}
  User {user}
  IdentityFile "{directory}/id_ed25519"
  IdentitiesOnly yes
  UserKnownHostsFile "{directory}/known_hosts"
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  PasswordAuthentication no
  KbdInteractiveAuthentication no
  BatchMode yes
"""


@dataclass(frozen=True, slots=True)
class Key:
    """An ed25519 key in the format of key files."""

    private: str
    public: str

    @classmethod
    def generate(cls) -> Key:
        key = Ed25519PrivateKey.generate()
        private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
        return cls(private, key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode())

    def loaded(self) -> paramiko.PKey:
        """In paramiko's format."""
        return paramiko.Ed25519Key(file_obj=io.StringIO(self.private))


def write_client_files(directory: Path, nodes: Iterable[NodeSpec], hosts: dict[str, Key], port: int) -> Key:
    """``id_ed25519``, ``known_hosts`` and ``ssh_config`` in ``directory``; returns the user's key."""
    user = Key.generate()
    _private(directory / "id_ed25519", user.private)
    (directory / "id_ed25519.pub").write_text(f"{user.public} rollout-lab\n", encoding="utf-8")
    known, blocks = [], []
    for node in nodes:
        names = " ".join(dict.fromkeys((node.name, node.known_as)))
        known.append(f"{node.name},[{node.address}]:{port} {hosts[node.name].public}\n")
        blocks.append(f"Host {names}\n  HostName {node.address}\n")
    (directory / "known_hosts").write_text("".join(known), encoding="utf-8")
    common = _COMMON.format(port=port, user=USER, directory=directory)
    (directory / "ssh_config").write_text("".join([*blocks, common]), encoding="utf-8")
    return user


def _private(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
