"""CRI-O's drop-in: to the byte, and refused where another place would override it."""

from __future__ import annotations

import pytest

from rollout.core.model.plan import Change
from rollout.core.model.playbook import Disruption
from rollout.core.model.snapshot import FileState, Snapshot
from rollout.kubelet.runtimes.crio.description import DROP_IN
from rollout.kubelet.runtimes.description import Runtime
from tests.kubelet.nodes import regular
from tests.kubelet.runtimes.nodes import (
    CRIO_DIR,
    changed,
    node,
    refused,
    wanted,
    with_service,
)

DEADLINE = wanted(imagePullProgressDeadline="3m")
TEN = '[crio.image]\npull_progress_timeout = "10m"\n'


def crio(*files: FileState, version: str = "1.34.0") -> Snapshot:
    return node(Runtime.CRIO, version, *files)


def crio_with(text: str, running: str, *files: FileState) -> Snapshot:
    return with_service(crio(*files), "crio.service", text, running)


def test_a_drop_in_to_the_byte() -> None:
    found = changed(crio(), Runtime.CRIO, DEADLINE)
    (edit,) = found.files
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
    assert changed(found, Runtime.CRIO, wanted(imagePullProgressDeadline="10s")).files == ()
    assert changed(found, Runtime.CRIO, wanted(imagePullProgressDeadline="10s", pin=True)).files != ()


def test_our_file_overrides_earlier_files_and_later_ones_are_refused() -> None:
    early, late = regular(f"{CRIO_DIR}/10-site.conf", TEN), regular(f"{CRIO_DIR}/99-site.conf", TEN)
    assert [edit.path for edit in changed(crio(early), Runtime.CRIO, DEADLINE).files] == [DROP_IN]
    assert [edit.path for edit in changed(crio(regular("/etc/crio/crio.conf", TEN)), Runtime.CRIO, DEADLINE).files] == [
        DROP_IN
    ]
    error = refused(crio(early, late), Runtime.CRIO, DEADLINE)
    assert (error.reference, late.path in str(error)) == ("crio-config-shadowed", True)


def test_what_overrides_our_file_is_told_with_its_key_and_value() -> None:
    late = refused(crio(regular(f"{CRIO_DIR}/99-site.conf", TEN)), Runtime.CRIO, DEADLINE)
    flag = "/usr/bin/crio --pull-progress-timeout=1m"
    by_flag = refused(crio_with(f"[Service]\nExecStart={flag}\n", flag), Runtime.CRIO, DEADLINE)
    assert (str(late), str(by_flag)) == (
        f"{CRIO_DIR}/99-site.conf sets pull_progress_timeout to 10m and would override {DROP_IN}",
        f"--pull-progress-timeout on crio's command line sets pull_progress_timeout to 1m and would override {DROP_IN}",
    )


def test_a_wanted_value_in_force_from_any_place_needs_no_change() -> None:
    late = regular(f"{CRIO_DIR}/99-site.conf", TEN.replace("10m", "180s"))
    assert changed(crio(late), Runtime.CRIO, DEADLINE) == Change()


def test_a_flag_and_an_environment_variable_override_every_file() -> None:
    flag = "/usr/bin/crio --pull-progress-timeout=1m"
    by_flag = crio_with(f"[Service]\nExecStart={flag}\n", flag)
    assert refused(by_flag, Runtime.CRIO, DEADLINE).reference == "crio-config-shadowed"
    text = "[Service]\nEnvironment=CONTAINER_PULL_PROGRESS_TIMEOUT=1m\nExecStart=/usr/bin/crio\n"
    assert refused(crio_with(text, "/usr/bin/crio"), Runtime.CRIO, DEADLINE).reference == "crio-config-shadowed"
    same = "/usr/bin/crio --pull-progress-timeout=3m0s"
    assert changed(crio_with(f"[Service]\nExecStart={same}\n", same), Runtime.CRIO, DEADLINE) == Change()


@pytest.mark.parametrize(
    "flag", ["--config-dir /opt/crio", "-d /opt/crio", "-d=/opt/crio", "-c /etc/crio/site.conf", "-config=/etc/crio/site.conf"]
)  # fmt: skip
def test_a_crio_with_its_files_elsewhere_is_refused(flag: str) -> None:
    command = f"/usr/bin/crio {flag}"
    found = crio_with(f"[Service]\nExecStart={command}\n", command)
    assert refused(found, Runtime.CRIO, DEADLINE).reference == "crio-config-elsewhere"


def test_its_usual_files_may_be_named_and_spelled_otherwise() -> None:
    command = "/usr/bin/crio -c /etc/crio//crio.conf -d /etc/crio/crio.conf.d/"
    found = crio_with(f"[Service]\nExecStart={command}\n", command)
    assert [edit.path for edit in changed(found, Runtime.CRIO, DEADLINE).files] == [DROP_IN]


@pytest.mark.parametrize(("number", "way"), [(600_000_000_000, "tightens: 600000000000ns"), (0, "tightens: off")])
def test_a_deadline_that_is_a_number_is_one_of_nanoseconds(number: int, way: str) -> None:
    """CRI-O's TOML reader takes both for a duration."""
    main = regular("/etc/crio/crio.conf", f"[crio.image]\npull_progress_timeout = {number}\n")
    assert way in changed(crio(main), Runtime.CRIO, DEADLINE).notes[0]
    late = regular(f"{CRIO_DIR}/99-site.conf", "[crio.image]\npull_progress_timeout = 180000000000\n")
    assert changed(crio(late), Runtime.CRIO, DEADLINE) == Change()
