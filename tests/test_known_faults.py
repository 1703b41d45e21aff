"""A fault that more than one harness causes has one name in all of them."""

from __future__ import annotations

from collections import Counter

from rollout.known_faults import ALL, SYNONYMS, named
from rollout.lab import api, faults
from rollout.simulator.fault_words import OF_NODES
from rollout.simulator.scenario import FaultKind
from tests.chaos.draws import Kind

LAB = {*faults.KINDS, *api.KINDS}
SIMULATOR = {str(kind) for kind in FaultKind}
CHAOS = {str(kind) for kind in Kind}


def causes(harness: set[str], fault: str) -> bool:
    """Whether it has the fault, perhaps as a variant: ``link-cut for less than …``."""
    return any(kind == fault or kind.startswith((f"{fault} ", f"{fault}:")) for kind in harness)


def test_each_is_in_more_than_one_harness() -> None:
    assert [fault.name for fault in ALL if sum(causes(each, fault.name) for each in (LAB, SIMULATOR, CHAOS)) < 2] == []


def test_each_has_its_own_name_and_a_description() -> None:
    assert set(Counter(fault.name for fault in ALL).values()) == {1}
    assert all(fault.what for fault in ALL)


def test_another_word_for_a_fault_is_accepted_and_no_name() -> None:
    assert {named(word) for word in SYNONYMS} <= {fault.name for fault in ALL}
    assert not set(SYNONYMS) & (LAB | SIMULATOR | set(OF_NODES))
    assert named("reboots") == "reboot"
    assert named("refuse") == "refuse"
