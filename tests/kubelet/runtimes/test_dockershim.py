"""dockerd's daemon.json, below dockershim."""

from __future__ import annotations

from rollout.core.model.playbook import Disruption
from rollout.kubelet.runtimes.description import Runtime
from tests.kubelet.nodes import regular
from tests.kubelet.runtimes.nodes import (
    DAEMON,
    changed,
    node,
    refused,
    wanted,
    with_service,
)

DOWNLOADS = wanted(maxConcurrentDownloads=6)


def test_daemon_json_keeps_its_order_and_spacing_and_dockerd_gets_sighup() -> None:
    text = '{\n    "log-driver": "journald",\n    "max-concurrent-downloads": 3,\n    "live-restore": true\n}\n'
    found = changed(node(Runtime.DOCKERSHIM, "20.10.24", regular(DAEMON, text)), Runtime.DOCKERSHIM, DOWNLOADS)
    assert found.files[0].after.decode() == text.replace("3", "6")
    assert (found.units, found.hangups, found.disruption) == ((), ("docker.service",), Disruption.RELOAD)
    assert found.notes == (f"maxConcurrentDownloads raises the limit: 3 ({DAEMON}) → 6",)


def test_dockerd_does_not_start_with_the_option_twice() -> None:
    command = "/usr/bin/dockerd --max-concurrent-downloads=10"
    found = with_service(
        node(Runtime.DOCKERSHIM, "20.10.24"), "docker.service", f"[Service]\nExecStart={command}\n", command
    )
    error = refused(found, Runtime.DOCKERSHIM, DOWNLOADS)
    assert error.reference == "dockerd-flag"
    assert "from ExecStart in /lib/systemd/system/docker.service" in str(error)


def test_a_wanted_default_of_dockerd_needs_no_change() -> None:
    found = changed(node(Runtime.DOCKERSHIM, "20.10.24"), Runtime.DOCKERSHIM, wanted(maxConcurrentDownloads=3))
    assert (found.files, found.hangups) == ((), ())
    assert "dockerd's default" in found.notes[0]


def test_a_number_in_quotes_is_no_value_in_force() -> None:
    """dockerd does not read such a file again, nor starts with it: `cannot unmarshal string`."""
    found = node(Runtime.DOCKERSHIM, "20.10.24", regular(DAEMON, '{"max-concurrent-downloads": "6"}'))
    (edit,) = changed(found, Runtime.DOCKERSHIM, DOWNLOADS).files
    assert edit.after == b'{"max-concurrent-downloads": 6}'
