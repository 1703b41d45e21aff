"""The kubelet's program is the one that runs, on PATH or not: its version is reported, and a revert under another one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollout.core.model.report import Outcome
from rollout.core.model.snapshot import Snapshot
from tests.agent.node import OLD, Node

pytestmark = pytest.mark.process


def install(node: Node, where: str, version: str = "v1.29.3") -> Path:
    """The process that runs is of this program."""
    program = node.at(where)
    node.write(where, f"#!/bin/sh\necho Kubernetes {version}\n".encode())
    program.chmod(0o755)
    link = node.at("/proc/100/exe")
    link.unlink(missing_ok=True)
    link.symlink_to(program)
    return program


def version(node: Node) -> str:
    snapshot = node.snapshot()
    assert isinstance(snapshot, Snapshot)
    return snapshot.kubelet_version


@pytest.fixture
def apart(node: Node) -> Node:
    """No kubelet is on PATH."""
    (node.bin / "kubelet").unlink()
    install(node, "/opt/bin/kubelet")
    return node


def test_a_kubelet_that_is_not_on_path(apart: Node) -> None:
    assert version(apart) == "1.29.3"


def test_the_running_kubelet_counts_before_the_one_on_path(node: Node) -> None:
    assert version(node) == "1.20.15"
    install(node, "/opt/bin/kubelet")
    assert version(node) == "1.29.3"


def test_a_process_of_an_interpreter_is_no_kubelet(node: Node) -> None:
    node.at("/proc/100/exe").symlink_to("/usr/bin/dash")
    assert version(node) == "1.20.15"


def test_after_a_replacement_the_new_program_counts(node: Node) -> None:
    program = install(node, "/opt/bin/kubelet")
    node.at("/proc/100/exe").unlink()
    node.at("/proc/100/exe").symlink_to(f"{program} (deleted)")
    assert version(node) == "1.29.3"


def test_its_change_is_reverted_without_a_running_process(apart: Node) -> None:
    assert apart.apply().healthy
    apart.confirm()
    apart.at("/proc/101/exe").unlink()
    assert apart.revert().outcome is Outcome.DONE
    assert apart.files() == OLD


def test_its_change_is_not_reverted_under_another_kubelet(apart: Node) -> None:
    assert apart.apply().healthy
    apart.confirm()
    apart.write("/opt/bin/kubelet", b"#!/bin/sh\necho Kubernetes v1.30.1 # upgraded\n")
    assert apart.revert().reference == "kubelet-changed"
    assert apart.revert(force=True).outcome is Outcome.DONE
