"""A node that lies about its transactions and its token affects only itself: no other node is blocked, reverted or released."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.app.node_worker import NodeWorker
from rollout.core.model.report import RemoteAnswer
from rollout.core.model.snapshot import MOST_ABOVE, MOST_AT_ALL, highest_believed, is_beyond_belief
from rollout.core.run.commands import Ask
from rollout.core.run.events import Answered, Trigger
from rollout.core.run.state import Verb
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_answer import parse_report
from tests.app.test_node_worker import Outside, worker
from tests.story.conftest import Site, served

HONEST = ("small-001", "small-061", "small-062")
LIAR = "small-002"
EVERYBODY = "small-[001-002,061-062]"
LARGEST = 10**18 - 1
"""The largest counter that a line of an answer may contain."""

COUNTERS = st.integers(min_value=0, max_value=LARGEST)
NEAR = st.integers(min_value=0, max_value=1_000)


@given(st.lists(NEAR, min_size=2, max_size=9), st.lists(COUNTERS, max_size=8), NEAR)
def test_fewer_liars_than_honest_nodes_raise_the_token_by_a_bounded_step(
    honest: list[int], lies: list[int], known: int
) -> None:
    lies = lies[: len(honest) - 1]
    found = highest_believed([*honest, *lies], known)
    assert found >= max([known, *honest]), "else the fleet would refuse the next run"
    assert found <= max([known, *honest]) + MOST_ABOVE


@given(st.lists(COUNTERS, max_size=9), NEAR)
def test_an_agent_accepts_the_next_token_whatever_nodes_report(told: list[int], known: int) -> None:
    mostly = [counter % MOST_AT_ALL for counter in told]
    token = highest_believed([*mostly, LARGEST] if len(mostly) != 1 else mostly, known) + 1
    agent_call.cleanup("program", run="r", counter=token, sudo=False, deadline=1)


def test_the_counter_of_one_node_alone_is_believed_up_to_a_maximum() -> None:
    assert highest_believed([LARGEST]) == 0
    assert highest_believed([MOST_AT_ALL]) == MOST_AT_ALL
    assert highest_believed([MOST_AT_ALL], known=7) == 7, "the journal's counter wins"
    assert highest_believed([]) == 0


def asked(node: NodeWorker, outside: Outside, *said: bytes) -> Answered:
    outside.answers = [RemoteAnswer(0, text, b"", started=True) for text in said]
    event = node(Ask("n1", Verb.READ, 1, "t1", 7))
    assert isinstance(event, Answered)
    return event


def test_an_impossible_token_is_refused_for_its_node_and_raises_no_claim() -> None:
    outside = Outside([])
    token = b"token %d forged live\nend status\n" % LARGEST
    event = asked(worker(outside), outside, b"refused fenced by me\nend status\n", token)
    assert (event.trigger, event.reference, event.counter) == (Trigger.REFUSED, "false-token", 0)
    near = asked(worker(outside), outside, b"refused fenced by me\nend status\n", b"token 9 other live\nend status\n")
    assert (near.reference, near.counter) == ("fenced", 9)
    assert is_beyond_belief(8 + MOST_ABOVE, 7)
    assert not is_beyond_belief(7 + MOST_ABOVE, 7)


def test_a_node_that_reports_claimed_to_a_run_that_takes_over_claims_is_refused_alone() -> None:
    outside = Outside([])
    taking = worker(outside)
    taking.take_over = True
    said = b"refused claimed by run x\ntoken 6 x live\nend status\n"
    assert asked(taking, outside, said).reference == "false-claim"
    taking.take_over = False
    looked = b"token 6 x live\nend status\n"
    assert asked(taking, outside, said, looked).reference == "claimed", "no run of this journal has that name"


@pytest.mark.parametrize("name", ["@x", "a:b", "-x", "a@b"])
def test_an_id_that_no_request_may_contain_makes_the_whole_answer_unread(name: str) -> None:
    """Else the revert of a forged id would be an internal error, in the middle of an emergency."""
    fine = "receipt tx={} run={} counter=1 state=confirmed cause=- left=0 finished=1\ntoken 1 {} live\nend status\n"
    for words in ((name, "r", "r"), ("t", name, "r"), ("t", "r", name)):
        answer = RemoteAnswer(0, fine.format(*words).encode(), b"", started=True)
        assert parse_report("n", "status", answer, 0.0).reference == "bad-answer"
    assert parse_report(
        "n", "status", RemoteAnswer(0, fine.format("t", "r", "r").encode(), b"", started=True), 0.0
    ).receipt


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Four nodes; each test sets their tokens again."""
    with served(tmp_path_factory.mktemp("false"), EVERYBODY) as made:
        playbook = made.folder / "playbooks/pulls.yaml"
        playbook.write_text(playbook.read_text().replace("perRack: 25%", "perRack: 2"))
        yield made


def state_of(site: Site, name: str) -> Path:
    return site.node(name) / "var/lib/rollout"


def forge(site: Site, token: str) -> None:
    folder = state_of(site, LIAR)
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / "token").write_text(token)


def run(site: Site) -> int:
    made = site.rollout("plan", "--cluster", "small", "--limit", EVERYBODY, "--out", "p.json")
    assert made.code == 0, made.err
    return site.rollout("apply", "p.json", "--yes").code


@pytest.mark.process
def test_a_forged_token_costs_one_node_and_the_others_are_applied_and_reverted(site: Site) -> None:
    before = {name: site.everything(name) for name in HONEST}
    forge(site, "999999999999999 forged ended\n")
    assert run(site) == 4
    assert all(site.is_new(name) for name in HONEST)
    assert not site.is_new(LIAR)
    tokens = {(state_of(site, name) / "token").read_text().split()[0] for name in HONEST}
    assert tokens == {"1"}, "the lie raised no other token"
    shutil.rmtree(site.folder / site.state)
    back = site.rollout("rollback", "--cluster", "small", "--emergency", "--limit", EVERYBODY, "--yes")
    assert back.code in (0, 4), back.out + back.err
    assert {name: site.everything(name) for name in HONEST} == before
