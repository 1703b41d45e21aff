"""cri-dockerd's flag: in a drop-in or an environment file, and what dockerd does for it."""

from __future__ import annotations

import pytest

from rollout.core.model.plan import Change
from rollout.core.model.playbook import Disruption
from rollout.core.model.snapshot import Snapshot
from rollout.kubelet.runtimes.description import Runtime
from tests.kubelet.nodes import regular
from tests.kubelet.runtimes.nodes import (
    applied,
    changed,
    node,
    refused,
    wanted,
    with_files,
    with_service,
)

DEADLINE = wanted(imagePullProgressDeadline="3m")
DOWNLOADS = wanted(maxConcurrentDownloads=6)


UNIT = "cri-docker.service"
PACKAGED = "/usr/bin/cri-dockerd --container-runtime-endpoint fd://"


def cri_dockerd(version: str = "0.3.15") -> Snapshot:
    return node(Runtime.CRI_DOCKERD, version)


def test_a_plain_unit_gets_a_drop_in_with_its_command() -> None:
    found = changed(cri_dockerd(), Runtime.CRI_DOCKERD, DEADLINE)
    (edit,) = found.files
    assert edit.path == f"/etc/systemd/system/{UNIT}.d/90-rollout.conf"
    assert edit.after.decode().endswith(
        f"[Service]\nExecStart=\nExecStart={PACKAGED} --image-pull-progress-deadline=3m\n"
    )
    assert (found.units, found.reload, found.disruption) == ((UNIT,), True, Disruption.RESTART_RUNTIME)


def test_a_drop_in_of_ours_is_written_anew_with_the_next_value() -> None:
    first = applied(cri_dockerd(), changed(cri_dockerd(), Runtime.CRI_DOCKERD, DEADLINE))
    assert changed(first, Runtime.CRI_DOCKERD, DEADLINE) == Change()
    (edit,) = changed(first, Runtime.CRI_DOCKERD, wanted(imagePullProgressDeadline="7m")).files
    assert edit.after == (edit.before or b"").replace(b"=3m", b"=7m")


def test_an_environment_file_that_the_unit_reads_is_the_less_invasive_home() -> None:
    text = f"[Service]\nEnvironmentFile=-/etc/default/cri-docker\nExecStart={PACKAGED} $CRI_DOCKERD_OPTS\n"
    found = with_service(cri_dockerd(), UNIT, text, f"{PACKAGED} --network-plugin=cni")
    found = with_files(found, regular("/etc/default/cri-docker", "# ours\nCRI_DOCKERD_OPTS=--network-plugin=cni\n"))
    change = changed(found, Runtime.CRI_DOCKERD, DEADLINE)
    (edit,) = change.files
    assert (edit.path, change.reload) == ("/etc/default/cri-docker", False)
    assert edit.after.decode() == '# ours\nCRI_DOCKERD_OPTS="--network-plugin=cni --image-pull-progress-deadline=3m"\n'


def test_correct_files_with_an_older_process_need_only_a_restart() -> None:
    text = f"[Service]\nExecStart={PACKAGED} --image-pull-progress-deadline=3m\n"
    found = changed(with_service(cri_dockerd(), UNIT, text, PACKAGED), Runtime.CRI_DOCKERD, DEADLINE)
    assert (found.files, found.units, found.reload) == ((), (UNIT,), False)
    assert found.notes[0].startswith("restart only")


def test_an_unloaded_edit_of_others_is_refused() -> None:
    found = with_service(cri_dockerd(), UNIT, f"[Service]\nExecStart={PACKAGED} --v=4\n", PACKAGED)
    assert refused(found, Runtime.CRI_DOCKERD, DEADLINE).reference == "layout-drifted"


def test_a_later_drop_in_that_resets_the_command_is_found() -> None:
    late = f"/etc/systemd/system/{UNIT}.d/99-site.conf"
    found = with_service(cri_dockerd(), UNIT, "[Service]\nExecStart=/bin/false\n", PACKAGED, DropInPaths=late)
    found = with_files(found, regular(late, f"[Service]\nExecStart=\nExecStart={PACKAGED}\n"))
    assert refused(found, Runtime.CRI_DOCKERD, DEADLINE).reference == "flag-shadowed"


@pytest.mark.parametrize(
    ("version", "trap"),
    [("0.2.0", "take longer than the deadline to verify"), ("0.3.15", "while a layer is extracted")],
)
def test_the_effect_of_the_deadline_by_version(version: str, trap: str) -> None:
    notes = changed(cri_dockerd(version), Runtime.CRI_DOCKERD, DEADLINE).notes
    assert notes[0] == "imagePullProgressDeadline loosens: 1m0s (cri-dockerd's default) → 3m"
    assert trap in notes[1]


def test_both_intents_on_cri_dockerd_are_one_change() -> None:
    found = changed(cri_dockerd(), Runtime.CRI_DOCKERD, DEADLINE | DOWNLOADS)
    assert len(found.files) == 2
    assert (found.units, found.hangups, found.disruption) == ((UNIT,), ("docker.service",), Disruption.RESTART_RUNTIME)
