"""Nodes of an Ansible inventory: which hosts, their racks and zones, and the way to each by Ansible's variables of SSH."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from rollout.core.reading.ansible_inventory import (
    DOAS,
    LOGIN,
    OF_ANSIBLE,
    AnsibleHosts,
    AnsibleReading,
    found_nodes,
    nodes_by_host,
    place_name,
    port_number,
    variables_of,
)
from rollout.core.reading.found_nodes import FoundNode, refuse
from rollout.core.reading.node_sources import FromAnsible
from rollout.core.text.node_names import addresses_among, is_node_name, node_name_problems
from rollout.core.text.nodesets import is_name
from rollout.core.text.terminal import counted, printable
from rollout.features.init.rules.ansible_groups import LABELS, Chosen
from rollout.features.init.rules.guesses import Guessed, SourceNote, SshLines, not_known, placed, some
from rollout.features.init.rules.ssh_arguments import hop_text, jump_of, read_arguments, shell_words

_PLACES = ("rack", "zone")
_OLD_NAMES = {"address": "ansible_ssh_host", "user": "ansible_ssh_user", "port": "ansible_ssh_port"}
_KEYS = ("ansible_ssh_private_key_file", "ansible_private_key_file")
_ARGUMENTS = ("ansible_ssh_args", "ansible_ssh_common_args", "ansible_ssh_extra_args")
"""In the order in which Ansible gives them to ssh. Its own port, user and key stand behind the first."""
_BECOME = ("ansible_become_user",)
_PASSWORDS = frozenset(
    {"ansible_password", "ansible_ssh_pass", "ansible_ssh_password", "ansible_become_password", "ansible_become_pass",
     "ansible_sudo_pass", "ansible_ssh_private_key_passphrase"}
)  # fmt: skip
_PATH = re.compile(r"[^\x00-\x1f\x7f\"\\#\ud800-\udfff]+")
_SUDO = frozenset({"sudo", "ansible.builtin.sudo", "community.general.sudo"})

VARIABLES = (*_OLD_NAMES.values(), *_KEYS, *_ARGUMENTS, *_BECOME)
"""What is read of a host beyond what makes a node."""
_OF_BASTION = (*LOGIN, *VARIABLES)


_NAMES = ("node_name", "k8s_nodename", "kube_override_hostname")
"""Of rke2-ansible, kubeasz and kubespray: the name of the Node, where it is not the host's."""
_VERSIONS = ("kube_version", "kubernetes_version", "k3s_version", "rke2_version")
"""Of kubespray, kubeadm's playbooks, k3s-ansible and RKE2's roles. A template without a value is no mistake: it is a guess."""
_VERSION = re.compile(r"v?1\.(\d{1,3})\.(\d{1,3})(?:[-+][A-Za-z0-9.+-]+)?")


def templates_of(hosts: AnsibleHosts, chosen: Chosen, source: FromAnsible) -> Mapping[str, tuple[str, ...]]:
    """Host → its variables that only Ansible can fill. Of a bastion only the way to it is read."""
    nodes = hosts.templates(chosen.nodes, (*_variables(source), *_VERSIONS))
    return {**nodes, **hosts.templates(chosen.bastions, _OF_BASTION)}


def _variables(source: FromAnsible) -> tuple[str, ...]:
    """All that a node must have a value for."""
    return (*variables_of(source), *VARIABLES)


def source_of(
    hosts: AnsibleHosts, chosen: Chosen, where: str, *, is_filled: bool = True
) -> tuple[FromAnsible, tuple[SourceNote, ...]]:
    """Where names, racks and zones are to be found, and the guesses. ``is_filled``: Ansible has filled what it can fill."""
    keys: dict[str, Any] = {}
    notes: list[SourceNote] = []
    if variable := next((name for name in _NAMES if _names_nodes(hosts, chosen, name, is_filled=is_filled)), ""):
        keys["name"] = variable
        notes.append(SourceNote(f"name: host variable `{variable}`"))
    for what in _PLACES:
        groups = [
            name
            for name in hosts.groups.written
            if re.fullmatch(rf"{what}[-_]?[A-Za-z0-9._-]+", name) and name not in {f"{what}s", *OF_ANSIBLE}
        ]
        # A template is a guess until Ansible has filled it.
        values = [place_name(hosts.value(name, what)) for name in chosen.nodes if what in hosts.variables(name)]
        templates = hosts.templates(chosen.nodes, [what])
        if (
            values
            and all(value is None or (isinstance(value, str) and is_name(value)) for value in values)
            and (templates or any(values))
        ):
            keys[what] = what
            notes.append(SourceNote(f"{what}: host variable `{what}`"))
        elif groups:
            keys[f"{what}Groups"] = what
            notes.append(SourceNote(f"{what}: groups that begin with `{what}`: {some(groups)}"))
        else:
            notes.append(not_known(what, "no variable or group shows it"))
    return FromAnsible.model_validate({"path": where, **keys}), tuple(notes)


def _names_nodes(hosts: AnsibleHosts, chosen: Chosen, variable: str, *, is_filled: bool) -> bool:
    """Whether the variable gives nodes other names than their hosts', each another one, as Kubernetes accepts them."""
    templates = hosts.templates(chosen.nodes, [variable])
    if not is_filled and templates:
        return True
    values = {host: hosts.value(host, variable) for host in chosen.nodes}
    called = [host if value is None or value == "" else value for host, value in values.items()]
    if called == [*values] or any(values[host] is None for host in templates):
        return False
    return all(isinstance(name, str) and is_node_name(name) for name in called) and len({*called}) == len(called)


def from_ansible(
    hosts: AnsibleHosts, chosen: Chosen, source: FromAnsible, guesses: Iterable[SourceNote], here: str
) -> Guessed:
    """``here``: the folder that relative paths of keys begin at, as in Ansible. Raises ``InputError``."""
    called = nodes_by_host(hosts, source, chosen.nodes, AnsibleReading(hosts.where))
    refuse(node_name_problems(called.values(), hosts.where))
    refuse([*hosts.unfilled(chosen.nodes, _variables(source)), *hosts.unfilled(chosen.bastions, _OF_BASTION)])
    notes = list(guesses)
    found = found_nodes(hosts, source, chosen.nodes)
    named = zip(chosen.nodes, found.nodes, strict=True)
    found = placed(replace(found, nodes=tuple(_by_old_names(hosts, host, node) for host, node in named)), notes)
    ways = {node.name: _way(hosts, host, node, here) for host, node in zip(chosen.nodes, found.nodes, strict=True)}
    nodes = tuple(replace(node, user=ways[node.name].user, port=ways[node.name].port) for node in found.nodes)
    through = _bastion(hosts, chosen, ways, here, notes)
    bastions: dict[str, SshLines] = {host: lines for way in ways.values() for host, lines in way.bastions if lines}
    if through is not None:
        ways = {name: replace(way, lines=(*way.lines, ("ProxyJump", through.via))) for name, way in ways.items()}
        bastions |= {through.host: through.way.lines} if through.way.lines else {}
    if numbers := addresses_among(called.values()):
        notes.append(
            SourceNote(
                f"names: addresses, for {counted(len(numbers), 'node')}; the API server may know them by host names"
            )
        )
    every = [*ways.values(), *([through.way] if through is not None else [])]
    told = (*chosen.told, *_dropped(hosts, chosen, source, every))
    version = _version(hosts, chosen, notes)
    labels = {name: {LABELS[role]: ""} for name, role in chosen.roles.items() if role in LABELS}
    return Guessed(
        replace(found, nodes=nodes),
        tuple(notes),
        version,
        told,
        labels=labels,
        ways={name: way.lines for name, way in ways.items() if way.lines},
        bastions=bastions,
    )


def _version(hosts: AnsibleHosts, chosen: Chosen, notes: list[SourceNote]) -> str:
    """The newest that an installer's variable sets; ``""``: none does."""
    found: dict[tuple[int, int], str] = {}
    for host, name in product(chosen.nodes, _VERSIONS):
        if match := _VERSION.fullmatch(str(hosts.value(host, name) or "")):
            found.setdefault((int(match[1]), int(match[2])), name)
    if not found:
        return ""
    newest = max(found)
    version = "v1.{}.{}".format(*newest)
    notes.append(SourceNote(f"apiServer: {version}, the variable `{found[newest]}`"))
    return version


@dataclass(frozen=True, slots=True)
class _Way:
    user: object
    port: object
    lines: SshLines
    bastions: tuple[tuple[str, SshLines], ...] = ()
    dropped: tuple[str, ...] = ()
    command: str = ""
    """The variable with a ``ProxyCommand`` that is no ``ProxyJump``. It is not taken over: it may contain a password."""


@dataclass(frozen=True, slots=True)
class _Through:
    via: str
    host: str
    way: _Way


def _by_old_names(hosts: AnsibleHosts, host: str, node: FoundNode) -> FoundNode:
    """``ansible_ssh_host`` and its kind count where the new name is not set."""
    old = {key: hosts.value(host, name) for key, name in _OLD_NAMES.items()}
    is_old = old["address"] is not None and hosts.value(host, "ansible_host") is None
    return replace(
        node,
        address=old["address"] if is_old else node.address,
        user=node.user if node.user is not None else old["user"],
        port=node.port if node.port is not None else port_number(old["port"]),
    )


def _way(hosts: AnsibleHosts, host: str, node: FoundNode, here: str) -> _Way:
    """As ssh reads Ansible's command line: the first value of an option counts."""
    given: list[tuple[str, str]] = []
    dropped: list[str] = []
    of_command = ""
    for name in _ARGUMENTS:
        value = hosts.value(host, name)
        try:
            arguments = read_arguments(shell_words(value) if isinstance(value, str) else ())
        except ValueError as error:
            dropped.append(f"{name}, {error}")
            continue
        given += arguments.lines
        dropped += arguments.dropped
        if arguments.first("ProxyCommand") and not of_command:
            of_command = name
        if name == _ARGUMENTS[0]:
            given += _key(hosts, host, here)
    first = dict(reversed(given))
    lines: list[tuple[str, str]] = [
        ("IdentityFile", value) for name, value in dict.fromkeys(given) if name == "IdentityFile"
    ]
    bastions: tuple[tuple[str, SshLines], ...] = ()
    command = first.pop("ProxyCommand", "none")
    jump = jump_of(command)
    if jump is not None:
        first["ProxyJump"] = jump.via
        bastions = ((jump.host, jump.lines),)
        dropped += jump.dropped
    port, user = port_number(first.pop("Port", None)), first.pop("User", None)
    lines += [
        (name, value) for name, value in sorted(first.items()) if name != "IdentityFile" and value.lower() != "none"
    ]
    return _Way(
        node.user if node.user is not None else user,
        node.port if node.port is not None else port,
        tuple((name, _quoted(value)) for name, value in lines),
        tuple((via, tuple((name, _quoted(value)) for name, value in each)) for via, each in bastions),
        tuple(dict.fromkeys(dropped)),
        of_command if jump is None and command.lower() != "none" else "",
    )


def _quoted(value: str) -> str:
    return f'"{value}"' if " " in value else value


def _key(hosts: AnsibleHosts, host: str, here: str) -> Iterator[tuple[str, str]]:
    value = next((value for name in _KEYS if isinstance(value := hosts.value(host, name), str) and value), "")
    if _PATH.fullmatch(value):
        yield "IdentityFile", value if value.startswith(("/", "~")) else f"{here}/{value.removeprefix('./')}"


def _bastion(
    hosts: AnsibleHosts, chosen: Chosen, ways: Mapping[str, _Way], here: str, notes: list[SourceNote]
) -> _Through | None:
    """A host of a group of bastions is the way to all nodes, if no variable names another way: as kubespray does it."""
    has_way = [name for name, way in ways.items() if way.command or "ProxyJump" in {key for key, _ in way.lines}]
    if has_way or not chosen.bastions:
        return None
    if len(chosen.bastions) > 1:
        notes.append(not_known("ProxyJump", f"{some(chosen.bastions)} may each lead to nodes"))
        return None
    name = chosen.bastions[0]
    host = _by_old_names(hosts, name, FoundNode(name, *(hosts.value(name, key) for key in ("ansible_host",))))
    user = hosts.value(name, "ansible_user")
    way = _way(hosts, name, replace(host, user=user if user is not None else host.user), here)
    port = hosts.value(name, "ansible_port")
    via = hop_text(str(host.address or name), str(way.user or ""), str(port or way.port or ""))
    notes.append(SourceNote(f"ProxyJump: {printable(via, 80)}, the only host of a group of bastions"))
    return _Through(via, str(host.address or name), way)


def _dropped(hosts: AnsibleHosts, chosen: Chosen, source: FromAnsible, ways: Sequence[_Way]) -> Iterator[str]:
    used = {*_variables(source), *_VERSIONS, "ansible_become", "ansible_shell_type"}
    names = Counter(name for host in chosen.nodes for name in hosts.variables(host))
    passwords = sorted(_PASSWORDS & names.keys())
    if passwords:
        yield f"dropped {', '.join(passwords)}: SSH logs in with keys, and sudo's password is typed with --ask-sudo-password"
    methods = Counter(
        str(value) for host in chosen.nodes if (value := hosts.value(host, "ansible_become_method")) is not None
    )
    for method in sorted(methods.keys() - _SUDO - {*DOAS}):
        yield f"dropped ansible_become_method `{printable(method, 40)}` of {counted(methods[method], 'node')}: rollout uses sudo or doas"
    users = {str(value) for host in chosen.nodes if (value := hosts.value(host, "ansible_become_user")) is not None}
    if users - {"root"}:
        yield f"dropped ansible_become_user {printable(', '.join(sorted(users - {'root'})), 80)}: rollout becomes root"
    options = {option for way in ways for option in way.dropped}
    files = {option for option in options if option.startswith("-F")}
    if files:
        yield f"dropped {printable(', '.join(sorted(files)), 200)}: if the nodes need that file, name it with `ssh_config` in rollout.toml"
    if options := options - files:
        yield f"dropped options of ssh: {printable(', '.join(sorted(options)), 200)} (host keys are always verified)"
    for name, count in sorted(Counter(way.command for way in ways if way.command).items()):
        yield f"dropped the ProxyCommand of {name}, for {counted(count, 'host')}: it may contain a password; write it into the ssh_config in use"
    rest = sorted(names.keys() - used - _PASSWORDS)
    if rest:
        yield f"dropped {counted(len(rest), 'variable')} without a use here: {printable(', '.join(rest), 200)}"
