"""From a node and its settings to the proposed change, for the tests of changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rollout.core.model.plan import Change, ExcludedNode, Standing
from rollout.core.model.playbook import Policy
from rollout.core.model.settings import Setting
from rollout.core.model.snapshot import Snapshot
from rollout.kubelet.changes.changes import Proposal, change_for
from tests.kubelet import nodes
from tests.kubelet.nodes import POLICY


def decide(found: Snapshot, wanted: Mapping[str, Setting], policy: Policy = POLICY) -> Proposal | ExcludedNode:
    return change_for(found, wanted, policy, nodes.node(found.node))


def proposed(found: Snapshot, wanted: Mapping[str, Setting], policy: Policy = POLICY) -> tuple[Change, dict[str, str]]:
    """The change, and the text of each file afterwards."""
    got = decide(found, wanted, policy)
    assert isinstance(got, Proposal), got
    return got.change, {file.path: file.after.decode() for file in got.change.files}


def refused(found: Snapshot, wanted: Mapping[str, Setting], policy: Policy = POLICY) -> tuple[str, str]:
    """The reference and the reason."""
    got = decide(found, wanted, policy)
    assert isinstance(got, ExcludedNode), got
    assert got.standing is Standing.REFUSED, got
    return got.reference, got.reason


def applied_twice_is_once(found: Snapshot, wanted: Mapping[str, Setting], policy: Policy = POLICY) -> Snapshot:
    """The node after its change, on which planning again finds nothing to do."""
    got = decide(found, wanted, policy)
    assert isinstance(got, Proposal), got
    after = nodes.applied(found, got.change)
    again = decide(after, wanted, policy)
    assert isinstance(again, ExcludedNode), again
    assert again.standing is Standing.AS_WANTED, again
    return after


def pinned(wanted: Mapping[str, Setting]) -> dict[str, Setting]:
    return {name: replace(setting, pin=True) for name, setting in wanted.items()}
