"""Files that rollout itself wrote, and somebody may have changed: plans, snapshots, journals, memories."""

from __future__ import annotations

import json
from functools import cache

from rollout.app.plan import build_plan
from rollout.app.plan_file import read_plan
from rollout.core.plans import plan_codec, snapshot_codec
from rollout.core.plans.apply_readiness import does_lines
from rollout.core.plans.plan_json import PlanDocument
from rollout.core.plans.plan_text import plan_text
from rollout.core.presentation.pages.markup import with_texts
from rollout.core.run.journal_codec import decode_event, decode_order, encode_event, encode_order
from rollout.core.run.machine import opening
from rollout.core.run.order import apply_order
from rollout.core.run.state_codec import decode_state, encode_state
from rollout.core.text import documents
from tests.core.run.test_journal_codec import EVENTS
from tests.hostile.property import CANARY, Target
from tests.kubelet.nodes import IMAGE_PULLS, POLICY, fleet, inventory, kubeadm
from tests.orders import make_order


@cache
def _plan() -> bytes:
    found = inventory(4, per_rack=2)
    taken = fleet(
        found, {name: kubeadm(name, config=f"kind: KubeletConfiguration\n# {CANARY}\n") for name in found.nodes}
    )
    made = build_plan(found, POLICY, taken, dict.fromkeys(found.nodes, IMAGE_PULLS), tuple(found.nodes), "@all")
    return plan_codec.encode(made)


@cache
def _snapshot() -> bytes:
    found = inventory(2)
    return snapshot_codec.encode(fleet(found, {name: kubeadm(name) for name in found.nodes}))


def _read_plan(data: bytes) -> tuple[str, ...]:
    plan_codec.decode(data, "p.json")
    return ()


def _read_sealed_plan(data: bytes) -> tuple[str, ...]:
    """As if another program had sealed it: a plan with a valid digest must be consistent."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return ()
    if not isinstance(document, dict):
        return ()
    document.pop("digest", None)
    try:
        sealed = plan_codec._sealed(document)[1]  # noqa: SLF001
    except RecursionError:
        return ()
    plan = plan_codec.decode(sealed, "p.json")
    apply_order("r1", plan)
    documents.page(PlanDocument("p.json", plan))
    text = plan_text(plan)
    does_lines(plan)
    read_plan(sealed, "p.json")
    return tuple(text.replace(CANARY, "").splitlines())  # a diff shows the comments of a file


def _read_snapshot(data: bytes) -> tuple[str, ...]:
    snapshot_codec.encode(snapshot_codec.decode(data, "s.json"))
    return ()


def _read_event(data: bytes) -> tuple[str, ...]:
    encode_event(decode_event(data.decode("utf-8", "replace")))
    return ()


def _read_order(data: bytes) -> tuple[str, ...]:
    encode_order(decode_order(data.decode("utf-8", "replace")))
    return ()


def _read_end(data: bytes) -> tuple[str, ...]:
    try:
        encode_state(decode_state(data.decode("utf-8", "replace"), make_order({"a": 3})))
    except ValueError:  # its only reader replays the journal then
        return ()
    return ()


def _read_page(data: bytes) -> tuple[str, ...]:
    """Texts of nodes and of people are in it, escaped. What stands between two tags is changed, and nothing else."""
    page = data.decode("utf-8", "replace")
    assert with_texts(page, lambda text: text) == page
    with_texts(page, str.upper)
    return ()


TARGETS = (
    Target(
        "page", _read_page, lambda: (b'<!DOCTYPE html><p title="a &lt; b">rollout resume &amp; <code>a</code></p>',)
    ),
    Target("plan", _read_plan, lambda: (_plan(),), examples=60),
    Target("sealed-plan", _read_sealed_plan, lambda: (_plan(),), examples=60),
    Target("snapshot", _read_snapshot, lambda: (_snapshot(),), examples=60),
    Target("journal-event", _read_event, lambda: tuple(encode_event(event).encode() for event in EVENTS)),
    Target("journal-end", _read_end, lambda: (encode_state(opening(make_order({"a": 3}), 1, 100.0)[0]).encode(),)),
    Target("journal-order", _read_order, lambda: (encode_order(make_order({"a": 3})).encode(),)),
)
