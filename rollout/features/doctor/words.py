"""What ``rollout doctor`` found, folded by message: for people one screen however many nodes, for programs a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rollout.core.model.verdict import SEVERITY, Verdict
from rollout.core.model.ways_in import DoctorCheck, Way
from rollout.core.text.message_folding import for_all, nameless
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable
from rollout.features.doctor.rules.fixes import NO_WAY, ToFix, fix
from rollout.features.doctor.rules.round_trips import ZoneTrips, trip_texts

NOT_REACHED = "not-reached"
NOT_SET = "not-set"
MEASURED = "measured"
"""In the place of a verdict: it is none."""
_NOT_REACHED = "not checked: an earlier check failed"
_NOT_SET = "not set in the inventory's `endpoints:`"
SCREEN = 46
"""Lines of the text, and two more; the document has everything."""
_MOST_DETAILS = 3
_WIDTH = 10 + max(map(len, DoctorCheck))


@dataclass(frozen=True, slots=True)
class DoctorResult:
    """One check of one node (``node`` ``""``: of the cluster), with its evidence. ``reference`` is ``""`` for a pass."""

    node: str
    check: DoctorCheck
    verdict: Verdict
    message: str = ""
    reference: str = ""


@dataclass(frozen=True, slots=True)
class DoctorPart:
    """Checks with the same result: its nodes (none: it is a check of the cluster), the reason, and what fixes it.

    ``reference`` is ``None`` for a pass. ``not-reached``: an earlier check failed; ``not-set``: nothing to check.
    """

    checks: tuple[DoctorCheck, ...]
    verdict: Verdict
    reference: str | None
    message: str
    fix: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DoctorDocument:
    """What was checked on the nodes ``read`` of ``selected`` nodes. ``ok``: no check failed, none is unknown.

    ``round_trips``: how far the zones are from this machine, and what a worker there would do. They are no check.
    """

    cluster: str
    ok: bool
    selected: int
    read: tuple[str, ...]
    parts: tuple[DoctorPart, ...]
    round_trips: tuple[ZoneTrips, ...] = ()


def folded_checks(
    cluster: str, results: Iterable[DoctorResult], ways: Mapping[str, Way], drawn_from: str | None = None
) -> tuple[DoctorPart, ...]:
    """In the order of the checks; of one check the worst first. What was not reached is one part for its nodes.

    ``drawn_from``: the ``--limit`` of a sample; ``None``: every node was read.
    """
    together: dict[tuple[DoctorCheck, Verdict, str, str], list[str]] = {}
    missed: dict[str, list[DoctorCheck]] = {}
    unset: list[DoctorCheck] = []
    for each in results:
        if each.reference == NOT_REACHED:
            missed.setdefault(each.node, []).append(each.check)
        elif each.reference == NOT_SET:
            unset.append(each.check)
        else:
            message = nameless(each.message, each.node) if each.node else each.message
            together.setdefault((each.check, each.verdict, each.reference, message), []).append(each.node)
    parts = [_part(cluster, *key, tuple(filter(None, nodes)), ways, drawn_from) for key, nodes in together.items()]
    for checks, nodes in _by_checks(missed).items():
        parts.append(DoctorPart(checks, Verdict.UNKNOWN, NOT_REACHED, _NOT_REACHED, "", tuple(nodes)))
    if unset:
        parts.append(DoctorPart(tuple(unset), Verdict.UNKNOWN, NOT_SET, _NOT_SET, "", ()))
    order = list(DoctorCheck)
    return tuple(
        sorted(parts, key=lambda part: (order.index(part.checks[0]), -SEVERITY[part.verdict], -len(part.nodes)))
    )


def _part(
    cluster: str,
    check: DoctorCheck,
    verdict: Verdict,
    reference: str,
    message: str,
    names: tuple[str, ...],
    ways: Mapping[str, Way],
    drawn_from: str | None,
) -> DoctorPart:
    way = ways.get(names[0], NO_WAY) if names else NO_WAY
    how = fix(reference, ToFix(cluster, fold(names), way, drawn_from)) if reference else ""
    return DoctorPart((check,), verdict, reference or None, for_all(message, names), how, names)


def _by_checks(missed: Mapping[str, Sequence[DoctorCheck]]) -> Mapping[tuple[DoctorCheck, ...], list[str]]:
    together: dict[tuple[DoctorCheck, ...], list[str]] = {}
    for name, checks in missed.items():
        together.setdefault(tuple(checks), []).append(name)
    return together


def is_well(parts: Iterable[DoctorPart]) -> bool:
    """A back end that the inventory does not name is no trouble."""
    return all(part.verdict is Verdict.PASS or part.reference == NOT_SET for part in parts)


def doctor_lines(document: DoctorDocument) -> tuple[str, ...]:
    """One line for what passes in each check, then each trouble with its reason and what fixes it, on one screen."""
    share = f"{len(document.read):,} of {counted(document.selected, 'node')}"
    more = "" if len(document.read) == document.selected else "; --all reads every node"
    lines = [f"{document.cluster}: {share} read{more}"]
    for check in DoctorCheck:
        lines += _passes(check, [part for part in document.parts if part.checks[0] is check and _passed(part)])
    lines += [f"{_head(MEASURED, 'round trip'):<{_WIDTH}} {text}" for text in trip_texts(document.round_trips)]
    missed = sorted({name for part in document.parts if part.reference == NOT_REACHED for name in part.nodes})
    troubles = [part for part in document.parts if not _passed(part) and part.reference != NOT_REACHED]
    if missed:
        troubles.append(DoctorPart((), Verdict.UNKNOWN, NOT_REACHED, _NOT_REACHED, "", tuple(missed)))
    for done, part in enumerate(troubles):
        block = tuple(_trouble(part))
        if len(lines) + len(block) > SCREEN:
            lines.append(f"… and {len(troubles) - done} more; -o json has all of them")
            break
        lines += block
    return (*lines, _sum(document))


def _passed(part: DoctorPart) -> bool:
    return part.verdict is Verdict.PASS


def _head(verdict: str, check: str) -> str:
    return f"{verdict:<9}{check}"


def _passes(check: DoctorCheck, parts: Sequence[DoctorPart]) -> Iterator[str]:
    if not parts:
        return
    details = Counter({part.message: len(part.nodes) for part in parts if part.message})
    shown = [printable(text, 120) for text, _ in details.most_common(_MOST_DETAILS)]
    rest = f" and {len(details) - len(shown)} more" if len(details) > len(shown) else ""
    number = sum(len(part.nodes) for part in parts)
    nodes = counted(number, "node") if number else ""
    yield f"{_head(Verdict.PASS, check):<{_WIDTH}} {': '.join(filter(None, (nodes, ', '.join(shown) + rest)))}".rstrip()


def _trouble(part: DoctorPart) -> Iterator[str]:
    what = ", ".join(part.checks) or "other checks"
    mark = ":" if len(part.checks) > 1 else ""
    nodes = f"{counted(len(part.nodes), 'node')} {printable(fold(part.nodes), 100)}: " if part.nodes else ""
    reference = "" if part.reference in (NOT_REACHED, NOT_SET) else f" [{part.reference}]"
    yield f"{_head(part.verdict, what) + mark:<{_WIDTH}} {nodes}{printable(part.message, 500)}{reference}"
    begin = "fix: "
    for line in part.fix.splitlines():
        yield f"{'':<9}{begin}{line}"
        begin = "     "


def _sum(document: DoctorDocument) -> str:
    bad = {node for part in document.parts if part.verdict is not Verdict.PASS for node in part.nodes}
    reached = {
        node for part in document.parts if part.checks[0] is DoctorCheck.LOGIN and _passed(part) for node in part.nodes
    }
    if document.read and not reached:
        return "no login to a node succeeded: check the network, VPN or bastion of this machine, then apply the fixes above"
    if is_well(document.parts):
        unset = ", ".join(check for part in document.parts if part.reference == NOT_SET for check in part.checks)
        passed = "every check of the nodes passes" if unset else "every check passes"
        return f"{passed}: {counted(len(document.read), 'node')}{unset and f'; not checked: {unset}'}"
    others = sum(not _passed(part) and not part.nodes and part.reference != NOT_SET for part in document.parts)
    rest = f", {counted(others, 'back end')} with a failed check" if others else ""
    return f"{counted(len(document.read) - len(bad), 'node')} without trouble, {len(bad)} with a failed or unknown check{rest}"
