"""CRI-O's drop-in, cri-dockerd's flag, dockerd's daemon.json."""

from __future__ import annotations

import pytest

from rollout.core.model.playbook import Disruption
from rollout.core.model.settings import Setting
from rollout.core.model.snapshot import FileState, Snapshot
from rollout.kubelet.node.layout import LayoutError
from rollout.kubelet.runtimes.crio.description import DROP_IN
from rollout.kubelet.runtimes.description import Runtime
from rollout.kubelet.runtimes.outcome import RuntimeChange
from tests.kubelet.nodes import regular
from tests.kubelet.runtimes.nodes import CRIO_DIR, DAEMON, applied, changed, node, wanted, with_files, with_service

DEADLINE, DOWNLOADS = wanted(imagePullProgressDeadline="3m"), wanted(maxConcurrentDownloads=6)
TEN = '[crio.image]\npull_progress_timeout = "10m"\n'


def refused(found: Snapshot, runtime: Runtime, settings: dict[str, Setting]) -> LayoutError:
    with pytest.raises(LayoutError) as error:
        changed(found, runtime, settings)
    return error.value


# --------------------------------------------------------------------------------------------------------------- CRI-O


def crio(*files: FileState, version: str = "1.34.0") -> Snapshot:
    return node(Runtime.CRIO, version, *files)


def crio_with(text: str, running: str, *files: FileState) -> Snapshot:
    return with_service(crio(*files), "crio.service", text, running)


def test_a_drop_in_to_the_byte() -> None:
    found = changed(crio(), Runtime.CRIO, DEADLINE)
    (edit,) = found.edits
    assert (edit.path, edit.before) == (DROP_IN, None)
    assert edit.after == b'[crio.image]\n  pull_progress_timeout = "3m"\n'
    assert (found.units, found.disruption) == (("crio.service",), Disruption.RESTART_RUNTIME)


@pytest.mark.parametrize(
    ("version", "way", "warns"),
    [
        ("1.30.11", "loosens: 10s (CRI-O's default) → 3m", True),
        ("1.31.8", "loosens: 10s (CRI-O's default) → 3m", True),
        ("1.32.3", "loosens: 10s (CRI-O's default) → 3m", True),
        ("1.30.14", "tightens: off (CRI-O's default) → 3m", False),
        ("1.31.9", "tightens: off (CRI-O's default) → 3m", False),
        ("1.34.0", "tightens: off (CRI-O's default) → 3m", False),
    ],
)
def test_its_defaults_by_version_and_the_direction(version: str, way: str, warns: bool) -> None:
    notes = changed(crio(version=version), Runtime.CRIO, DEADLINE).notes
    assert notes[0] == f"imagePullProgressDeadline {way}"
    assert any("ends pulls that pause" in note for note in notes) is warns


def test_a_wanted_default_of_ten_seconds_is_not_written_unless_pinned() -> None:
    found = crio(version="1.31.3")
    assert changed(found, Runtime.CRIO, wanted(imagePullProgressDeadline="10s")).edits == ()
    assert changed(found, Runtime.CRIO, wanted(imagePullProgressDeadline="10s", pin=True)).edits != ()


def test_our_file_overrides_earlier_files_and_later_ones_are_refused() -> None:
    early, late = regular(f"{CRIO_DIR}/10-site.conf", TEN), regular(f"{CRIO_DIR}/99-site.conf", TEN)
    assert [edit.path for edit in changed(crio(early), Runtime.CRIO, DEADLINE).edits] == [DROP_IN]
    assert [edit.path for edit in changed(crio(regular("/etc/crio/crio.conf", TEN)), Runtime.CRIO, DEADLINE).edits] == [
        DROP_IN
    ]
    error = refused(crio(early, late), Runtime.CRIO, DEADLINE)
    assert (error.reference, late.path in str(error)) == ("crio-config-shadowed", True)


def test_a_wanted_value_in_force_from_any_place_needs_no_change() -> None:
    late = regular(f"{CRIO_DIR}/99-site.conf", TEN.replace("10m", "180s"))
    assert changed(crio(late), Runtime.CRIO, DEADLINE) == RuntimeChange()


def test_a_flag_and_an_environment_variable_override_every_file() -> None:
    flag = "/usr/bin/crio --pull-progress-timeout=1m"
    by_flag = crio_with(f"[Service]\nExecStart={flag}\n", flag)
    assert refused(by_flag, Runtime.CRIO, DEADLINE).reference == "crio-config-shadowed"
    text = "[Service]\nEnvironment=CONTAINER_PULL_PROGRESS_TIMEOUT=1m\nExecStart=/usr/bin/crio\n"
    assert refused(crio_with(text, "/usr/bin/crio"), Runtime.CRIO, DEADLINE).reference == "crio-config-shadowed"
    same = "/usr/bin/crio --pull-progress-timeout=3m0s"
    assert changed(crio_with(f"[Service]\nExecStart={same}\n", same), Runtime.CRIO, DEADLINE) == RuntimeChange()


def test_a_crio_with_its_files_elsewhere_is_refused() -> None:
    command = "/usr/bin/crio --config-dir /opt/crio"
    found = crio_with(f"[Service]\nExecStart={command}\n", command)
    assert refused(found, Runtime.CRIO, DEADLINE).reference == "crio-config-elsewhere"


# --------------------------------------------------------------------------------------------------------- cri-dockerd

UNIT = "cri-docker.service"
PACKAGED = "/usr/bin/cri-dockerd --container-runtime-endpoint fd://"


def cri_dockerd(version: str = "0.3.15") -> Snapshot:
    return node(Runtime.CRI_DOCKERD, version)


def test_a_plain_unit_gets_a_drop_in_with_its_command() -> None:
    found = changed(cri_dockerd(), Runtime.CRI_DOCKERD, DEADLINE)
    (edit,) = found.edits
    assert edit.path == f"/etc/systemd/system/{UNIT}.d/90-rollout.conf"
    assert edit.after.decode().endswith(
        f"[Service]\nExecStart=\nExecStart={PACKAGED} --image-pull-progress-deadline=3m\n"
    )
    assert (found.units, found.reload, found.disruption) == ((UNIT,), True, Disruption.RESTART_RUNTIME)


def test_a_drop_in_of_ours_is_written_anew_with_the_next_value() -> None:
    first = applied(cri_dockerd(), changed(cri_dockerd(), Runtime.CRI_DOCKERD, DEADLINE))
    assert changed(first, Runtime.CRI_DOCKERD, DEADLINE) == RuntimeChange()
    (edit,) = changed(first, Runtime.CRI_DOCKERD, wanted(imagePullProgressDeadline="7m")).edits
    assert edit.after == (edit.before or b"").replace(b"=3m", b"=7m")


def test_an_environment_file_that_the_unit_reads_is_the_less_invasive_home() -> None:
    text = f"[Service]\nEnvironmentFile=-/etc/default/cri-docker\nExecStart={PACKAGED} $CRI_DOCKERD_OPTS\n"
    found = with_service(cri_dockerd(), UNIT, text, f"{PACKAGED} --network-plugin=cni")
    found = with_files(found, regular("/etc/default/cri-docker", "# ours\nCRI_DOCKERD_OPTS=--network-plugin=cni\n"))
    change = changed(found, Runtime.CRI_DOCKERD, DEADLINE)
    (edit,) = change.edits
    assert (edit.path, change.reload) == ("/etc/default/cri-docker", False)
    assert edit.after.decode() == '# ours\nCRI_DOCKERD_OPTS="--network-plugin=cni --image-pull-progress-deadline=3m"\n'


def test_correct_files_with_an_older_process_need_only_a_restart() -> None:
    text = f"[Service]\nExecStart={PACKAGED} --image-pull-progress-deadline=3m\n"
    found = changed(with_service(cri_dockerd(), UNIT, text, PACKAGED), Runtime.CRI_DOCKERD, DEADLINE)
    assert (found.edits, found.units, found.reload) == ((), (UNIT,), False)
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
    assert len(found.edits) == 2
    assert (found.units, found.hangups, found.disruption) == ((UNIT,), ("docker.service",), Disruption.RESTART_RUNTIME)


# ------------------------------------------------------------------------------------------------------------- dockerd


def test_daemon_json_keeps_its_order_and_spacing_and_dockerd_gets_sighup() -> None:
    text = '{\n    "log-driver": "journald",\n    "max-concurrent-downloads": 3,\n    "live-restore": true\n}\n'
    found = changed(node(Runtime.DOCKERSHIM, "20.10.24", regular(DAEMON, text)), Runtime.DOCKERSHIM, DOWNLOADS)
    assert found.edits[0].after.decode() == text.replace("3", "6")
    assert (found.units, found.hangups, found.disruption) == ((), ("docker.service",), Disruption.RELOAD)
    assert found.notes == (f"maxConcurrentDownloads raises the limit: 3 ({DAEMON}) → 6",)


def test_dockerd_does_not_start_with_the_option_twice() -> None:
    command = "/usr/bin/dockerd --max-concurrent-downloads=10"
    found = with_service(
        node(Runtime.DOCKERSHIM, "20.10.24"), "docker.service", f"[Service]\nExecStart={command}\n", command
    )
    assert refused(found, Runtime.DOCKERSHIM, DOWNLOADS).reference == "dockerd-flag"


def test_a_wanted_default_of_dockerd_needs_no_change() -> None:
    found = changed(node(Runtime.DOCKERSHIM, "20.10.24"), Runtime.DOCKERSHIM, wanted(maxConcurrentDownloads=3))
    assert (found.edits, found.hangups) == ((), ())
    assert "dockerd's default" in found.notes[0]
