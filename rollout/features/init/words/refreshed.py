"""An inventory of people with the nodes that came and went: only those names change, all other bytes stay.

Names of nodes are replaced where they stand, entries without nodes are removed with their lines, and new entries follow the last
one. The result is read again, and must be the old inventory without the nodes that went and with those that came.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from rollout.core.model.fleet_changes import is_their_list
from rollout.core.model.inventory import NO_RACK, Inventory, Node
from rollout.core.reading.found_nodes import FoundNode
from rollout.core.reading.inventory_file import load_inventory
from rollout.core.text.nodesets import NodesetError, expand, fold
from rollout.core.text.terminal import counted, printable
from rollout.core.text.yaml_source import Entry, Item, read_yaml
from rollout.errors import InputError, Place, Problem
from rollout.features.init.rules.guesses import Guessed, some
from rollout.features.init.words.project import LONGEST_KEY, attributes, group_lines, keys_of

_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*'")
_ALGEBRA = re.compile(r"[@!&^*?]")
_CLOSE = re.compile(r"\s*,?\s*\]")
_NO_CONTENT = re.compile(r"\s*(?:#.*)?$")
BY_HAND = "change the file by hand"


@dataclass(frozen=True, slots=True)
class Refreshed:
    """The new text, the nodes that came and went, and differences that are left as they are."""

    text: str
    came: tuple[str, ...]
    went: tuple[str, ...]
    notes: tuple[str, ...]


def refreshed(text: str, file: str, guessed: Guessed) -> Refreshed:
    """``text`` is a valid inventory that lists its nodes. Raises ``InputError`` if it cannot be changed line by line."""
    have = load_inventory(text, file)
    found = {node.name: node for node in guessed.found.nodes}
    came = tuple(name for name in found if name not in have.nodes)
    went = tuple(name for name in have.nodes if name not in found)
    if not came and not went:
        return Refreshed(text, (), (), tuple(_differences(have, guessed)))
    if not is_their_list(have.nodes, found):
        both = len(have.nodes.keys() & found.keys())
        message = f"the source has {both:,} of {counted(len(have.nodes), 'node')} of {printable(file)}: it may be that of another cluster"
        raise InputError((Problem("not-refreshed", message, hint=BY_HAND),))
    root = read_yaml(text, file).root
    if root is None:
        raise AssertionError(file)
    work = _Work(text, file, root, frozenset(went), {name: found[name] for name in came})
    work.nodes()
    work.places("racks", {name: [str(node.rack)] for name, node in work.came.items() if node.rack is not None})
    work.zones()
    alike = _alike(have, guessed, root)
    times = Counter(each.here for found in alike.values() for each in found)
    pairs = {name: each for name, (each, *more) in alike.items() if not more and times[each.here] == 1}
    doubts = {name: _doubt(each) for name, each in alike.items() if name not in pairs}
    renamed = {name: pair.here for name, pair in pairs.items()}
    of = {name: [renamed.get(group, group) for group in its] for name, its in _groups_of(guessed, came).items()}
    fresh = _fresh_groups(have, guessed, of, doubts)
    work.groups({name: list(groups) for name, groups in of.items()}, fresh)
    new = work.result()
    _prove(have, new, file, found, set(came), {name: guessed.labels.get(name, {}) for name in fresh})
    joined = {group for groups in of.values() for group in groups}
    told = [
        f"nodes of {name} joined {pair.here}: it has {pair.nodes} under another name"
        for name, pair in pairs.items()
        if pair.here in joined
    ]
    return Refreshed(new, came, went, (*told, *_differences(have, guessed)))


@dataclass(frozen=True, slots=True)
class _Alike:
    """A group of the file that may be one of the source under another name. ``nodes``: those that both have."""

    here: str
    nodes: str


def _alike(have: Inventory, guessed: Guessed, root: Item) -> Mapping[str, Sequence[_Alike]]:
    """Group of the source that the file lacks → the groups of the file that the source lacks, and that have most of its nodes and few others.

    Of nodes that stay. A group that is computed from others takes no node.
    """
    stay = {node.name for node in guessed.found.nodes} & have.nodes.keys()
    mine = {group for node in have.nodes.values() for group in node.groups}
    section = root.entries().get("groups")
    entries = section.item.entries() if section is not None else {}
    own = {
        group: frozenset(name for name in stay if group in have.nodes[name].groups)
        for group in entries.keys() & mine - guessed.found.groups.keys()
        if not _is_computed(entries[group])
    }
    found: dict[str, list[_Alike]] = {}
    for name, members in guessed.found.groups.items():
        its = stay.intersection(members)
        for here in sorted(own) if name not in mine | have.nodesets.keys() else ():
            both = len(its & own[here])
            if 2 * both > max(len(its), len(own[here])):
                same = "the same nodes" if its == own[here] else f"{both} of its {len(its)} nodes"
                found.setdefault(name, []).append(_Alike(here, same))
    return found


def _doubt(alike: Sequence[_Alike]) -> str:
    """A comment in the line that adds the group, so that the diff has it."""
    return f"  # perhaps {' or '.join(each.here for each in alike)} under another name: then move its new nodes there"


def _is_computed(group: Entry) -> bool:
    nodes = group.item.entries().get("nodes")
    items = nodes.item.value if nodes is not None else ()
    texts = items if isinstance(items, list) else [nodes.item] if nodes is not None else []
    return any(_ALGEBRA.search(str(text.value)) for text in texts)


def _fresh_groups(
    have: Inventory, guessed: Guessed, of: Mapping[str, Sequence[str]], doubts: Mapping[str, str]
) -> Mapping[str, str]:
    """Entries for groups of nodes that came and that the file does not have. A group without such a node may have been removed by a person."""
    wanted = {group for groups in of.values() for group in groups}
    places = {str(place) for node in guessed.found.nodes for place in (node.rack, node.zone) if place}
    lines = group_lines(guessed, places | have.nodesets.keys())
    return {name: f"{line}{doubts.get(name, '')}" for name, line in lines.items() if name in wanted}


def _groups_of(guessed: Guessed, names: Iterable[str]) -> Mapping[str, list[str]]:
    members = {group: frozenset(each) for group, each in guessed.found.groups.items()}
    return {name: [group for group, each in members.items() if name in each] for name in names}


def _differences(have: Inventory, guessed: Guessed) -> Iterator[str]:
    """What the source says otherwise of nodes that stay: the file is right until a person changes it."""
    odd: dict[str, list[str]] = {}
    for node in guessed.found.nodes:
        old = have.nodes.get(node.name)
        if old is None:
            continue
        pairs = (
            ("address", old.address, str(node.address or node.name).replace("{name}", node.name)),
            ("user", old.user, node.user),
            ("port", old.port, node.port),
            ("rack", None if old.rack == NO_RACK else old.rack, node.rack),
            ("zone", None if old.zone == NO_RACK else old.zone, node.zone),
        )
        for key, here, there in pairs:
            if there is not None and here is not None and str(here) != str(there):
                odd.setdefault(key, []).append(node.name)
    for key, names in odd.items():
        yield f"left as it is: the {key} of {some(names)} differs in the source"
    if guessed.api_server and guessed.api_server != have.api_server:
        yield f"left as it is: apiServer {have.api_server}; the source shows {guessed.api_server}"


def of_draft(problems: Iterable[Problem], files: Collection[str]) -> InputError:
    """Mistakes of a source that its draft shows. ``files``: texts that nobody sees, so no place in them is told."""

    def told(problem: Problem) -> Problem:
        if problem.place is not None and problem.place.file not in files:
            return problem
        message = next((m for file in files if (m := problem.message.removeprefix(f"{file}: ")) != problem.message), "")
        return replace(problem, message=f"nothing was written: {message or problem.message}", place=None)

    return InputError(tuple(map(told, problems)))


def _prove(
    have: Inventory,
    text: str,
    file: str,
    found: Mapping[str, FoundNode],
    came: Set[str],
    fresh: Mapping[str, Mapping[str, str]],
) -> None:
    """Of the nodes that stay nothing changes but new groups of theirs, with their labels. ``fresh``: new group → its labels."""
    try:
        new = load_inventory(text, file)
    except InputError as error:
        raise of_draft(error.problems, (file,)) from None
    kept = {name: node for name, node in have.nodes.items() if name in found}
    stay = {name: node for name, node in new.nodes.items() if name not in came}
    same = stay.keys() == kept.keys() and all(_without(node, kept[name], fresh) for name, node in stay.items())
    reached = all(
        new.nodes[name].address == str(found[name].address or name).replace("{name}", name)
        for name in came
        if name in new.nodes
    )
    if not same or not reached or came - new.nodes.keys():
        message = "the nodes that came and went cannot be written into it without another effect"
        raise InputError((Problem("not-refreshed", f"{printable(file)}: {message}", hint=BY_HAND),))


def _without(node: Node, before: Node, fresh: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether the node is as before, but for the groups ``fresh``."""
    groups = tuple(group for group in node.groups if group not in fresh)
    labels = {key: value for group in node.groups for key, value in fresh.get(group, {}).items()}
    return replace(node, groups=groups, labels={**before.labels}) == before and node.labels == {
        **labels,
        **before.labels,
    }


@dataclass(slots=True)
class _Work:
    """Changes of lines, by their numbers from 1: spans of a line, lines to remove, lines to add behind one."""

    text: str
    file: str
    root: Item
    went: frozenset[str]
    came: Mapping[str, FoundNode]
    spans: list[tuple[int, int, int, str]] = field(default_factory=list)
    removed: set[int] = field(default_factory=set)
    added: dict[int, list[str]] = field(default_factory=dict)

    def result(self) -> str:
        self._remove_empty_groups()
        lines = self._lines()
        for line, start, end, new in sorted(self.spans, reverse=True):
            lines[line - 1] = lines[line - 1][:start] + new + lines[line - 1][end:]
        whole = [[] if at in self.removed else [line] for at, line in enumerate(lines, 1)]
        for at, more in self.added.items():
            if not lines[at - 1].endswith("\n"):
                whole[at - 1] = [f"{lines[at - 1]}\n"]
            whole[at - 1] += [f"{line}\n" for line in more]
        return "".join(line for each in whole for line in each)

    def _remove_empty_groups(self) -> None:
        """``groups`` without an entry would be a mistake. Racks and zones have each node that stays."""
        section = self.root.entries().get("groups")
        entries = section.item.entries().values() if section is not None else ()
        if section is None or not entries or any(entry.line not in self.removed for entry in entries):
            return
        if not any(section.line <= at <= self._end(section) for at in self.added):
            self.removed.add(section.line)

    def _lines(self) -> list[str]:
        return self.text.splitlines(keepends=True)

    # Nodes.

    def nodes(self) -> None:
        entry = self.root.entries()["nodes"]
        if isinstance(entry.item.value, list):
            self._listed(entry, entry.item.value)
        else:
            self._folded(entry)

    def _folded(self, section: Entry) -> None:
        entries = section.item.entries()
        self._in_lines(section, [*entries.values()])
        joining: dict[str, list[str]] = {key: [] for key in entries}
        fresh: dict[str, list[str]] = {}
        for name, node in self.came.items():
            pairs = dict(attributes(node, self._keys(node)))
            alike = [key for key, entry in entries.items() if (entry.item.plain() or {}) == pairs]
            if alike:
                joining[alike[0]].append(name)
            else:
                fresh.setdefault(_flow(pairs), []).append(name)
        for key, entry in entries.items():
            names = expand(key)
            stay = [name for name in names if name not in self.went] + joining[key]
            if not stay:
                self._remove(section, entry.line)
            elif [*names] != stay:
                text = json.dumps(fold(stay))
                if len(text) > LONGEST_KEY:
                    self._by_hand(entry, f"its nodeset would have {len(text)} characters, too many for a key")
                self._replace(entry, key, text)
        indent = " " * (next(iter(entries.values())).column - 1)
        lines = [f"{indent}{json.dumps(text)}: {pairs}" for pairs, names in fresh.items() for text in keys_of(names)]
        self._append(section, lines)

    def _listed(self, section: Entry, items: Sequence[Item]) -> None:
        self._in_lines(section, items)
        for item in items:
            if str(item.entries()["name"].item.value) in self.went:
                self._remove(section, item.line)
        first = self._lines()[items[0].line - 1]
        indent = first[: first.index("-")]
        lines = [
            f"{indent}- {_flow({'name': name, **dict(attributes(node, self._keys(node)))})}"
            for name, node in self.came.items()
        ]
        self._append(section, lines)

    def _keys(self, node: FoundNode) -> Set[str]:
        """Keys that the cluster's ``ssh``, ``racks`` and ``zones`` do not already set for this node."""
        ssh = self.root.entries().get("ssh")
        shared = ssh.item.plain() if ssh else {}
        keys = {
            key for key in ("user", "port") if not isinstance(shared, dict) or shared.get(key) != getattr(node, key)
        }
        entries = self.root.entries()
        keys |= {"rack"} - ({"rack"} if "racks" in entries else set())
        return keys | ({"zone"} - ({"zone"} if "zones" in entries else set()))

    # Racks, zones and groups.

    def places(self, title: str, of: Mapping[str, Sequence[str]]) -> None:
        """``of``: what came → the entries of the section that it belongs to."""
        section = self.root.entries().get(title)
        if section is None:
            return
        entries = section.item.entries()
        self._in_lines(section, [*entries.values()])
        for name, entry in entries.items():
            self._members(section, entry, entry.item, [node for node, its in of.items() if name in its])
        missing: dict[str, list[str]] = {}
        for node, its in of.items():
            for name in its:
                if name not in entries:
                    missing.setdefault(name, []).append(node)
        indent = " " * (next(iter(entries.values())).column - 1)
        self._append(
            section, [f"{indent}{json.dumps(name)}: {json.dumps(fold(each))}" for name, each in missing.items()]
        )

    def zones(self) -> None:
        """Zones consist of racks: only a rack that is new, or gone, changes one."""
        racks = self.root.entries().get("racks")
        known = racks.item.entries() if racks else {}
        fresh = {
            str(node.rack): [str(node.zone)]
            for node in self.came.values()
            if node.rack is not None and node.zone is not None and str(node.rack) not in known
        }
        kept, self.went = self.went, frozenset(name for name, entry in known.items() if entry.line in self.removed)
        self.places("zones", fresh)
        self.went = kept

    def groups(self, of: Mapping[str, Sequence[str]], fresh: Mapping[str, str]) -> None:
        """``of``: node that came → its groups in the source. ``fresh``: groups that the file does not have, with their entries."""
        section = self.root.entries().get("groups")
        if section is None:
            if fresh:
                end = self._last_content(1, len(self._lines()))
                self.added.setdefault(end, []).extend(["groups:", *(f"  {line}" for line in fresh.values())])
            return
        self._in_lines(section, [*section.item.entries().values()])
        for name, entry in section.item.entries().items():
            nodes = entry.item.entries().get("nodes")
            if nodes is not None:
                self._members(section, entry, nodes.item, [node for node, its in of.items() if name in its])
        indent = " " * (next(iter(section.item.entries().values())).column - 1)
        self._append(section, [f"{indent}{line}" for line in fresh.values()])

    def _members(self, section: Entry, entry: Entry, value: Item, more: Sequence[str]) -> None:
        """Nodesets without set algebra: those with it refer to names by others, or are reported when the result is read."""
        items = value.value if isinstance(value.value, list) else [value]
        texts = [str(item.value) for item in items]
        try:
            names = [() if _ALGEBRA.search(text) else expand(text) for text in texts]
        except NodesetError:
            return
        if any(_ALGEBRA.search(text) for text in texts) and not any(self.went.intersection(each) for each in names):
            return
        stay = [[name for name in each if name not in self.went] for each in names]
        if not any(stay) and not more and not any(_ALGEBRA.search(text) for text in texts):
            self._remove(section, entry.line)
            return
        stay[-1] += more
        changed = [[*before] != after for before, after in zip(names, stay, strict=True)]
        emptied = [each and not after for each, after in zip(changed, stay, strict=True)]
        lines = self._lines()
        if any(emptied) and value.line == items[0].line and lines[value.line - 1][value.column - 1 :].startswith("["):
            self._flow_list(
                value,
                items,
                [text if not each else fold(after) for text, each, after in zip(texts, changed, stay, strict=True)],
            )
            return
        for item, text, each, after in zip(items, texts, changed, stay, strict=True):
            if each and after:
                self._replace(item, text, json.dumps(fold(after)))
            elif each and lines[item.line - 1][: item.column - 1].strip() == "-":
                self.removed.add(item.line)
            elif each:
                self._by_hand(item, "the last node of one of several nodesets left")

    def _flow_list(self, value: Item, items: Sequence[Item], texts: Sequence[str]) -> None:
        """All of a list in brackets, in one line: one of its nodesets is empty now."""
        line, last = self._lines()[value.line - 1], items[-1]
        quoted = _QUOTED.match(line, last.column - 1)
        end = quoted.end() if quoted else last.column - 1 + len(str(last.value))
        close = _CLOSE.match(line, end)
        if last.line != value.line or close is None:
            self._by_hand(value, "this list is not in one line")
        else:
            self.spans.append((value.line, value.column - 1, close.end(), json.dumps([text for text in texts if text])))

    # Lines.

    def _in_lines(self, section: Entry, parts: Sequence[Item | Entry]) -> None:
        lines = [part.line for part in parts]
        if not parts or lines[0] <= section.line or len({*lines}) < len(lines):
            self._by_hand(section, "its entries are not in lines of their own")

    def _by_hand(self, where: Item | Entry, message: str) -> None:
        raise InputError((Problem("not-refreshed", message, Place(self.file, where.line, where.column), BY_HAND),))

    def _replace(self, where: Item | Entry, old: str, new: str) -> None:
        line, start = self._lines()[where.line - 1], where.column - 1
        quoted = _QUOTED.match(line, start)
        if quoted:
            self.spans.append((where.line, start, quoted.end(), new))
        elif line.startswith(old, start):
            self.spans.append((where.line, start, start + len(old), new))
        else:
            self._by_hand(where, "this text is not in one line")

    def _remove(self, section: Entry, line: int) -> None:
        """The entry that begins in ``line``, without comments and empty lines behind it."""
        value = section.item.value
        parts: Sequence[Item | Entry] = value if isinstance(value, list) else [*section.item.entries().values()]
        after = min((part.line for part in parts if part.line > line), default=self._end(section) + 1)
        self.removed |= {*range(line, self._last_content(line, after - 1) + 1)}

    def _append(self, section: Entry, lines: Sequence[str]) -> None:
        if lines:
            self.added.setdefault(self._last_content(section.line, self._end(section)), []).extend(lines)

    def _end(self, section: Entry) -> int:
        """The last line before the next key of the file."""
        after = [entry.line for entry in self.root.entries().values() if entry.line > section.line]
        return min(after, default=len(self._lines()) + 1) - 1

    def _last_content(self, first: int, last: int) -> int:
        lines = self._lines()
        while last > first and _NO_CONTENT.match(lines[last - 1]):
            last -= 1
        return last


def _flow(pairs: Mapping[str, object]) -> str:
    return "{" + ", ".join(f"{key}: {json.dumps(value)}" for key, value in pairs.items()) + "}"
