"""What an Ansible inventory prints for ``--list``: one JSON document of groups, with ``_meta.hostvars``.

Of all variables only address, user, port, connection and those that the inventory file names are looked at; the rest,
where passwords may be, is forgotten here. Group variables count as with Ansible: of a group further from ``all`` before
one nearer to it, a host's own before any group's.
"""

from __future__ import annotations

from collections.abc import Iterator

from rollout.core.reading.ansible_groups import Groups, Reading, document_of, shown
from rollout.core.reading.found_nodes import Found, FoundNode, nowhere, refuse
from rollout.core.reading.node_sources import FromAnsible
from rollout.core.text.terminal import printable
from rollout.errors import Problem

_OF_ANSIBLE = frozenset({"all", "ungrouped"})
_SSH = frozenset({"ssh", "smart", "paramiko", "paramiko_ssh", "ansible.builtin.ssh"})


def found_nodes(text: str, source: FromAnsible, where: str) -> Found:
    """The hosts of the inventory, or of its group ``source.group``. Raises ``InputError`` with every mistake."""
    reading = Reading(where)
    groups = reading.groups(document_of(text, where))
    refuse(reading.problems)
    hosts = reading.hosts(groups, source.group)
    refuse(reading.problems)
    wanted = _Wanted(source, groups)
    nodes = tuple(wanted.node(name, reading) for name in hosts)
    refuse([*reading.problems, *_places(source, nodes, where)])
    kept = frozenset(hosts)
    members = {
        name: [host for host in groups.below[name] if host in kept]
        for name in groups.order
        if name not in _OF_ANSIBLE and not wanted.is_place(name)
    }
    return Found(where, nodes, members)


def _places(source: FromAnsible, nodes: tuple[FoundNode, ...], where: str) -> Iterator[Problem]:
    said = {"rack": source.rack or source.rack_groups, "zone": source.zone or source.zone_groups}
    for kind, word in said.items():
        if word is not None and nodes:
            yield from nowhere(where, kind, word, nodes)


class _Wanted:
    """What of a host's variables is used, and how."""

    def __init__(self, source: FromAnsible, groups: Groups) -> None:
        self._source = source
        self._groups = groups
        self._member: dict[str, list[str]] = {}
        for name in groups.order:
            for host in groups.below[name]:
                self._member.setdefault(host, []).append(name)

    def is_place(self, group: str) -> bool:
        """Whether the group is a rack or a zone."""
        return any(
            beginning is not None and group.startswith(beginning)
            for beginning in (self._source.rack_groups, self._source.zone_groups)
        )

    def node(self, name: str, reading: Reading) -> FoundNode:
        said = {key: self._value(name, key, reading) for key in ("ansible_host", "ansible_user", "ansible_port")}
        connection = self._value(name, "ansible_connection", reading)
        if connection is not None and connection not in _SSH:
            message = f"{shown(name)} is reached by {shown(str(connection))}, not by SSH"
            reading.note(message, "not-ssh", "choose the nodes with `group:`")
        return FoundNode(
            name=name,
            address=said["ansible_host"],
            rack=self._place(name, self._source.rack, self._source.rack_groups, reading),
            zone=self._place(name, self._source.zone, self._source.zone_groups, reading),
            labels=self._value(name, self._source.labels, reading) if self._source.labels else None,
            user=said["ansible_user"],
            port=_number(said["ansible_port"]),
            registry=self._value(name, self._source.registry, reading) if self._source.registry else None,
        )

    def _place(self, name: str, variable: str | None, beginning: str | None, reading: Reading) -> object:
        if variable is not None:
            return self._value(name, variable, reading)
        if beginning is None:
            return None
        groups = [group for group in self._member.get(name, ()) if group.startswith(beginning)]
        if len(groups) > 1:
            reading.note(f"{shown(name)} is in {printable(' and '.join(groups), 120)}", "two-places")
        return groups[-1] if groups else None

    def _value(self, host: str, variable: str, reading: Reading) -> object:
        own = self._groups.host_vars.get(host, {})
        around = (self._groups.written[group].variables for group in reversed(self._member.get(host, [])))
        found = next((said[variable] for said in (own, *around) if variable in said), None)
        if any("{{" in text or "{%" in text for text in _texts(found)):
            message = f"{shown(variable)} of {shown(host)} is a template, which only Ansible can fill in"
            reading.note(message, "unfilled-template")
            return None
        return found


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (inner for inner in value.values() if isinstance(inner, str))


def _number(port: object) -> object:
    """Ansible takes ``"2222"`` for a port too."""
    return int(port) if isinstance(port, str) and port.isdecimal() and len(port) < 6 else port
