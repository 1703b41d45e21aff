"""What ``rollout plan`` prints: every change with its diff, the waves, the numbers at which it halts, and the nodes that are left out.

It is folded: 2,000 nodes are a few groups. Groups that differ only in bytes that rollout does not change are shown once.
A long plan is shown without the lines of its diffs: each file then says how many lines it gains and loses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from rollout.core.model.areas import AreaKind, area_of, most_of
from rollout.core.model.gate_kinds import known
from rollout.core.model.gates import Gate, GateScope
from rollout.core.model.plan import ExcludedNode, Plan, Standing, Wave
from rollout.core.model.playbook import EMERGENCY_LIMITS, Budget, OnLateHarm, Scope
from rollout.core.plans import estimate
from rollout.core.plans.change_text import DiffStyle, config_map_lines, folded, group_lines
from rollout.core.plans.foreseen_text import consequences_lines, drains_lines, loads_lines
from rollout.core.plans.smallest_harm import harm_words
from rollout.core.text import diff
from rollout.core.text.message_folding import nameless
from rollout.core.text.terminal import CONTROL, counted, printable, seconds_text, wall_of

# A gate as a plan shows it: what it will ask or run.


_LONGEST = 400


def gates_text(gates: Iterable[Gate], scope: GateScope) -> str:
    """The gates of a scope by name, with what each one asks in brackets."""
    return printable(", ".join(_gate(gate) for gate in gates if gate.scope is scope), _LONGEST) or "none"


def _gate(gate: Gate) -> str:
    """A gate with its arguments: a command runs on every node, or here."""
    asked = " ".join(gate.asks.words())
    return f"{gate.name} ({asked})" if asked else gate.name


MOST_LINES = 90
"""Lines of a plan from which on diffs are left out."""
MOST_REASONS = 12
NO_LOGIN = "no login"
ANSWERED = ("auth-", "host-key-", "host-certificate-", "no-channel")
"""Prefixes of the references of nodes that answered but refused the login."""


def plan_text(plan: Plan, *, whole: bool = False, context: int | None = None) -> str:
    """The plan as text for people, without colours. Control characters are removed, because others may have written the plan.

    ``whole``: with its diffs, however long it gets. ``context``: the same, with so many unchanged lines around a change.
    """
    style = DiffStyle() if context is None else DiffStyle(context, diff.MOST_LINES)
    head, changes = tuple(_head(plan)), (*group_lines(plan, style), *config_map_lines(plan, style))
    numbers = (
        *side_effect_lines(plan),
        *_waves(plan),
        *limit_lines(plan),
        *warning_lines(plan),
        *left_lines(plan),
        *tail_lines(plan),
    )
    if not (whole or context is not None) and len(head) + len(changes) + len(numbers) > MOST_LINES:
        changes = (*group_lines(plan, style, diffs=False), *config_map_lines(plan, style, diffs=False))
    return CONTROL.sub("", "\n".join((*head, *changes, *numbers)) + "\n")


def side_effect_lines(plan: Plan) -> Iterator[str]:
    """What the change does beyond its purpose."""
    yield from consequences_lines(plan)
    yield from drains_lines(plan)
    yield from loads_lines(plan)


def folded_left(plan: Plan) -> tuple[tuple[ExcludedNode, tuple[str, ...]], ...]:
    """The nodes left alone, by standing, reference and reason; the largest first within a standing."""
    found: dict[tuple[Standing, str, str], list[ExcludedNode]] = {}
    for entry in plan.left:
        found.setdefault((entry.standing, entry.reference, nameless(entry.reason, entry.name)), []).append(entry)
    order = list(Standing)
    ranked = sorted(found.values(), key=lambda entries: (order.index(entries[0].standing), -len(entries)))
    return tuple((_one(entries), tuple(entry.name for entry in entries)) for entries in ranked)


def _one(entries: Sequence[ExcludedNode]) -> ExcludedNode:
    """The entry that represents all of them."""
    first = entries[0]
    return first if len(entries) == 1 else replace(first, reason=nameless(first.reason, first.name))


def _head(plan: Plan) -> Iterator[str]:
    limited = f", limit {plan.limit}" if plan.limit else ""
    yield f"Plan for {plan.cluster}: playbook {plan.playbook}, nodes read {wall_of(plan.taken)}{limited}"
    counts = {standing: sum(entry.standing is standing for entry in plan.left) for standing in Standing}
    shut = sum(_standing(entry) == NO_LOGIN for entry in plan.left)
    skipped = f"{counts[Standing.SKIPPED]} skipped, " if counts[Standing.SKIPPED] else ""
    yield (
        f"{counted(len(plan.nodes), 'node')} to change, {counts[Standing.AS_WANTED]} as wanted, {skipped}"
        f"{counts[Standing.REFUSED]} refused, {counts[Standing.UNREACHABLE] - shut} unreachable{f', {shut} without login' if shut else ''}"
    )


# Waves and numbers


def _waves(plan: Plan) -> Iterator[str]:
    if not plan.waves:
        return
    yield ""
    yield "Waves"
    for at, wave in enumerate(plan.waves, 1):
        time = _time(estimate.of_wave(plan, wave))
        yield f"  {at}  {wave.name}: {counted(len(wave.nodes), 'node')}, about {time} including {_time(wave.soak)} soak{_manner(wave)}  {folded(wave.nodes)}"
        yield f"     halts at {'; '.join(wave_halts(plan, wave)) or 'no budget of its own'}; {harm_words(plan, wave)}"


def _manner(wave: Wave) -> str:
    """What is special about the wave."""
    one_at_a_time = f", at most {wave.at_once} at a time" if wave.at_once > 1 else ", one at a time" * wave.at_once
    return _until(wave) + one_at_a_time + (", then waits for `rollout continue`" if wave.hold else "")


def _until(wave: Wave) -> str:
    """The data that its soak waits for."""
    data = wave.data
    if data is None:
        return ""
    starts = [f"{counted(data.pod_starts, 'pod')} started"] if data.pod_starts else []
    pulls = [f"{counted(data.pulls, 'image pull')} succeeded"] if data.pulls else []
    return f", until {' and '.join(starts + pulls)}, at most {_time(data.within)}"


def wave_halts(plan: Plan, wave: Wave) -> Iterator[str]:
    for budget in plan.budgets:
        if budget.scope is Scope.WAVE:
            most = budget.share.of(len(wave.nodes))
            yield f"the {_nth(most)} failed node in this wave ({_share(budget, len(wave.nodes))})"


def limit_lines(plan: Plan) -> Iterator[str]:
    conditions = tuple(f"  {line}" for condition in plan.conditions for line in condition.lines())
    if not plan.nodes:
        yield from ("", *conditions) if plan.has_work and conditions else ()
        return
    yield ""
    yield "Limits"
    for budget in plan.budgets:
        if budget.scope is not Scope.WAVE:
            yield f"  halts at {_budget(plan, budget)}"
    racks = estimate.changed_by_rack(plan)
    limits = _most(plan, AreaKind.RACK)
    nodes = "node" if limits == [1] else "nodes"
    windows = sorted({estimate.rack_window(plan, rack, changed) for rack, changed in racks.items()})
    within = "" if windows == limits else f", at most {_span(windows)} in flight per rack (its failure budget)"
    yield (
        f"  at most {_span(limits)} {nodes} of a rack unavailable at once (limit {plan.limits.per_rack}){within}{_zones(plan)}; "
        f"{plan.limits.in_flight} in flight; {plan.limits.pace:g} restarts/s"
    )
    times = "once" if plan.passes == 1 else f"{plan.passes} times in a row"
    yield f"  gates of each node: {gates_text(plan.gates, GateScope.NODE)}; of each wave: {gates_text(plan.gates, GateScope.WAVE)}; each must pass {times} during the soak"
    if by_api := [gate.name for gate in known().by_api if gate in plan.gates]:
        yield f"  on by default with a kubeconfig: {', '.join(by_api)}"
    if plan.rehearsal:
        yield f"  the first wave ({plan.waves[0].name}) is reverted once for real, then changed again"
    yield from conditions
    if plan.late is not None:
        then = "a notice is sent" + (", and it is rolled back" if plan.late.then is OnLateHarm.ROLLBACK else "")
        yield f"  for {_time(plan.late.seconds)} after its end `rollout watch --late` measures its gates; on late harm {then}"
    yield f"  on a halt, reverts: {plan.on_failure.value}; a node not confirmed within {_time(plan.guard)} reverts itself"


def _zones(plan: Plan) -> str:
    if plan.limits.per_zone is None:
        return ""
    return f", {_span(_most(plan, AreaKind.ZONE))} of a zone (limit {plan.limits.per_zone})"


def _most(plan: Plan, kind: AreaKind) -> list[int]:
    """The most nodes at once in the areas that the plan changes."""
    return sorted({most_of(plan, area) for area in {area_of(node, kind) for node in plan.nodes.values()}})


def _budget(plan: Plan, budget: Budget) -> str:
    if budget.scope is Scope.FLEET:
        most = budget.share.of(len(plan.nodes))
        return f"the {_nth(most)} failed node in the fleet ({_share(budget, len(plan.nodes))})"
    limits = sorted({budget.share.of(count) for count in estimate.changed_by_rack(plan).values()})
    words = " to ".join(_nth(most) for most in _ends(limits))
    return f"the {words} failed node in a rack (budget {budget.share}{_causes(budget)})"


def _share(budget: Budget, total: int) -> str:
    """``budget 2 % of 48``; a count may be more than there are."""
    more = budget.share.count is not None and budget.share.count > total
    of = f"; it has only {counted(total, 'node')}" if more else f" of {total}"
    return f"budget {budget.share}{of}{_causes(budget)}"


def _causes(budget: Budget) -> str:
    return "" if len(budget.causes) > 2 else f"; {' or '.join(sorted(budget.causes))}"


# Warnings, and nodes that are left out


def warning_lines(plan: Plan) -> Iterator[str]:
    if plan.remarks:
        yield ""
        yield "Warnings"
    for remark in plan.remarks[:MOST_REASONS]:
        nodes = f"{counted(len(remark.nodes), 'node')}  {folded(remark.nodes)}: " if remark.nodes else ""
        yield f"  {nodes}{printable(remark.text, 400)} [{printable(remark.reference, 80)}]"
    if len(plan.remarks) > MOST_REASONS:
        yield f"  … {counted(len(plan.remarks) - MOST_REASONS, 'more warning')}: see them all with -o json"


def left_lines(plan: Plan) -> Iterator[str]:
    left = folded_left(plan)
    if left:
        yield ""
        yield "Left alone"
    for entry, names in left[:MOST_REASONS]:
        yield f"  {_standing(entry)}: {counted(len(names), 'node')}  {folded(names)}"
        yield f"     {printable(entry.reason, 400)} [{printable(entry.reference, 80)}]"
    rest = left[MOST_REASONS:]
    if rest:
        yield f"  … {counted(sum(len(names) for _, names in rest), 'more node')} for {counted(len(rest), 'other reason')}: see them all with -o json"


def _standing(entry: ExcludedNode) -> str:
    """The standing as shown: a node that answers but refuses the login is not called unreachable."""
    answered = entry.standing is Standing.UNREACHABLE and entry.reference.startswith(ANSWERED)
    return NO_LOGIN if answered else entry.standing.value


def tail_lines(plan: Plan) -> Iterator[str]:
    yield ""
    if not plan.nodes:
        done = "Only the ConfigMap is written." if plan.has_work else "Nothing to do."
        yield f"No node can be changed: {why}." if (why := _why_none(plan)) else done
        return
    yield (
        f"About {_time(estimate.total(plan))} in all. Each wave takes max(nodes ÷ pace, rounds × one node's time) + soak; "
        f"one node takes {estimate.forth_seconds(plan):.0f} s and its settle window"
    )
    each = f"{estimate.back_seconds(plan):.0f} s per node"
    known = f"{each}, measured by run {plan.way_back.run}" if plan.way_back else f"{each}, not yet rehearsed"
    yield f"Emergency rollback of all of it: about {_time(estimate.all_back(plan, EMERGENCY_LIMITS))} ({known})"


def _why_none(plan: Plan) -> str:
    """How many nodes were refused and how many could not be read; ``""``: none of either."""
    refused = sum(entry.standing is Standing.REFUSED for entry in plan.left_out)
    unread = len(plan.left_out) - refused
    parts = (
        f"{counted(refused, 'node')} {'was' if refused == 1 else 'were'} refused" if refused else "",
        f"{counted(unread, 'node')} could not be read" if unread else "",
    )
    return ", ".join(filter(None, parts))


def _nth(number: int) -> str:
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _span(numbers: Sequence[int]) -> str:
    return " to ".join(str(number) for number in _ends(numbers))


def _ends(numbers: Sequence[int]) -> Sequence[int]:
    return numbers if len(numbers) < 2 else (numbers[0], numbers[-1])


def _time(seconds: float) -> str:
    return seconds_text(round(seconds))
