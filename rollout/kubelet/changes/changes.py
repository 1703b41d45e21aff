"""The change that puts one node's settings in force: exact bytes with a reason each, or why there is none.

Pure: the same snapshot and settings give the same bytes. Every result is proven before it is proposed. The command line
is expanded again from the new files. The effect of the new files and flags is computed as the kubelet does it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import field, replace

from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Node
from rollout.core.model.plan import Change, ExcludedNode, Standing
from rollout.core.model.playbook import LOG_UNREADABLE, Policy, worst
from rollout.core.model.settings import Setting, Value
from rollout.core.model.snapshot import Snapshot
from rollout.core.text.terminal import printable
from rollout.errors import Place
from rollout.kubelet import homes, node_values, values, versions
from rollout.kubelet.changes import home_files, kubelet_changes
from rollout.kubelet.changes.kubelet_changes import KubeletAfter, WantedSettings, kubelet_after
from rollout.kubelet.changes.templated_config import uses_node
from rollout.kubelet.conditions import NodeValues
from rollout.kubelet.defects import matching
from rollout.kubelet.defects.matching import DefectStanding, Doing, FoundDefect
from rollout.kubelet.defects.rows import Defect, Occasion
from rollout.kubelet.defects.words import REFERENCE as KNOWN_DEFECT
from rollout.kubelet.defects.words import refusal as defect_refusal
from rollout.kubelet.effects import rules
from rollout.kubelet.homes import InField, InFlag, InRuntime, NoHome, Skipped
from rollout.kubelet.intents import DEADLINE, DEADLINE_FLAG, INTENTS
from rollout.kubelet.node import arguments, fitness, sources
from rollout.kubelet.node.alike import NOBODY, kind_of, kind_only
from rollout.kubelet.node.layout import KUBELET_UNITS, UNIT, LayoutError, is_volatile
from rollout.kubelet.node.sources import FitNode
from rollout.kubelet.restarts import mechanics
from rollout.kubelet.runtimes import known

# A node's settings sorted by their home on it: kubelet fields, kubelet flags, the container runtime's files.


def sorted_out(fit: FitNode, settings: Mapping[str, Setting], policy: Policy) -> WantedSettings:
    """Each setting's home on this node. ``LayoutError`` with every reason if one has no home and may not be skipped."""
    runtime = known.runtime_of(fit)
    printed = known.describe(runtime).version(fit.snapshot.runtimes)
    if (embedding := fit.layout.embedding) and (rendered := sorted(settings.keys() & set(INTENTS))):
        template = known.describe(runtime).embedded or "its runtime's template"
        message = f"{', '.join(rendered)}: {embedding.title} writes its runtime's configuration anew at each start. {_RENDERS} {template}"
        raise LayoutError("runtime-rendered", message, about=tuple(rendered))
    every = {name: homes.home(settings[name], fit.version, runtime, printed) for name in sorted(settings)}
    refused = {name: home for name, home in every.items() if isinstance(home, NoHome)}
    if refused:
        message = "; ".join(home.reason for home in refused.values())
        raise LayoutError(next(iter(refused.values())).reference, message, about=tuple(refused))
    by_default = [name for name, home in every.items() if _by_default(fit, settings[name], home)]
    return WantedSettings(
        settings,
        policy,
        fields={home.name: home.value for home in every.values() if isinstance(home, InField)},
        flags=tuple(h for name, h in every.items() if isinstance(h, InFlag) and name not in by_default),
        runtime=tuple(home.intent for home in every.values() if isinstance(home, InRuntime)),
        notes=(
            *(home.note for home in every.values() if isinstance(home, Skipped)),
            *(
                f"{name} already has this value by default and is not written; `pin: true` writes it"
                for name in by_default
            ),
        ),
    )


_RENDERS = "rollout does not write its template: put the key there by hand:"


def _by_default(fit: FitNode, setting: Setting, home: object) -> bool:
    """Whether the kubelet's own pull deadline, which is not set anywhere, already has the wanted value."""
    if not isinstance(home, InFlag) or home.name != DEADLINE_FLAG or setting.pin:
        return False
    row = known.describe(known.runtime_of(fit)).row(DEADLINE, None)
    given = fit.layout.flag(home.name) or arguments.last(fit.layout.running[1:], home.name)
    return not given and row is not None and values.same_flag(home.kind, row.default, home.text)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change, and the kind of node it is for."""

    change: Change
    label: str
    before: Mapping[str, Value] = field(default_factory=dict)  # field → what is in force in the kubelet now
    after: Mapping[str, Value] = field(default_factory=dict)  # and after the change
    defects: tuple[FoundDefect, ...] = ()
    values: tuple[NodeValues, NodeValues] | None = None  # of kubelet, runtime and node, before and after


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """No change is proposed: already in force, or refused with a reference, and why.

    ``place``: in the template that caused it. ``about``: the settings that it concerns, if known.
    """

    standing: Standing
    reference: str
    reason: str
    place: Place | None = None
    about: tuple[str, ...] = ()

    def of(self, node: Node) -> ExcludedNode:
        where = f"{self.place.file}:{self.place.line}: " if self.place else ""
        return ExcludedNode(node.name, node.rack, self.standing, self.reference, f"{where}{self.reason}")


def change_for(
    snapshot: Snapshot, settings: Mapping[str, Setting], policy: Policy, node: Node, assumed: int | None = None
) -> Proposal | ExcludedNode:
    """The change for one node, or why it is left alone (already in force, or refused with a reference).

    ``assumed``: the minor that a too new kubelet is treated as; ``None``: such a kubelet is refused.
    """
    proposed = unfit(snapshot, policy, assumed) or proposal(snapshot, settings, policy, node, assumed)
    return proposed.of(node) if isinstance(proposed, LeftAlone) else proposed


def unfit(snapshot: Snapshot, policy: Policy, assumed: int | None) -> LeftAlone | None:
    """Why this node must not be changed now, whatever its files contain."""
    refused = fitness.refusal(snapshot, policy.guard, assumed, policy.accepted)
    if refused is None:
        return None
    reference, reason = refused
    if reference == fitness.LENIENT:
        reason += sources.ignored(snapshot, versions.taken_for(snapshot.kubelet_version, assumed))
    return LeftAlone(Standing.REFUSED, reference, reason)


def proposal(
    snapshot: Snapshot,
    settings: Mapping[str, Setting],
    policy: Policy,
    node: Node,
    assumed: int | None,
    own: tuple[Defect, ...] = (),
) -> Proposal | LeftAlone:
    """The proposal for a fit node. It depends on the node's versions, units, files and facts, not on its identity.

    ``own``: known defects of the project.
    """
    try:
        proposed = _propose(snapshot, settings, policy, node, assumed, own)
    except LayoutError as error:
        message = printable(str(error), LONGEST_REASON)
        return LeftAlone(Standing.REFUSED, error.reference, message, error.place, error.about)
    return LeftAlone(Standing.AS_WANTED, "as-wanted", proposed) if isinstance(proposed, str) else proposed


def _propose(
    snapshot: Snapshot,
    settings: Mapping[str, Setting],
    policy: Policy,
    node: Node,
    assumed: int | None,
    own: tuple[Defect, ...],
) -> Proposal | str:
    here = sources.find(snapshot, versions.taken_for(snapshot.kubelet_version, assumed), node)
    wanted = sorted_out(here, settings, policy)
    kubelet = kubelet_after(here, wanted)
    kubelet_changes.check_grounds(here, kubelet, policy.accepted)
    runtime = known.runtime_change(snapshot, {name: settings[name] for name in wanted.runtime}, known.runtime_of(here))
    files, units = (*runtime.files, *kubelet.change.files), (*runtime.units, *kubelet.change.units)
    if not (files or units or runtime.hangups):
        notes = (*wanted.notes, *kubelet.change.notes, *runtime.notes, *kubelet_changes.left(here))
        return "; ".join(["files and running kubelet already match", *notes])
    now = node_values.now(here)
    wanted_of_runtime = {name: settings[name] for name in wanted.runtime}
    then = node_values.after(here, now, kubelet.outcome, kubelet.then, wanted_of_runtime)
    if harm := rules.refused(now, then, policy.accepted):
        raise LayoutError(rules.HARMFUL, harm, about=tuple(dict.fromkeys(name for name, _ in rules.arising(now, then))))
    if nothing := rules.without_effect(now, then, policy.accepted):
        raise LayoutError(rules.NO_EFFECT, nothing, about=tuple(each.name for each in rules.changed(now, then)))
    unread = kubelet_changes.check_unread_edits(here, kubelet, runtime, policy.accepted)
    files = files or kubelet_changes.anchor(here, kubelet.change)
    change = replace(
        kubelet.change,
        files=files,
        units=units,
        reload=bool(mechanics.unit_files(files)),
        disruption=worst(runtime.disruption, kubelet.change.disruption),
        notes=(
            *_restart_only(kubelet),
            *unread,
            *wanted.notes,
            *kubelet.change.notes,
            *runtime.notes,
            *_risks(here, kubelet),
            *rules.notes(now, then),
        ),
        hangups=runtime.hangups,
        log_unread=LOG_UNREADABLE in policy.accepted,
    )
    if change.disruption.rank > policy.disruption.rank:
        reasons = [reason for file in change.files for reason in file.reasons] or list(kubelet.pending)
        does = f"this change is of class {change.disruption.value} ({_does(change)})"
        raise LayoutError(
            "disruption-capped",
            f"{does}; the playbook allows at most {policy.disruption.value}; the change is for {'; '.join(reasons)}",
        )
    defects = matching.on_change(here.snapshot, known.runtime_of(here), Doing(now, then, _occasions(change)), own)
    stopping = [each for each in defects if _stops(each) and each.defect.id not in policy.accepted]
    if stopping:
        about = tuple(path.path for each in stopping for path in each.defect.when)
        raise LayoutError(KNOWN_DEFECT, defect_refusal(stopping), about=about)
    for file in files:
        if is_volatile(file.path):
            message = (
                f"{file.path} is gone after a reboot, and what writes it again would not have this change:"
                " set it where that file is made, or give the kubelet a file outside of /run"
            )
            raise LayoutError("not-as-persistent", message)
    for refusal in home_files.foreign_files(change):  # apply would refuse to read them
        raise LayoutError("foreign-path", refusal)
    return Proposal(change, _label(here), here.outcome.effective, kubelet.outcome.effective, defects, (now, then))


def _occasions(change: Change) -> frozenset[Occasion]:
    comes = {
        Occasion.KUBELET_RESTART: not KUBELET_UNITS.isdisjoint(change.units),
        Occasion.RUNTIME_RESTART: bool(set(change.units) - {UNIT}),
        Occasion.RELOAD: change.reload,
    }
    return frozenset(each for each, here in comes.items() if here)


def _stops(found: FoundDefect) -> bool:
    """Whether the change itself would stop pulls or the kubelet by it. A project's own rows only warn."""
    return found.standing is DefectStanding.TRIGGERED and found.defect.stops is not None and not found.defect.own


def _does(change: Change) -> str:
    restarts = [f"restarts {unit}" for unit in change.units]
    return ", ".join([*restarts, *(f"sends SIGHUP to {unit}" for unit in change.hangups)]) or "restarts nothing"


def _label(here: FitNode) -> str:
    """The kind of node. A canary represents one series of the runtime, so its minor version is part of it."""
    runtime = known.describe(known.runtime_of(here))
    version = None if runtime.built_in_until is not None else runtime.version(here.snapshot.runtimes)
    series = f" {version.major}.{version.minor}" if version else ""
    return f"kubelet {here.version.text}, {runtime.runtime.value}{series}, {here.layout.name}"


def _restart_only(kubelet: KubeletAfter) -> tuple[str, ...]:
    if kubelet.change.files or not kubelet.pending:
        return ()
    pending = ", ".join(kubelet.pending)
    return (f"restart only: the files already match, but this is not in force yet: {pending}",)


def _risks(here: FitNode, kubelet: KubeletAfter) -> tuple[str, ...]:
    before, after = here.outcome.effective, kubelet.outcome.effective
    changed = [name for name in kubelet.fields if before.get(name) != after.get(name)]
    stricter = [name for name in changed if name in homes.MAY_REJECT_PODS]
    if not stricter:
        return ()
    return (f"{', '.join(stricter)}: a stricter value can make running pods fail re-admission (kubernetes #105523)",)


LONGEST_REASON = 3500
"""Characters of a refusal. A plan as JSON has them all, its text the beginning."""


@dataclass(slots=True)
class ProposalCache:
    """The proposals of one plan, one for all nodes that are alike, see ``rollout.kubelet.node.alike``.

    Settings are compared by identity: they live longer than the planning.
    """

    policy: Policy
    assumed: int | None = None
    own: tuple[Defect, ...] = ()  # known defects of the project
    known: dict[Hashable, Proposal | LeftAlone] = field(default_factory=dict)

    def change_for(self, snapshot: Snapshot, settings: Mapping[str, Setting], node: Node) -> Proposal | ExcludedNode:
        """Like ``changes.change_for``."""
        proposed = self.made_for(snapshot, settings, node)
        return proposed.of(node) if isinstance(proposed, LeftAlone) else proposed

    def made_for(self, snapshot: Snapshot, settings: Mapping[str, Setting], node: Node) -> Proposal | LeftAlone:
        """The same, with the cause if nothing is proposed."""
        return unfit(snapshot, self.policy, self.assumed) or self._proposal(snapshot, settings, node)

    def _proposal(self, snapshot: Snapshot, settings: Mapping[str, Setting], node: Node) -> Proposal | LeftAlone:
        templates = self.policy.templates
        named = any(map(uses_node, (templates.kubelet_config, templates.flags_env, templates.drop_in)))
        key = (kind_of(snapshot), id(settings), node.name if named else "")
        if key not in self.known:
            somebody = node if named else NOBODY
            self.known[key] = proposal(kind_only(snapshot), settings, self.policy, somebody, self.assumed, self.own)
        return self.known[key]
