"""What a node's files should hold follows from the order of its applies and reverts: compared with a list of versions."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from rollout.core.model.snapshot import ReceiptState
from rollout.core.model.transactions import (
    Expected,
    FileVersions,
    NodeTransaction,
    expected_by_receipts,
    expected_files,
    has_gaps,
    in_force,
    on_top_of,
    unchecked_paths,
    undone_at,
    undone_in_part,
)

PATHS = ("/a", "/b", "/c")


class Played:
    """A node's files, and its transactions in the order of their applies."""

    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self.files = dict.fromkeys(PATHS, "")
        self.under: dict[str, dict[str, tuple[str, ...]]] = {}
        self.stacks: dict[str, tuple[str, ...]] = dict.fromkeys(PATHS, ())
        self.transactions: list[NodeTransaction] = []
        self.place = 0
        self.undone: dict[str, int] = {}  # by the revert of another one

    def apply(self) -> None:
        self.place += 1
        tx = f"t{self.place}"
        paths = self.dice.sample(PATHS, self.dice.randint(1, 3))
        files = tuple(FileVersions(path, self.files[path], f"{tx}{path}") for path in paths)
        self.transactions.append(NodeTransaction(tx, ReceiptState.CONFIRMED, self.place, files))
        self.files |= {file.path: file.after for file in files}
        self.under[tx] = {path: self.stacks[path] for path in paths}
        self.stacks |= {path: (*self.stacks[path], tx) for path in paths}

    def revert(self, found: NodeTransaction, *, noted: bool = True) -> None:
        self.place += noted  # no number of an earlier version's revert
        self.files |= {file.path: file.before for file in found.files}
        before = {tx for stack in self.stacks.values() for tx in stack}
        self.stacks |= self.under[found.tx]
        after = {tx for stack in self.stacks.values() for tx in stack}
        self.undone |= dict.fromkeys(before - after - {found.tx}, self.place)
        self.undone = {tx: place for tx, place in self.undone.items() if tx not in after}
        at = self.transactions.index(found)
        place = self.place if noted else 0
        self.transactions[at] = NodeTransaction(found.tx, ReceiptState.REVERTED, found.applied_at, found.files, place)

    def check(self) -> None:
        touched = {file.path for each in self.transactions for file in each.files}
        shuffled = self.dice.sample(self.transactions, len(self.transactions))
        assert expected_by_receipts(shuffled) == expected_files(shuffled), "no number is missing"
        found = {each.path: each.digest for each in expected_files(shuffled)}
        assert found == {path: self.files[path] for path in touched}, self.transactions
        for path, stack in self.stacks.items():
            assert tuple(each.tx for each in reversed(in_force(shuffled, path))) == stack, self.transactions


@pytest.mark.parametrize("seed", range(300))
def test_applies_and_reverts_in_any_order(seed: int) -> None:
    """Also forced reverts below newer transactions: the last event on a path decides."""
    dice = Random(seed)  # noqa: S311 - reproducible
    played = Played(dice)
    for _ in range(8):
        confirmed = [each for each in played.transactions if each.state is ReceiptState.CONFIRMED]
        if confirmed and dice.random() < 0.5:
            played.revert(dice.choice(confirmed))
        else:
            played.apply()
        played.check()
        assert undone_at(played.transactions) == played.undone, played.transactions


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


def test_a_forced_revert_below_a_newer_transaction_leaves_that_one_in_force_on_its_other_files_only() -> None:
    below = NodeTransaction("t1", ReceiptState.REVERTED, 1, (FileVersions("/a", "", "1"),), 3)
    whole = NodeTransaction("t2", ReceiptState.CONFIRMED, 2, (FileVersions("/a", "1", "2"),))
    assert in_force((below, whole)) == ()
    assert undone_at((below, whole)) == {"t2": 3}
    assert not undone_in_part("t2", (below, whole))
    half = replace(whole, files=(*whole.files, FileVersions("/b", "", "2")))
    assert in_force((below, half)) == in_force((below, half), "/b") == (half,)
    assert in_force((below, half), "/a") == ()
    assert undone_at((below, half)) == {}
    assert undone_in_part("t2", (below, half))


def test_a_change_is_undone_by_the_revert_of_an_older_one_also_if_it_was_reverted_itself_later() -> None:
    below = NodeTransaction("t1", ReceiptState.REVERTED, 1, (FileVersions("/a", "", "1"),), 3)
    above = NodeTransaction("t2", ReceiptState.REVERTED, 2, (FileVersions("/a", "1", "2"),), 4)
    assert undone_at((below, above)) == {"t2": 3}
    assert undone_at((replace(below, reverted_at=4), replace(above, reverted_at=3))) == {}, "each by its own revert"


def test_nothing_is_expected_of_a_path_that_a_removed_transaction_may_have_changed_since() -> None:
    """A node keeps a transaction with foreign bytes, and removes newer ones: their numbers are missing."""
    kept = NodeTransaction("t1", ReceiptState.REVERTED, 1, (FileVersions("/a", "", "1"),), 2)
    newest = NodeTransaction("t9", ReceiptState.CONFIRMED, 4, (FileVersions("/b", "8", "9"),))
    assert [each.path for each in expected_by_receipts((newest, kept))] == ["/b"], "number 3 is missing"
    assert [each.path for each in expected_by_receipts((replace(newest, applied_at=3), kept))] == ["/b", "/a"]
    far = replace(newest, applied_at=10**30)
    assert [each.path for each in expected_by_receipts((far, kept))] == ["/b"], "a false number costs nothing"


@pytest.mark.parametrize("seed", range(300))
def test_a_path_of_removed_transactions_is_expected_rightly_or_named_or_a_gap_shows(seed: int) -> None:
    """Whatever the node removed: no path that was changed goes unmentioned."""
    dice = Random(seed)  # noqa: S311 - reproducible
    played = Played(dice)
    for _ in range(8):
        on = [each for each in in_force(played.transactions) if each.state is ReceiptState.CONFIRMED]
        if on and dice.random() < 0.3:
            played.revert(dice.choice(on))
        else:
            played.apply()
    newest = max(played.transactions, key=lambda each: max(each.applied_at, each.reverted_at))
    left = [each for each in played.transactions if each is newest or dice.random() < 0.6]
    expected = {each.path: each.digest for each in expected_by_receipts(left)}
    assert expected == {path: played.files[path] for path in expected}
    named = set(unchecked_paths(left))
    assert named == {file.path for each in left for file in each.files} - set(expected)
    touched = {file.path for each in played.transactions for file in each.files}
    assert has_gaps(left) or touched == set(expected), "the node's own receipts show that they are not all"
    assert has_gaps(left) == (len(left) < len(played.transactions))


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
