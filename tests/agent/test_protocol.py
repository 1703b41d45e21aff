"""The protocol stands once, in ``rollout/kubelet/agent/protocol.py``: what is made of it is up to date, and the agent's program has no other words."""

from __future__ import annotations

import re

import pytest

from rollout.adapters.agent_program import agent_program
from rollout.core.model.snapshot import ReceiptState
from rollout.kubelet.agent.agent_lines import READERS
from rollout.kubelet.agent.conversation import BOOT
from rollout.kubelet.agent.protocol import (
    ANSWERS,
    ARGUMENTS,
    BECOMES,
    CAUSES,
    FAILED,
    PAYLOADS,
    REFUSED,
    SAID,
    TRIGGERS,
    VERBS,
)
from tests.agent.protocol import made
from tests.agent.shared_names import functions
from tests.places import ROOT

PROGRAM = agent_program()
CODE = "\n".join(functions(PROGRAM).values())


@pytest.mark.parametrize("name", made())
def test_what_is_made_of_the_table_is_up_to_date(name: str) -> None:
    assert (ROOT / name).read_text() == made()[name], "`python -m tests.agent.protocol` writes it anew"


def test_every_line_of_an_answer_is_read_and_printed() -> None:
    assert READERS.keys() == ANSWERS.keys()
    printed = set(re.findall(r'\bsay "([a-z-]+)[ "$]', CODE))
    printed |= set(re.findall(r'\bsurroundings_tell "?([a-z]+)', CODE))
    through_a_word = {"receipt", "history", "unit", "service", "process", "serving"}
    assert {*printed, *through_a_word} - {"left"} == ANSWERS.keys() - {"left"}


def test_every_verb_has_its_function_and_its_words_are_in_the_tables() -> None:
    assert {f"verb_{name}" for name in (*VERBS, *TRIGGERS)} == {
        name for name in functions(PROGRAM) if name.startswith("verb_")
    }
    for form in VERBS.values():
        assert {*form.needs, *form.takes} <= ARGUMENTS.keys()
        assert set(form.payload) <= PAYLOADS.keys()
        assert set(form.answers) <= ANSWERS.keys()
    asked = {key for form in VERBS.values() for key in (*form.needs, *form.takes)}
    assert asked == ARGUMENTS.keys()
    assert {word for form in VERBS.values() for word in form.payload} == PAYLOADS.keys()
    assert set(re.findall(r"\beach ([a-z]+) ", CODE)) == PAYLOADS.keys()


def test_the_references_are_those_of_the_table() -> None:
    refused = set(re.findall(r'\brefuse ([a-z-]+)|\bsay "refused ([a-z-]+)|\bs_reference=([a-z-]+)', CODE))
    refused |= set(re.findall(r"()()\brefused ([a-z-]+-[a-z-]+)", BOOT))
    assert {word for found in refused for word in found if word} == set(REFUSED)
    assert set(re.findall(r"\brevert_stick ([a-z-]+)", CODE)) == FAILED.keys()
    assert set(re.findall(r'\bsay "say ([a-z-]+)', CODE)) == set(SAID)


def test_a_receipt_becomes_what_the_diagram_shows() -> None:
    """The states are those of the receipts that an apply lays; each next one by the only renames of a receipt."""
    laid = dict(re.findall(r'\breceipt_lay "?([a-z]+(?:-\$end)?)"? ([a-z]+) ', CODE))
    assert laid == {
        "armed": "armed",
        "finished": "armed",
        "confirmed": "confirmed",
        "reverting-$end": "reverting",
        "reverted-$end": "reverted",
    }
    states = {state.value for state in ReceiptState}
    assert {state for row in BECOMES for state in row[:2]} - {""} == states == set(laid.values())
    put = set(re.findall(r'\breceipt_become "?([a-z]+)|mv -f "\$T/next/([a-z]+)[-$\w]*" "\$T/receipt"', CODE))
    assert {word for found in put for word in found if word} == {
        "armed",
        "finished",
        "confirmed",
        "reverting",
        "reverted",
    }
    loop = re.search(r"for end in ([a-z -]+); do", CODE)
    assert loop is not None
    assert tuple(loop[1].split()) == CAUSES
    named = re.findall(r"\brevert_fully ([a-z-]+) |\bcause=([a-z-]+)", CODE)
    assert {cause for found in named for cause in found if cause} == set(CAUSES)
