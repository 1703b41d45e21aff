"""What the files of a node should hold: a function of its transactions, in the order of their applies and reverts.

The last event on a path decides: an apply left the bytes after it, a revert left the bytes before it. Receipts of a node
and runs of a journal both become ``NodeTransaction``, so every command that names expected bytes asks this function.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

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
    paths = _paths(transactions)
    newest_first = sorted(transactions, key=lambda transaction: -transaction.applied_at)
    changed = dict.fromkeys(file.path for transaction in newest_first for file in transaction.files)
    return tuple(paths[path].expected for path in changed)


def expected_by_receipts(transactions: Sequence[NodeTransaction]) -> tuple[Expected, ...]:
    """The same of the receipts that a node still has, as far as they show it.

    A node removes its oldest transactions, but keeps one with foreign bytes. The removed ones leave a gap in the numbers. Nothing
    is expected of a path with a gap after its last event there: a removed transaction may have changed it since.
    """
    numbers = {number for each in transactions for number in (each.applied_at, each.reverted_at)}
    ends = {path: history.at for path, history in _paths(transactions).items()}
    return tuple(
        expected
        for expected in expected_files(transactions)
        if sum(number > ends[expected.path] for number in numbers) >= max(numbers) - ends[expected.path]
    )


def unchecked_paths(transactions: Sequence[NodeTransaction]) -> tuple[str, ...]:
    """The paths of these receipts of which nothing is expected, because a removed transaction may have changed them since."""
    checked = {each.path for each in expected_by_receipts(transactions)}
    return tuple(each.path for each in expected_files(transactions) if each.path not in checked)


def has_gaps(transactions: Sequence[NodeTransaction]) -> bool:
    """Whether the node has removed transactions: numbers are missing. Files that only these changed are in no receipt."""
    numbers = {number for each in transactions for number in (each.applied_at, each.reverted_at) if number}
    return len(numbers) < max(numbers, default=0)


def in_force(transactions: Sequence[NodeTransaction], path: str = "") -> tuple[NodeTransaction, ...]:
    """The transactions with bytes that a file holds, or would hold if all newer ones were reverted; the newest first.

    A revert restores what was there before its transaction, also where newer ones were applied on top: none of these is in
    force on that path then. ``path``: only those that are in force there. Of a transaction without files nothing more is
    known than that it is confirmed.
    """
    histories = _paths([each for each in transactions if each.files])
    there = {tx for changed, history in histories.items() if path in ("", changed) for tx in history.stack}
    standing = (
        each
        for each in transactions
        if each.state not in UNDER_WAY and (each.tx in there if each.files else each.state is ReceiptState.CONFIRMED)
    )
    return tuple(sorted(standing, key=lambda transaction: -transaction.applied_at))


def undone_at(transactions: Sequence[NodeTransaction]) -> Mapping[str, int]:
    """Transaction → when the revert of another one took its last file out of force: its own revert did not, or not last."""
    standing = {each.tx for each in in_force(transactions)}
    paths = _paths(transactions)
    found: dict[str, int] = {}
    for each in transactions:
        if each.state in UNDER_WAY or each.tx in standing or not each.files:
            continue
        place = max(paths[file.path].left[each.tx] for file in each.files)
        if each.state is ReceiptState.CONFIRMED or place != each.reverted_at > 0:
            found[each.tx] = place
    return found


def undone_in_part(tx: str, transactions: Sequence[NodeTransaction]) -> bool:
    """Whether the revert of an older transaction restored one of the files of ``tx`` and not all of them."""
    paths = _paths(transactions)
    files = [file.path for each in transactions if each.tx == tx for file in each.files]
    there = [tx in paths[path].stack for path in files]
    return any(there) and not all(there)


def on_top_of(tx: str, transactions: Sequence[NodeTransaction]) -> tuple[NodeTransaction, ...]:
    """Transactions in force that changed a file of ``tx`` after its last event there. The revert of ``tx`` meets their bytes."""
    reverts = _reverts(transactions)
    below = next((each for each in transactions if each.tx == tx), None)
    if below is None:
        return ()
    paths = _paths(transactions)
    there = {each for file in below.files for each in paths[file.path].stack}
    since = reverts.get(tx, (below.applied_at, 0))
    return tuple(each for each in in_force(transactions) if each.tx in there and (each.applied_at, 0) > since)


def topmost_on(tx: str, transactions: Sequence[NodeTransaction]) -> str:
    """The transaction to revert first, before ``tx`` can be reverted: none is on top of it. ``""``: ``tx`` itself."""
    top = tx
    while above := on_top_of(top, transactions):
        top = above[0].tx
    return top if top != tx else ""


@dataclass(frozen=True, slots=True)
class _PathHistory:
    """One path after all events. ``at``: the number of the last one. ``stack``: the transactions in force or under way, the
    oldest first. ``left``: transaction → the number of the revert that removed it.
    """

    expected: Expected
    at: int
    stack: tuple[str, ...]
    left: Mapping[str, int]


def _paths(transactions: Sequence[NodeTransaction]) -> Mapping[str, _PathHistory]:
    """Each path, by its applies and reverts in their order: a revert restores all that its apply has met."""
    reverts = _reverts(transactions)
    latest = max((max(each.applied_at, each.reverted_at) for each in transactions), default=0) + 1
    events: list[tuple[Place, int, bool, NodeTransaction]] = []
    for transaction in transactions:
        applied = latest if transaction.state in UNDER_WAY else transaction.applied_at
        events.append(((applied, 0), transaction.applied_at, False, transaction))
        if transaction.tx in reverts:
            events.append((reverts[transaction.tx], transaction.applied_at, True, transaction))
    paths: dict[str, _PathHistory] = {}
    met: dict[tuple[str, str], tuple[str, ...]] = {}
    for place, _, is_revert, transaction in sorted(events, key=lambda event: event[:3]):
        for file in transaction.files:
            history = paths.get(file.path)
            before, left = (history.stack, history.left) if history else ((), {})
            if is_revert:
                stack = met.get((transaction.tx, file.path), ())
                left = {**left, **{tx: place[0] for tx in before if tx not in stack}}
            else:
                met[transaction.tx, file.path] = before
                stack = (*before, transaction.tx)
            paths[file.path] = _PathHistory(_left(transaction, file), place[0], stack, left)
    return paths


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
    for transaction in sorted(transactions, key=lambda each: -each.applied_at):
        if transaction.state is ReceiptState.REVERTED:
            above = [places[upper.tx] for upper in _built_on(transaction, newer) if upper.tx in places]
            if transaction.reverted_at:
                places[transaction.tx] = (transaction.reverted_at, 0)
            elif above:
                places[transaction.tx] = (max(above)[0], max(above)[1] + 1)
            else:
                places[transaction.tx] = (transaction.applied_at, 1)
        newer.append(transaction)
    return places


def _built_on(below: NodeTransaction, newer: Sequence[NodeTransaction]) -> Iterator[NodeTransaction]:
    """Of the ``newer`` ones those that began with the bytes that ``below`` left, on any path."""
    left = {(file.path, file.after) for file in below.files if file.after != file.before}
    for upper in newer:
        if left.intersection((file.path, file.before) for file in upper.files):
            yield upper
