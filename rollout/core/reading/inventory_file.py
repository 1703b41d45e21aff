"""The inventory file: text in, ``Inventory`` out, or every mistake at once.

    cluster: rno
    apiServer: v1.23.17
    playbook: image-pulls                   # optional; the default playbook of a plan
    ssh: {user: sre, port: 22, sudo: true}  # optional, also of a group; ssh_config decides what is not set
    endpoints: {kubeconfig: rno.kubeconfig, prometheus: "https://prometheus.rno.example.net"}  # see docs/gates.md
    settings: {registryPullQPS: 10}         # for the whole cluster
    registry: registry.example.net          # optional, also of a group or node: what nodes pull from, for the plan's loads
    nodes:                                  # by nodeset …
      tess-node-[0001-2000]: {address: "{name}.rno.example.net"}
    racks:  {rack01: tess-node-[0001-0060]}
    zones:  {rno-a: "rack[01-12]"}          # a zone consists of racks
    groups:                                 # later groups win over earlier ones
      gpu: {nodes: "@rack33", labels: {gpu: "true"}, settings: {…}}

or one by one: ``nodes: [{name: n1, address: 10.0.0.1, rack: rack01, zone: rno-a, labels: {…}, settings: {…}}]``.
``nodesFrom`` in the place of ``nodes``: see ``inventory_draft``. What a node has from its groups: see ``Inherited``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from hashlib import sha256

from rollout.core.model.areas import AreaKind
from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import NO_RACK, Endpoints, Inventory, Level, Node
from rollout.core.model.regions import region_of_zone
from rollout.core.model.settings import Setting
from rollout.core.model.ways_in import Become
from rollout.core.reading.inventory_schema import (
    AnyInventory,
    Attributes,
    FoldedInventory,
    Group,
    ListedInventory,
    Ssh,
)
from rollout.core.reading.validation import Mistakes, locate, read_document, validate
from rollout.core.reading.value_types import read_settings
from rollout.core.text.node_names import node_name_flaws
from rollout.core.text.nodesets import EVERYTHING, Names, NodesetError, evaluate, expand, fold
from rollout.core.text.terminal import printable
from rollout.core.text.yaml_source import Entry, Item
from rollout.errors import Place

# How to log in to a node: its own values take precedence over its groups', and those over the cluster's.


@dataclass(frozen=True, slots=True)
class Login:
    """``None``: not set; then ``ssh_config`` decides user and port, and the user decides sudo."""

    user: str | None = None
    port: int | None = None
    sudo: bool | None = None
    become: Become | None = None


class Logins:
    """The logins of a cluster; each combination of groups is merged once."""

    def __init__(self, cluster: Ssh, groups: Mapping[str, Group]) -> None:
        self._cluster = cluster
        self._groups = groups
        self._merged: dict[tuple[tuple[str, ...], int], Login] = {}

    def of(self, groups: tuple[str, ...], own: Attributes) -> Login:
        """``groups`` in file order, of which later ones win."""
        key = (groups, id(own))
        if key not in self._merged:
            levels: tuple[Ssh | Attributes, ...] = (self._cluster, *(self._groups[group].ssh for group in groups), own)
            login = Login()
            for one in levels:
                login = Login(
                    one.user if one.user is not None else login.user,
                    one.port if one.port is not None else login.port,
                    one.sudo if one.sudo is not None else login.sudo,
                    Become(one.become) if one.become is not None else login.become,
                )
            self._merged[key] = login
        return self._merged[key]


# What a node gets from its groups: labels and a registry. Later groups in the file win; the node's own values
# win over all.


_Shared = tuple[tuple[str, ...], Mapping[str, str], str]


class Inherited:
    """Groups, labels and registry of a node; nodes that are alike share one mapping."""

    def __init__(self, written: AnyInventory, groups: Mapping[str, frozenset[str]]) -> None:
        """``groups``: each group's nodes, in file order."""
        self._written = written
        self._groups: dict[str, tuple[str, ...]] = {}
        for group, nodes in groups.items():
            for name in nodes:
                self._groups[name] = (*self._groups.get(name, ()), group)
        self._merged: dict[tuple[tuple[str, ...], int], _Shared] = {}

    def of(self, name: str, own: Attributes) -> _Shared:
        """``(its groups, its labels, its registry)``; a registry that is not set is ``""``."""
        groups = self._groups.get(name, ())
        key = (groups, id(own))
        if key not in self._merged:
            self._merged[key] = (groups, self._labels(groups, own), self._registry(groups, own))
        return self._merged[key]

    def _labels(self, groups: tuple[str, ...], own: Attributes) -> Mapping[str, str]:
        merged: dict[str, str] = {}
        for labels in (*(self._written.groups[group].labels for group in groups), own.labels):
            merged.update(labels)
        return merged

    def _registry(self, groups: tuple[str, ...], own: Attributes) -> str:
        nearest = (own.registry, *(self._written.groups[group].registry for group in reversed(groups)))
        return next((registry for registry in (*nearest, self._written.registry) if registry is not None), "")


_FOLLOW = frozenset({"unknown-node", "unknown-rack", "unknown-group", "no-rack", "no-zone", "no-nodes"})
_UNREADABLE = frozenset({"bad-nodeset", "nodeset-too-large"})
_INCOMPLETE = frozenset({"no-rack", "no-zone", "no-nodes"})  # may follow from a nodeset that could not be read
_Sections = Mapping[AreaKind, Mapping[str, list[str]]]
"""What an inventory writes of each kind: the nodes of a rack, the racks of a zone."""
_Areas = Mapping[AreaKind, Mapping[str, str]]
"""The name of each node's area of a kind, for nodes in one."""


def load_inventory(text: str, file: str) -> Inventory:
    """``text`` is the file's, ``file`` its name for messages. Raises ``InputError`` with every mistake."""
    root, mistakes = read_document(text, file)
    return build(root, mistakes, sha256(text.encode()).hexdigest())


def build(root: Item, mistakes: Mistakes, digest: str) -> Inventory:
    """The inventory defined by a file's tree. Raises ``InputError`` with every mistake."""
    nodes = root.entries().get("nodes")
    listed = nodes is not None and isinstance(nodes.item.value, list)
    written: AnyInventory
    written, whole = validate(ListedInventory, root, mistakes) if listed else validate(FoldedInventory, root, mistakes)
    inventory = _Reading(root, mistakes, whole=whole).inventory(written, digest)
    mistakes.raise_any()
    return inventory


@dataclass(frozen=True, slots=True)
class _Block:
    """Nodes with one description: those of a nodeset, or one listed node."""

    names: tuple[str, ...]
    said: Attributes
    item: Item  # the attributes
    where: Item | Entry  # the name


class _Reading:
    """The reading of one file; every method notes mistakes and continues."""

    def __init__(self, root: Item, mistakes: Mistakes, *, whole: bool) -> None:
        self._root = root
        self._mistakes = mistakes
        self._whole = whole  # nothing was cut out or left out, so a missing name is unknown
        self._read = True  # every nodeset could be read

    def inventory(self, written: AnyInventory, digest: str) -> Inventory:
        blocks = tuple(self._blocks(written))
        nodes = {name: None for block in blocks for name in block.names}
        if not nodes:
            self._consequence(self._section("nodes"), "no-nodes", "the inventory has no nodes")
        sections: _Sections = {AreaKind.RACK: written.racks, AreaKind.ZONE: written.zones}
        areas = self._areas(sections, blocks, nodes)
        sets = dict.fromkeys((*written.racks, *written.zones), frozenset[str]())  # one with unknown nodes alone, too
        for owner in areas.values():
            sets |= _members(owner)
        groups = self._groups(written.groups, nodes, sets)
        names = {kind.value: {*sections[kind], *areas[kind].values()} for kind in AreaKind}
        self._check_names({**names, "group": {*written.groups}})
        inherited = Inherited(written, groups)
        entry = self._root.entries().get("playbook")
        return Inventory(
            cluster=written.cluster,
            api_server=written.api_server,
            nodes=self._nodes(blocks, written, areas, inherited),
            nodesets={**sets, **groups, EVERYTHING: frozenset(nodes)},
            levels=tuple(self._levels(written, blocks, groups)),
            digest=digest,
            endpoints=written.endpoints.as_value(Endpoints),
            playbook=written.playbook or "",
            playbook_place=self._mistakes.place(entry.item) if entry is not None else None,
            conditions=tuple(written.conditions(self._root, self._mistakes)),
            controller_ssh=self._controller_ssh(written, set(areas[AreaKind.ZONE].values()) or {NO_RACK}),
            places={name: place for block in blocks for place in (self._place(block),) for name in block.names},
        )

    def _place(self, block: _Block) -> Place:
        address = block.item.entries().get("address")
        return self._mistakes.place(address.item if address else block.where)

    def _controller_ssh(self, written: AnyInventory, zones: Set[str]) -> frozenset[str]:
        """Regions, each with a zone of the inventory."""
        regions = frozenset(written.controller_ssh)
        for index, region in enumerate(written.controller_ssh):
            if self._whole and not any(region_of_zone(zone, {region}) for zone in zones):
                item = locate(self._root, ("controllerSsh", index))[0]
                hint = f"the zones: {printable(', '.join(sorted(zones)), 200)}"
                self._mistakes.add(item, "unknown-region", f"`{region}` is the region of no zone", hint)
        return regions

    # Nodes.

    def _blocks(self, written: AnyInventory) -> Iterator[_Block]:
        lines: dict[str, int] = {}
        for block in self._written_blocks(written):
            twice = [name for name in block.names if name in lines]
            if twice:
                message = f"duplicate node{'s' * (len(twice) > 1)} `{fold(twice)}`, already in line {lines[twice[0]]}"
                self._mistakes.add(block.where, "duplicate-node", message)
            for flaw in node_name_flaws(block.names):
                self._mistakes.add(block.where, flaw.reference, flaw.message, flaw.hint)
            for name in block.names:
                lines.setdefault(name, block.where.line)
            yield block

    def _written_blocks(self, written: AnyInventory) -> Iterator[_Block]:
        nodes = self._root.entries()["nodes"].item
        if isinstance(written, ListedInventory) and isinstance(nodes.value, list):
            for node, item in zip(written.nodes, nodes.value, strict=True):
                yield _Block((node.name,), node, item, item.entries()["name"].item)
        elif isinstance(written, FoldedInventory):
            for key, attributes in written.nodes.items():
                entry = nodes.entries()[key]
                yield _Block(self._expand(key, entry), attributes or Attributes(), entry.item, entry)

    def _nodes(
        self, blocks: Iterable[_Block], written: AnyInventory, areas: _Areas, inherited: Inherited
    ) -> dict[str, Node]:
        nodes: dict[str, Node] = {}
        owners: dict[tuple[str, int | None], str] = {}
        logins = Logins(written.ssh, written.groups)
        for block in blocks:
            clashes: list[str] = []
            for name in block.names:
                address = (block.said.address or "{name}").replace("{name}", name)
                groups, own, registry = inherited.of(name, block.said)
                login = logins.of(groups, block.said)
                if owners.setdefault((address, login.port), name) != name:
                    clashes.append(name)
                rack, zone = (areas[kind].get(name, NO_RACK) for kind in (AreaKind.RACK, AreaKind.ZONE))
                nodes[name] = Node(
                    name, address, rack, zone, own, groups, login.user, login.port, login.sudo, registry,
                    login.become or Become.SUDO,
                )  # fmt: skip
            if clashes:
                clash = nodes[clashes[0]]
                self._duplicate_address(block, clashes, owners[clash.address, clash.port], clash.address)
        return nodes

    def _duplicate_address(self, block: _Block, names: list[str], first: str, address: str) -> None:
        entry = block.item.entries().get("address")
        message = f"duplicate address `{address}` of `{printable(fold(names))}`, already that of `{first}`"
        hint = "" if len(block.names) == 1 else "`{name}` in an address stands for the node's name"
        self._mistakes.add(entry.item if entry else block.where, "duplicate-address", message, hint)

    # Racks and zones.

    def _areas(self, sections: _Sections, blocks: Iterable[_Block], nodes: Mapping[str, None]) -> _Areas:
        """The rack and the zone of each node: by the sections, where a zone consists of racks, or its own value."""
        by_rack = self._owners(AreaKind.RACK, sections, Names(nodes, {}), "node")
        racks = self._placed(AreaKind.RACK, by_rack, blocks, nodes)
        rack_names = dict.fromkeys([*sections[AreaKind.RACK], *racks.values()])
        zone_of = self._owners(AreaKind.ZONE, sections, Names(rack_names, {}, "rack"), "rack")
        by_zone = {name: zone_of[rack] for name, rack in racks.items() if rack in zone_of}
        among = [name for block in blocks for name in block.names if not racks or name in racks]
        return {AreaKind.RACK: racks, AreaKind.ZONE: self._placed(AreaKind.ZONE, by_zone, blocks, among)}

    def _placed(
        self, kind: AreaKind, found: dict[str, str], blocks: Iterable[_Block], among: Iterable[str]
    ) -> dict[str, str]:
        """``found`` with the nodes' own values. Notes nodes of ``among`` in no area of a kind that others have."""
        for block in blocks:
            own = {AreaKind.RACK: block.said.rack, AreaKind.ZONE: block.said.zone}[kind]
            if own:
                self._claim(found, block.names, own, kind, block.item.entries()[kind].item)
        without = [name for name in among if name not in found]
        if found and without:
            self._consequence(self._section(f"{kind}s"), f"no-{kind}", f"`{printable(fold(without))}` in no {kind}")
        return found

    def _owners(self, kind: AreaKind, sections: _Sections, names: Names, what: str) -> dict[str, str]:
        """What belongs to which area, by the section."""
        owner: dict[str, str] = {}
        for name, parts in sections[kind].items():
            item = self._section_entry(f"{kind}s", name).item
            self._claim(owner, sorted(self._evaluate(parts, item, names)), name, kind, item, what)
        return owner

    def _claim(
        self, owner: dict[str, str], names: Iterable[str], new: str, kind: str, where: Item, what: str = "node"
    ) -> None:
        twice = [name for name in names if owner.setdefault(name, new) != new]
        if twice:
            others = ", ".join(dict.fromkeys(owner[name] for name in twice))
            message = f"{what} `{printable(fold(twice))}` in {kind} {new} and in {kind} {others}"
            self._mistakes.add(where, f"two-{kind}s", message)

    # Groups and levels.

    def _groups(
        self, written: Mapping[str, Group], nodes: Mapping[str, None], sets: Mapping[str, Set[str]]
    ) -> dict[str, frozenset[str]]:
        groups: dict[str, frozenset[str]] = {}
        for name, group in written.items():
            item = locate(self._root, ("groups", name, "nodes"))[0]
            chosen = frozenset(self._evaluate(group.nodes, item, Names(nodes, {**sets, **groups})))
            groups[name] = chosen
        return groups

    def _check_names(self, names_of: Mapping[str, Set[str]]) -> None:
        """``@name`` must mean one thing. ``said``: rack, zone or group → its names."""
        taken: dict[str, str] = {}
        for kind, names in names_of.items():
            for name in sorted(names):
                if name == EVERYTHING:
                    message = f"`@{name}` means every node and cannot be a {kind}"
                    self._mistakes.add(self._section_entry(f"{kind}s", name), "name-taken", message)
                elif taken.setdefault(name, kind) != kind:
                    message = f"`@{name}` would be both a {taken[name]} and a {kind}"
                    self._mistakes.add(self._section_entry(f"{kind}s", name), "name-taken", message)

    def _levels(
        self, written: AnyInventory, blocks: Iterable[_Block], groups: Mapping[str, frozenset[str]]
    ) -> Iterator[Level]:
        yield Level("cluster", None, self._settings(self._root, f"cluster {written.cluster}"))
        for name, nodes in groups.items():
            settings = self._settings(self._section_entry("groups", name).item, f"group {name}")
            if settings:
                yield Level(f"group {name}", nodes, settings)
        for block in blocks:
            if block.said.settings:
                name = f"node {fold(block.names)}"
                yield Level(name, frozenset(block.names), self._settings(block.item, name))

    def _settings(self, item: Item, source: str) -> Mapping[str, Setting]:
        entry = item.entries().get("settings")
        return read_settings(entry.item if entry else None, source, self._mistakes)

    # Nodesets with a place.

    def _expand(self, text: str, where: Entry) -> tuple[str, ...]:
        try:
            return expand(text)
        except NodesetError as error:
            self._note(error, where)
            self._whole = False
            return ()

    def _evaluate(self, parts: list[str], item: Item, names: Names) -> Set[str]:
        chosen: Set[str] = frozenset()
        items = item.value if isinstance(item.value, list) else [item]
        for part, where in zip(parts, items, strict=True):
            try:
                chosen |= evaluate(part, names)
            except NodesetError as error:
                chosen |= error.valid
                self._note(error, where)
        return chosen

    def _note(self, error: NodesetError, where: Item | Entry) -> None:
        for flaw in error.flaws:
            self._read &= flaw.reference not in _UNREADABLE
            self._consequence(where, flaw.reference, flaw.message, flaw.hint)

    def _consequence(self, where: Item | Entry, reference: str, message: str, hint: str = "") -> None:
        """Note it, unless it may only be a consequence of a mistake already noted."""
        if (self._whole or reference not in _FOLLOW) and (self._read or reference not in _INCOMPLETE):
            self._mistakes.add(where, reference, message, hint)

    def _section(self, name: str) -> Item | Entry:
        return self._root.entries().get(name) or self._root.entries()["nodes"]

    def _section_entry(self, section: str, name: str) -> Entry:
        sections = self._root.entries()
        entry = sections[section].item.entries().get(name) if section in sections else None
        return entry or sections["nodes"]


def _members(owner: Mapping[str, str]) -> dict[str, frozenset[str]]:
    members: dict[str, set[str]] = {}
    for name, group in owner.items():
        members.setdefault(group, set()).add(name)
    return {group: frozenset(names) for group, names in members.items()}
