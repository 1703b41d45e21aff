"""An emergency: no journal, another machine, another operator, unreachable nodes, controllers that die.

The tests compare the nodes' files at the end, byte for byte, and check that every node is proven or named.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.controllers import PATIENCE, Done, Process, at_work, finished, until
from tests.documents import only, printed
from tests.places import ROOT
from tests.story.conftest import Site
from tests.story.silent import silent
from tests.story.test_faults import FEW, apply, begun, few, nothing_left, said, token, where

pytestmark = [pytest.mark.process, pytest.mark.drawn(1)]

__all__ = ["few"]

ALL = ",".join(FEW)
READS = "--inh-caps=+dac_read_search --ambient-caps=+dac_read_search"
"""The interpreter and the program may be in root's home. This user may read them there, and write only to its home."""
ABOUT = re.compile(r"(\d+) nodes? to revert, about (?:(\d+) min ?)?(?:([0-9.]+) s)?")


def emergency(*words: str) -> tuple[str, ...]:
    return ("rollback", "--cluster", "small", "--emergency", "--limit", ALL, "--yes", *words)


@dataclass(frozen=True)
class Elsewhere:
    """Another machine: another host name, another user with another home, and nothing but an inventory and a key."""

    home: Path
    host: str

    def command(self, *words: str) -> list[str]:
        way = ["--ssh-config", str(self.home / "ssh_config"), "--state", str(self.home / "state")]
        line = f'READS="{READS}"; hostname "$1"; shift; exec setpriv --reuid=nobody --regid=nogroup --clear-groups $READS -- "$@"'
        mine = ["env", "-i", f"HOME={self.home}", "PATH=/usr/bin:/bin", "LANG=C.UTF-8", f"PYTHONPATH={ROOT}"]
        return [
            "unshare",
            "-u",
            "sh",
            "-c",
            line,
            "sh",
            self.host,
            *mine,
            sys.executable,
            "-m",
            "rollout.cli",
            *words,
            *way,
        ]

    def rollout(self, *words: str) -> Done:
        done = finished(self.command(*words), self.home)
        return replace(done, out=self._plain(done.out), err=self._plain(done.err))

    def _plain(self, text: str) -> str:
        """Without this machine's options, which each proposed command repeats."""
        return text.replace(f" --ssh-config {self.home / 'ssh_config'}", "").replace(
            f" --state {self.home / 'state'}", ""
        )

    def begun(self, *words: str) -> AbstractContextManager[Process]:
        (self.home / "out").unlink(missing_ok=True)
        return at_work(self.command(*words), self.home, self.home / "out")

    def said(self) -> str:
        return self._plain((self.home / "out").read_text())


def elsewhere(site: Site, host: str) -> Elsewhere:
    """Copies of the inventory and of the SSH key of the nodes: all that an operator needs to bring."""
    home = Path("/tmp") / f"rollout-{site.folder.name}-{os.getpid()}-{host}"
    (home / "inventories").mkdir(parents=True)
    shutil.copy(site.folder / "inventories/small.yaml", home / "inventories")
    for name in ("id_ed25519", "known_hosts", "ssh_config"):
        shutil.copy(site.lab / name, home / name)
    config = home / "ssh_config"
    config.write_text(config.read_text().replace(str(site.lab), str(home)))
    for path in (home, *home.rglob("*")):
        shutil.chown(path, "nobody", "nogroup")
    return Elsewhere(home, host)


@pytest.fixture
def other(few: Site) -> Iterator[Elsewhere]:
    machine = elsewhere(few, "ops-7")
    yield machine
    shutil.rmtree(machine.home)


@pytest.fixture
def third(few: Site) -> Iterator[Elsewhere]:
    machine = elsewhere(few, "laptop-of-a-colleague")
    yield machine
    shutil.rmtree(machine.home)


def changed(few: Site, limit: str = ALL, *words: str) -> str:
    """A run that confirmed all of ``limit``; its name."""
    done = few.rollout("apply", "--cluster", "small", "--limit", limit, "--yes", *words)
    assert done.code == 0, done.out + done.err
    return str(where(few)["run"])


def without_journal(few: Site) -> None:
    shutil.rmtree(few.folder / few.state)


def documents(done: Done) -> list[dict[str, Any]]:
    return printed(done.out)


def test_another_operator_on_another_machine_needs_the_inventory_and_a_key(few: Site, other: Elsewhere) -> None:
    before = few.everything(*FEW)
    changed(few)
    without_journal(few)
    back = other.rollout(*emergency("--reason", "pulls fail everywhere"))
    assert back.code == 0, back.out + back.err
    assert few.everything(*FEW) == before
    nothing_left(few, *FEW)
    lines = back.out.splitlines()
    claimed = next(at for at, line in enumerate(lines) if line.startswith("claimed"))
    assert any(ABOUT.match(line) for line in lines[:claimed]), "the time is printed before any node is touched"
    assert lines[-1].startswith("proof: 6 of 6 nodes reverted (read again"), "the proof comes last"
    status = subprocess.run(
        [*other.command("status", "-o", "json")[:-4], "--state", str(other.home / "state")],
        cwd=other.home, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert only(status.stdout)["counts"] == {"reverted": 6}, status.stderr


def test_unreachable_nodes_stay_pending_and_are_reverted_when_they_answer(few: Site, other: Elsewhere) -> None:
    before = few.everything(*FEW)
    changed(few)
    without_journal(few)
    few.fault("small-[061-063]", "refuse")
    with other.begun(*emergency("--until-done")) as process:
        until(lambda: "pending recovery (3) small-[061-063]" in other.said(), PATIENCE, "it waits for them")
        assert [name for name in FEW if few.is_new(name)] == ["small-061", "small-062", "small-063"]
        few.fault("small-061", "--clear")
        until(lambda: "=5m" not in few.flags("small-061"), PATIENCE, "a node that answers again is reverted")
        until(
            lambda: "pending recovery (2) small-[062-063]" in other.said(),
            PATIENCE,
            "the others are still pending recovery",
        )
        few.fault("small-[062-063]", "--clear")
        assert process.wait(PATIENCE) == 0, other.said()
    assert few.everything(*FEW) == before
    assert "proof: 6 of 6 nodes reverted (read again" in other.said()
    nothing_left(few, *FEW)


def test_a_ctrl_c_during_the_wait_prints_how_to_continue_and_any_machine_can(
    few: Site, other: Elsewhere, third: Elsewhere
) -> None:
    before = few.everything(*FEW)
    run = changed(few)
    few.fault("small-062", "refuse")
    with other.begun(*emergency("--until-done")) as process:
        until(lambda: "pending recovery (1) small-062" in other.said(), PATIENCE, "it waits for it")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130, other.said()
    assert "unknown (1) small-062: pending recovery: " in other.said()
    assert (
        f"To continue, from any machine: rollout rollback {run} --cluster small --emergency --until-done"
        in other.said()
    )
    given_up = third.rollout(*emergency(run, "--until-done", "--at-most", "1s"))
    assert given_up.code == 4, given_up.out + given_up.err
    assert "still pending recovery: small-062" in given_up.out
    few.fault("small-062", "--clear")
    rest = third.rollout(*emergency(run, "--until-done"))
    assert rest.code == 0, rest.out + rest.err
    assert few.everything(*FEW) == before


def test_nodes_of_different_runs_are_reverted_one_run_at_a_time(few: Site, other: Elsewhere) -> None:
    older = changed(few, "small-[001-003,061]")
    between = few.everything(*FEW)
    changed(few, "small-[061-063]", "--set", "imagePullProgressDeadline=7m")

    newest = other.rollout(*emergency())
    assert newest.code == 0, newest.out + newest.err
    assert few.everything(*FEW) == between, "only the newest run"
    assert f"not reverted: run {older} on 3 nodes small-[001-003]" in newest.out
    assert f"`rollout rollback {older} --cluster small --emergency` reverts it too" in newest.out
    again = other.rollout(*emergency())
    assert (again.code, few.everything(*FEW)) == (0, between), "repeating it reverts nothing older"
    assert "proof: 3 of 3 nodes reverted (read again" in again.out, "but proves the reverts again"
    named = other.rollout(*emergency(older))
    assert named.code == 0, named.out + named.err
    assert {name for name in FEW if few.is_new(name)} == {"small-061"}, "it was on this node before the newer run"


def test_every_run_reverts_each_nodes_newest_transaction(few: Site, other: Elsewhere) -> None:
    before = few.everything(*FEW)
    changed(few, "small-[001-003]")
    changed(few, "small-[062-063]", "--set", "imagePullProgressDeadline=7m")
    without_journal(few)
    every = other.rollout(*emergency("--every-run"))
    assert every.code == 0, every.out + every.err
    assert few.everything(*FEW) == before
    assert "proof: 5 of 5 nodes reverted (read again" in every.out


def test_a_third_machine_finishes_an_emergency_after_its_controller_was_killed(
    few: Site, other: Elsewhere, third: Elsewhere
) -> None:
    before = few.everything(*FEW)
    changed(few)
    without_journal(few)
    with other.begun(*emergency("--pace", "1")) as process:
        until(lambda: any("=5m" not in few.flags(name) for name in FEW), PATIENCE, "it is in the middle")
        process.kill()
        process.wait()
    assert any("=5m" in few.flags(name) for name in FEW), "not done yet: " + other.said()
    ended = third.rollout(*emergency("--until-done"))
    assert ended.code == 0, ended.out + ended.err
    assert few.everything(*FEW) == before
    assert ended.out.splitlines()[-1].startswith("proof: 6 of 6")
    nothing_left(few, *FEW)


def test_a_node_with_the_claim_of_a_dead_emergency_is_reverted(few: Site, other: Elsewhere, third: Elsewhere) -> None:
    before = few.everything(*FEW)
    changed(few)
    without_journal(few)
    with other.begun(*emergency("--in-flight", "1")) as process:
        until(lambda: all(token(few, name)[2] == "live" for name in FEW), PATIENCE, "it has claimed all of them")
        process.kill()
        process.wait()
    away = next(name for name in reversed(FEW) if few.is_new(name))
    few.fault(away, "refuse")
    with third.begun(*emergency("--until-done")) as process:
        until(lambda: f"pending recovery (1) {away}" in third.said(), PATIENCE, "it waits for it")
        assert token(few, away)[2] == "live", "of the one that died"
        few.fault(away, "--clear")
        assert process.wait(PATIENCE) == 0, third.said()
    assert few.everything(*FEW) == before
    assert "proof: 6 of 6 nodes reverted (read again" in third.said()
    nothing_left(few, *FEW)


def test_an_emergency_does_not_wait_for_a_journal_that_is_always_locked(few: Site) -> None:
    before = few.everything(*FEW)
    changed(few)
    with closing(sqlite3.connect(few.folder / few.state / "journal.db", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        back = few.rollout(*emergency())
    assert back.code == 0, back.out + back.err
    assert back.err.count("continuing with what the nodes report") == 1
    assert few.everything(*FEW) == before


def ended_or_told(process: Process) -> bool:
    """Whether it has ended; else Ctrl-C is pressed once more."""
    process.send_signal(signal.SIGINT)
    return process.poll() is not None


def test_a_ctrl_c_during_a_retry_ends_it_and_a_second_one_ends_it_at_once(few: Site, other: Elsewhere) -> None:
    """A hanging node is waited for once more, and not asked again. A second Ctrl-C does not wait for it either."""
    changed(few)
    took = {}
    few.fault("small-062", "refuse")
    for times in ("once", "again and again"):
        with other.begun(*emergency("--until-done")) as process:
            until(lambda: "pending recovery (1) small-062" in other.said(), PATIENCE, "it waits for it")
            with silent(few, "small-062") as silence:
                until(lambda: silence.came, PATIENCE, "it asks it again")
                waits = other.said().count("next attempt in")
                asked = time.monotonic()
                process.send_signal(signal.SIGINT)
                if times != "once":
                    until(lambda: ended_or_told(process), PATIENCE, "it ends")
                assert process.wait(PATIENCE) == 130, other.said()
                took[times] = time.monotonic() - asked
        assert silence.came == ["small-062"], "not asked after that"
        assert other.said().count("next attempt in") == waits
        assert "still pending recovery: small-062" in other.said()
        assert "nothing was started" not in other.said()
    assert took["again and again"] < took["once"] / 2


def test_the_proof_names_nodes_that_are_unhealthy_with_their_old_files_and_unknown_nodes(few: Site) -> None:
    changed(few)
    few.fault("small-002", "never-healthy")
    few.fault("small-062", "refuse")
    back = few.rollout(*emergency("-o", "json"))
    assert back.code == 4, back.out + back.err
    told = documents(back)
    proofs = {line["node"]: line for line in told if line["kind"] == "NodeProof"}
    well = [name for name in FEW if name not in ("small-002", "small-062")]
    assert {name for name, line in proofs.items() if line["proof"] == "proven"} == set(well)
    assert proofs["small-002"]["proof"] == "wrong"
    assert proofs["small-062"]["proof"] == "unknown"
    assert "pending recovery" in proofs["small-062"]["evidence"][0]
    assert (told[-2]["kind"], told[-2]["proven"], told[-2]["unknown"], told[-2]["wrong"]) == ("Proof", 4, 1, 1)
    for name in well:
        assert proofs[name]["files"] == {
            path: _digest(few.node(name) / path.lstrip("/")) for path in proofs[name]["files"]
        }
    names = [line["kind"] for line in told]
    assert names[:2] == ["OnNodes", "Predicted"]


def _digest(path: Path) -> str:
    done = subprocess.run(["sha256sum", str(path)], capture_output=True, text=True, check=True)
    return done.stdout.split()[0]


def test_the_predicted_time_is_based_on_the_last_measured_revert(few: Site, other: Elsewhere) -> None:
    """``tests/app/test_emergencies.py`` shows in virtual time that the prediction matches the duration."""
    changed(few)
    began = time.monotonic()
    first = other.rollout(*emergency())
    took = time.monotonic() - began
    assert first.code == 0, first.out + first.err
    assert "s per node, never rehearsed; from RestartSec=0.3 s on 6 nodes)" in first.out
    changed(few)
    again = other.rollout(*emergency())
    assert again.code == 0, again.out + again.err
    known = re.search(r"\(([0-9]+) s per node, measured by run \S+ on 6 nodes\)", again.out)
    assert known is not None, again.out
    assert int(known[1]) <= took + 1, "one node cannot take longer than all together"
    said = ABOUT.search(again.out)
    assert said is not None
    assert 60 * float(said[2] or 0) + float(said[3] or 0) >= int(known[1])


def test_options_that_contradict_each_other_are_refused_before_anything_is_read(few: Site) -> None:
    for words, reference in (
        (("rollback", "r1", "--every-run"), "only-in-an-emergency"),
        (("rollback", "r1", "--until-done"), "only-in-an-emergency"),
        (emergency("r1", "--every-run"), "run-or-every-run"),
        (emergency("--at-most", "1h"), "only-until-done"),
        (emergency("--until-done", "--at-most", "soon"), "bad-duration"),
        (("rollback", "r1", "r2"), "run-or-emergency"),
    ):
        done = few.rollout(*words)
        assert done.code == 2, done.out + done.err
        assert f"[{reference}]" in done.err


def test_a_run_in_progress_in_another_journal_is_taken_over(few: Site, other: Elsewhere) -> None:
    """Every node fences its controller. The changes that it had armed are reverted with the rest."""
    before = few.everything(*FEW)
    path = few.folder / "playbooks/pulls.yaml"
    path.write_text(path.read_text().replace("soak: 600ms", "soak: 30s"))
    with begun(few, "apply", "--cluster", "small", "--limit", ALL, "--yes") as apart:
        until(lambda: "soaking" in said(few), PATIENCE, "and confirmed")
        back = other.rollout(*emergency())
        assert back.code == 0, back.out + back.err
        assert few.everything(*FEW) == before
        assert apart.wait(PATIENCE) == 5, "claimed by another run"
    assert few.everything(*FEW) == before


def test_apply_works_after_an_emergency(few: Site, other: Elsewhere) -> None:
    changed(few)
    assert other.rollout(*emergency()).code == 0
    again = apply(few, ALL)
    assert again.code == 0, again.out + again.err
