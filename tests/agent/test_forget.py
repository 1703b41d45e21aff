"""``forget`` removes all of /var/lib/rollout, and only when nothing needs it."""

from __future__ import annotations

import subprocess

import pytest

from rollout.core.model.report import Outcome
from rollout.core.model.snapshot import Token
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_call import Claim
from tests.agent.node import CONFIG, NEW, OLD, PATIENCE, Node, order
from tests.controllers import until

pytestmark = pytest.mark.process

STATE, ASIDE = "/var/lib/rollout", "/var/lib/rollout.forgotten"


def forgotten(node: Node, run: str = "run-1", counter: int = 1) -> None:
    report = node.forget(run, counter)
    assert (report.outcome, report.leftovers) == (Outcome.DONE, ()), report
    assert not node.at(STATE).exists()
    assert not node.at(ASIDE).exists()
    assert node.strays() == []


def test_it_removes_all_of_the_state_and_no_file_of_the_node(node: Node) -> None:
    node.apply()
    node.confirm()
    forgotten(node)
    assert node.files() == NEW
    found = node.status()
    assert (found.token, found.receipts) == (Token(), ())


def test_it_may_be_repeated_and_does_nothing_on_an_untouched_node(node: Node) -> None:
    before = node.tree()
    forgotten(node)
    forgotten(node)
    assert node.tree() == before


@pytest.mark.parametrize("state", ["armed", "reverting"])
def test_a_transaction_under_way_blocks_it(node: Node, state: str) -> None:
    node.apply()
    if state == "reverting":
        (node.tx() / "next" / "reverting-asked").rename(node.tx() / "receipt")
    report = node.forget()
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "armed-by-another")
    assert node.trigger("guard") == 0
    assert node.files() == OLD
    forgotten(node)


def test_it_is_fenced_like_every_other_verb(node: Node) -> None:
    node.status(claim=Claim(5, "run-5"))
    assert node.forget("run-4", 4).reference == "fenced"
    assert node.forget("other", 5).reference == "fenced"
    assert node.forget("run-6", 6).reference == "claimed"
    assert node.status().token == Token(5, "run-5", live=True)
    forgotten(node, "run-5", 5)


def test_it_first_removes_what_a_killed_confirm_left_outside(node: Node) -> None:
    node.apply()
    (node.tx() / "next" / "confirmed").rename(node.tx() / "receipt")
    assert len(node.strays()) == 12
    forgotten(node)
    assert node.files() == NEW


def test_what_cannot_be_removed_is_listed_and_the_state_stays(node: Node) -> None:
    """For example, systemctl stop fails: the timer would start a program that no longer exists."""
    node.apply()
    node.confirm()
    tool = node.bin / "systemctl"
    tool.write_text(tool.read_text().replace('for unit; do rm -f "$D/$unit"; done', "exit 1"))
    node.standin("rollout-guard-t1.timer", "fires some day\n")
    report = node.forget()
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "still-needed")
    assert report.leftovers == ("rollout-guard-t1.timer",)
    assert node.receipt()["state"] == "confirmed"


def test_a_state_directory_that_is_a_link_is_neither_followed_nor_removed(node: Node) -> None:
    node.apply()
    node.confirm()
    node.at(STATE).rename(node.at("/var/lib/elsewhere"))
    node.at(STATE).symlink_to("elsewhere")
    assert node.forget().reference == "state-not-ours"
    assert node.receipt()["state"] == "confirmed"


def test_cleanup_removes_the_rest_of_a_killed_forget_and_lists_what_it_cannot(node: Node) -> None:
    node.status(claim=Claim(1, "run-1"))
    node.write(f"{ASIDE}/tx/t1/receipt", b"tx=t1\n")
    assert node.cleanup().leftovers == ()
    assert not node.at(ASIDE).exists()
    node.write(f"{ASIDE}/tx/t1/receipt", b"tx=t1\n")
    tool = node.bin / "rm"
    tool.write_text('#!/bin/sh\ncase "$*" in *forgotten*) exit 1 ;; esac\nexec /bin/rm "$@"\n')
    tool.chmod(0o755)
    assert node.cleanup().leftovers == (ASIDE,)


def test_a_verb_that_waited_starts_without_state_under_a_new_lock(node: Node) -> None:
    """It holds the lock of a removed folder; two such verbs at once would each assume that they hold the lock."""
    node.status(claim=Claim(1, "run-1"))
    state = node.at(STATE)
    with subprocess.Popen(["sh", "-c", f"exec 9>>{state}/lock; flock 9; exec sleep 600"]) as holder:
        until(node.is_locked, PATIENCE, "it has the lock")
        command = agent_call.apply(node.program, order("t2", "run-2", 2), sudo=False, deadline=60)
        with subprocess.Popen(
            [str(node.bin / "sh"), "-c", command.line],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=node.env(),
        ) as waiting:
            assert waiting.stdin is not None
            waiting.stdin.write(command.stdin)
            waiting.stdin.close()
            node.pass_time_for_who_waits()
            state.rename(node.at(ASIDE))
            holder.kill()
            assert waiting.stdout is not None
            assert b"healthy yes" in waiting.stdout.read()
    assert node.files() == NEW
    assert node.status().token == Token(2, "run-2", live=True)
    assert (state / "lock").stat().st_ino != (node.at(ASIDE) / "lock").stat().st_ino
    assert node.read(CONFIG) == NEW[CONFIG]
