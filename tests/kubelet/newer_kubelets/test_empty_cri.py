"""The empty runtime's few messages, as encoded by protobuf, and the comparison of a recording with it."""

from __future__ import annotations

import pytest

from rollout.kubelet import versions
from rollout.kubelet.configuration.outcome import MessageLevel
from rollout.kubelet.configuration.startup import outcome
from tests.kubelet.newer_kubelets.cases import Newer
from tests.kubelet.newer_kubelets.compared import LATER, differences
from tests.kubelet.newer_kubelets.empty_cri import ANSWERS, field, switched_on
from tests.kubelet.real_kubelet.corners.case import HEAD


def test_messages_are_encoded_as_in_protobuf() -> None:
    assert switched_on(1) == b"\x08\x01"
    assert field(2, "v1") == b"\x12\x02v1"
    assert ANSWERS["Version"] == b'\n\x050.1.0\x12\x05empty\x1a\x051.0.0"\x02v1'
    with pytest.raises(ValueError, match="one byte"):
        field(1, "x" * 128)


def test_with_a_runtime_every_difference_counts() -> None:
    """A kubelet without a runtime never reaches the later checks; one with a runtime does."""
    version = versions.known("1.30.14")
    ours = outcome(version, Newer("x", f"{HEAD}cpuManagerPolicyOptions: {{a: 'b'}}\n".encode()).sources)
    assert [message.reference for message in ours.messages if message.level is MessageLevel.FATAL] == [LATER]
    started = {"taken": True, "effective": None}
    assert list(differences(started, {"plain": {}}, ours)) == []
    (said,) = differences(started, {"plain": {}, "runtime": True}, ours)
    assert said.startswith("the kubelet starts; rollout: ")
