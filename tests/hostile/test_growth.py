"""Readers of people's files: four times the file is about four times the work, counted in calls."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from rollout.core.reading import ansible_inventory
from rollout.core.reading.inventory_draft import draft_of
from rollout.core.reading.inventory_file import load_inventory
from rollout.core.reading.label_selectors import parse
from rollout.core.reading.node_sources import FromAnsible
from rollout.core.reading.playbook_file import load_playbook
from rollout.core.text import json_text
from rollout.core.text.nodesets import expand, fold
from rollout.core.text.yaml_source import read_yaml
from rollout.errors import InputError
from tests.cost import calls

SMALL, LARGE = 100, 400
MOST = 6.5
"""Linear is 4, with a logarithm 5; the square is 16."""

DRAFT = draft_of(
    json.dumps({"cluster": "c", "apiServer": "v1.34.1", "nodesFrom": {"ansible": {"path": "x", "rack": "rack"}}}),
    "c.yaml",
)


def _ansible(document: object) -> None:
    assert isinstance(DRAFT.source, FromAnsible)
    ansible_inventory.found_nodes(ansible_inventory.read_hosts(json.dumps(document), "ansible"), DRAFT.source)


def _hosts(count: int) -> dict[str, object]:
    return {f"n{at}": {"rack": f"r{at % 7}"} for at in range(count)}


def _groups(count: int) -> object:
    groups = {f"g{at}": {"hosts": [f"n{at}"]} for at in range(count)}
    return {"_meta": {"hostvars": _hosts(count)}, **groups}


def _inventory(count: int) -> str:
    racks = "\n".join(f'  r{at}: "n-{at:04d}-[01-03]"' for at in range(count))
    groups = "\n".join(f'  g{at}: {{nodes: "n-{at:04d}-01", settings: {{maxPods: 60}}}}' for at in range(count))
    return f'cluster: c\napiServer: "1.29"\nssh: {{user: a}}\nracks:\n{racks}\ngroups:\n{groups}\n'


def _playbook(count: int) -> str:
    waves = "\n".join(f"  - {{name: w{at}, nodes: '@all'}}" for at in range(count))
    return f"name: p\nsettings: {{maxPods: 60}}\nwaves:\n{waves}\n"


READERS: dict[str, Callable[[int], object]] = {
    "ansible groups": lambda count: _ansible(_groups(count)),
    "ansible unknown keys": lambda count: _ansible(
        {"_meta": {"hostvars": {}}, "g": {f"k{at}": 1 for at in range(count)}}
    ),
    "inventory": lambda count: load_inventory(_inventory(count), "i.yaml"),
    "inventory with mistakes": lambda count: load_inventory(_inventory(count).replace("maxPods", "maxPodz"), "i.yaml"),
    "playbook": lambda count: load_playbook(_playbook(count), "p.yaml", {}),
    "playbook with unknown keys": lambda count: load_playbook(
        "name: p\nsettings: {maxPods: 60}\n" + "".join(f"k{at}: 1\n" for at in range(count)), "p.yaml", {}
    ),
    "yaml lists": lambda count: read_yaml("a:\n" + "- [1, 2, 3]\n" * count, "f.yaml"),
    "yaml keys twice": lambda count: read_yaml("a: 1\n" * count, "f.yaml"),
    "yaml aliases": lambda count: read_yaml(
        "a: &x [1, 2, 3]\n" + "".join(f"b{at}: *x\n" for at in range(count)), "f.yaml"
    ),
    "nodesets": lambda count: fold(expand(",".join(f"n{at}-[1-3]" for at in range(count)))),
    "selectors": lambda count: parse(",".join(f"k{at}=v" for at in range(count))),
}


@pytest.mark.parametrize("name", READERS)
def test_four_times_the_file_is_about_four_times_the_work(name: str) -> None:
    _work(name, 3)  # what is made at first use
    small, large = _work(name, SMALL), _work(name, LARGE)
    assert large < MOST * small, (small, large)


def _work(name: str, count: int) -> int:
    def read() -> None:
        try:
            READERS[name](count)
        except (InputError, ValueError):
            return

    return calls(read)


class _Key(str):
    """Counts comparisons, which are no calls where C makes them."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        _Key.compared += 1
        return str(self) == other

    __hash__ = str.__hash__


def _compared(count: int) -> int:
    pairs = [(_Key(f"k{at}"), None) for at in range(count)]
    _Key.compared = 0
    with pytest.raises(ValueError, match="duplicate key"):
        json_text.unique([*pairs, (_Key(pairs[-1][0]), None)])
    return _Key.compared


def test_a_duplicate_key_is_found_without_comparing_all_with_all() -> None:
    assert _compared(4000) < MOST * max(1, _compared(1000))


def test_a_chain_of_groups_that_would_take_the_square_of_its_length_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ansible_inventory, "MOST_PLACES", 1000)
    chain = {f"g{at}": {"hosts": [f"n{at}"], "children": [f"g{at + 1}"]} for at in range(100)}
    with pytest.raises(InputError, match="more than 1,000 hosts together"):
        _ansible({"_meta": {"hostvars": _hosts(101)}, **chain})
