"""Node objects as an inventory's nodes, and label selectors."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pytest

from rollout.app.load import load_cluster
from rollout.core.model.inventory import Endpoints, Inventory
from rollout.core.model.live import LiveNode
from rollout.core.reading import label_selectors
from rollout.errors import InputError, RemoteError
from tests.app.test_load import FakeFiles, FakeSources
from tests.cost import calls

FILE = "cluster: c\napiServer: v1.34.1\nnodesFrom: {{kubernetes: {{{source}}}}}\n{rest}"
ZONE = "topology.kubernetes.io/zone"


NO_LABELS: Mapping[str, str] = MappingProxyType({})
RACK = "example.net/rack"


def live(
    name: str,
    address: str = "",
    labels: Mapping[str, str] = NO_LABELS,
    *,
    cordoned: bool = False,
    runtime: str = "containerd://2.1.4",
) -> LiveNode:
    return LiveNode(
        name=name,
        uid=f"uid-{name}",
        created="2026-01-01T00:00:00Z",
        addresses=(("InternalIP", address or f"10.0.0.{name[1:]}"), ("Hostname", name)),
        labels=labels,
        unschedulable=cordoned,
        taints=(),
        kubelet_version="v1.34.2",
        runtime=runtime,
        os_image="Debian GNU/Linux 12 (bookworm)",
        ready="True",
    )


NODES = (
    live("n10", labels={"pool": "batch", ZONE: "z2", RACK: "r2"}),
    live("n1", labels={"pool": "batch", ZONE: "z1", RACK: "r1"}),
    live("n2", labels={"pool": "web", ZONE: "z1", RACK: "r1"}),
)


def load(
    source: str = "kubeconfig: k, rackLabel: example.net/rack", rest: str = "", nodes: tuple[LiveNode, ...] = NODES
) -> Inventory:
    files = FakeFiles({"inventories/c.yaml": FILE.format(source=source, rest=rest)})
    return load_cluster(files, FakeSources(live=nodes), "c")


def complaint(source: str, nodes: tuple[LiveNode, ...] = NODES) -> str:
    with pytest.raises(InputError) as caught:
        load(source, nodes=nodes)
    return str(caught.value)


def test_nodes_with_their_address_rack_zone_version_and_runtime() -> None:
    inventory = load()
    assert list(inventory.nodes) == ["n1", "n2", "n10"]
    node = inventory.nodes["n10"]
    assert (node.address, node.rack, node.zone, node.user, node.port) == ("10.0.0.10", "r2", "z2", None, None)
    assert node.labels == {
        "pool": "batch",
        ZONE: "z2",
        RACK: "r2",
        "kubeletVersion": "v1.34.2",
        "containerRuntime": "containerd",
        "containerRuntimeVersion": "2.1.4",
    }
    assert inventory.endpoints == Endpoints(kubeconfig="k")


def test_a_registry_is_a_label_that_the_file_names() -> None:
    nodes = (*NODES[:2], live("n3", labels={"example.net/registry": "mirror.example.net", ZONE: "z1"}))
    inventory = load("kubeconfig: k, registryLabel: example.net/registry", "registry: r.example.net\n", nodes)
    assert [node.registry for node in inventory.nodes.values()] == [
        "r.example.net",
        "mirror.example.net",
        "r.example.net",
    ]


def test_the_selector_and_the_address_chosen() -> None:
    inventory = load("kubeconfig: k, selector: 'pool=batch,!spot', address: Hostname")
    assert {name: node.address for name, node in inventory.nodes.items()} == {"n1": "n1", "n10": "n10"}
    assert {node.rack for node in inventory.nodes.values()} == {"none"}


def test_kubeconfig_and_context_default_to_the_endpoints() -> None:
    sources = FakeSources(live=NODES)
    text = FILE.format(source="selector: pool", rest="endpoints: {kubeconfig: k, context: rno}\n")
    load_cluster(FakeFiles({"inventories/c.yaml": text}), sources, "c")
    assert sources.asked == [("k", "rno")]


def test_another_label_leaves_the_digest_and_another_node_does_not() -> None:
    digest = load().digest
    upgraded = live("n2", labels={"pool": "x", ZONE: "z1", RACK: "r1"}, runtime="containerd://2.2.0")
    assert load(nodes=(*NODES[:2], upgraded)).digest == digest
    assert load(nodes=NODES[::-1]).digest == digest
    moved = live("n2", labels={"pool": "web", ZONE: "z2", RACK: "r2"})
    assert load(nodes=(*NODES[:2], moved)).digest != digest, "workers of another region reach it"
    assert load(nodes=NODES[1:]).digest != digest


@pytest.mark.parametrize(
    ("source", "nodes", "said"),
    [
        ("kubeconfig: k", (), "nodes from the Kubernetes API: it has no nodes [no-nodes]"),
        ("kubeconfig: k, selector: pool=none", NODES, "nodes from the Kubernetes API: none of 3 nodes matches `pool=none` [no-nodes]"),
        ("kubeconfig: k, address: ExternalIP", NODES[:1], "nodes from the Kubernetes API: n10 has no ExternalIP among its addresses (InternalIP, Hostname) (choose another with `address:`) [no-address]"),
        ("kubeconfig: k, rackLabel: rakc", NODES, "nodes from the Kubernetes API: no node has a rack: none has `rakc` [no-rack]"),
        ("kubeconfig: k", (live("n1", "10.0.0.1; reboot"),), "nodes from the Kubernetes API: n1: `address`: `10.0.0.1; reboot` is not a host name or address; `{name}` stands for the node's name [bad-address]"),
        ("kubeconfig: k", (live("n1", labels={ZONE: "EU West"}),), "nodes from the Kubernetes API: n1: its zone `EU West` is not a name; names are letters, digits, `-`, `_` and `.` [bad-name]"),
        ("kubeconfig: k", (*NODES, live("n11", labels={ZONE: ""})), "inventories/c.yaml:3:12: `n11` in no zone [no-zone]"),
        ("kubeconfig: k", (*NODES, live("n11")), "inventories/c.yaml:3:12: `n11` in no zone [no-zone]"),
        ("kubeconfig: k, selector: 'a=b=c'", NODES, "inventories/c.yaml:3:51: `selector`: `a=b=c` is not a term of a label selector [bad-selector]"),
        ("selector: pool", NODES, "inventories/c.yaml:3:12: neither `nodesFrom` nor `endpoints` has a `kubeconfig` [no-kubeconfig]"),
        ("kubeconfig: k, addres: Hostname", NODES, "inventories/c.yaml:3:41: unknown key `addres` (did you mean `address`?) [unknown-key]"),
    ],
)  # fmt: skip
def test_mistakes_are_named(source: str, nodes: tuple[LiveNode, ...], said: str) -> None:
    assert complaint(source, nodes) == said


def test_an_unreachable_api_server_is_an_input_error() -> None:
    sources = FakeSources(trouble=RemoteError("forbidden", "nodes is forbidden", hint="give it the right"))
    text = FILE.format(source="kubeconfig: k", rest="")
    with pytest.raises(InputError) as caught:
        load_cluster(FakeFiles({"inventories/c.yaml": text}), sources, "c")
    said = "c: nodes from the Kubernetes API of k: nodes is forbidden (give it the right) [forbidden]"
    assert (str(caught.value), caught.value.exit_code) == (said, 2)


def test_an_error_names_the_kubeconfig_that_was_used_instead_of_the_inventorys() -> None:
    sources = FakeSources(trouble=RemoteError("forbidden", "nodes is forbidden"))
    text = FILE.format(source="kubeconfig: k", rest="")
    with pytest.raises(InputError) as caught:
        load_cluster(FakeFiles({"inventories/c.yaml": text}), sources, "c", "mine")
    assert str(caught.value) == "c: nodes from the Kubernetes API of mine: nodes is forbidden [forbidden]"


def in_a_cloud(count: int) -> tuple[LiveNode, ...]:
    return tuple(
        live(
            f"ip-10-{at // 250}-{at % 250}-7.eu-west-1.compute.internal",
            f"10.{at // 250}.{at % 250}.7",
            {RACK: f"r{at % 40}", ZONE: "z"},
        )
        for at in range(count)
    )


def test_two_thousand_nodes_with_cloud_names_cost_no_more_per_node() -> None:
    """Such names fold badly: they differ in several numbers."""
    words = "kubeconfig: k, rackLabel: example.net/rack"
    assert calls(lambda: load(words, nodes=in_a_cloud(2000))) < 5 * calls(lambda: load(words, nodes=in_a_cloud(500)))
    inventory = load(words, nodes=in_a_cloud(2000))
    assert len(inventory.nodes) == 2000
    assert len(inventory.nodesets["r7"]) == 50


LABELS = {"pool": "batch", "gpu": "", "zone": "a"}


@pytest.mark.parametrize(
    ("selector", "holds"),
    [
        ("", True),
        ("pool=batch", True),
        ("pool==batch,zone = a", True),
        ("pool!=batch", False),
        ("tier!=web", True),
        ("gpu", True),
        ("gpu=", True),
        ("!gpu", False),
        ("!spot, gpu", True),
        ("zone in (a, b)", True),
        ("zone in (b)", False),
        ("zone notin (b,c),pool", True),
        ("tier notin (b)", True),
    ],
)
def test_selectors_match_as_in_the_api_server(selector: str, holds: bool) -> None:
    assert label_selectors.matches(label_selectors.parse(selector), LABELS) is holds


@pytest.mark.parametrize("selector", ["a b", "a=b=c", "a in b", "in (a)", "a in (b c)", ",", "a,,b", "-a", "a=/"])
def test_invalid_selectors(selector: str) -> None:
    with pytest.raises(label_selectors.SelectorError):
        label_selectors.parse(selector)
