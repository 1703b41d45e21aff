"""cri-dockerd: the progress deadline is its own flag, in an environment file that its unit reads, or in our drop-in.

Every release has it (``config/options.go``, 0.2.0 to 0.4.3). Packages start it with a plain ``ExecStart=``
(``packaging/systemd/cri-docker.service``), so the usual home is a drop-in that restates that line.
"""

from __future__ import annotations

from collections.abc import Mapping

from rollout.core.model.frozen import dataclass
from rollout.core.model.plan import Change, FileChange
from rollout.core.model.playbook import Disruption
from rollout.core.model.settings import Setting, Value
from rollout.core.model.snapshot import Snapshot
from rollout.kubelet.intents import DEADLINE, DEADLINE_FLAG
from rollout.kubelet.node import arguments, env_file, unit_file
from rollout.kubelet.node.layout import LayoutError
from rollout.kubelet.runtimes import direction, node_files, service
from rollout.kubelet.runtimes.cri_dockerd import stand_in
from rollout.kubelet.runtimes.description import (
    FIRST,
    CutWords,
    Daemon,
    Description,
    Number,
    OwnLimit,
    PullMessage,
    PullStep,
    PullTool,
    Row,
    Runtime,
    RuntimeVersion,
    SilentPart,
    VersionedText,
    Wanted,
)
from rollout.kubelet.runtimes.dockerd import daemon as dockerd
from rollout.kubelet.runtimes.outcome import together
from rollout.kubelet.runtimes.service import Command
from rollout.kubelet.values import reason

_UNIT = "cri-docker.service"
_DROP_IN = f"/etc/systemd/system/{_UNIT}.d/90-rollout.conf"
_DEFAULT = "1m0s"
_OURS = frozenset({DEADLINE_FLAG})
_EXTRACTING = "cri-dockerd does not apply the deadline while a layer is extracted (from 0.3.15)"
_VERIFYING = "this cri-dockerd (before 0.3.15) also cuts pulls with layers that take longer than the deadline to verify or extract"


@dataclass(frozen=True, slots=True)
class _Written:
    """A file's new text and the resulting command line."""

    path: str
    text: str
    then: Command


def _change(snapshot: Snapshot, wanted: Wanted) -> Change:
    """Its own flag, and what dockerd does for it."""
    version = CRI_DOCKERD.version(snapshot.runtimes)
    flag = (_flag_change(snapshot, wanted[DEADLINE], version),) if DEADLINE in wanted else ()
    return together(*flag, dockerd.change(snapshot, wanted))


def _flag_change(snapshot: Snapshot, setting: Setting, version: RuntimeVersion | None) -> Change:
    """The flag and a restart of cri-docker.service, nothing where it is in force, or ``LayoutError``."""
    command = service.find(snapshot, _UNIT, _OURS)
    asked, runs = command.flag(DEADLINE_FLAG), arguments.last(command.running[1:], DEADLINE_FLAG)
    if asked is not None and direction.same(setting, asked):
        return Change() if runs is not None and direction.same(setting, runs.value) else _restart_only(setting)
    if asked is None and direction.same(setting, _DEFAULT) and not setting.pin:
        if runs is not None and not direction.same(setting, runs.value):
            return _restart_only(setting)
        return Change(notes=(direction.by_default(setting, _DEFAULT, "cri-dockerd"),))
    written = _written(command, f"{DEADLINE_FLAG}={setting.value}")
    _prove(command, written, setting)
    before = node_files.text(snapshot.files, written.path)
    why = reason(DEADLINE_FLAG, asked or "not set", str(setting.value), setting)
    edit = FileChange(written.path, None if before is None else before.encode(), written.text.encode(), (why,))
    notes = (direction.direction(setting, asked or _DEFAULT, _origin(command)), *_traps(version))
    return Change(
        (edit,),
        units=(_UNIT,),
        reload=written.path == _DROP_IN,
        disruption=Disruption.RESTART_RUNTIME,
        notes=notes,
    )


def _values(snapshot: Snapshot) -> Mapping[str, Value]:
    return {DEADLINE_FLAG: service.find(snapshot, _UNIT, _OURS).flag(DEADLINE_FLAG) or _DEFAULT}


def _restart_only(setting: Setting) -> Change:
    note = f"restart only: the files ask for {DEADLINE_FLAG}={setting.value}, but the running cri-dockerd does not have it yet"
    return Change(units=(_UNIT,), disruption=Disruption.RESTART_RUNTIME, notes=(note,))


def _origin(command: Command) -> str:
    piece = command.origin(DEADLINE_FLAG)
    return piece.origin if piece else "cri-dockerd's default"


def _traps(version: RuntimeVersion | None) -> tuple[str, ...]:
    if version is None:
        return ()
    return (_EXTRACTING if version.number >= (0, 3, 15) else _VERIFYING,)


def _written(command: Command, argument: str) -> _Written:
    """The home is the environment file with the flag, else the last one with any argument, else a drop-in."""
    try:
        name = _variable(command)
        if not name:
            restated = unit_file.merge(command.start.command, (argument,))
            text = f"# Written by rollout: cri-dockerd's own flags\n[Service]\nExecStart=\nExecStart={restated}\n"
            return _Written(_DROP_IN, text, service.with_drop_in(command, _DROP_IN, text))
        path = command.sources[name]
        value = arguments.merge(command.variables.get(name, ""), [argument])
        text = env_file.assign(command.environments.get(path, ""), name, value)
        return _Written(path, text, service.with_environment(command, path, text))
    except ValueError as error:
        raise LayoutError("layout-not-understood", f"{_UNIT}: {error}") from None


def _variable(command: Command) -> str:
    """The variable in an environment file that is the flag's home, or ``""``."""
    piece = command.origin(DEADLINE_FLAG)
    if piece is not None:
        return piece.variable if piece.variable in command.sources else ""
    words = unit_file.exec_words(command.start.command, command.start.specifiers)
    names = [word[1:] for word in words if word.startswith("$") and word[1:] in command.sources]
    return names[-1] if names else ""


def _prove(command: Command, written: _Written, setting: Setting) -> None:
    """Checks the command line that systemd will run: our flag in force, everything else unchanged."""
    then = written.then
    deadline = then.flag(DEADLINE_FLAG)
    if deadline is None or not direction.same(setting, deadline):
        raise LayoutError(
            "flag-shadowed", f"{DEADLINE_FLAG} in {written.path} would not be in force: {_origin(then)} overrides it"
        )
    same = service.others(then.asked, _OURS) == service.others(command.asked, _OURS)
    if not same or then.pieces[0].text != command.pieces[0].text:
        raise LayoutError("layout-not-understood", f"{written.path} would change more than {DEADLINE_FLAG}")


_END: Number = (1, 0, 0)

DAEMON = Daemon(_UNIT, "cri-dockerd", stand_in.DAEMON)
# libdocker/kube_docker_client.go.
_LOGS = (
    PullMessage(
        PullStep.CUT,
        "Cancel pulling image ",
        r"(?P<image>\S+) because it exceeded image pull deadline (?P<deadline>\S+?)\. Latest progress (?P<progress>.*)",
        by="cri-dockerd",
    ),
    PullMessage(PullStep.PROGRESS, "Pulling image ", r"(?P<image>[^\s\"]+): (?P<progress>[0-9a-f]{6,64}: .*)"),
    PullMessage(PullStep.STARTED, "Starting cri-dockerd ", r"v?(?P<version>\d+\.\d+\.\d+)", by="cri-dockerd"),
    *dockerd.LOGS,
)

CRI_DOCKERD = Description(
    Runtime.CRI_DOCKERD,
    "cri-dockerd",
    _change,
    pull_tools=(PullTool.DOCKER,),
    end=_END,
    rows=(
        Row(DEADLINE, Runtime.CRI_DOCKERD, FIRST, _END, DEADLINE_FLAG, _DEFAULT, f"the flags of {_UNIT}",
            _UNIT, Disruption.RESTART_RUNTIME),
        *dockerd.rows(Runtime.CRI_DOCKERD, _END),
    ),
    id_scheme="docker",
    negative_grace=dockerd.NEGATIVE_GRACE,
    cuts=CutWords(
        "cri-dockerd",
        line="Cancel pulling image",
        ask_version="cri-dockerd --version",
        parts={
            SilentPart.LOCAL: VersionedText(
                "cri-dockerd 0.3.15 and later do not count the time of extracting (cri-dockerd#372): an upgrade ends it.",
                before=(0, 3, 15),
                unsure="cri-dockerd 0.3.15 and later do not count the time of extracting (cri-dockerd#372).",
            ),
        },
    ),
    own_limit=OwnLimit(
        (0, 2, 6), 120.0, "rpc error: code = Unknown desc = context deadline exceeded",
        "cri-dockerd before 0.2.6 ends each pull after 2 minutes, with or without progress (cri-dockerd#105): an upgrade to 0.2.6 or later fixes it",
    ),
    labels=("cri-dockerd",),
    sockets=("cri-dockerd", "dockershim"),  # the second in its first releases
    endpoint="unix:///run/cri-dockerd.sock",
    usual_version="0.3.15",
    restarted=frozenset({_UNIT}),
    hung_up=dockerd.HUNG_UP,
    drop_ins=frozenset({_DROP_IN}),
    readers=dockerd.READERS,
    is_home=(dockerd.is_daemon_json,),
    daemon=DAEMON,
    logs=_LOGS,
    traps={DEADLINE: ("before 0.3.15 unpacking counts as no progress",)},
    stand_in=stand_in.RUNTIME,
    values=_values,
)  # fmt: skip
