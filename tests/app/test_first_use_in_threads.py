"""Eight threads use everything for the first time at once: they get what one thread gets alone.

Values that are made at first use are forgotten before each round. A switch interval of a microsecond changes threads between
almost any two steps.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from rollout.app.plan import build_plan
from rollout.core.model.snapshot import Snapshot
from rollout.core.plans import plan_codec, snapshot_codec
from rollout.core.plans.plan_json import PlanDocument
from rollout.core.plans.plan_text import plan_text
from rollout.core.reading.inventory_file import load_inventory
from rollout.core.reading.playbook_file import load_playbook
from rollout.core.reading.rendering import KUBELET_CONFIG, render, undefined_variables
from rollout.core.run.journal_codec import decode_event, decode_events, decode_order, encode_event, encode_order
from rollout.core.run.order import apply_order
from rollout.core.text import documents
from rollout.core.text.nodesets import expand, fold
from tests.core.run.test_journal_codec import EVENTS
from tests.kubelet import nodes
from tests.orders import make_order
from tests.places import ROOT
from tests.sampling import examples

THREADS = 8
FOUND = nodes.inventory(4, per_rack=2)
MAKERS: tuple[Callable[[str], Snapshot], ...] = (nodes.kubeadm, nodes.plain, nodes.kubeadm, nodes.plain)
TAKEN = {name: made(name) for name, made in zip(FOUND.nodes, MAKERS, strict=True)}
INVENTORY = (ROOT / "inventories/iad.yaml").read_text()
PLAYBOOK = (ROOT / "playbooks/image-pulls.yaml").read_text()
TEMPLATES = {path.name: path.read_text() for path in sorted((ROOT / "templates").glob("*.j2"))}
TEMPLATE = "{% for key in fields %}{{ key }}: {{ fields[key] | yaml }}\n{% endfor %}{{ node.name | upper }}\n"
VARIABLES = {"fields": {"maxPods": 110}, "node": {"name": "n1", "rack": "r", "zone": "z", "labels": {}}}


def _order() -> object:
    return decode_order(encode_order(make_order({"a": 3, "b": 2})))


def _events() -> object:
    written = [encode_event(event) for event in EVENTS]
    return [decode_event(text) for text in written], list(decode_events(written))


def _read() -> object:
    return load_inventory(INVENTORY, "i.yaml").digest, repr(load_playbook(PLAYBOOK, "p.yaml", TEMPLATES))


def _rendered() -> object:
    return render(TEMPLATE, "t.j2", VARIABLES), undefined_variables(TEMPLATE, "t.j2", KUBELET_CONFIG)


def _names() -> object:
    return fold(expand("a-[01-20]-b[1-3],c[7-9]"))


def _planned() -> object:
    wanted = dict.fromkeys(FOUND.nodes, nodes.IMAGE_PULLS)
    fleet = nodes.fleet(FOUND, TAKEN)
    made = build_plan(FOUND, nodes.POLICY, fleet, wanted, tuple(FOUND.nodes), "@all")
    written = plan_codec.encode(made)
    assert plan_codec.decode(written, "p.json") == made
    assert snapshot_codec.decode(snapshot_codec.encode(fleet), "s.json") == fleet
    return (
        written,
        plan_text(made),
        documents.values(PlanDocument("p.json", made)),
        encode_order(apply_order("r1", made)),
    )


@pytest.fixture(autouse=True)
def _switching_all_the_time() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def forget() -> int:
    """Forgets what functions of rollout remember; returns how many there are."""
    cached = {
        id(found): found
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] == "rollout"
        for found in vars(module).values()
        if isinstance(found, functools._lru_cache_wrapper)  # noqa: SLF001 - the type has no other name
    }
    for found in cached.values():
        found.cache_clear()
    return len(cached)


@pytest.mark.no_cover  # Python 3.11 lets no two threads begin to count at once
@pytest.mark.parametrize(
    ("work", "rounds"),
    [(_order, 60), (_events, 60), (_read, 4), (_rendered, 20), (_names, 20), (_planned, 2)],
    ids=["order", "events", "files", "template", "names", "plan"],
)
def test_eight_threads_at_first_use_get_what_one_gets(work: Callable[[], object], rounds: int) -> None:
    alone = work()
    for _ in range(examples(rounds)):
        assert forget() > 20
        together = Barrier(THREADS)

        def one(_number: int, together: Barrier = together) -> object:
            together.wait()
            return work()

        with ThreadPoolExecutor(THREADS) as pool:
            assert all(found == alone for found in pool.map(one, range(THREADS)))
