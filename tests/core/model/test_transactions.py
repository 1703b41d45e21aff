"""What a node's files should hold follows from the order of its applies and reverts: compared with a list of versions."""

from __future__ import annotations

from random import Random

import pytest

from rollout.core.model.snapshot import ReceiptState
from rollout.core.model.transactions import (
    Expected,
    FileVersions,
    NodeTransaction,
    expected_files,
    in_force,
    on_top_of,
)

PATHS = ("/a", "/b", "/c")


class Played:
    """A node's files, and its transactions in the order of their applies."""

    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self.files = dict.fromkeys(PATHS, "")
        self.transactions: list[NodeTransaction] = []
        self.place = 0

    def apply(self) -> None:
        self.place += 1
        tx = f"t{self.place}"
        paths = self.dice.sample(PATHS, self.dice.randint(1, 3))
        files = tuple(FileVersions(path, self.files[path], f"{tx}{path}") for path in paths)
        self.transactions.append(NodeTransaction(tx, ReceiptState.CONFIRMED, self.place, files))
        self.files |= {file.path: file.after for file in files}

    def revert(self, found: NodeTransaction, *, noted: bool = True) -> None:
        self.place += 1
        self.files |= {file.path: file.before for file in found.files}
        at = self.transactions.index(found)
        place = self.place if noted else 0
        self.transactions[at] = NodeTransaction(found.tx, ReceiptState.REVERTED, found.applied_at, found.files, place)

    def check(self) -> None:
        touched = {file.path for each in self.transactions for file in each.files}
        shuffled = self.dice.sample(self.transactions, len(self.transactions))
        found = {each.path: each.digest for each in expected_files(shuffled)}
        assert found == {path: self.files[path] for path in touched}, self.transactions


@pytest.mark.parametrize("seed", range(300))
def test_applies_and_reverts_in_any_order(seed: int) -> None:
    """Also forced reverts below newer transactions: the last event on a path decides."""
    dice = Random(seed)  # noqa: S311 - reproducible
    played = Played(dice)
    for _ in range(8):
        on = in_force(played.transactions)
        if on and dice.random() < 0.5:
            played.revert(dice.choice(on))
        else:
            played.apply()
        played.check()


@pytest.mark.parametrize("seed", range(300))
def test_without_places_the_bytes_show_that_the_newest_was_reverted_first(seed: int) -> None:
    """Receipts of an earlier version, which reverted only what nothing covered."""
    dice = Random(seed)  # noqa: S311 - reproducible
    played = Played(dice)
    for _ in range(8):
        free = [each for each in in_force(played.transactions) if not on_top_of(each.tx, played.transactions)]
        if free and dice.random() < 0.5:
            played.revert(dice.choice(free), noted=False)
        else:
            played.apply()
        played.check()


def test_nothing_is_expected_of_a_file_in_progress() -> None:
    below = NodeTransaction("t1", ReceiptState.CONFIRMED, 1, (FileVersions("/a", "", "1"), FileVersions("/b", "", "1")))
    for state in (ReceiptState.ARMED, ReceiptState.REVERTING):
        moving = NodeTransaction("t2", state, 2, (FileVersions("/a", "1", "2"),))
        assert expected_files((below, moving)) == (
            Expected("/a", "t2", state),
            Expected("/b", "t1", ReceiptState.CONFIRMED, "1"),
        )


def test_a_newer_transaction_is_on_top_only_on_the_same_files_and_after_the_last_event() -> None:
    below = NodeTransaction("t1", ReceiptState.CONFIRMED, 1, (FileVersions("/a", "", "1"),))
    above = NodeTransaction("t2", ReceiptState.CONFIRMED, 2, (FileVersions("/a", "1", "2"),))
    beside = NodeTransaction("t3", ReceiptState.CONFIRMED, 3, (FileVersions("/b", "", "3"),))
    assert on_top_of("t1", (below, above, beside)) == (above,)
    forced = NodeTransaction("t1", ReceiptState.REVERTED, 1, below.files, 4)
    assert on_top_of("t1", (forced, above, beside)) == ()
    assert on_top_of("t9", (below, above)) == ()
