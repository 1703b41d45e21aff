"""From a target to where and how to connect, as ssh_config says; what we cannot honour is refused in clear words."""

from __future__ import annotations

import getpass
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rollout.adapters.ssh.ssh_config import SshConfig
from rollout.adapters.ssh.troubles import printable
from rollout.app.ports import Target
from rollout.errors import RemoteError

DEFAULT_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")
DEFAULT_KNOWN = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
GLOBAL_KNOWN = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
FAMILIES = {"any": socket.AF_UNSPEC, "inet": socket.AF_INET, "inet6": socket.AF_INET6}

# option -> the values that ask for nothing, the reference, the words
REFUSED: dict[str, tuple[frozenset[str], str, str]] = {
    option: (frozenset(harmless), reference, words)
    for option, harmless, reference, words in (
        ("proxyjump", ("none",), "proxy-jump-not-supported", "ProxyJump is not supported yet"),
        ("proxycommand", ("none",), "proxy-command-not-supported", "ProxyCommand is not supported yet"),
        ("gssapiauthentication", ("no",), "gssapi-not-supported", "GSSAPIAuthentication is not supported yet"),
        (
            "pubkeyauthentication",
            ("yes", "unbound", "host-bound"),
            "ssh-option-not-supported",
            "PubkeyAuthentication no leaves nothing",
        ),
        ("certificatefile", ("none",), "certificate-not-supported", "CertificateFile is not supported yet"),
        ("knownhostscommand", ("none",), "ssh-option-not-supported", "KnownHostsCommand is not supported"),
        ("verifyhostkeydns", ("no",), "ssh-option-not-supported", "VerifyHostKeyDNS is not supported"),
        ("pkcs11provider", ("none",), "ssh-option-not-supported", "PKCS11Provider is not supported"),
        ("bindaddress", (), "ssh-option-not-supported", "BindAddress is not supported"),
        ("bindinterface", (), "ssh-option-not-supported", "BindInterface is not supported"),
        ("identityagent", ("ssh_auth_sock",), "ssh-option-not-supported", "IdentityAgent is not supported"),
    )
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a node is and what proves it. ``key_names`` are its names in known_hosts, the decisive one first."""

    host: str
    port: int
    user: str
    family: int
    key_names: tuple[str, ...]
    known_hosts: tuple[Path, ...]
    accept_new: bool
    identities: tuple[Path, ...]
    identities_only: bool
    connect_timeout: float | None


class Resolver:
    """Resolves targets, each once. Thread-safe."""

    def __init__(
        self, config: SshConfig, *, known_hosts: tuple[Path, ...] | None = None, accept_new: bool = False
    ) -> None:
        self._config = config
        self._known_hosts = known_hosts
        self._accept_new = accept_new
        self._user = getpass.getuser()
        self._home = str(Path.home())
        self._lock = threading.Lock()
        self._found: dict[Target, Endpoint] = {}

    def resolve(self, target: Target) -> Endpoint:
        """Raises ``RemoteError`` for what is not supported."""
        with self._lock:
            found = self._found.get(target)
            if found is None:
                found = self._found[target] = self._endpoint(target)
            return found

    def _endpoint(self, target: Target) -> Endpoint:
        settings = self._config.lookup(target.address)
        _refuse(settings)
        host = _text(settings, "hostname", target.address).lower()
        port = target.port or _number(settings, "port", 22)
        user = target.user or _text(settings, "user", self._user)
        timeout = _text(settings, "connecttimeout", "none")
        tokens = {"%d": self._home, "%h": host, "%n": target.address, "%p": str(port), "%r": user, "%u": self._user}
        return Endpoint(
            host=host,
            port=port,
            user=user,
            family=FAMILIES.get(_text(settings, "addressfamily", "any").lower(), socket.AF_UNSPEC),
            key_names=_key_names(host, port, _text(settings, "hostkeyalias", "")),
            known_hosts=self._known_hosts or _known_hosts(settings, tokens),
            accept_new=self._accept_new or _text(settings, "stricthostkeychecking", "").lower() == "accept-new",
            identities=tuple(_path(name, tokens) for name in _identities(settings)),
            identities_only=_text(settings, "identitiesonly", "no").lower() == "yes",
            connect_timeout=None
            if timeout.lower() == "none"
            else float(_number(settings, "connecttimeout", 0)) or None,
        )


def _refuse(settings: Mapping[str, str | list[str] | None]) -> None:
    for option, (harmless, reference, words) in REFUSED.items():
        value = settings.get(option)  # paramiko gives None for "ProxyCommand none"
        if isinstance(value, str) and value.lower() not in harmless:
            raise RemoteError(reference, f"{words} (ssh_config: {option} {printable(value, 80)})")


def _key_names(host: str, port: int, alias: str) -> tuple[str, ...]:
    """As OpenSSH: an alias stands alone; otherwise a port of its own is part of the name, the bare name also proves."""
    if alias:
        return (alias.lower(),)
    return (host,) if port == 22 else (f"[{host}]:{port}", host)


def _known_hosts(settings: Mapping[str, str | list[str]], tokens: Mapping[str, str]) -> tuple[Path, ...]:
    users = _text(settings, "userknownhostsfile", "").split() or DEFAULT_KNOWN
    everyones = _text(settings, "globalknownhostsfile", "").split() or GLOBAL_KNOWN
    return tuple(_path(name, tokens) for name in (*users, *everyones) if name.lower() != "none")


def _identities(settings: Mapping[str, str | list[str]]) -> tuple[str, ...]:
    names = settings.get("identityfile") or DEFAULT_KEYS
    return tuple(name for name in ([names] if isinstance(names, str) else names) if name.lower() != "none")


def _path(name: str, tokens: Mapping[str, str]) -> Path:
    for token, value in tokens.items():
        name = name.replace(token, value)
    if "%" in name:
        raise RemoteError("ssh-option-not-supported", f"a token in {printable(name, 80)} is not supported")
    return Path(name.strip('"')).expanduser()


def _text(settings: Mapping[str, str | list[str]], key: str, default: str) -> str:
    value = settings.get(key)
    return value if isinstance(value, str) and value else default


def _number(settings: Mapping[str, str | list[str]], key: str, default: int) -> int:
    text = _text(settings, key, str(default))
    if not (text.isascii() and text.isdigit()) or int(text) > 65535:
        raise RemoteError("ssh-config-invalid", f"{key} {printable(text, 40)} in ssh_config is not a usable number")
    return int(text)
