"""From a target to where and how to connect, by ssh_config; unsupported options are refused with a clear error."""

from __future__ import annotations

import getpass
import os
import pwd
import re
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rollout.adapters.ssh.ascii_text import printable
from rollout.adapters.ssh.proxy_lines import ProxyCommands, ProxyWords, jump_of, words_of_config
from rollout.adapters.ssh.ssh_config import FAMILIES, Settings, SshConfig
from rollout.adapters.ssh.ssh_keywords import hops
from rollout.app.ports import Target
from rollout.core.text.message_folding import nameless
from rollout.errors import RemoteError

DEFAULT_KEYS = (
    "~/.ssh/id_ed25519",
    "~/.ssh/id_ecdsa",
    "~/.ssh/id_rsa",
    "~/.ssh/id_ed25519_sk",
    "~/.ssh/id_ecdsa_sk",
)
DEFAULT_KNOWN = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
GLOBAL_KNOWN = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
MOST_BASTIONS = 8  # length of a chain

# option -> the values without effect, the reference, the message
REFUSED: dict[str, tuple[frozenset[str], str, str]] = {
    option: (frozenset(harmless), reference, words)
    for option, harmless, reference, words in (
        ("gssapiauthentication", ("no",), "gssapi-not-supported", "Kerberos (GSSAPIAuthentication) is not supported"),
        (
            "pubkeyauthentication",
            ("yes", "unbound", "host-bound"),
            "ssh-option-not-supported",
            "PubkeyAuthentication no leaves no way to log in",
        ),
        ("knownhostscommand", ("none",), "ssh-option-not-supported", "KnownHostsCommand is not supported"),
        ("verifyhostkeydns", ("no",), "ssh-option-not-supported", "VerifyHostKeyDNS is not supported"),
        ("pkcs11provider", ("none",), "ssh-option-not-supported", "PKCS11Provider is not supported"),
        ("bindaddress", (), "ssh-option-not-supported", "BindAddress is not supported"),
        ("bindinterface", (), "ssh-option-not-supported", "BindInterface is not supported"),
        ("identityagent", ("ssh_auth_sock",), "ssh-option-not-supported", "IdentityAgent is not supported"),
        (
            "revokedhostkeys",
            ("none",),
            "ssh-option-not-supported",
            "RevokedHostKeys is not read; use @revoked in known_hosts",
        ),
        ("refuseconnection", (), "ssh-option-not-supported", "RefuseConnection forbids to connect"),
    )
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a node or bastion and its proof of identity. ``key_names`` are its names in known_hosts, the
    decisive one first, the bare one last. ``via`` is the bastion before it; ``program`` carries the connection instead.
    """

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
    certificates: tuple[Path, ...] = ()
    via: Endpoint | None = None
    program: ProxyWords = ()

    def __str__(self) -> str:
        return printable(self.host if self.port == 22 else f"{self.host}:{self.port}", 120)


class Resolver:
    """Resolves targets, each once. Thread-safe."""

    def __init__(
        self,
        config: SshConfig,
        *,
        known_hosts: tuple[Path, ...] | None = None,
        accept_new: bool = False,
        programs: ProxyCommands | None = None,
    ) -> None:
        """``programs``: which of ``ProxyCommand`` may be run; none if not given."""
        self._config = config
        self._programs = programs or ProxyCommands()
        self._known_hosts = known_hosts
        self._accept_new = accept_new
        self._user = _our_name()
        self._home = str(Path.home())
        self._at_home = cache(_at_home)  # most nodes have the same files
        self._lock = threading.Lock()
        self._found: dict[Target, Endpoint] = {}
        self._jumps: dict[str, Endpoint | None] = {}

    @classmethod
    def reading(
        cls, ssh_config: Path | None, *, known_hosts: tuple[Path, ...] | None = None, accept_new: bool = False
    ) -> Resolver:
        """Reads ``ssh_config`` (``~/.ssh/config`` if there is one) and the user's own configuration now: ``InputError``
        when one cannot be used.
        """
        own = Path("~/.ssh/config").expanduser()
        config = SshConfig.read(ssh_config or (own if own.exists() else None), private=ssh_config is None)
        return cls(config, known_hosts=known_hosts, accept_new=accept_new, programs=ProxyCommands.read())

    def resolve(self, target: Target) -> Endpoint:
        """Raises ``RemoteError`` for unsupported options."""
        with self._lock:
            endpoint = self._found.get(target)
            if endpoint is None:
                endpoint = self._found[target] = self._endpoint(target, ())
            return endpoint

    def refused(self, targets: Iterable[Target]) -> dict[tuple[str, str], list[str]]:
        """All names that cannot be resolved, by reference and nameless message; opens no connection."""
        bastions: dict[tuple[str, str], list[str]] = {}
        for target in targets:
            try:
                self.resolve(target)
            except RemoteError as error:
                bastions.setdefault((error.reference, nameless(error.message, target.name)), []).append(target.name)
        return bastions

    def ways(self, targets: Iterable[Target]) -> dict[str, tuple[object, ...]]:
        """Name → what two names of one machine have in common; without names that cannot be resolved."""
        found: dict[str, tuple[object, ...]] = {}
        for target in targets:
            way, hop = list[object](), None
            with suppress(RemoteError):
                hop = self.resolve(target)
            while hop is not None:
                way.append((hop.host.lower().rstrip("."), hop.port, hop.program))
                hop = hop.via
            if way:
                found[target.name] = tuple(way)
        return found

    def jumps(self, targets: Iterable[Target]) -> dict[str, tuple[Endpoint, ...]]:
        """Name → the bastions on the way to it, the nearest to us first; without names that cannot be resolved."""
        hops_of: dict[str, tuple[Endpoint, ...]] = {}
        for target in targets:
            try:
                via, hops = self.resolve(target).via, list[Endpoint]()
            except RemoteError:
                continue
            while via is not None:
                hops.insert(0, via)
                via = via.via
            hops_of[target.name] = tuple(hops)
        return hops_of

    def _endpoint(self, target: Target, behind: tuple[str, ...], via: Endpoint | None = None) -> Endpoint:
        """``behind``: the hosts behind this bastion; ``via``: the bastion before it in a chain."""
        settings = self._config.lookup(target.address, user=target.user, local_user=self._user)
        for option, (harmless, reference, words) in REFUSED.items():
            value = _text(settings, option, "")
            if value and value.lower() not in harmless:
                raise RemoteError(reference, f"{words} (ssh_config: {option} {printable(value, 80)})")
        host = settings["hostname"][0]
        port = target.port or int(_text(settings, "port", "22"))
        user = _text(settings, "user", self._user)
        alias = _text(settings, "hostkeyalias", "").lower()
        tokens = {
            "%%": "%",
            "%d": self._home,
            "%h": host,
            "%i": str(os.getuid()),
            "%k": alias or target.address,
            "%n": target.address,
            "%p": str(port),
            "%r": user,
            "%u": self._user,
        }
        command, jump = _proxy(settings) if via is None else ("", "none")
        return Endpoint(
            host=host,
            port=port,
            user=user,
            family=FAMILIES[_text(settings, "addressfamily", "any")],
            key_names=_key_names(host, port, alias),
            known_hosts=self._known_hosts or self._files_of_keys(settings, tokens),
            accept_new=self._accept_new or _text(settings, "stricthostkeychecking", "") == "accept-new",
            identities=self._paths(settings, "identityfile", DEFAULT_KEYS, tokens),
            identities_only=_text(settings, "identitiesonly", "no") == "yes",
            connect_timeout=float(_text(settings, "connecttimeout", "0")) or None,
            certificates=self._paths(settings, "certificatefile", (), tokens),
            via=via or self._via(jump, tokens, (*behind, target.address)),
            program=self._programs.program(command, tokens) if command else (),
        )

    def _files_of_keys(self, settings: Settings, tokens: Mapping[str, str]) -> tuple[Path, ...]:
        """OpenSSH expands tokens, variables and ``~`` only in names of the user's files."""
        everyones = settings.get("globalknownhostsfile", GLOBAL_KNOWN)
        return (
            *self._paths(settings, "userknownhostsfile", DEFAULT_KNOWN, tokens),
            *(Path(name) for name in everyones if name.lower() != "none"),
        )

    def _paths(
        self, settings: Settings, key: str, default: tuple[str, ...], tokens: Mapping[str, str]
    ) -> tuple[Path, ...]:
        names = settings.get(key, default)
        return tuple(self._at_home(_expanded(_variables(name), tokens)) for name in names if name.lower() != "none")

    def _via(self, text: str, tokens: Mapping[str, str], behind: tuple[str, ...]) -> Endpoint | None:
        if text.lower() == "none":
            return None
        text = _expanded(text, {token: tokens[token] for token in ("%h", "%n", "%p", "%r")})
        if text not in self._jumps or len(behind) > 1:  # inside a chain: loops must be detected
            self._jumps[text] = self._chain(text, behind)
        return self._jumps[text]

    def _chain(self, text: str, behind: tuple[str, ...]) -> Endpoint | None:
        """``a,b``: b through a. As in OpenSSH, only the first may itself be behind another."""
        via: Endpoint | None = None
        if len(behind) > MOST_BASTIONS:  # "%h-b" names a new host each time
            chain = f"{' -> '.join(behind[:3])} -> ..."
            raise RemoteError(
                "bastion-loop", f"ProxyJump never ends: {printable(chain, 200)}; set `ProxyJump none` for the last host"
            )
        for hop in hops(text):
            if hop.address in behind and via is None:
                chain = " -> ".join((*behind[behind.index(hop.address) :], hop.address))
                raise RemoteError(
                    "bastion-loop",
                    printable(f"ProxyJump is a loop: {chain}; set `ProxyJump none` for the last host", 300),
                )
            via = self._endpoint(hop, behind, via)
        return via


def _proxy(settings: Settings) -> tuple[str, str]:
    """The ``ProxyCommand``, or ``""``, and the ``ProxyJump``, or ``none``: of both the config has kept the first."""
    command = _text(settings, "proxycommand", "none")
    if command.lower() == "none":
        return "", _text(settings, "proxyjump", "none")
    jump = jump_of(words_of_config(command))
    return (command, "none") if jump is None else ("", jump)


def _our_name() -> str:
    """As in OpenSSH, the account's user name, not the environment's; the environment is the fallback."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        pass
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:
        raise RemoteError("no-user-name", f"this machine has no name for our user: {error.args[0]}") from None


def _key_names(host: str, port: int, alias: str) -> tuple[str, ...]:
    """As in OpenSSH: an alias is used alone; otherwise a non-default port is part of the name."""
    if alias:
        return (alias,)
    return (host,) if port == 22 else (f"[{host}]:{port}", host)


def _at_home(name: str) -> Path:
    path = os.path.expanduser(name)  # noqa: PTH111 - `~` of an unknown user stays as written
    if path.startswith("~"):
        raise RemoteError("ssh-config-invalid", f"{printable(name, 80)} in ssh_config: there is no such user")
    return Path(path)


def _variables(text: str) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1] not in os.environ:
            raise RemoteError("ssh-config-invalid", f"{printable(text, 80)} in ssh_config: no such variable is set")
        return os.environ[match[1]].replace("%", "%%")

    return re.sub(r"\$\{([^}]{0,256})\}", value, text) if "$" in text else text


def _expanded(text: str, tokens: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        if match[0] not in tokens:
            raise RemoteError("ssh-option-not-supported", f"a token in {printable(text, 80)} is not supported")
        return tokens[match[0]]

    return re.sub("%.?", value, text) if "%" in text else text


def _text(settings: Settings, key: str, default: str) -> str:
    return settings.get(key, (default,))[0]
