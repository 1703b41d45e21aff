"""``nodesFrom``: nodes from another source, an Ansible inventory or the API server. Its shape, key by key."""

from __future__ import annotations

from typing import Annotated, Literal, Self, assert_never

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from rollout.core.model.areas import AreaKind
from rollout.core.reading import label_selectors
from rollout.core.reading.schema_words import one_of
from rollout.core.reading.validation import Written, wrong
from rollout.core.text.terminal import printable


def _selector(value: object) -> str:
    try:
        if isinstance(value, str):
            label_selectors.parse(value)
            return value
    except label_selectors.SelectorError as error:
        raise wrong("bad-selector", f"KEY: {printable(str(error), 120)}") from None
    raise wrong("bad-selector", "KEY must be a label selector such as pool=batch,!spot")


Selector = Annotated[str, BeforeValidator(_selector)]
Text = Annotated[str, Field(min_length=1, max_length=4096)]


class FromAnsible(Written):
    """An Ansible inventory: a program that prints the answer to ``--list``, or any input of ``ansible-inventory``.

    ``name`` is a host variable with the name of the host's Node, if that is another. ``rack`` and ``zone`` are host variables. ``rackGroups`` and ``zoneGroups`` are the beginnings of the names of
    groups that are racks or zones. ``labels`` is a host variable that contains a map, ``registry`` one with the
    registry that a host pulls from. ``path`` is relative to the inventory file's folder.
    """

    path: Text
    group: Text | None = None
    name: Text | None = None
    rack: Text | None = None
    rack_groups: Text | None = Field(None, alias="rackGroups")
    zone: Text | None = None
    zone_groups: Text | None = Field(None, alias="zoneGroups")
    labels: Text | None = None
    registry: Text | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if any(variable and beginning for variable, beginning in map(self.area, AreaKind)):
            raise wrong("two-ways", "KEY: a rack (or zone) is a variable or a group, not both")
        return self

    def area(self, kind: AreaKind) -> tuple[str | None, str | None]:
        """The variable that gives a host's area of this kind, or the beginning of the names of its groups."""
        match kind:
            case AreaKind.RACK:
                return self.rack, self.rack_groups
            case AreaKind.ZONE:
                return self.zone, self.zone_groups
            case _:
                assert_never(kind)


class FromKubernetes(Written):
    """The Node objects of a cluster. ``kubeconfig`` and ``context`` default to those of ``endpoints``."""

    kubeconfig: Text | None = None
    context: Text | None = None
    selector: Selector = ""
    rack_label: Text | None = Field(None, alias="rackLabel")
    zone_label: Text = Field("topology.kubernetes.io/zone", alias="zoneLabel")
    registry_label: Text | None = Field(None, alias="registryLabel")
    address: Literal["InternalIP", "Hostname", "ExternalIP", "InternalDNS", "ExternalDNS"] = "InternalIP"


class NodesFrom(Written):
    """One of ``ansible`` and ``kubernetes``."""

    model_config = ConfigDict(json_schema_extra=one_of("ansible", "kubernetes"))

    ansible: FromAnsible | None = None
    kubernetes: FromKubernetes | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.ansible is None) == (self.kubernetes is None):
            raise wrong("bad-source", "KEY must be one of ansible or kubernetes")
        return self
