"""What Ansible's variables set of SSH, as an ssh_config for people to read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence

from rollout.core.reading.found_nodes import FoundNode
from rollout.features.init.rules.guesses import Guessed, SshLines
from rollout.features.init.words.project import natural

_LONGEST_LINE = 900  # OpenSSH before 8.0 reads at most 1,023 characters of a line

_HEAD = """\
# Made by `rollout init` from Ansible's variables. Read it before the first plan.
# The hosts are the addresses of the inventory beside it. User and port of the nodes are in the inventory.
"""
_UNTIL = "# `rollout init --refresh` writes this file again until a person changes it: sha256 "


def ssh_config_text(guessed: Guessed) -> str:
    """``""``: there is nothing to set."""
    address = {node.name: _address(node) for node in guessed.found.nodes}
    by_lines: dict[SshLines, list[str]] = {}
    for name, lines in guessed.ways.items():
        by_lines.setdefault(lines, []).append(address[name])
    of_bastions: dict[SshLines, list[str]] = {}
    for host, lines in guessed.bastions.items():
        if lines:
            of_bastions.setdefault(lines, []).append(host)
    stanzas = "".join(f"\n{stanza}" for stanza in (*_stanzas(of_bastions), *_stanzas(by_lines)))
    return f"{_HEAD}{_UNTIL}{_digest(_HEAD + stanzas)}\n{stanzas}" if stanzas else ""


def is_as_made(text: str) -> bool:
    """Whether nobody has changed the text since ``ssh_config_text``."""
    head, _, rest = text.partition(_UNTIL)
    digest, _, stanzas = rest.partition("\n")
    return digest == _digest(head + stanzas)


def hosts_of(text: str) -> frozenset[str]:
    """The hosts of its stanzas, if it is as made."""
    lines = (line.split() for line in text.split("\n") if line.startswith("Host "))
    return frozenset(name for words in lines for name in words[1:])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _address(node: FoundNode) -> str:
    return str(node.address or node.name).replace("{name}", node.name)


def _stanzas(by_lines: Mapping[SshLines, Sequence[str]]) -> Iterator[str]:
    for lines, hosts in by_lines.items():
        settings = "".join(f"    {keyword} {value}\n" for keyword, value in lines)
        for names in _in_lines(sorted(hosts, key=natural)):
            yield f"Host {names}\n{settings}"


def _in_lines(hosts: Sequence[str]) -> Iterator[str]:
    line = ""
    for host in hosts:
        if line and len(line) + len(host) > _LONGEST_LINE:
            yield line
            line = ""
        line = f"{line} {host}" if line else host
    if line:
        yield line
