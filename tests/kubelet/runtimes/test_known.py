"""The runtimes behind their closed type: found by label and by socket, and named in their own packages only."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

import rollout
from rollout.core.model.inventory import Node
from rollout.kubelet import fields, versions
from rollout.kubelet.kinds import Installed, NodeKind, model_node
from rollout.kubelet.node import sources
from rollout.kubelet.runtimes.description import Runtime
from rollout.kubelet.runtimes.known import DAEMONS, KNOWN, describe, labelled, runtime_of

OWN = Path(rollout.__file__).parent / "kubelet" / "runtimes"
NAMES = {
    *(known.runtime.name for known in KNOWN),
    *(known.runtime.value for known in KNOWN),
    *(daemon.program for daemon in DAEMONS if daemon.program != "docker"),
    *(daemon.name for daemon in DAEMONS if daemon.name != "docker"),
    *("docker.service", "dockerd", "daemon.json"),
}
NAMED = re.compile(rf"(?<![a-z])(?:{'|'.join(sorted(NAMES))})(?![a-z])", re.IGNORECASE)
EXAMPLES = {
    ("features/explain/command.py", "Show only what holds for this runtime, such as crio or containerd-1.7.24."),
    ("features/explain/command.py", "; with a version: containerd-1.7.24"),
    ("features/diagnose/asking/from_cluster.py", "journalctl -u kubelet -u containerd -o short-iso"),
    ("features/diagnose/rules/timed_pulls.py", "/etc/containerd/certs.d"),
    ("kubelet/node/rancher.py", "containerd"),
}
"""Module and text: examples for people, where the tool ``ctr`` finds mirrors, and a kubelet's flag ``--containerd``."""
FORMS = frozenset({"container_creation.py", "messages.py", "pull_errors.py"})
"""Modules of diagnose with the words of errors, as their programs print them: one error names several programs."""
COPIED = "parameter_table.py"
"""What ``make declared`` copies from the declarations of the commands."""


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


def texts(path: Path) -> Iterator[str]:
    """The names and the texts in a module's code. Its docstrings and comments may have examples."""
    nodes = tuple(ast.walk(ast.parse(path.read_text())))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


@pytest.mark.no_cover
def test_no_other_module_names_a_runtime() -> None:
    top = OWN.parents[1]
    forms = {top / "features/diagnose/rules" / name for name in FORMS}
    modules = [path for path in top.rglob("*.py") if OWN not in path.parents and path.name != COPIED]
    assert forms < set(modules)
    assert len(modules) > 100
    modules = [path for path in modules if path not in forms]
    found = {(str(path.relative_to(top)), text) for path in modules for text in texts(path) if NAMED.search(text)}
    assert found == EXAMPLES


def test_no_package_of_a_runtime_imports_that_of_another() -> None:
    """The contract in pyproject.toml has their descriptions; this has every module. dockerd is no runtime: two are above it."""
    packages = {path.parent.name for path in OWN.glob("*/description.py")}
    assert len(packages) == len(KNOWN)
    found = {
        (path.parent.name, imported)
        for path in OWN.glob("*/*.py")
        for imported in re.findall(r"kubelet\.runtimes\.(\w+)", path.read_text())
        if imported in packages - {path.parent.name}
    }
    assert found == set()
