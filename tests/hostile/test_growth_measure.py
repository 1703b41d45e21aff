"""The measurement of growth finds work that grows with the square, wherever it ends to, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from rollout.core.presentation.pages.health_gates import number_in
from rollout.kubelet.agent import sudo
from tests.hostile import adversarial, growth, limited

LONGEST = adversarial.LENGTH


@dataclass
class Worker:
    """A call that takes ``seconds`` of a length on its own clock."""

    seconds: Callable[[int], float]
    now: float = 0.0

    def __call__(self, text: str) -> None:
        self.now += self.seconds(len(text))
        raise ValueError(text[:1])

    def grows(self) -> bool:
        return growth.grows(self, lambda length: "x" * length, LONGEST, lambda: self.now) is not None


@pytest.mark.parametrize(
    ("seconds", "found"),
    [
        (lambda n: n / LONGEST, False),
        (lambda n: n * math.log(n + 1) / LONGEST, False),
        (lambda n: 0.5 + n / LONGEST, False),
        (lambda n: (n / LONGEST) ** 2, True),
        (lambda n: (n / LONGEST) ** 3, True),
        (lambda n: (min(n, 2000) / 2000) ** 2, True),
        (lambda n: (min(n, 2000) / 2000) ** 3 + n / LONGEST, True),
        (lambda n: (n / LONGEST) ** 2 / 100, False),
    ],
    ids=["linear", "with a logarithm", "with a large beginning", "square", "cube", "square of 2,000 characters",
         "cube of 2,000 characters", "square, but soon done"],
)  # fmt: skip
def test_growth_is_found(seconds: Callable[[int], float], found: bool) -> None:
    assert Worker(seconds).grows() is found


def test_every_case_has_a_text_of_each_length() -> None:
    """A case with the same text at every length shows no growth: these do harm by their number or form."""
    fixed = [name for name in adversarial.NAMES if len(limited._general(name, 9000)) < 4000]  # noqa: SLF001
    assert len(fixed) < 20
    for name in set(adversarial.NAMES) - set(fixed):
        assert len(limited._general(name, 36_000)) > 3 * len(limited._general(name, 9000)) or "nines" in name  # noqa: SLF001


def test_readers_get_their_own_input_with_a_part_of_it_repeated() -> None:
    made = [make(limited.READ_LENGTH) for _, make in limited.subject("reader:sudo").cases]
    assert len(made) > 10
    assert all(len(text) > limited.READ_LENGTH // 2 for text in made)
    assert any(text.count("\n") > 1000 for text in made)


def test_a_word_of_a_refusal_that_comes_often_is_looked_for_once() -> None:
    """``account`` begins a message of sudo, and a node prints it 8,000 times."""
    said = b"account " * (LONGEST // 8)
    assert growth.grows(lambda text: sudo.refusal(text.encode(), "", status=1, sent=False), lambda n: "account " * (n // 8), LONGEST) is None  # fmt: skip
    assert sudo.refusal(said + b"is locked", "", status=1, sent=False)[0] == "sudo-not-allowed"
    assert sudo.refusal(b"account\nlocked", "", status=1, sent=False)[0] == "sudo-failed"
    assert sudo.refusal(b"account x\nx account is expired", "", status=1, sent=False)[0] == "sudo-not-allowed"


def test_evidence_of_digits_is_no_long_work() -> None:
    assert growth.grows(number_in, lambda n: "1 (median of " + "1" * n, LONGEST) is None
