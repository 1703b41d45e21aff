"""The output of an Ansible inventory for ``--list``: one JSON document of groups, with ``_meta.hostvars``.

Only the variables for address, user, port, connection and those that the inventory file names are read; the rest, which
may contain passwords, is dropped here. Group variables have Ansible's precedence: a group further from ``all`` wins over
one nearer to it, and a host's own variables win over any group's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rollout.core.model.areas import AreaKind
from rollout.core.reading.found_nodes import FoundNode, FoundNodes, nowhere, refuse
from rollout.core.reading.node_sources import FromAnsible
from rollout.core.reading.validation import kind_of
from rollout.core.text import json_text
from rollout.core.text.suggest import did_you_mean
from rollout.core.text.terminal import printable
from rollout.errors import InputError, Problem

# The groups of an Ansible inventory's JSON: their hosts, and the precedence of their variables.


MOST_PLACES = 10_000_000
"""Hosts, each in each of its groups: 100,000 hosts in 100 groups. A chain of groups has the square of its length."""

_GROUP_KEYS = ("hosts", "children", "vars")
_NO_HOSTVARS = "it prints no `_meta.hostvars`, and rollout does not run it again with --host for every node"


_ANSWER = re.compile(r"^(\S{1,253}) \| (SUCCESS|FAILED!) => (?=\{$)", re.MULTILINE)
"""Before the JSON of one host's answer. Only the brace that ends the JSON also begins a line."""


def filled_in(printed: str) -> Mapping[str, Mapping[str, object]]:
    """Host → what ``ansible … -m debug`` printed for it; without a host where that failed or gave no map."""
    parts = _ANSWER.split(printed)
    filled: dict[str, Mapping[str, object]] = {}
    for host, word, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        try:
            answer = json_text.parse(text)
        except ValueError:
            continue
        values = answer.get("msg") if word == "SUCCESS" and isinstance(answer, dict) else None
        if isinstance(values, dict):
            filled[host] = values
    return filled


def document_of(text: str, where: str) -> dict[str, Any]:
    """The JSON, read strictly: nothing before or after it, no duplicate key, a map. Raises ``InputError``."""
    try:
        document = json.loads(text, object_pairs_hook=json_text.unique, parse_constant=_no_number)
    except RecursionError:
        raise _error("not-json", where, "its JSON is nested too deeply") from None
    except json.JSONDecodeError as error:
        end = " (it ends there: an incomplete document)" if error.pos >= len(text.rstrip()) else ""
        at = f"line {error.lineno} column {error.colno}"
        raise _error("not-json", where, f"its output is not JSON at {at}: {error.msg}{end}") from None
    except ValueError as error:
        raise _error("not-json", where, f"its output is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise _error("bad-inventory", where, f"it prints {kind_of(document)}, not a map of groups")
    return document


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


@dataclass(slots=True)
class Groups:
    """The document's groups: own hosts, children and variables; all hosts ``below``; in Ansible's order of precedence."""

    written: Mapping[str, AnsibleGroup]
    host_vars: Mapping[str, Mapping[str, Any]]
    below: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    order: tuple[str, ...] = ()


@dataclass(slots=True)
class AnsibleGroup:
    """One group as it is written; ``hosts`` and ``children`` are names."""

    hosts: list[str]
    children: list[str]
    variables: Mapping[str, Any]


class AnsibleReading:
    """Notes wrong types and inconsistencies, and continues."""

    def __init__(self, where: str) -> None:
        self._where = where
        self.problems: list[Problem] = []

    def note(self, message: str, reference: str = "bad-inventory", hint: str = "") -> None:
        """A mistake, prefixed with the source's name."""
        self.problems.append(Problem(reference, f"{self._where}: {message}", hint=hint))

    def groups(self, document: Mapping[str, Any]) -> Groups:
        """The groups as written; without ``below`` and ``order`` if there are problems."""
        host_vars = self._host_vars(document.get("_meta"))
        written = {name: self._group(name, part) for name, part in document.items() if name != "_meta"}
        for child in {child for group in written.values() for child in group.children} - written.keys():
            written[child] = AnsibleGroup([], [], {})  # `ansible-inventory` leaves out groups without hosts
        if self.problems:
            return Groups(written, host_vars)
        depths = self._depths(written)
        order = tuple(sorted(written, key=lambda name: (depths[name], _priority(written[name]), name)))
        below = _below(written, order)
        if below is None:
            self.note(f"its groups have more than {MOST_PLACES:,} hosts together, each counted in each of its groups")
            return Groups(written, host_vars)
        return Groups(written, host_vars, {**below, **_of_ansible(below)}, order)

    def hosts(self, groups: Groups, group: str | None) -> tuple[str, ...]:
        """The hosts of one group and its children, or all hosts."""
        if group is None or group == "all":
            return tuple(dict.fromkeys(host for hosts in groups.below.values() for host in hosts))
        if group not in groups.below:
            self.note(f"there is no group {shown(group)} in it", "unknown-group", did_you_mean(group, groups.below))
        return groups.below.get(group, ())

    def _host_vars(self, meta: object) -> dict[str, Mapping[str, Any]]:
        if not isinstance(meta, dict) or "hostvars" not in meta:
            hint = 'print "_meta": {"hostvars": {}} if there are none'
            self.note(_NO_HOSTVARS, "no-hostvars", hint)
            return {}
        hostvars = meta["hostvars"]
        if not isinstance(hostvars, dict):
            self.note(f"`_meta.hostvars` must be a map, not {kind_of(hostvars)}")
            return {}
        for name, variables in hostvars.items():
            if not isinstance(variables, dict):
                self.note(f"the variables of {shown(name)} must be a map, not {kind_of(variables)}")
        return {name: variables for name, variables in hostvars.items() if isinstance(variables, dict)}

    def _group(self, name: str, document: object) -> AnsibleGroup:
        whole = {"hosts": document} if isinstance(document, list) else document
        if not isinstance(whole, dict):
            self.note(f"group {shown(name)} must be a map or a list of hosts, not {kind_of(document)}")
            return AnsibleGroup([], [], {})
        for key in whole.keys() - {*_GROUP_KEYS}:
            message = f"group {shown(name)} has a key {shown(key)}; groups have hosts, children and vars"
            self.note(message, "unknown-key", did_you_mean(key, _GROUP_KEYS))
        variables = whole.get("vars", {})
        if not isinstance(variables, dict):
            self.note(f"`vars` of group {shown(name)} must be a map, not {kind_of(variables)}")
            variables = {}
        return AnsibleGroup(self._names(name, whole, "hosts"), self._names(name, whole, "children"), variables)

    def _names(self, group: str, whole: Mapping[str, Any], key: str) -> list[str]:
        listed = whole.get(key, [])
        if isinstance(listed, list) and all(isinstance(name, str) for name in listed):
            return listed
        self.note(f"`{key}` of group {shown(group)} must be a list of names")
        return []

    def _depths(self, written: Mapping[str, AnsibleGroup]) -> Mapping[str, int]:
        """The distance of each group from the top, by the longest path; ``all`` is above everything."""
        parents: dict[str, list[str]] = {name: [] for name in written}
        for name, group in written.items():
            for child in group.children:
                parents[child].append(name)
        waiting = {name: len(above) for name, above in parents.items()}
        depths = {name: 0 if name == "all" else 1 for name in written}
        ready = [name for name, count in waiting.items() if not count]
        for name in ready:  # grows during the iteration
            for child in written[name].children:
                depths[child] = max(depths[child], depths[name] + 1)
                waiting[child] -= 1
                if not waiting[child]:
                    ready.append(child)
        if len(ready) < len(written):
            circle = sorted(name for name, count in waiting.items() if count)
            self.note(f"groups are their own children: {printable(', '.join(circle), 120)}")
        return depths


def _priority(group: AnsibleGroup) -> int:
    """As Ansible reads it: also from a text."""
    try:
        return int(group.variables.get("ansible_group_priority", 1))
    except (TypeError, ValueError, OverflowError):
        return 1


def _below(written: Mapping[str, AnsibleGroup], order: tuple[str, ...]) -> dict[str, tuple[str, ...]] | None:
    """All hosts of each group, its children's too: the deepest groups first. ``None``: more than ``MOST_PLACES``."""
    members: dict[str, tuple[str, ...]] = {}
    places = 0
    for name in reversed(order):
        group = written[name]
        inside = (host for child in group.children for host in members.get(child, ()))
        members[name] = tuple(dict.fromkeys([*group.hosts, *inside]))
        places += len(members[name])
        if places > MOST_PLACES:
            return None
    return members


def _of_ansible(below: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Whatever is listed for them, every host is in ``all``, and only the hosts of no other group are in ``ungrouped``."""
    every = tuple(dict.fromkeys(host for hosts in below.values() for host in hosts))
    grouped = {host for name, hosts in below.items() if name not in OF_ANSIBLE for host in hosts}
    hosts_of = {"all": every, "ungrouped": tuple(host for host in every if host not in grouped)}
    return {name: hosts for name, hosts in hosts_of.items() if name in below}


def shown(name: str) -> str:
    """A name from the document, for a message."""
    return f"`{printable(name, 60)}`"


def _error(reference: str, where: str, message: str) -> InputError:
    return InputError((Problem(reference, f"{where}: {message}"),))


OF_ANSIBLE = frozenset({"all", "ungrouped"})
SSH = frozenset({"ssh", "smart", "paramiko", "paramiko_ssh", "ansible.builtin.ssh"})
"""Values of ``ansible_connection``."""
DOAS = ("doas", "community.general.doas")
LOGIN = ("ansible_host", "ansible_user", "ansible_port", "ansible_connection", "ansible_become_method")


@dataclass(slots=True)
class AnsibleHosts:
    """The hosts of an inventory, and each variable by Ansible's precedence.

    ``filled`` is host → variable → what Ansible makes of its template, for templates that it was asked about.
    """

    where: str
    groups: Groups
    filled: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    groups_of: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.groups.order:
            for host in self.groups.below[name]:
                self.groups_of.setdefault(host, []).append(name)

    def value(self, host: str, variable: str) -> object:
        """``None``: it is not set, or its template has no value."""
        value = self._as_written(host, variable)
        if not _is_template(value):
            return value
        filled = self.filled.get(host, {}).get(variable)
        return None if _is_template(filled) else filled

    def templates(self, hosts: Iterable[str], variables: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Host → its variables, of these, that are templates."""
        wanted = tuple(dict.fromkeys(variables))
        found = {host: tuple(name for name in wanted if _is_template(self._as_written(host, name))) for host in hosts}
        return {host: names for host, names in found.items() if names}

    def unfilled(self, hosts: Iterable[str], variables: Iterable[str]) -> Iterator[Problem]:
        """A problem for each template without a value."""
        for host, names in self.templates(hosts, variables).items():
            for name in names:
                if self.value(host, name) is None:
                    message = (
                        f"{self.where}: {shown(name)} of {shown(host)} is a template, and Ansible has no value for it"
                    )
                    hint = (
                        f"see why: ansible -i {self.where} {printable(host, 60)} -m debug -a var={printable(name, 60)}"
                    )
                    yield Problem("unfilled-template", message, hint=hint)

    def variables(self, host: str) -> frozenset[str]:
        """The names of all variables of a host."""
        around = (self.groups.written[group].variables for group in self.groups_of.get(host, ()))
        return frozenset(self.groups.host_vars.get(host, {})).union(*around)

    def _as_written(self, host: str, variable: str) -> object:
        own = self.groups.host_vars.get(host, {})
        around = (self.groups.written[group].variables for group in reversed(self.groups_of.get(host, [])))
        return next((variables[variable] for variables in (own, *around) if variable in variables), None)


def read_hosts(text: str, where: str) -> AnsibleHosts:
    """All hosts of the inventory. Raises ``InputError`` with every mistake."""
    reading = AnsibleReading(where)
    groups = reading.groups(document_of(text, where))
    refuse(reading.problems)
    return AnsibleHosts(where, groups)


def hosts_of(hosts: AnsibleHosts, source: FromAnsible) -> tuple[str, ...]:
    """Those of its group ``source.group``, or all. Raises ``InputError`` if there is no such group."""
    reading = AnsibleReading(hosts.where)
    names = reading.hosts(hosts.groups, source.group)
    refuse(reading.problems)
    return names


def variables_of(source: FromAnsible) -> tuple[str, ...]:
    """The variables that make a node."""
    named = (source.name, source.rack, source.zone, source.labels, source.registry)
    return (*LOGIN, *(name for name in named if name))


def found_nodes(hosts: AnsibleHosts, source: FromAnsible, chosen: Sequence[str] | None = None) -> FoundNodes:
    """The hosts ``chosen``, or of its group ``source.group``, or all. Raises ``InputError`` with every mistake."""
    names, reading = hosts_of(hosts, source) if chosen is None else chosen, AnsibleReading(hosts.where)
    reading.problems += hosts.unfilled(names, variables_of(source))
    called = nodes_by_host(hosts, source, names, reading)
    nodes = tuple(_node(hosts, source, name, called[name], reading) for name in names)
    refuse([*reading.problems, *_places(source, nodes, hosts.where)])
    members = {
        name: [called[host] for host in hosts.groups.below[name] if host in called]
        for name in hosts.groups.order
        if name not in OF_ANSIBLE and not _is_place(source, name)
    }
    return FoundNodes(hosts.where, nodes, members, left_out=frozenset(hosts.groups_of).difference(names))


def _places(source: FromAnsible, nodes: tuple[FoundNode, ...], where: str) -> Iterator[Problem]:
    for kind in AreaKind:
        variable, beginning = source.area(kind)
        word = variable or beginning
        if word is not None and nodes:
            yield from nowhere(where, kind, word, nodes)


def _is_place(source: FromAnsible, group: str) -> bool:
    """Whether the group is a rack or a zone."""
    beginnings = (source.area(kind)[1] for kind in AreaKind)
    return any(beginning is not None and group.startswith(beginning) for beginning in beginnings)


def nodes_by_host(
    hosts: AnsibleHosts, source: FromAnsible, names: Iterable[str], reading: AnsibleReading
) -> dict[str, str]:
    """Host → the name of its node: that of the variable, where it is set."""
    called: dict[str, str] = {}
    for host in names:
        value = place_name(hosts.value(host, source.name)) if source.name else None
        called[host] = value if isinstance(value, str) and value else host
        if source.name and value is not None and not isinstance(value, str):
            reading.note(f"{shown(source.name)} of {shown(host)} must be a name, not {kind_of(value)}")
    return called


def _node(hosts: AnsibleHosts, source: FromAnsible, name: str, called: str, reading: AnsibleReading) -> FoundNode:
    connection = hosts.value(name, "ansible_connection")
    if connection is not None and str(connection) not in SSH:
        message = f"{shown(name)} is reached by {shown(str(connection))}, not by SSH"
        reading.note(message, "not-ssh", "choose the nodes with `group:`")
    return FoundNode(
        name=called,
        address=hosts.value(name, "ansible_host") or (name if called != name else None),
        rack=_place(hosts, source, name, AreaKind.RACK, reading),
        zone=_place(hosts, source, name, AreaKind.ZONE, reading),
        labels=hosts.value(name, source.labels) if source.labels else None,
        user=hosts.value(name, "ansible_user"),
        port=port_number(hosts.value(name, "ansible_port")),
        registry=hosts.value(name, source.registry) if source.registry else None,
        become="doas" if hosts.value(name, "ansible_become_method") in DOAS else None,
    )


def _place(hosts: AnsibleHosts, source: FromAnsible, name: str, kind: AreaKind, reading: AnsibleReading) -> object:
    variable, beginning = source.area(kind)
    if variable is not None:
        return place_name(hosts.value(name, variable))
    if beginning is None:
        return None
    groups = [group for group in hosts.groups_of.get(name, ()) if group.startswith(beginning)]
    if len(groups) > 1:
        reading.note(f"{shown(name)} is in {printable(' and '.join(groups), 120)}", "two-places")
    return groups[-1] if groups else None


def place_name(value: object) -> object:
    """A rack or zone as a name: ``rack=12`` in an INI file is a number to Ansible."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _is_template(value: object) -> bool:
    return any("{{" in text or "{%" in text for text in _texts(value))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (inner for inner in value.values() if isinstance(inner, str))


def port_number(port: object) -> object:
    """Ansible also accepts ``"2222"`` as a port."""
    return int(port) if isinstance(port, str) and port.isdecimal() and len(port) < 6 else port
