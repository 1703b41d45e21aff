"""A list of nodes as people have it: a name or nodeset a line, or a table with columns, as a spreadsheet writes it.

A table has commas, semicolons, tabs or blanks between its columns, as the output of ``kubectl get nodes`` and ``/etc/hosts`` have,
and as a rule a first line with their names. Without that line a column is understood if each of its values shows what it is;
otherwise it is refused with its place.
"""

from __future__ import annotations

import csv
import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rollout.core.reading.found_nodes import FoundNode, FoundNodes, refuse
from rollout.core.text.node_names import LONGEST_NAME, addresses_among, node_name_problems
from rollout.core.text.nodesets import NodesetError, expand, is_name
from rollout.core.text.terminal import counted, printable
from rollout.errors import Place, Problem
from rollout.features.init.rules.ansible_groups import LABELS, GroupRole, role_of_group
from rollout.features.init.rules.guesses import Guessed, SourceNote, not_known, placed, some

_COLUMNS = {
    "name": "name node hostname host node-name nodename host-name inventory-hostname server machine vm fqdn private-dns-name",
    "address": "address ip ipaddress ip-address ipv4 ipv6 addr ansible-host primary-ip primary-ip4 internal-ip mgmt-ip private-ip private-ip-address",
    "rack": "rack rack-name cabinet",
    "zone": "zone availability-zone az",
    "region": "region site datacenter data-center dc location",
    "role": "role roles type node-role",
    "labels": "labels label node-labels",
    "user": "user ssh-user ansible-user username login",
    "port": "port ssh-port ansible-port",
}
_COLUMN = {word: name for name, words in _COLUMNS.items() for word in words.split()}
_LABEL = re.compile(r"([A-Za-z0-9][A-Za-z0-9._/-]*)\s*[=:]\s*([A-Za-z0-9._-]*)")
_FIRST_LINE = "add a first line with the names of the columns, such as name,address,rack"
_KNOWN = f"the columns are {', '.join(_COLUMNS)}"
_WHOLE = re.compile(r"^(\s*)#.*")
_COMMENT = re.compile(r"""^((?:"[^"]*"|[^"])*?)(?:(?<=\s)|^)#.*""")
"""Behind a blank, outside of quotes."""
_WORKER = frozenset({"", "none", "<none>", "-"})
_SEPARATOR = re.compile(r"\ufeff?\"?sep=.\"?")
"""The first line of a table for Excel."""


@dataclass(slots=True)
class _Row:
    cells: list[str]
    line: int
    text: str
    begins: list[int] = field(default_factory=list)
    """The column at which each cell begins, once one was asked for."""

    def place(self, file: str, index: int) -> Place:
        """Of a cell, by the signs between cells outside of quotes."""
        if not self.begins:
            sign, quoted = _sign(self.text), False
            self.begins.append(1)
            for column, char in enumerate(self.text, 1):
                quoted ^= char == '"'
                if char == sign and not quoted:
                    self.begins.append(column + 1)
        return Place(file, self.line, self.begins[index] if index < len(self.begins) else 1)


@dataclass(slots=True)
class _Reading:
    """The nodes of the rows so far; mistakes are noted, and reading goes on."""

    file: str
    nodes: dict[str, FoundNode] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    roles: dict[str, set[GroupRole]] = field(default_factory=dict)
    twice: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def note(self, reference: str, message: str, place: Place, hint: str = "") -> None:
        self.problems.append(Problem(reference, message, place, hint))

    def add(self, node: FoundNode, roles: set[GroupRole], place: Place) -> None:
        if wrong := node_name_problems([node.name], place=place):
            self.problems += wrong
        elif node.name not in self.lines:
            self.nodes[node.name], self.lines[node.name] = node, place.line
            self.roles[node.name] = roles
        elif self.nodes.get(node.name) == node and self.roles[node.name] == roles:
            self.twice.append(node.name)
        else:
            message = f"duplicate node `{printable(node.name, 60)}` with other values, already in line {self.lines[node.name]}"
            self.note("duplicate-node", message, place)


def read_names(text: str, file: str) -> Guessed:
    """Lines that begin with ``#`` are comments; so is the rest of a line of names after `` #``. In a table it is a value: ``Rack #1``.

    Raises ``InputError`` with the place of each mistake.
    """
    lines = _with_tabs(text.splitlines())
    rows, names = [*_rows(lines, _WHOLE)], [*_rows(lines, _COMMENT)]
    reading = _Reading(file)
    has_columns = any(len(row.cells) > 1 for row in names) or any(
        len(row.cells) > 1 and _is_head(row) for row in rows[:1]
    )
    rows = rows if has_columns else names
    kinds: Mapping[int, str] = {}
    told: list[str] = []
    width = 1
    if has_columns or (rows and _is_head(rows[0])):
        width = len(rows[0].cells) if _is_head(rows[0]) else max(len(row.cells) for row in rows)
        kinds, rows = _kinds(rows, reading, told)
    if not reading.problems:
        for row in rows:
            if kinds:
                _table_row(row, kinds, width, reading)
            else:
                _plain_row(row, reading)
    if not reading.nodes and not reading.problems:
        reading.problems.append(Problem("no-nodes", f"{printable(file)}: there are no names in it"))
    refuse(reading.problems)
    return _guessed(reading, kinds, told)


def _guessed(reading: _Reading, kinds: Mapping[int, str], told: list[str]) -> Guessed:
    notes: list[SourceNote] = []
    if kinds:
        notes.append(SourceNote(f"columns: {', '.join(kinds.values())}"))
    has = {kind for kind in ("rack", "zone") if any(getattr(node, kind) for node in reading.nodes.values())}
    if not has:
        notes.append(not_known("rack and zone", "names do not show them"))
    if numbers := addresses_among(reading.nodes):
        notes.append(
            SourceNote(
                f"names: addresses, for {counted(len(numbers), 'node')}; the API server may know them by host names"
            )
        )
    if reading.twice:
        told.append(f"duplicate, taken once: {some(dict.fromkeys(reading.twice))}")
    for why in dict.fromkeys(reading.left_out.values()):
        names = [name for name, each in reading.left_out.items() if each == why]
        told.append(f"left out {counted(len(names), 'host')}, {why}: {some(names)}")
    groups = {
        role.value.replace(" ", "-"): [name for name, roles in reading.roles.items() if role in roles]
        for role in LABELS
    }
    groups = {name: members for name, members in groups.items() if members}
    labels = {role.value.replace(" ", "-"): {label: ""} for role, label in LABELS.items()}
    found = placed(FoundNodes(reading.file, tuple(reading.nodes.values()), groups), notes)
    return Guessed(found, tuple(notes), told=tuple(told), labels={name: labels[name] for name in groups})


# Lines.


def _with_tabs(lines: list[str]) -> list[str]:
    """A tab at the begin of the blanks between columns, if every line has as many: two blanks or more, else any."""
    bare = [_COMMENT.sub(r"\1", line, count=1).rstrip() for line in lines]
    filled = [line for line in bare if line.strip()]
    if any(sign in line for line in filled for sign in ",;\t["):
        return lines
    for between in (r"(?<=\S) (?= +\S)", r"(?<=\S) (?= *\S)"):
        counts = {len(re.findall(between, line)) for line in filled}
        if len(counts) == 1 and 0 not in counts:
            return [re.sub(between, "\t", line) for line in bare]
    return lines


def _rows(lines: list[str], comment: re.Pattern[str]) -> Iterator[_Row]:
    for number, whole in enumerate(lines, 1):
        line = comment.sub(r"\1", whole.removeprefix("\ufeff"), count=1).rstrip()
        if line.strip(" \t,;") and not (number == 1 and _SEPARATOR.fullmatch(line)):
            yield _Row(_cells(line), number, line)


def _cells(line: str) -> list[str]:
    """One cell for a line with a nodeset: its brackets may contain commas, and commas are between nodesets."""
    if "[" in line and '"' not in line:
        return [line.strip()]
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=_sign(line), skipinitialspace=True))]
    except csv.Error:  # a cell of more than 128 KiB
        return [line]


def _sign(line: str) -> str:
    """What is between the columns of this line: the first of the three outside of quotes."""
    bare = re.sub(r'"[^"]*"', "", line)
    return next((sign for sign in ("\t", ",", ";") if sign in bare), ",")


def _plain_row(row: _Row, reading: _Reading) -> None:
    place = Place(reading.file, row.line, 1)
    if len(row.cells[0]) > LONGEST_NAME and row.cells[0].isalnum():
        reading.problems += node_name_problems([row.cells[0]], place=place)
        return
    try:
        for name in expand(row.cells[0].removeprefix(_OF_KUBECTL)):
            reading.add(FoundNode(name), set(), place)
    except NodesetError as error:
        reading.problems += [Problem(flaw.reference, flaw.message, place, flaw.hint) for flaw in error.flaws]


_OF_KUBECTL = "node/"
"""As ``kubectl get nodes -o name`` prints names."""


# Columns.


def _word(cell: str) -> str:
    return re.sub(r"[\s_]+", "-", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cell.strip()).lower())


def _is_head(row: _Row) -> bool:
    """Names of columns, and one of them is the column of names."""
    return any(_COLUMN.get(_word(cell)) == "name" for cell in row.cells)


def _kinds(rows: list[_Row], reading: _Reading, told: list[str]) -> tuple[Mapping[int, str], list[_Row]]:
    """Column → what it is, and the rows below the first line. Notes what is not understood."""
    if not _is_head(rows[0]):
        return _kinds_by_values(rows, reading), rows
    kinds: dict[int, str] = {}
    unknown: list[str] = []
    for index, cell in enumerate(rows[0].cells):
        kind = _COLUMN.get(_word(cell))
        if kind is None and cell:
            unknown.append(cell)
        elif kind is None:
            if any(row.cells[index : index + 1] not in ([], [""]) for row in rows[1:]):
                reading.note("bad-table", f"column {index + 1} has no name", rows[0].place(reading.file, index), _KNOWN)
        elif kind in kinds.values():
            message = f"`{printable(cell, 40)}` is a second column of {kind}"
            reading.note("bad-table", message, rows[0].place(reading.file, index), "remove one of them")
        else:
            kinds[index] = kind
    if unknown:
        told.append(f"dropped {counted(len(unknown), 'column')}: {printable(', '.join(unknown), 200)} ({_KNOWN})")
    return kinds, rows[1:]


def _kinds_by_values(rows: list[_Row], reading: _Reading) -> Mapping[int, str]:
    kinds: dict[int, str] = {0: "name"}
    if all(_is_address(row.cells[0]) and len(row.cells) > 1 and not _shows(row.cells[1]) for row in rows):
        kinds = {0: "address", 1: "name"}  # as in /etc/hosts
    for index in range(len(kinds), max(len(row.cells) for row in rows)):
        values = [(row, row.cells[index]) for row in rows if index < len(row.cells) and row.cells[index]]
        shown = {_shows(value) for _, value in values}
        kind = shown.pop() if len(shown) == 1 else ""
        if not kind or kind in kinds.values():
            odd = next((each for each in values if not _shows(each[1])), values[0] if values else (rows[0], ""))
            message = f"nothing shows what column {index + 1} is: `{printable(odd[1], 40)}`"
            reading.note("bad-table", message, odd[0].place(reading.file, index), _FIRST_LINE)
        else:
            kinds[index] = kind
    return kinds


def _shows(value: str) -> str:
    """What a value is by itself; ``""``: it may be anything."""
    if _is_address(value):
        return "address"
    if _roles(value):
        return "role"
    if "=" in value and _labels(value) is not None:
        return "labels"
    return next((kind for kind in ("rack", "zone") if value.lower().startswith(kind) and is_name(value)), "")


def _is_address(value: str) -> bool:
    try:
        ipaddress.ip_address(value.partition("/")[0])
    except ValueError:
        return False
    return True


def _roles(value: str) -> set[GroupRole] | None:
    """Roles with commas, semicolons, blanks or ``+`` between them; ``None``: one of them is unknown."""
    roles = {_role(word) for word in re.split(r"[,;+\s|]+", value.strip()) if word}
    return None if None in roles else {role for role in roles if role is not None}


def _role(word: str) -> GroupRole | None:
    return GroupRole.CONTROL_PLANE if word.lower() in {"server", "servers"} else role_of_group(word)


def _labels(value: str) -> Mapping[str, str] | None:
    found = [_LABEL.fullmatch(part.strip()) for part in re.split(r"[,;|]", value.strip("{}")) if part.strip()]
    return None if None in found else {match[1]: match[2] for match in found if match}


def _table_row(row: _Row, kinds: Mapping[int, str], width: int, reading: _Reading) -> None:
    if len(row.cells) > width and any(row.cells[width:]):
        message = f"the line has {len(row.cells)} columns, and the first line {width}"
        reading.note("bad-table", message, row.place(reading.file, width))
        return
    cells = {kind: (row.cells[index] if index < len(row.cells) else "", index) for index, kind in kinds.items()}
    before = len(reading.problems)
    values: dict[str, object] = {}
    roles: set[GroupRole] = set()
    for kind, (cell, index) in cells.items():
        place = row.place(reading.file, index)
        if kind == "role":
            roles = _roles_of(cell, place, reading)
        elif cell:
            values[kind] = _value(kind, cell, place, reading)
    name, index = cells["name"][0].removeprefix(_OF_KUBECTL), cells["name"][1]
    place = row.place(reading.file, index)
    if not name:
        reading.note("bad-table", "the line has no name", place)
    if len(reading.problems) > before:
        return
    if GroupRole.BASTION in roles or GroupRole.REFLECTOR in roles or roles == {GroupRole.ETCD}:
        reading.left_out[name] = "etcd without a kubelet" if roles == {GroupRole.ETCD} else "no node by its role"
        return
    zone = values.get("zone") or values.get("region")
    if values.get("region") and values.get("zone") and not str(zone).startswith(str(values["region"])):
        zone = f"{values['region']}-{zone}"  # regions are the beginnings of the names of zones
    node = FoundNode(
        name,
        address=values.get("address"),
        rack=values.get("rack"),
        zone=zone,
        labels=values.get("labels"),
        user=values.get("user"),
        port=values.get("port"),
    )
    reading.add(node, roles - {GroupRole.WORKER, GroupRole.CLUSTER}, place)


def _roles_of(cell: str, place: Place, reading: _Reading) -> set[GroupRole]:
    roles = set() if cell.lower() in _WORKER else _roles(cell)
    if roles is None:
        hint = "roles are control-plane, etcd, worker, bastion, and the names that installers give them"
        reading.note("bad-table", f"`{printable(cell, 40)}` is no role of a node", place, hint)
        return set()
    return roles


def _value(kind: str, cell: str, place: Place, reading: _Reading) -> object:
    if kind == "labels":
        labels = _labels(cell)
        if labels is None:
            reading.note("bad-table", f"`{printable(cell, 60)}` are no labels", place, "such as disk=nvme;pool=batch")
        return labels
    if kind == "port":
        if not cell.isdecimal() or not 1 <= int(cell[:6]) <= 65535:
            reading.note("bad-table", f"`{printable(cell, 40)}` is no port", place)
            return None
        return int(cell)
    if kind == "address":
        return cell.partition("/")[0]
    if kind in {"rack", "zone", "region"}:
        name = re.sub(r"\s+", "-", cell)
        if not is_name(name):
            message = f"`{printable(cell, 60)}` is no name of a {kind}; names are letters, digits, `-`, `_` and `.`"
            reading.note("bad-table", message, place)
        return name
    return cell
