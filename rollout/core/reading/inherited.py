"""What a node has from its groups: labels and a registry. Groups in file order, of which later ones win; then its own word."""

from __future__ import annotations

from collections.abc import Mapping

from rollout.core.reading.inventory_written import AnyInventory, Attributes

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
        """``(its groups, its labels, its registry)``; a registry that nobody says is ``""``."""
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
        return next((said for said in (*nearest, self._written.registry) if said is not None), "")
