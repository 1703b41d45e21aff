"""The packages' unit and drop-in start the command line that is stated beside them."""

from __future__ import annotations

import pytest

from rollout.kubelet.node import packaged, unit_file

ENVIRONMENT = "/etc/default/kubelet"
VALUES = {"KUBELET_KUBEADM_ARGS": "--network-plugin=cni", "KUBELET_EXTRA_ARGS": "--v=2 --max-pods=9"}


@pytest.mark.parametrize("drop_ins", [False, True])
def test_the_drop_in_starts_the_command_line_that_is_stated(drop_ins: bool) -> None:
    config = packaged.config_flags(drop_ins=drop_ins)
    unit = {"/unit": packaged.kubelet_unit(), "/drop-in": packaged.kubeadm_drop_in(ENVIRONMENT, config)}
    started = unit_file.start(unit)
    pieces = unit_file.expand(started.command, started.file, {**started.environment, **VALUES}, {})
    stated = packaged.kubeadm_command(config, "--network-plugin=cni --v=2 --max-pods=9")
    assert [piece.text for piece in pieces] == stated.split()


def test_the_unit_starts_the_given_command_and_pauses() -> None:
    text = packaged.kubelet_unit("/opt/kubelet --v=2", "1")
    assert unit_file.start({"/unit": text}).command == "/opt/kubelet --v=2"
    assert "\nRestartSec=1\n" in text
