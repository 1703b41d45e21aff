"""Links, and existing files at the agent's own names: nothing is written through them, and foreign files stay as they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rollout.core.model.report import Outcome
from rollout.kubelet.agent.agent_call import Claim
from tests.agent.node import CONFIG, DROPIN, FLAGS, NEW, OLD, Node

pytestmark = pytest.mark.process

STATE = "/var/lib/rollout"
SYSTEM = "/etc/systemd/system"
UNIT = f"{SYSTEM}/rollout-guard-boot.service"
WANTED = f"{SYSTEM}/basic.target.wants/rollout-guard-boot.service"
THEIRS = b"somebody else's\n"


@pytest.fixture
def theirs(node: Node) -> Path:
    """A foreign file, as the target of links."""
    node.write("/srv/theirs", THEIRS)
    return node.at("/srv/theirs")


def there_and_back(node: Node) -> None:
    assert node.apply().receipt
    assert node.files() == NEW
    assert node.confirm().outcome is Outcome.DONE
    assert node.revert().outcome is Outcome.DONE
    assert node.files() == OLD


# ------------------------------------------------------------------------------------------------------ our state's folder


def everybodys(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o777)


def groups(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o770)


def anothers(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    os.chown(folder, 1234, 1234)


def elsewhere(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    target = folder.with_name("elsewhere")
    target.mkdir()
    folder.symlink_to(target.name)


@pytest.mark.parametrize("which", [STATE, f"{STATE}/tx"])
@pytest.mark.parametrize("spoil", [everybodys, groups, anothers, elsewhere])
def test_every_verb_that_writes_refuses_a_state_that_others_can_write_or_that_is_a_link(
    node: Node, spoil: object, which: str
) -> None:
    """A guard's program is there, and runs as root."""
    assert callable(spoil)
    spoil(node.at(which))
    before = node.tree()
    said = (
        node.apply(), node.confirm(), node.revert(), node.cleanup(), node.status(claim=Claim(1, "run-1")),
        node.forget(),
    )  # fmt: skip
    assert {(each.outcome, each.reference) for each in said} == {(Outcome.REFUSED, "state-not-ours")}
    assert node.files() == OLD
    assert node.tree() == before, "no remains there either"
    assert node.status().outcome is Outcome.DONE, "reading is harmless"


def test_a_state_that_others_can_only_read_is_accepted(node: Node) -> None:
    node.at(STATE).mkdir(parents=True)
    node.at(STATE).chmod(0o755)
    there_and_back(node)


@pytest.mark.parametrize("whole", [True, False])
def test_a_transaction_folder_that_is_a_link_is_ignored_and_its_target_is_untouched(node: Node, whole: bool) -> None:
    folder = node.at("/srv/tx")
    folder.mkdir(parents=True)
    (folder / "file.1").write_text(f"{CONFIG} - - {FLAGS} {FLAGS}\n")
    if whole:
        (folder / "receipt").write_text("run=run-1\ncounter=1\nseq=7\nstate=confirmed\nfiles=1\nkubelet=unknown\n")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    node.at(f"{STATE}/tx").mkdir(parents=True, mode=0o700)
    node.tx().symlink_to(folder)
    there_and_back(node)
    assert not node.tx().is_symlink()
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


# ------------------------------------------------------------------------------------------------------------- the targets


@pytest.mark.parametrize("path", [CONFIG, DROPIN])
def test_a_target_that_is_a_link_is_refused_also_one_that_points_nowhere(node: Node, theirs: Path, path: str) -> None:
    target = node.at(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    target.symlink_to(theirs if path == CONFIG else "nowhere")
    assert node.apply().reference == "not-a-regular-file"
    assert target.is_symlink()
    assert theirs.read_bytes() == THEIRS


def test_a_target_that_became_a_link_after_its_change_is_replaced_and_never_written_through(
    node: Node, theirs: Path
) -> None:
    assert node.apply().receipt
    assert node.confirm().outcome is Outcome.DONE
    node.at(CONFIG).unlink()
    node.at(CONFIG).symlink_to(theirs)
    assert node.revert().reference == "foreign-bytes"
    assert node.at(CONFIG).is_symlink()
    assert node.revert(force=True).outcome is Outcome.DONE
    assert node.files() == OLD
    assert theirs.read_bytes() == THEIRS


def test_a_folder_that_is_a_link_is_followed_as_the_kubelet_does_and_stays_one(node: Node) -> None:
    real = node.at("/data/kubelet")
    real.parent.mkdir()
    node.at(CONFIG).parent.rename(real)
    node.at(CONFIG).parent.symlink_to(real)
    there_and_back(node)
    assert node.at(CONFIG).parent.is_symlink()
    assert sorted(path.name for path in real.iterdir()) == ["config.yaml"]


# ------------------------------------------------------------------------------------------------- names beside the targets


def twins(node: Node) -> list[Path]:
    """Every name that the agent may use beside a target, of each of the three files."""
    folders = (node.at(path).parent for path in (CONFIG, FLAGS, "/etc/systemd/system/kubelet.service"))
    return [
        folder / f".rollout-t1.{n}.{end}"
        for folder in folders
        for n in (1, 2, 3)
        for end in ("new", "old", "try", "tried")
    ]


@pytest.mark.parametrize("kind", ["link", "link to nowhere", "file"])
@pytest.mark.parametrize("crossing", [False, True])
def test_existing_names_beside_the_targets_are_not_written_through(
    node: Node, theirs: Path, kind: str, crossing: bool
) -> None:
    """``crossing``: no link reaches from the state to the targets, as on two file systems, so the names are used."""
    if crossing:
        (node.bin / "ln").write_text('#!/bin/sh\ncase $1 in -s) exec /bin/ln "$@" ;; esac\nexit 1\n')
        (node.bin / "ln").chmod(0o755)
    for twin in twins(node):
        if kind == "file":
            twin.write_bytes(THEIRS)
        else:
            twin.symlink_to(theirs if kind == "link" else node.at("/srv/nowhere"))
    there_and_back(node)
    assert theirs.read_bytes() == THEIRS
    assert not node.at("/srv/nowhere").exists()


@pytest.mark.parametrize("there", ["links", "half a copy"])
def test_the_old_files_are_restored_whole_whatever_is_at_the_name_of_their_copy(
    node: Node, theirs: Path, there: str
) -> None:
    """On another file system a revert makes its copy beside the target; a power cut may leave half of it."""
    (node.bin / "ln").write_text('#!/bin/sh\ncase $1 in -s) exec /bin/ln "$@" ;; esac\nexit 1\n')
    (node.bin / "ln").chmod(0o755)
    assert node.apply().receipt
    assert node.confirm().outcome is Outcome.DONE
    for twin, target in zip(twins(node), [theirs, theirs, node.at("/srv/nowhere")] * 12, strict=True):
        if there == "links":
            twin.symlink_to(target)
        else:
            twin.write_bytes(b"")
    assert node.revert().outcome is Outcome.DONE
    assert node.files() == OLD
    assert not any(node.at(path).is_symlink() for path in OLD)
    assert theirs.read_bytes() == THEIRS
    assert not node.at("/srv/nowhere").exists()


# ---------------------------------------------------------------------------------------------------------- the boot unit


@pytest.mark.parametrize("target", ["/dev/null", "theirs"])
def test_a_boot_unit_that_is_a_link_is_refused_and_not_written_through(node: Node, theirs: Path, target: str) -> None:
    """To ``/dev/null`` it is masked: there would be no guard after a reboot."""
    node.at(UNIT).symlink_to(theirs if target == "theirs" else target)
    report = node.apply()
    assert (report.outcome, report.reference, report.message) == (Outcome.REFUSED, "not-a-regular-file", UNIT)
    assert node.files() == OLD
    assert theirs.read_bytes() == THEIRS
    assert node.at(UNIT).is_symlink()


def test_a_revert_continues_if_the_boot_unit_has_become_a_link(node: Node, theirs: Path) -> None:
    assert node.apply().receipt
    assert node.confirm().outcome is Outcome.DONE
    node.at(UNIT).symlink_to(theirs)
    assert node.revert().outcome is Outcome.DONE
    assert node.files() == OLD
    assert theirs.read_bytes() == THEIRS


@pytest.mark.parametrize("kind", ["link", "link to nowhere", "file"])
def test_anything_at_the_boot_units_wants_link_is_replaced_by_the_right_link(
    node: Node, theirs: Path, kind: str
) -> None:
    if kind == "file":
        node.at(WANTED).write_bytes(THEIRS)
    else:
        node.at(WANTED).symlink_to(theirs if kind == "link" else "nowhere")
    assert node.apply().receipt
    assert str(node.at(WANTED).readlink()) == "../rollout-guard-boot.service"
    assert theirs.read_bytes() == THEIRS
    assert node.revert().outcome is Outcome.DONE
    assert node.strays() == []


# ------------------------------------------------------------------------------------- other names of the file that is changed


def test_a_revert_gives_the_old_bytes_though_somebody_wrote_into_the_old_file_by_another_name(node: Node) -> None:
    other = node.at("/srv/other")
    other.parent.mkdir(parents=True, exist_ok=True)
    os.link(node.at(FLAGS), other)
    assert node.apply().healthy
    other.write_bytes(THEIRS)
    assert node.revert().outcome is Outcome.DONE
    assert (node.files(), other.read_bytes()) == (OLD, THEIRS)


@pytest.mark.parametrize("way_back", ["guard", "boot", "confirmed"])
def test_so_does_every_other_revert(node: Node, way_back: str) -> None:
    other = node.at("/srv/other")
    other.parent.mkdir(parents=True, exist_ok=True)
    os.link(node.at(CONFIG), other)
    assert node.apply().healthy
    if way_back == "confirmed":
        assert node.confirm().outcome is Outcome.DONE
    other.write_bytes(THEIRS)
    if way_back == "boot":
        node.reboot()
    if way_back == "confirmed":
        assert node.revert().outcome is Outcome.DONE
    else:
        assert node.trigger(way_back) == 0
    assert (node.files(), other.read_bytes()) == (OLD, THEIRS)
    assert node.receipt()["state"] == "reverted"
    assert not list(node.tx().glob("twin.*"))


def test_a_revert_restores_the_very_file_if_nobody_wrote_into_it(node: Node) -> None:
    other = node.at("/srv/other")
    other.parent.mkdir(parents=True, exist_ok=True)
    os.link(node.at(FLAGS), other)
    there_and_back(node)
    assert other.samefile(node.at(FLAGS))
