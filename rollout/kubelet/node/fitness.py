"""Is this node fit to be changed at all? Each reason not to has a stable reference; the agent's names where it has one.

What the agent checks again right before it arms is already refused here, so that the plan shows it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator

from rollout.core.model.playbook import LOG_UNREADABLE
from rollout.core.model.snapshot import NOT_ITS_OWN, NOT_OBSERVED, ReceiptState, Snapshot
from rollout.core.text import diff
from rollout.core.text.terminal import printable
from rollout.core.text.timespans import timespan
from rollout.kubelet import fields, versions
from rollout.kubelet.node import arguments, managers, unit_file
from rollout.kubelet.node.layout import PROGRAMS, Layout, LayoutError

# May this kubelet be restarted at all, or would that put the edits of others in force?


def check(now: Layout, ours: Collection[str]) -> None:
    """No edit by others may come into force by our restart; flags of the names ``ours`` are our own."""
    if now.running[1:] == now.asked:
        return
    runs, asked = others(now.running[1:], ours), others(now.asked, ours)
    if runs == asked:
        return
    refusals_of_options = [
        *(
            f"{_safe(name, value)} is in the running process but not in the files"
            for name, value in runs
            if (name, value) not in asked
        ),
        *(
            f"{_safe(name, value)} is in the files but not in the running process"
            for name, value in asked
            if (name, value) not in runs
        ),
    ]
    more = f", and {len(refusals_of_options) - MOST_FLAGS} more" if len(refusals_of_options) > MOST_FLAGS else ""
    difference = ", ".join(refusals_of_options[:MOST_FLAGS]) + more or "the order differs"
    unset = [f"${{{printable(name, 100)}}}" for name in unit_file.unset_names(now.start, now.variables)]
    empty = f"; {', '.join(unset)} in {now.start.file} is empty, since no file of the unit sets it" if unset else ""
    raise LayoutError("layout-drifted", f"the running kubelet differs from its unit and files: {difference}{empty}")


MOST_FLAGS = 10
"""Flags that one refusal names."""


def _safe(name: str, value: str) -> str:
    return printable(diff.redacted(f"{name}={value}"), 200)


def others(words: tuple[str, ...], ours: Collection[str]) -> list[tuple[str, str]]:
    """The flags of a command line that are not ours, in order."""
    return [(flag.name, flag.value) for flag in arguments.given(words) if flag.name not in ours]


EVICTION = 300.0
"""Seconds a node may be away before its pods are evicted (tolerationSeconds of the unreachable taint, admission plugin
defaulttolerationseconds)."""

START = 30.0
"""Seconds allowed for a kubelet to start again after a guard has fired."""

LEAST_ROOM_KIB = 1024

NO_UNIT = (
    "systemd has no kubelet.service; rollout changes a kubelet in that unit, in RKE2's or in k3s's, and none in a container"
    " (RKE1) or in another unit (k0s, MicroK8s)"
)

LENIENT = "config-lenient"
"""The reference of a kubelet that ignores a part of its configuration."""

OLDEST_SYSTEMD = 236
"""The first version with ``systemd-run --collect`` (NEWS of systemd 236)."""

_DEFAULT_STOP = 90.0
_NOT_HEALTHY = re.compile(r"refused|timeout|no-answer|status .*")

Refusal = tuple[str, str]


def refusal(
    snapshot: Snapshot, guard: float, assumed: int | None = None, accepted: Collection[str] = ()
) -> Refusal | None:
    """Why this node must be left alone, or ``None``.

    ``assumed``: the minor that a too new kubelet is treated as. ``accepted``: references that do not count.
    """
    return next(refusals(snapshot, guard, assumed, accepted), None)


def refusals(
    snapshot: Snapshot, guard: float, assumed: int | None = None, accepted: Collection[str] = ()
) -> Iterator[Refusal]:
    """Every reason, the one that counts first."""
    checks = (*_BEFORE, lambda read: _version(read, assumed), *_AFTER)
    refusals = [*(check(snapshot) for check in checks)]
    log = _wrapped(snapshot) or (None if LOG_UNREADABLE in accepted else _log(snapshot))
    refusals += [log, _guard(snapshot, guard)]
    return (each for each in refusals if each is not None)


def remarks(snapshot: Snapshot, assumed: int | None) -> tuple[Refusal, ...]:
    """Remarks on a node that is judged by another kubelet's rules than its own."""
    if assumed is None or not versions.too_new(snapshot.kubelet_version):
        return ()
    text = f"kubelet {snapshot.kubelet_version} is newer than rollout supports; it is treated as 1.{assumed} (--assume-kubelet)"
    return (("kubelet-assumed", text),)


def _property(snapshot: Snapshot, name: str) -> str:
    unit = snapshot.measurement.unit
    return unit.properties.get(name, "") if unit else ""


def _machine(snapshot: Snapshot) -> Refusal | None:
    return None if snapshot.machine_id else ("machine-id-unknown", "the node has no machine-id that identifies it")


def _version(snapshot: Snapshot, assumed: int | None) -> Refusal | None:
    version = versions.parse(snapshot.kubelet_version)
    if not snapshot.kubelet_version:
        if _property(snapshot, "LoadState") == "not-found":
            return "no-kubelet-unit", managers.kubelet_elsewhere(snapshot) or f"the node has no kubelet: {NO_UNIT}"
        return "kubelet-version-unknown", "no kubelet program on the node reports its version"
    if version is None:
        return "kubelet-version-unknown", f"the kubelet reports the unreadable version {snapshot.kubelet_version!r}"
    known = fields.known_minors()
    if version.minor not in known and not (versions.too_new(snapshot.kubelet_version) and assumed is not None):
        span = f"1.{known.start} to 1.{known.stop - 1}"
        newer = "; --assume-kubelet treats it as one of these" if version.minor >= known.stop else ""
        return "kubelet-version-unknown", f"rollout supports kubelets {span}, this one is {version.text}{newer}"
    return None


def _unit(snapshot: Snapshot) -> Refusal | None:
    if snapshot.measurement.unit is None:
        return "systemd-not-answering", "systemd did not report kubelet.service"
    if "masked" in (_property(snapshot, "LoadState"), _property(snapshot, "UnitFileState")):
        return "unit-masked", "kubelet.service is masked"
    if _property(snapshot, "LoadState") == "not-found":
        return "no-kubelet-unit", managers.kubelet_elsewhere(snapshot) or NO_UNIT
    if _property(snapshot, "NeedDaemonReload") == "yes":
        return (
            "need-daemon-reload",
            "a unit file was changed without systemctl daemon-reload; a restart would put the change in force",
        )
    return None


def _state(snapshot: Snapshot) -> Refusal | None:
    kind = snapshot.facts.get("state-dir-fs", "")
    if kind in {"tmpfs", "ramfs"}:
        return "state-not-persistent", f"/var/lib/rollout would be on {kind} and lost after a reboot"
    room = snapshot.facts.get("room-kib", "")
    if room.isdecimal() and int(room) < LEAST_ROOM_KIB:
        return "no-room", f"only {room} KiB are free where the copies are stored"
    return None


def _transaction(snapshot: Snapshot) -> Refusal | None:
    for receipt in snapshot.receipts:
        if receipt.state in {ReceiptState.ARMED, ReceiptState.REVERTING}:
            return "armed-by-another", f"transaction {receipt.tx} of run {receipt.run} is {receipt.state.value}"
    return None


def _alive(snapshot: Snapshot) -> Refusal | None:
    state, measured = _property(snapshot, "ActiveState"), snapshot.measurement
    if state != "active" or measured.process is None:
        return "kubelet-not-running", f"the kubelet does not run (unit {state or 'unknown'}); it was unhealthy before"
    if measured.healthz is not None and _NOT_HEALTHY.fullmatch(measured.healthz):
        return "kubelet-unhealthy", f"the kubelet's healthz answers {measured.healthz!r}; it was unhealthy before"
    if why := NOT_OBSERVED.get(measured.healthz or ""):
        return NOT_ITS_OWN, f"{why}: whether the kubelet is healthy cannot be observed"
    if measured.lenient:
        return (
            LENIENT,
            "the kubelet already ignores part of its configuration (lenient decoding, see its journal)",
        )
    return None


def _wrapped(snapshot: Snapshot) -> Refusal | None:
    """The unit starts a script, a shim or a container client, and that starts the kubelet: its log, its age and its end are another process's."""
    process = snapshot.measurement.process
    if snapshot.measurement.lenient is not None or process is None or not process.command_line:
        return None
    program, *words = process.command_line
    if program.rsplit("/", 1)[-1] in PROGRAMS:
        return None
    shown = printable(" ".join((program, *words)), 120)
    text = (
        f"the main process of the kubelet's unit is not a kubelet: process {process.pid}, `{shown}`. The log, the start and "
        "the end of the kubelet are not its own. Start the kubelet in the unit itself, or with `exec` at the end of the script"
    )
    return "kubelet-wrapped", text


def _log(snapshot: Snapshot) -> Refusal | None:
    """A kubelet accepts a misspelt field and reports it only in its log (kubernetes #83204)."""
    if snapshot.measurement.lenient is not None:
        return None
    text = (
        "the kubelet's log cannot be read, in the journal or in a file: an ignored "
        f"field would go unnoticed. Send its log to the journal, or add `accept: [{LOG_UNREADABLE}]` to the playbook"
    )
    return LOG_UNREADABLE, text


def _odd_names(snapshot: Snapshot) -> Refusal | None:
    """Files that the agent cannot name are not in the snapshot, and could contain anything."""
    names = snapshot.facts.get("odd-names", "")
    if not names:
        return None
    count, _, first = names.partition(" ")
    text = f"the names of {count} files of the kubelet, its unit or its runtime contain blanks or other odd characters"
    patterns = ", ".join(_patterns(snapshot))
    instead = (
        f"; {patterns} is a pattern: name each file in a line of its own" if patterns else "; rename or remove them"
    )
    return "odd-names", f"{text}, first {first}{instead}"


def _patterns(snapshot: Snapshot) -> Iterator[str]:
    """The patterns in the kubelet's unit. The agent takes one for the name of a file."""
    for path in (_property(snapshot, "FragmentPath"), *_property(snapshot, "DropInPaths").split()):
        state = snapshot.files.get(path)
        try:
            text = (state.content or b"").decode() if state else ""
            yield from (printable(each, 200) for each in unit_file.patterns({path: text}))
        except ValueError:  # what cannot be read is another refusal
            continue


def _systemd(snapshot: Snapshot) -> Refusal | None:
    systemd = re.match(r"systemd ([0-9]{1,9})", snapshot.facts.get("systemd", ""))
    if systemd is None or int(systemd[1]) >= OLDEST_SYSTEMD:
        return None
    return "systemd-too-old", f"systemd is {systemd[1]}; the guard needs {OLDEST_SYSTEMD} or newer"


def _guard(snapshot: Snapshot, guard: float) -> Refusal | None:
    stop = timespan(_property(snapshot, "TimeoutStopUSec"))
    stop = _DEFAULT_STOP if stop is None else stop
    if guard + stop + START <= EVICTION:
        return None
    total = f"guard {guard:g} s + TimeoutStopSec {stop:g} s + {START:g} s to start"
    return "guard-eviction", f"{total} is more than the {EVICTION:g} s after which pods are evicted"


_BEFORE: tuple[Callable[[Snapshot], Refusal | None], ...] = (managers.refusal, _machine)
_AFTER: tuple[Callable[[Snapshot], Refusal | None], ...] = (
    _unit,
    _systemd,
    _odd_names,
    _transaction,
    _state,
    _alive,
)

UNHEALTHY = frozenset({"kubelet-not-running", "kubelet-unhealthy", "systemd-not-answering"})
"""References that mean: this node was already unhealthy (what preflight counts)."""
