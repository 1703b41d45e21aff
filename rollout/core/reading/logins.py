"""How to log in to a node: what is said of it, before its groups' word, before the cluster's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rollout.core.reading.inventory_written import Attributes, Group, Ssh


@dataclass(frozen=True, slots=True)
class Login:
    """``None``: nobody says; ``ssh_config`` decides on user and port, the user on sudo."""

    user: str | None = None
    port: int | None = None
    sudo: bool | None = None


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
            self._merged[key] = _merge((self._cluster, *(self._groups[group].ssh for group in groups), own))
        return self._merged[key]


def _merge(said: Iterable[Ssh | Attributes]) -> Login:
    login = Login()
    for one in said:
        login = Login(
            one.user if one.user is not None else login.user,
            one.port if one.port is not None else login.port,
            one.sudo if one.sudo is not None else login.sudo,
        )
    return login
