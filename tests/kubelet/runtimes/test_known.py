"""The runtimes behind their closed type: found by label and by socket, and named in their own modules only."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

import rollout
from rollout.core.model.inventory import Node
from rollout.kubelet import fields, versions
from rollout.kubelet.kinds import Installed, NodeKind, model_node
from rollout.kubelet.node import sources
from rollout.kubelet.runtimes.description import Runtime
from rollout.kubelet.runtimes.known import KNOWN, describe, labelled, runtime_of

NAMED = re.compile(rf"\bRuntime\.(?:{'|'.join(known.runtime.name for known in KNOWN)})\b")
OWN = Path(rollout.__file__).parent / "kubelet" / "runtimes"


def found(runtime: Runtime, minor: int) -> Runtime:
    """The runtime that is found on a kubelet with this runtime's usual flags."""
    kind = NodeKind(minor, f"1.{minor}.0", runtime, describe(runtime).usual_version, Installed.PLAIN)
    return runtime_of(sources.find(model_node(kind), versions.known(kind.version), Node("n", "n", "r", "z")))


@pytest.mark.parametrize("minor", fields.known_minors())
def test_a_runtime_is_found_by_its_own_label_and_its_own_socket(minor: int) -> None:
    for known in KNOWN:
        if known.built_in_until is None or known.contained_in(minor):
            assert found(known.runtime, minor) is known.runtime
            assert {labelled(label, minor) for label in known.labels} == {known.runtime}


def test_a_node_without_a_label_has_the_usual_runtime_of_its_kubelet() -> None:
    assert [labelled("", minor) for minor in (23, 24)] == [Runtime.DOCKERSHIM, Runtime.CONTAINERD]
    assert labelled("docker", 24) is Runtime.CRI_DOCKERD


def test_a_description_does_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        describe(Runtime.CRIO).program = "other"  # type: ignore[misc]


def test_no_other_module_names_a_runtime() -> None:
    modules = [path for path in OWN.parents[1].rglob("*.py") if OWN not in path.parents]
    assert len(modules) > 100
    assert [path.name for path in modules if NAMED.search(path.read_text())] == []
