"""The inventory file's shape, key by key. ``inventory_file`` checks the keys together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from rollout.core.reading import schema_words
from rollout.core.reading.condition_keys import WrittenConditions
from rollout.core.reading.gate_keys import Url
from rollout.core.reading.node_sources import NodesFrom
from rollout.core.reading.validation import Written, wrong
from rollout.core.reading.value_types import Labels, Name, NodeName, Registry
from rollout.core.text.terminal import printable

_VERSION = re.compile(r"v?1\.[0-9]{1,3}(?:\.[0-9]{1,3})?")
_TENANT = re.compile(r"[A-Za-z0-9!._*'()|-]{1,150}")
_HOST = r"(?:[A-Za-z0-9]|\{name\})(?:[A-Za-z0-9._-]|\{name\})*"
_NUMBERS = r"(?=[^:]*:[^:]*:)(?:[0-9A-Fa-f:.]|\{name\})+(?:%[A-Za-z0-9._-]+)?"
_ADDRESS = re.compile(rf"{_HOST}|{_NUMBERS}|\[{_NUMBERS}\]")
"""A host name, an IPv4 or IPv6 address: without a user, a port, or the parts of a URL."""
_MORE_THAN_ADDRESS = (
    (re.compile(r"[a-z]+://.*"), "write the host alone; `user` and `port` are keys of their own"),
    (re.compile(r"[^@]*@.*"), "`user` is a key of its own"),
    (re.compile(rf"(?:{_HOST}|\[.*\]):[0-9]+"), "`port` is a key of its own"),
)
_LONGEST_ADDRESS = 300
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9._-]{0,63}")


def _version(value: object) -> str:
    if not isinstance(value, str):
        raise wrong("bad-version", "KEY must be text such as v1.23.17", "as a number, 1.20 would turn into 1.2")
    if not _VERSION.fullmatch(value):
        raise wrong(
            "bad-version", f"KEY: `{printable(value, 40)}` is not a Kubernetes version; write for example v1.23.17"
        )
    return value


def _address(value: object) -> str:
    if (
        not isinstance(value, str)
        or len(value) > _LONGEST_ADDRESS
        or not _ADDRESS.fullmatch(value)
        or not _is_number(value)
    ):
        raise wrong(
            "bad-address",
            f"KEY: `{printable(str(value), 60)}` is not a host name or address; `{{name}}` stands for the node's name",
            next((hint for form, hint in _MORE_THAN_ADDRESS if form.fullmatch(str(value))), ""),
        )
    return value


def _is_number(address: str) -> bool:
    """Whether an address in numbers is one that exists; true for names."""
    if "{name}" in address or (":" not in address and address.strip("0123456789.")):
        return True
    try:
        ip_address(address.strip("[]"))
    except ValueError:
        return False
    return True


def _tenant(value: object) -> str:
    if not isinstance(value, str) or not _TENANT.fullmatch(value):
        raise wrong("bad-tenant", f"KEY: `{printable(str(value), 60)}` is not a tenant for the header X-Scope-OrgID")
    return value


def _user(value: object) -> str:
    if not isinstance(value, str) or not _USER.fullmatch(value):
        raise wrong("bad-user", f"KEY: `{printable(str(value), 60)}` is not a user name")
    return value


def _nodeset(value: object) -> list[str]:
    parts = [part for part in (value if isinstance(value, list) else [value]) if isinstance(part, str)]
    if not parts or (isinstance(value, list) and len(parts) < len(value)):
        raise wrong("wrong-type", "KEY must be a nodeset such as tess-node-[0001-0060], or a list of them")
    return parts


User = Annotated[str, BeforeValidator(_user), schema_words.text(_USER.pattern)]
Address = Annotated[
    str, BeforeValidator(_address), schema_words.text(_ADDRESS.pattern, "{name} in it stands for the node's name.")
]
Version = Annotated[str, BeforeValidator(_version), schema_words.text(_VERSION.pattern, "", "v1.34.2")]
Tenant = Annotated[str, BeforeValidator(_tenant), schema_words.text(_TENANT.pattern, "", "team-a")]
Port = Annotated[int, Field(ge=1, le=65535)]
Nodeset = Annotated[list[str], BeforeValidator(_nodeset), schema_words.NODESET]
Settings = Annotated[dict[str, Any], schema_words.SETTINGS]  # read with places by value_types.read_settings


class Ssh(Written):
    """The login, where ``ssh_config`` does not set it. If ``sudo`` is not set, every user except root becomes root by ``become``."""

    user: User | None = None
    port: Port | None = None
    sudo: bool | None = None
    become: Literal["sudo", "doas"] | None = None


class WrittenEndpoints(Written):
    """The servers that gates query, and the credentials. Files are on the machine where rollout runs."""

    kubeconfig: str = ""
    context: str = ""
    prometheus: Url | None = None
    alerts: Url | None = Field(None, alias="alertmanager")
    token_file: str = Field("", alias="tokenFile")
    ca_file: str = Field("", alias="caFile")
    tenant: Tenant | None = None
    cert_file: str = Field("", alias="certFile")
    key_file: str = Field("", alias="keyFile")


class Attributes(Written):
    """The keys of one node, or of all nodes of a nodeset."""

    address: Address | None = None
    rack: Name | None = None
    zone: Name | None = None
    labels: Labels = Field(default_factory=dict)
    settings: Settings = Field(default_factory=dict)
    user: User | None = None
    port: Port | None = None
    sudo: bool | None = None
    become: Literal["sudo", "doas"] | None = None
    registry: Registry | None = None


class ListedNode(Attributes):
    """One entry of a list of single nodes."""

    name: NodeName


class Group(Written):
    """Nodes with common labels, settings or registry. ``nodes`` can refer to racks, zones and the groups above it."""

    nodes: Nodeset
    ssh: Ssh = Field(default_factory=Ssh)
    labels: Labels = Field(default_factory=dict)
    settings: Settings = Field(default_factory=dict)
    registry: Registry | None = None


class _Cluster(Written):
    stand_ins: ClassVar[Mapping[str, Any]] = {"cluster": "cluster", "apiServer": "v1.0", "nodes": {}}

    cluster: Name
    api_server: Version = Field(alias="apiServer")
    playbook: Name | None = None
    ssh: Ssh = Field(default_factory=Ssh)
    endpoints: WrittenEndpoints = Field(default_factory=lambda: WrittenEndpoints.model_validate({}))
    settings: Settings = Field(default_factory=dict)
    registry: Registry | None = None
    racks: dict[Name, Nodeset] = Field(default_factory=dict)
    zones: dict[Name, Nodeset] = Field(default_factory=dict)
    groups: dict[Name, Group] = Field(default_factory=dict)


class _Common(WrittenConditions, _Cluster):  # pydantic lists the fields of the last base first
    controller_ssh: list[Name] = Field(default_factory=list, alias="controllerSsh")


class FoldedInventory(_Common):
    """Nodes by nodeset."""

    nodes: dict[str, Attributes | None]


class ListedInventory(_Common):
    """Nodes one by one."""

    nodes: list[ListedNode]


class ElsewhereInventory(_Common):
    """Nodes from another source."""

    stand_ins: ClassVar[Mapping[str, Any]] = {"cluster": "cluster", "apiServer": "v1.0"}

    nodes_from: NodesFrom = Field(alias="nodesFrom")


AnyInventory = FoldedInventory | ListedInventory
