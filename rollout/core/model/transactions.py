"""What the files of a node should hold: a function of its transactions, in the order of their applies and reverts.

The last event on a path decides: an apply left the bytes after it, a revert left the bytes before it. Receipts of a node
and runs of a journal both become ``NodeTransaction``, so every command that names expected bytes asks this function.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rollout.core.model.frozen import dataclass
from rollout.core.model.snapshot import ReceiptState

UNDER_WAY = frozenset({ReceiptState.ARMED, ReceiptState.REVERTING})


@dataclass(frozen=True, slots=True)
class FileVersions:
    """One file of a transaction: its digests before and after (``""``: absent).

    ``mode`` (octal) and ``owner`` (``uid:gid``) are what the transaction wrote, ``""`` if not known.
    """

    path: str
    before: str
    after: str
    mode: str = ""
    owner: str = ""


@dataclass(frozen=True, slots=True)
class NodeTransaction:
    """One transaction of a node, with its places among all applies and reverts there: the greater, the later.

    ``reverted_at`` 0: it is not reverted, or nothing recorded when.
    """

    tx: str
    state: ReceiptState
    applied_at: int
    files: tuple[FileVersions, ...]
    reverted_at: int = 0


@dataclass(frozen=True, slots=True)
class Expected:
    """One path, by the last event on it: the apply (confirmed) or the revert of ``tx``.

    ``digest`` is ``""`` for a path that should be absent. ``mode`` (octal) and ``owner`` (``uid:gid``) are ``""`` if
    nothing is expected. While the transaction is in progress, nothing is expected of the path.
    """

    path: str
    tx: str
    state: ReceiptState
    digest: str = ""
    mode: str = ""
    owner: str = ""


Place = tuple[int, int]
"""Of an event. The second number orders reverts that have no number of their own."""


def expected_files(transactions: Sequence[NodeTransaction]) -> tuple[Expected, ...]:
    """What each path should hold that any of these transactions changed, those of the newest transaction first."""
    reverts = _reverts(transactions)
    last: dict[str, tuple[Place, Expected]] = {}
    for each in sorted(transactions, key=lambda found: -found.applied_at):
        at = (each.applied_at, 0)
        if each.state in UNDER_WAY:
            at = (max(found.applied_at + found.reverted_at for found in transactions) + 1, 0)  # later than all others
        for file in each.files:
            event = max(at, reverts.get(each.tx, at))
            if file.path not in last or event > last[file.path][0]:
                last[file.path] = (event, _left(each, file))
    return tuple(expected for _, expected in last.values())


def in_force(transactions: Sequence[NodeTransaction]) -> tuple[NodeTransaction, ...]:
    """The confirmed transactions, the newest first."""
    confirmed = (each for each in transactions if each.state is ReceiptState.CONFIRMED)
    return tuple(sorted(confirmed, key=lambda each: -each.applied_at))


def on_top_of(tx: str, transactions: Sequence[NodeTransaction]) -> tuple[NodeTransaction, ...]:
    """Transactions in force that changed a file of ``tx`` after its last event there. The revert of ``tx`` meets their bytes."""
    reverts = _reverts(transactions)
    below = next((each for each in transactions if each.tx == tx), None)
    if below is None:
        return ()
    paths = {file.path for file in below.files}
    since = reverts.get(tx, (below.applied_at, 0))
    return tuple(
        each
        for each in in_force(transactions)
        if (each.applied_at, 0) > since and paths.intersection(file.path for file in each.files)
    )


def _left(transaction: NodeTransaction, file: FileVersions) -> Expected:
    match transaction.state:
        case ReceiptState.CONFIRMED:
            return Expected(file.path, transaction.tx, transaction.state, file.after, file.mode, file.owner)
        case ReceiptState.REVERTED:
            return Expected(file.path, transaction.tx, transaction.state, file.before)
    return Expected(file.path, transaction.tx, transaction.state)


def _reverts(transactions: Sequence[NodeTransaction]) -> dict[str, Place]:
    """Transaction → the place of its revert.

    Where nothing recorded it (before its confirm, or by an earlier version), the bytes decide: a newer reverted transaction
    that began with the bytes of this one was reverted before it. Else this one was reverted before the next apply.
    """
    places: dict[str, Place] = {}
    newer: list[NodeTransaction] = []
    for each in sorted(transactions, key=lambda found: -found.applied_at):
        if each.state is ReceiptState.REVERTED:
            above = [places[found.tx] for found in _built_on(each, newer) if found.tx in places]
            if each.reverted_at:
                places[each.tx] = (each.reverted_at, 0)
            elif above:
                places[each.tx] = (max(above)[0], max(above)[1] + 1)
            else:
                places[each.tx] = (each.applied_at, 1)
        newer.append(each)
    return places


def _built_on(below: NodeTransaction, newer: Sequence[NodeTransaction]) -> Iterator[NodeTransaction]:
    """Of the ``newer`` ones those that began with the bytes that ``below`` left, on any path."""
    left = {(file.path, file.after) for file in below.files if file.after != file.before}
    for each in newer:
        if left.intersection((file.path, file.before) for file in each.files):
            yield each
