"""A plan in colour: the same text, and a diff that is never wrapped."""

from __future__ import annotations

import re

from rollout.core.plans.plan_colours import painted
from rollout.core.plans.plan_text import plan_text
from tests.core.plans.test_plan_text import plan_of

PLAIN = plan_text(plan_of(40), whole=True)


def without(text: str) -> str:
    return re.sub(r"\x1b\[\d+m", "", text)


def test_only_colours_are_added_on_a_wide_screen() -> None:
    assert without(painted(PLAIN, 10_000)) == PLAIN


def test_additions_are_green_removals_red_and_every_colour_ends_with_its_line() -> None:
    lines = painted(PLAIN, 10_000).split("\n")
    assert "\x1b[32m      +serializeImagePulls: false\x1b[0m" in lines
    assert "\x1b[31m      -serializeImagePulls: true\x1b[0m" in lines
    assert "\x1b[1mWaves\x1b[0m" in lines
    assert all(line.count("\x1b[") in (0, 2) for line in lines)


def test_prose_is_wrapped_and_indented_and_a_diff_is_not() -> None:
    lines = without(painted(PLAIN, 60)).split("\n")
    assert painted(PLAIN, 60, colours=False).split("\n") == lines
    diff = [line for line in PLAIN.split("\n") if re.match(r" {6}[-+@ ]", line)]
    assert set(diff) <= set(lines)
    assert all(len(line) <= 60 for line in lines if line not in diff)


def test_the_context_of_a_diff_can_be_chosen() -> None:
    plan = plan_of(1)
    none, much = plan_text(plan, context=0), plan_text(plan, context=50)
    assert "rotateCertificates" not in none
    assert "kind: KubeletConfiguration" in much
    assert "more lines" not in much
