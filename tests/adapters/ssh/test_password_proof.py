"""Who gets sudo's password, and when it stops: drawn fleets, some of them hostile, against the rule.

The real dialogues of many logins take steps in a drawn order, as their threads would. A ledger outside them counts what each
node was sent and how its login ended, and checks the rule at every send.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import Enum, auto
from threading import Lock

import pytest

from rollout.adapters.ssh.elevation import PATIENCE, Elevation, Proof, proof_of
from rollout.app.ports import Target
from rollout.errors import RemoteError
from rollout.kubelet.agent.sudo import Secret
from tests.adapters.ssh.sshd import target

FLEETS = 400
"""Drawn for each kind of fleet."""


class Ways(Enum):
    """What a node does with its login."""

    ACCEPTS = auto()  # as an honest node with a right password, or a hostile one with any
    ASKS_AGAIN = auto()  # GNU sudo
    ENDS = auto()  # sudo-rs with passwd_tries=1, pam_faillock, a translated sudo: other words each
    LOSES_ITS_CONNECTION = auto()
    NEVER_ANSWERS = auto()
    NEVER_ASKS = auto()  # NOPASSWD, or a hostile node that prints `ready` at once
    READY_BEFORE_THE_PASSWORD = auto()  # hostile: prompt and `ready` in one
    ENDS_UNASKED = auto()


REJECTS = (Ways.ASKS_AGAIN, Ways.ENDS, Ways.LOSES_ITS_CONNECTION, Ways.NEVER_ANSWERS)
WORDS = (
    b"",
    b"sudo: maximum 1 incorrect authentication attempts\n",
    b"sudo: 1 Fehlversuch bei der Passwort-Eingabe\n",
    b"\xff\x00",
)


@dataclass
class Ledger:
    """The rule, counted by the test."""

    sent: list[Target] = field(default_factory=list)
    accepted: set[Target] = field(default_factory=set)
    rejected: set[Target] = field(default_factory=set)
    unanswered: int = 0
    most: int = 0
    lock: Lock = field(default_factory=Lock)

    def send(self, to: Target) -> None:
        assert to not in self.rejected, "a node that rejected it gets it again"
        assert not (len(self.rejected) >= 2 and len(self.accepted) < 3), "two rejections before three accepts stop it"
        self.unanswered += 1
        assert self.unanswered <= max(1, len(self.accepted) - len(self.rejected))
        self.sent.append(to)
        self.most = max(self.most, self.unanswered)

    def answer(self, of: Target, *, accepted: bool) -> None:
        self.unanswered -= 1
        (self.accepted if accepted else self.rejected).add(of)
        (self.rejected if accepted else self.accepted).discard(of)


class Login:
    """One node's login: the dialogue, and the node's side of it."""

    def __init__(self, proof: Proof, ledger: Ledger, to: Target, way: Ways, words: bytes) -> None:
        self.now = 0.0
        self.dialogue = Elevation(proof, to, lambda: self.now)
        self._ledger, self._to, self._way, self._words = ledger, to, way, words
        self._stderr = b""
        self._nonce = re.search(r"rollout %% (\w+)", self.dialogue.line("true"))[1].encode()  # type: ignore[index]
        self._sent = False
        self.error = ""

    def steps(self) -> Iterator[None]:
        """One look of the dialogue each, until the login is over."""
        try:
            yield from self._talk()
        except RemoteError as error:
            self.error = error.reference
        self._over(accepted=False)

    def _talk(self) -> Iterator[None]:
        prompt, ready = b"[sudo: [rollout % " + self._nonce + b"]] Password: ", b"rollout " + self._nonce + b" ready\n"
        if self._way is Ways.ENDS_UNASKED:
            raise self.dialogue.ended(self._words, 1)
        if self._way is Ways.NEVER_ASKS:
            yield from self._look(ready)
            return
        if self._way is Ways.READY_BEFORE_THE_PASSWORD:
            yield from self._look(prompt + ready)
            return
        yield from self._look(prompt)
        while not self._sent:
            yield from self._look(b"")
        match self._way:
            case Ways.ACCEPTS:
                yield from self._look(ready)
            case Ways.ASKS_AGAIN:
                yield from self._look(self._words + prompt)
            case Ways.ENDS:
                yield
                raise self.dialogue.ended(self._stderr + self._words, 1)
            case Ways.LOSES_ITS_CONNECTION:
                yield
            case _:
                while True:
                    yield from self._look(b"")
                    self.now += PATIENCE / 4

    def _look(self, more: bytes) -> Iterator[None]:
        self._stderr += more
        with self._ledger.lock:  # what is sent and what is counted are one step
            password = self.dialogue.next(self._stderr)
            if password:
                assert password == b"secret\n"
                assert not self._sent
                self._sent = True
                self._ledger.send(self._to)
            if self.dialogue.through and self._sent:
                self._sent = False
                self._ledger.answer(self._to, accepted=True)
        yield

    def _over(self, *, accepted: bool) -> None:
        """As the ``finally`` of a session does."""
        with self._ledger.lock:
            self.dialogue.give_up()
            if self._sent:
                self._sent = False
                self._ledger.answer(self._to, accepted=accepted)


def logins(rng: random.Random, ways: list[Ways]) -> tuple[Ledger, list[Login]]:
    proof, ledger = Proof(Secret("secret")), Ledger()
    return ledger, [Login(proof, ledger, target(f"n{n}"), way, rng.choice(WORDS)) for n, way in enumerate(ways)]


def run(rng: random.Random, ledger: Ledger, all_of_them: list[Login], *, together: int) -> None:
    """At most so many logins at a time, a step each in a drawn order."""
    waiting = [each.steps() for each in all_of_them]
    under_way: list[Iterator[None]] = []
    while waiting or under_way:
        while waiting and len(under_way) < together:
            under_way.append(waiting.pop())
        each = rng.choice(under_way)
        if next(each, StopIteration) is StopIteration:
            under_way.remove(each)
    assert ledger.unanswered == 0, "every send has its end"


@pytest.mark.parametrize("kind", ["any", "wrong password", "one hostile node", "two hostile nodes", "right password"])
def test_the_rule_holds_in_drawn_fleets(kind: str) -> None:
    rng = random.Random(kind)  # noqa: S311 - the same every time
    for _ in range(FLEETS):
        size = rng.randint(1, 60)
        ways = {
            "any": rng.choices(list(Ways), [rng.random() for _ in Ways], k=size),
            "right password": [Ways.ACCEPTS] * size,
        }.get(kind) or [rng.choice(REJECTS) for _ in range(size)]
        hostile = {"one hostile node": 1, "two hostile nodes": 2}.get(kind, 0)
        for place in rng.sample(range(size), min(hostile, size)):
            ways[place] = Ways.ACCEPTS
        together = rng.randint(1, 48)
        ledger, all_of_them = logins(rng, ways)
        run(rng, ledger, all_of_them, together=together)
        honest = [to for to in ledger.sent if ways[int(to.name[1:])] is not Ways.ACCEPTS]
        if kind in ("wrong password", "one hostile node", "two hostile nodes"):
            assert len(honest) <= 2 + hostile // 2, "no more nodes get a wrong password, whoever vouches for it"
        if kind == "right password":
            assert len(ledger.sent) == size, "all get it"
            assert min(size, together) < 12 or ledger.most > 1, "not one after the other"


def test_two_thousand_honest_nodes_and_one_that_lies_first() -> None:
    rng = random.Random(7)  # noqa: S311 - the same every time
    ledger, (liar, *honest) = logins(rng, [Ways.ACCEPTS, *[Ways.ENDS] * 2_000])
    list(liar.steps())
    run(rng, ledger, honest, together=48)
    assert len(ledger.sent) == 3


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("way", REJECTS)
def test_every_end_without_a_start_is_a_rejection_however_it_is_worded(way: Ways, words: bytes) -> None:
    ledger = Ledger()
    proof = Proof(Secret("secret"))
    for n in range(2):
        list(Login(proof, ledger, target(f"n{n}"), way, words).steps())
    third = Login(proof, ledger, target("n2"), Ways.ACCEPTS, b"")
    list(third.steps())
    assert ([to.name for to in ledger.sent], third.error) == (["n0", "n1"], "sudo-password-wrong")


def test_a_node_that_ends_before_the_password_was_sent_has_rejected_nothing() -> None:
    ledger, proof = Ledger(), Proof(Secret("secret"))
    for n in range(9):
        list(Login(proof, ledger, target(f"n{n}"), Ways.ENDS_UNASKED, WORDS[1]).steps())
    assert proof.may_send(target("n9"))


def test_the_rule_holds_with_threads() -> None:
    """Real concurrency: 32 logins at a time, each on a thread of its own."""
    rng = random.Random(1)  # noqa: S311 - the same every time
    for _ in range(4):
        ways = rng.choices([Ways.ACCEPTS, Ways.ASKS_AGAIN, Ways.ENDS], [20, 1, 1], k=300)
        ledger, all_of_them = logins(rng, ways)
        with ThreadPoolExecutor(32) as pool:
            list(pool.map(lambda login: list(login.steps()), all_of_them))
        assert ledger.unanswered == 0


def test_all_parts_of_a_process_share_what_nodes_answered() -> None:
    """A command may open nodes more than once: for its reads, its run, and an operator's commands."""
    secret = Secret("secret")
    assert proof_of(secret) is proof_of(secret)
    assert proof_of(secret) is not proof_of(Secret("secret"))
