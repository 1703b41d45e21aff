"""Other owners of a node's configuration are a refusal; managers and pending reboots are remarks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.snapshot import Snapshot
from rollout.kubelet.node import fitness, managers
from tests.kubelet.nodes import kubeadm

GUARD = 120.0


def node(**facts: str) -> Snapshot:
    plain = kubeadm()
    return replace(plain, facts={**plain.facts, **{key.replace("_", "-"): text for key, text in facts.items()}})


def test_a_node_without_another_owner_is_fit_and_has_no_remark() -> None:
    assert fitness.refusal(node(os="debian"), GUARD) is None
    assert managers.remarks(node(os="debian")) == ()


@pytest.mark.parametrize(
    ("facts", "reference", "instead"),
    [
        ({"manager_mco": "/etc/machine-config-daemon/currentconfig"}, "managed-by-mco", "KubeletConfig"),
        ({"os": "talos"}, "managed-by-talos", "machine config"),
        ({"os": "bottlerocket"}, "managed-by-bottlerocket", "apiclient"),
    ],
)
def test_a_node_with_another_owner_of_the_kubelets_configuration_is_refused(
    facts: dict[str, str], reference: str, instead: str
) -> None:
    refused = fitness.refusal(node(**facts), GUARD)
    assert refused is not None
    assert refused[0] == reference
    assert instead in refused[1]
    assert "found: /etc/" in refused[1]


def test_an_owner_is_reported_before_its_consequences() -> None:
    """Talos has no systemd; that is not the reason why the node is left alone."""
    plain = node(os="talos")
    refused = fitness.refusal(replace(plain, machine_id="", measurement=replace(plain.measurement, unit=None)), GUARD)
    assert refused is not None
    assert refused[0] == "managed-by-talos"


@pytest.mark.parametrize("name", ["puppet", "chef", "ansible-pull", "salt", "cfengine"])
def test_a_manager_is_reported_with_its_marks_and_the_node_is_not_refused(name: str) -> None:
    found = node(**{f"manager_{name}": "x.service:enabled:active"})
    assert fitness.refusal(found, GUARD) is None
    ((reference, text),) = managers.remarks(found)
    assert reference == f"may-be-undone-by-{name}"
    assert "x.service:enabled:active" in text


def test_a_disabled_puppet_is_reported_as_disabled() -> None:
    ((_, text),) = managers.remarks(node(manager_puppet="puppet.service /x/agent_disabled.lock"))
    assert "disabled" in text


def test_several_and_a_pending_reboot() -> None:
    found = node(manager_puppet="cron", manager_salt="/etc/salt/minion", reboot_pending="/run/reboot-required")
    references = [reference for reference, _ in managers.remarks(found)]
    assert references == ["may-be-undone-by-puppet", "may-be-undone-by-salt", "reboot-pending"]


def test_other_names_of_a_file_are_a_remark() -> None:
    ((reference, text),) = managers.remarks(node(hard_links="/var/lib/kubelet/config.yaml"))
    assert reference == "hard-linked"
    assert text.startswith("/var/lib/kubelet/config.yaml: ")
