"""Which known word was probably meant."""

from __future__ import annotations

import pytest

from rollout.core.text.suggest import did_you_mean

FLAGS = ("--runonce", "--max-pods", "--v", "maxPods", "serializeImagePulls")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("--nope", ""),
        ("--x", ""),
        ("--runonse", "did you mean `--runonce`?"),
        ("max-pods", "did you mean `--max-pods`?"),
        ("--max-pod", "did you mean `--max-pods`?"),
        ("maxPod", "did you mean `maxPods`?"),
        ("SerializeImagePull", "did you mean `serializeImagePulls`?"),
    ],
)
def test_the_dashes_of_a_flag_are_no_likeness(word: str, meant: str) -> None:
    assert did_you_mean(word, FLAGS) == meant
