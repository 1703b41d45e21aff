"""The kubelet's part of a change: its fields and flags, tried in the least invasive home first and proven by the
outcome; and the side effects of its restart that the playbook must accept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from ipaddress import ip_address

from rollout.core.model.frozen import dataclass
from rollout.core.model.plan import Change, FileChange
from rollout.core.model.playbook import Disruption, Policy
from rollout.core.model.settings import Setting, Value
from rollout.core.model.snapshot import Snapshot
from rollout.core.text import json_text
from rollout.kubelet import fields, homes, values
from rollout.kubelet.changes import flag_changes, home_files, templated_config
from rollout.kubelet.changes.flag_changes import Moved
from rollout.kubelet.changes.home_files import FieldHome
from rollout.kubelet.configuration.outcome import KubeletOutcome, Layer
from rollout.kubelet.homes import InFlag
from rollout.kubelet.node import fitness, layout, sources, unloaded
from rollout.kubelet.node.layout import DEFAULT_HEALTHZ_PORT, ArgumentsHome, Layout, LayoutError
from rollout.kubelet.node.sources import FitNode, fatal
from rollout.kubelet.node.unloaded import Unloaded
from rollout.kubelet.restarts import consequences

# Is a change right? The kubelet's outcome on its node before is compared with its outcome afterwards.


def prove(before: KubeletOutcome, after: KubeletOutcome, wanted: Mapping[str, Value], minor: int) -> None:
    """The kubelet starts, ignores nothing new, and uses every wanted field; else ``LayoutError``."""
    if not after.starts:
        about = tuple(dict.fromkeys(message.about for message in after.messages if message.about))
        raise LayoutError("kubelet-would-not-start", f"the kubelet would not start: {fatal(after)}", about=about)
    ignored = [path for path in after.ignored if path not in before.ignored]
    if ignored:
        message = f"the kubelet would ignore {', '.join(ignored)} with a warning and use the default"
        raise LayoutError("setting-without-effect", message, about=tuple(path.split(".")[0] for path in ignored))
    for name, value in wanted.items():
        if not templated_config.holds(name, after.effective.get(name), value, minor):
            _refuse(after, name, value)


def _refuse(after: KubeletOutcome, name: str, value: Value) -> None:
    origin = after.origins.get(name)
    shown = values.shown(after.effective.get(name))
    if origin is not None and origin.layer is Layer.FLAG:
        raise LayoutError("flag-shadows-field", f"{origin.where} overrides {name}: {shown} would be in force")
    where = f" ({origin.where or origin.layer.value})" if origin is not None else ""
    message = f"{name}: {values.shown(value)} would have no effect, {shown} would be in force{where}"
    raise LayoutError("setting-without-effect", message, about=(name,))


def side_effects(
    before: Mapping[str, Value], after: Mapping[str, Value], intended: Mapping[str, Value], path: str = ""
) -> Mapping[str, tuple[Value, Value]]:
    """Values in force that change although they are not ``intended``, by path, before and after (``None``: not shown).

    A map that is written replaces the default as a whole: ``evictionHard`` with one signal watches no other.
    """
    changed: dict[str, tuple[Value, Value]] = {}
    for name in sorted({*before, *after}):
        old, new, here = before.get(name), after.get(name), f"{path}{name}"
        wanted = intended.get(name, {})
        if name not in intended and not (isinstance(old, dict) and isinstance(new, dict)):
            changed |= {here: (old, new)} if old != new else {}
            continue
        if isinstance(wanted, dict) and isinstance(old, dict) and isinstance(new, dict):
            changed |= side_effects(old, new, wanted, f"{here}.")
    return changed


# The kubelet's own record of its CPU and memory manager: it does not start with a policy other than the recorded one.
#
# ``configured policy … differs from state checkpoint policy …`` (pkg/kubelet/cm/cpumanager/state/state_checkpoint.go
# and memorymanager's, 1.20 to 1.36). Someone must drain the node and remove the file. rollout sets neither policy. But
# our restart would put a file in force that someone has edited since the kubelet's start.


_MANAGERS = (
    ("cpuManagerPolicy", "none", "cpu_manager_state"),
    ("memoryManagerPolicy", "None", "memory_manager_state"),
)


def check(fit: FitNode, then: Layout, outcome: KubeletOutcome) -> None:
    """``LayoutError`` if the policies in force afterwards are not those that the kubelet has recorded."""
    root = then.flag("--root-dir") or "/var/lib/kubelet"
    for field, default, name in _MANAGERS:
        path = f"{root.rstrip('/')}/{name}"
        recorded = _recorded_policy(fit.snapshot, path)
        policy = outcome.effective.get(field) or default
        if recorded and recorded != policy:
            message = (
                f'configured policy "{policy}" differs from state checkpoint policy "{recorded}": with {path} as it is the '
                f"kubelet would not start ({field})"
            )
            raise LayoutError("policy-state-conflict", message)


def _recorded_policy(snapshot: Snapshot, path: str) -> str:
    """The policy in the file, ``""`` if there is none or it was not read."""
    state = snapshot.files.get(path)
    if state is None or state.content is None:
        return ""
    try:
        recorded_state = json_text.parse(state.content)
    except ValueError:
        raise LayoutError(
            "policy-state-unreadable", f"{path} is not JSON; the kubelet would not start with it"
        ) from None
    recorded = recorded_state.get("policyName", "") if isinstance(recorded_state, dict) else ""
    return str(recorded)


@dataclass(frozen=True, slots=True)
class WantedSettings:
    """A node's settings by their home on it, and notes on those that are skipped or are in force without being written."""

    settings: Mapping[str, Setting]
    policy: Policy
    fields: Mapping[str, Value]
    flags: tuple[InFlag, ...]
    runtime: tuple[str, ...]  # intents
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KubeletAfter:
    """The change of the kubelet's own files, and the kubelet as it will be then."""

    change: Change
    then: Layout
    flags: tuple[InFlag, ...]  # that must be in force
    fields: Mapping[str, Value]  # all that must be in force, including the template's
    outcome: KubeletOutcome
    pending: tuple[str, ...]  # flags and fields that are already written but not yet in force


def kubelet_after(fit: FitNode, wanted: WantedSettings) -> KubeletAfter:
    """What puts the fields and flags in force, or ``LayoutError`` with the first home's reason if none works."""
    try:
        asked = templated_config.overlay(fit, wanted.fields, wanted.policy.templates)
        needed = templated_config.needed(fit.outcome, asked, wanted.settings, fit.version.minor)
        as_flags = _as_arguments(fit, needed)
        rest = {name: value for name, value in needed.items() if name not in as_flags}
        wanted = replace(wanted, flags=(*wanted.flags, *as_flags.values()))
        after = _in_the_first_home(fit, wanted, asked, rest)
    except LayoutError:
        fitness.check(fit.layout, {flag.name for flag in wanted.flags})  # an edit by others explains more
        raise
    fitness.check(fit.layout, {flag.name for flag in after.flags})
    if after.change.units:
        check(fit, after.then, after.outcome)
    return after


def _as_arguments(fit: FitNode, needed: Mapping[str, Value]) -> Mapping[str, InFlag]:
    """Fields that are written as flags: k3s and RKE2 before 1.32 give their kubelet no file (k3s-io/docs #433)."""
    if fit.layout.embedding is None or fit.sources.config is not None or fit.sources.drop_ins is not None:
        return {}
    flags: dict[str, InFlag] = {}
    for name, value in needed.items():
        entry = fields.field(name)
        known = next((flag for flag in map(fields.flag, entry.flags if entry else ()) if flag is not None), None)
        if known is not None and known.known_in(fit.version.minor) and not isinstance(value, dict | list):
            flags[name] = InFlag(known.name, values.flag_text(value), known.kind)
    return flags


def _flags_for(name: str, fit: FitNode) -> tuple[str, ...]:
    """The flags that set this field on this node and may be set."""
    entry = fields.field(name)
    known = (flag for flag in map(fields.flag, entry.flags if entry else ()) if flag is not None)
    return tuple(flag.name for flag in known if flag.known_in(fit.version.minor) and flag.name not in homes.NOT_OURS)


def _in_the_first_home(
    fit: FitNode, wanted: WantedSettings, asked: Mapping[str, Value], needed: Mapping[str, Value]
) -> KubeletAfter:
    if not needed:
        return _attempt(fit, wanted, asked, Moved({}, {}), None)
    refused: LayoutError | None = None
    for home in home_files.homes(fit):
        try:
            written = templated_config.with_defaults(fit.outcome, asked, needed) if home.flags else needed
            moved = flag_changes.moved(fit, written, wanted.policy.shadowed, home.path)
            return _attempt(fit, wanted, asked, moved, home)
        except LayoutError as error:
            refused = refused or error
    raise refused or LayoutError("no-config-file", "no file on the node can contain the fields")


def _attempt(
    fit: FitNode, wanted: WantedSettings, asked: Mapping[str, Value], moved: Moved, home: FieldHome | None
) -> KubeletAfter:
    settings, templates = wanted.settings, wanted.policy.templates
    flags, files = wanted.flags, list[FileChange]()
    if home is not None:
        written, beside = home_files.beside(home, moved.fields, fit)
        file = home.edit(written, {**settings, **beside}, templates.kubelet_config_name)
        files += [file] if file is not None else []
        flags = (*flags, *home.flags)
        asked = {**asked, **written}
    by_flag = flag_changes.flag_change(fit, flags, moved.flags, settings, templates)
    files += by_flag.files
    given = sources.after(fit.sources, by_flag.then, {file.path: file.after for file in files})
    outcome = sources.outcome_of(fit.version, given)
    prove(fit.outcome, outcome, asked, fit.version.minor)
    paths = [known.field for flag in by_flag.flags if (known := fields.flag(flag.name)) and known.field]
    if home is not None and home.flags:
        needed = {name: _flags_for(name, fit) for name in moved.fields}
        notes = templated_config.check_accepted(fit.outcome, outcome, asked, paths, wanted.policy.accepted, needed)
    else:
        by_flags: dict[str, Value] = {path.split(".")[0]: None for path in paths}
        changed = side_effects(fit.outcome.effective, outcome.effective, {**asked, **by_flags})
        notes = tuple(f"side effect: {name}: {_shown(old)} → {_shown(new)}" for name, (old, new) in changed.items())
    notes += (*_with_the_unit(fit),) if files else ()
    notes += (*by_flag.notes, *templated_config.by_others(fit.outcome, asked, moved.fields))
    pending = (
        *flag_changes.pending(fit.layout, by_flag.flags),
        *(edit.told for edit in unloaded.of_kubelet(fit) if unloaded.sets(asked, edit.field)),
    )
    restarts = bool(files or pending)
    change = Change(
        files=tuple(files),
        units=(fit.layout.unit,) if restarts else (),
        reload=any(file.path == layout.DROP_IN for file in files),
        disruption=Disruption.RESTART_KUBELET if restarts else Disruption.NONE,
        arguments=flag_changes.must_hold(by_flag.then, by_flag.flags),
        config_path=by_flag.then.config_path,
        healthz_port=_healthz_port(outcome),
        settle=consequences.settle(fit.version.minor) if restarts else 0.0,
        notes=notes,
        effective=tuple(_effective(outcome, asked)),
    )
    return KubeletAfter(change, by_flag.then, by_flag.flags, asked, outcome, pending)


def _with_the_unit(fit: FitNode) -> Iterator[str]:
    """What a restart of the unit does beyond the kubelet's."""
    embedding = fit.layout.embedding
    if embedding is not None:
        yield (
            f"side effect: a restart of {embedding.unit} restarts {embedding.title} with its container runtime, too;"
            f" containers keep running{_STATIC_PODS.get(embedding.unit, '')}"
        )


_STATIC_PODS = {
    "rke2-agent.service": ", but RKE2 removes the manifest of kube-proxy at a start and writes it again (rke2#5619): this static pod may restart",
    "rke2-server.service": (
        ", but RKE2 removes the manifests of kube-proxy and kube-apiserver at a start and writes them again (rke2#5619):"
        " these static pods may restart"
    ),
}
"""By unit. Some versions keep that of kube-proxy (rke2 #3752). k3s has no static pods of its own."""


def _healthz_port(outcome: KubeletOutcome) -> int:
    """The port of the kubelet's ``/healthz``; 0 is off."""
    port = outcome.effective.get("healthzPort", DEFAULT_HEALTHZ_PORT)
    return port if isinstance(port, int) else DEFAULT_HEALTHZ_PORT


def _effective(outcome: KubeletOutcome, asked: Mapping[str, Value]) -> Iterator[tuple[str, str]]:
    """The wanted value of each field, as ``/configz`` will show it."""
    for name in sorted(asked):
        yield name, values.canonical(values.part_shown(outcome.effective.get(name), asked[name]))


def _shown(value: Value) -> str:
    return "not set" if value is None else values.shown(value)


# Changes of a node's ground: its identity, its cgroups, its folders. The playbook must accept each by name.


_DRIVER = (
    "running pods stay in the cgroups of the old driver, where the kubelet does not find them: drain the node first"
)
_ROOT = "the kubelet starts with an empty folder: its state of volumes, devices and pods stays in the old one"
_UNREGISTERED = "the kubelet no longer registers its Node; a deleted Node is not created again"
_STATIC = "static pods of the old folder are stopped, those of the new one are started"
_NO_ADDRESS = "is not an address; the kubelet ignores it, and pods do not get it as a name server"


def check_grounds(fit: FitNode, kubelet: KubeletAfter, accepted: Collection[str]) -> None:
    """``LayoutError`` with every change of the ground that is not accepted."""
    unaccepted = [f"{name}: {what}" for name, what in _changes(fit, kubelet) if name not in accepted]
    if unaccepted:
        names = ", ".join(sorted({line.partition(":")[0] for line in unaccepted}))
        raise LayoutError("ground-changed", f"{'; '.join(unaccepted)}. `accept: [{names}]` in the playbook allows it")


def _changes(fit: FitNode, kubelet: KubeletAfter) -> Iterator[tuple[str, str]]:
    before, after = fit.outcome.effective, kubelet.outcome.effective
    if _differ(before, after, "cgroupDriver"):
        yield "cgroupDriver", _from_to(before, after, "cgroupDriver", _DRIVER)
    if _differ(before, after, "staticPodPath"):
        yield "staticPodPath", _from_to(before, after, "staticPodPath", _STATIC)
    if _differ(before, after, "clusterDNS"):
        for entry in _entries(after.get("clusterDNS")):
            if not _is_address(entry):
                yield "clusterDNS", f"{entry!r} {_NO_ADDRESS}"
    for flag in kubelet.flags:
        if flag.name == "--root-dir" and (fit.layout.flag(flag.name) or "/var/lib/kubelet") != flag.text:
            yield flag.name, _ROOT
        if flag.name == "--register-node" and flag.text == "false" and fit.layout.flag(flag.name) != "false":
            yield flag.name, _UNREGISTERED


def _differ(before: Mapping[str, Value], after: Mapping[str, Value], field: str) -> bool:
    return (before.get(field) or "") != (after.get(field) or "")


def _from_to(before: Mapping[str, Value], after: Mapping[str, Value], field: str, what: str) -> str:
    return f"{before.get(field) or 'nothing'} becomes {after.get(field) or 'nothing'}: {what}"


def _entries(value: Value) -> list[str]:
    return [str(entry) for entry in value] if isinstance(value, list) else []


def _is_address(entry: str) -> bool:
    try:
        ip_address(entry)
    except ValueError:
        return False
    return True


# Side effects of a restart: edits by others that the running process has not read. The playbook must accept each one.


def check_unread_edits(
    fit: FitNode, kubelet: KubeletAfter, runtime: Change, accepted: Mapping[str, str]
) -> tuple[str, ...]:
    """Notes on the edits that this change puts in force, if all are accepted; else ``LayoutError``."""
    edits = tuple(_foreign(fit, kubelet, runtime))
    refused = [edit for edit in edits if not accepted.keys() & set(edit.names)]
    if refused:
        raise LayoutError("edited-not-loaded", _refusal(refused, unloaded.compared_with(fit)))
    return tuple(f"takes effect with this restart: {edit.told}{_reason(edit, accepted)}" for edit in edits)


def left(fit: FitNode) -> tuple[str, ...]:
    """Notes on a node that is not restarted: values in its files that are not in force."""
    edits = unloaded.of_kubelet(fit)
    return (f"not in force until the kubelet restarts: {_listed(edits)}",) if edits else ()


def anchor(fit: FitNode, change: Change) -> tuple[FileChange, ...]:
    """The file of a change that only restarts: it keeps its bytes. A node's transaction is recorded by its files."""
    stale = [entry.path for entry in fit.snapshot.stale]
    homes = (fit.layout.config_path, *fit.layout.environments, layout.DROP_IN, fit.layout.flags_home.path)
    for path in (*stale, *homes):
        state = fit.snapshot.files.get(path)
        if state is None or state.content is None or not state.whole:
            continue
        file = FileChange(path, state.content, state.content)
        if not home_files.foreign_files(replace(change, files=(file,))):
            return (file,)
    message = (
        f"the files are as wanted and only a restart is missing; rollout records it by a file that it may write, and knows none"
        f" on this node: restart {fit.layout.unit} by hand"
    )
    raise LayoutError("restart-without-file", message)


def _foreign(fit: FitNode, kubelet: KubeletAfter, runtime: Change) -> Iterator[Unloaded]:
    if kubelet.change.units:
        asked = kubelet.fields
        yield from _of_arguments(fit)
        yield from (edit for edit in unloaded.of_kubelet(fit) if not unloaded.sets(asked, edit.field))
    yield from unloaded.of_runtime(fit.snapshot, (*runtime.units, *runtime.hangups))


def _of_arguments(fit: FitNode) -> Iterator[Unloaded]:
    """Files of k3s or RKE2 that changed since its start: which of their arguments it has read is not known."""
    home = fit.layout.flags_home
    if isinstance(home, ArgumentsHome):
        read = {*home.texts, *fit.layout.copies(fit.snapshot.files).values()}
        stale = (entry for entry in fit.snapshot.stale if entry.path in read)
        yield from (Unloaded((), entry.path, f"{entry.path} ({unloaded.how(entry)})") for entry in stale)


def _refusal(refused: list[Unloaded], compared: str) -> str:
    """The remedy comes first: a terminal shows the beginning of the values, and ``-o json`` all of them."""
    files = ", ".join(dict.fromkeys(edit.file for edit in refused))
    name = refused[0].names[-1] if len(refused) == 1 else refused[0].file
    return (
        f"{files} was edited and not loaded. Undo the edit, or allow it in the playbook with"
        f" `accept: [{{setting: {name}, reason: …}}]` (single values can be named, too){_how_to_know(refused)}."
        f" {compared}. This restart would put into force: {_listed(refused)}"
    )


def _how_to_know(refused: list[Unloaded]) -> str:
    if not any(unloaded.UNKNOWN in edit.told for edit in refused):
        return ""
    return "; with a kubeconfig that may read nodes/proxy, /configz shows the values of the running kubelet"


def _listed(edits: tuple[Unloaded, ...] | list[Unloaded]) -> str:
    return "; ".join(edit.told for edit in edits)


def _reason(each: Unloaded, accepted: Mapping[str, str]) -> str:
    why = next((accepted[name] for name in each.names if accepted.get(name)), "")
    return f" (accepted: {why})" if why else " (accepted in the playbook)"
