"""What ``init`` guesses of a source's nodes. Each guess has a line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from rollout.core.model.live import LiveNode
from rollout.core.text.yaml_source import read_yaml
from rollout.features.init.asking import drafted, nodes_of_ansible
from rollout.features.init.rules.guesses import Guessed, from_api, not_known
from tests.app.test_live_inventories import ZONE, live
from tests.app.test_load import FakeSources


def from_ansible(text: str, path: str) -> Guessed:
    return nodes_of_ansible(FakeSources(printed=text), path, "/here")


def versions(*nodes: LiveNode, kubelet: str) -> tuple[LiveNode, ...]:
    return tuple(replace(node, kubelet_version=kubelet) for node in nodes)


def inventory(guessed: Guessed) -> str:
    return drafted("c", guessed, "", "").texts["inventories/c.yaml"]


def test_labels_of_nodes_become_racks_and_zones() -> None:
    nodes = [live(f"n{number}", labels={"example.net/rack": f"r{number % 2}", ZONE: "z1"}) for number in range(1, 5)]
    guessed = from_api(versions(*nodes, kubelet="v1.33.4"))
    assert tuple(note.text for note in guessed.notes) == (
        "rack: label example.net/rack, on 4 of 4 Nodes",
        f"zone: label {ZONE}, on 4 of 4 Nodes",
        "apiServer: v1.33.4, the newest kubelet's version",
    )
    text = inventory(guessed)
    assert '"n1": {address: "10.0.0.1", labels: {"example.net/rack": "r1"' in text
    assert 'racks:\n  "r0": "n[2,4]"\n  "r1": "n[1,3]"\nzones:\n  "z1": "r[0-1]"\n' in text


def test_the_newest_version_is_by_number() -> None:
    old, new = versions(live("n1"), kubelet="v1.9.11")[0], versions(live("n2"), kubelet="v1.28.0-eks-1")[0]
    assert from_api([old, new]).api_server == "v1.28.0"
    assert from_api(versions(live("n1"), kubelet="unknown")).api_server == ""


def test_a_label_whose_values_are_no_names_is_no_rack() -> None:
    guessed = from_api([live("n1", labels={"example.net/rack": ""}), live("n2", labels={"example.net/rack": "r2"})])
    assert "rack: not known, no label shows it" in tuple(note.text for note in guessed.notes)


def test_a_node_without_an_address_gets_its_name_and_is_said() -> None:
    guessed = from_api([live("n1"), live("n2"), replace(live("n3"), addresses=())])
    assert "address: the name, for 1 Node without InternalIP: n3" in tuple(note.text for note in guessed.notes)
    assert '"n3": {labels:' in inventory(guessed)


def test_no_node_has_an_address() -> None:
    guessed = from_api([replace(live("n1"), addresses=())])
    assert '"n1"' in inventory(guessed)


def test_thousands_of_variables_are_dropped() -> None:
    variables: Mapping[str, str] = {f"secret_{number}": "hunter2" for number in range(5000)}
    hosts = ", ".join(f'"{key}": "{value}"' for key, value in variables.items())
    guessed = from_ansible(f'{{"_meta": {{"hostvars": {{"h1": {{{hosts}}}}}}}, "all": {{"hosts": ["h1"]}}}}', "hosts")
    assert "hunter2" not in inventory(guessed)
    assert tuple(note.text for note in guessed.notes)[:2] == (
        "rack: not known, no variable or group shows it",
        "zone: not known, no variable or group shows it",
    )


@pytest.mark.no_cover  # ten thousand of what a few count
def test_ten_thousand_names_that_do_not_fold_fit_the_bounds_of_a_nodeset() -> None:
    names = [f"n{number:x}x{number * 7919 % 10007:x}" for number in range(10_000)]
    nodes = [replace(live("n1"), name=name, addresses=()) for name in names]
    assert drafted("c", from_api(nodes), "v1.33.0", "").nodes == 10_000


def test_a_node_without_a_rack_or_zone_is_in_one_for_such_nodes() -> None:
    nodes = [live("n1", labels={"example.net/rack": "r1", ZONE: "z1"}), live("n2", labels={ZONE: "z1"}), live("n3")]
    guessed = from_api(nodes)
    assert "rack: `rackless` for 2 nodes without one: n[2-3]" in tuple(note.text for note in guessed.notes)
    assert "zone: `zoneless` for 1 node without one: n3" in tuple(note.text for note in guessed.notes)
    text = inventory(guessed)
    assert '"n2": {address: "10.0.0.2", zone: "z1"' in text, "rackless is in two zones, so zones are of nodes"
    assert '"n3": {address: "10.0.0.3", zone: "zoneless"' in text
    assert 'racks:\n  "r1": "n1"\n  "rackless": "n[2-3]"\n' in text


def of_ansible(**racks: object) -> Guessed:
    variables = {name: {} if rack is None else {"rack": rack} for name, rack in racks.items()}
    return from_ansible(json.dumps({"_meta": {"hostvars": variables}, "all": {"hosts": list(racks)}}), "hosts")


def test_a_rack_that_ansible_reads_as_a_number_is_a_name() -> None:
    guessed = of_ansible(n1=1, n2="r2", n3=None)
    assert guessed.notes[0].text == "rack: host variable `rack`"
    assert 'racks:\n  "1": "n1"\n  "r2": "n2"\n  "rackless": "n3"\n' in inventory(guessed)


@pytest.mark.parametrize("rack", ["row 9", True, 1.5, "", ["r1"]])
def test_a_variable_whose_values_are_no_names_is_no_rack(rack: object) -> None:
    assert of_ansible(n1="r1", n2=rack).notes[0] == not_known("rack", "no variable or group shows it")


@pytest.mark.parametrize("key", ["on", "y", "no", "null", "True", "pool"])
def test_a_label_of_a_group_may_have_any_word_as_its_name(key: str) -> None:
    found = from_api([live("n1")])
    made = replace(found, found=replace(found.found, groups={"g": ("n1",)}), labels={"g": {key: "1"}})
    root = read_yaml(inventory(made), "f").root
    assert root is not None
    read: Any = root.plain()
    assert list(read["groups"]["g"]["labels"]) == [key]
