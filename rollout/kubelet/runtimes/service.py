"""How a node starts its container runtime: from the unit's files and the running process, never assumed.

Checked like the kubelet's unit (``layout``): the files must match the running process. Otherwise a restart would put
another person's edit in force, and the node is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rollout.core.model.frozen import dataclass
from rollout.core.model.snapshot import Service, Snapshot
from rollout.core.text import diff
from rollout.kubelet.node import arguments, layout, unit_file
from rollout.kubelet.node import env_file as environment_file
from rollout.kubelet.node.layout import LayoutError


@dataclass(frozen=True, slots=True)
class Command:
    """A runtime's command line in its files. ``texts`` and ``environments`` are by path, as systemd reads them."""

    unit: str
    start: unit_file.UnitStart
    texts: Mapping[str, str]
    environments: Mapping[str, str]
    running: tuple[str, ...]  # the running command line, program first

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment of the process; files override ``Environment=``, later files override earlier ones."""
        variables = dict(self.start.environment)
        for entry in self.start.files:
            variables.update(environment_file.values(self.environments.get(entry.path, "")))
        return variables

    @property
    def sources(self) -> Mapping[str, str]:
        """Variable → the environment file that sets it."""
        return {
            name: entry.path
            for entry in self.start.files
            for name in environment_file.values(self.environments.get(entry.path, ""))
        }

    @property
    def pieces(self) -> tuple[unit_file.Piece, ...]:
        """The command line's words with their origins, program first."""
        return unit_file.expand(
            self.start.command, self.start.file, self.variables, self.sources, self.start.specifiers
        )

    @property
    def asked(self) -> tuple[str, ...]:
        """The arguments in the files."""
        return tuple(piece.text for piece in self.pieces[1:])

    def flag(self, *names: str) -> str | None:
        """The value of a flag under one of its names, according to the files."""
        found = (arguments.last(self.asked, name) for name in names)
        return next((flag.value for flag in found if flag is not None), None)

    def go_flag(self, *names: str) -> str | None:
        """The same in a program that reads its flags with Go's own ``flag``: after one dash or two, and never joined (``-cFILE``)."""
        found = None
        for at, word in enumerate(self.asked):
            name, equals, value = word.removeprefix("-").removeprefix("-").partition("=")
            if word.startswith("-") and name in names:
                found = value if equals else "".join(self.asked[at + 1 : at + 2])
        return found

    def origin(self, name: str) -> unit_file.Piece | None:
        """The word that gives this flag."""
        flag = arguments.last(self.asked, name)
        return self.pieces[1 + flag.start] if flag else None


def find(snapshot: Snapshot, unit: str, ours: frozenset[str] = frozenset()) -> Command:
    """The command line of a runtime's unit, or ``LayoutError``; flags in ``ours`` may be in the files only."""
    service = snapshot.measurement.services.get(unit)
    if service is None or not service.unit.properties.get("FragmentPath"):
        raise LayoutError(
            "no-runtime-unit", f"systemd has no {unit}, so rollout does not know how this runtime is started"
        )
    try:
        command = _read(snapshot, unit, service)
        _check_running(command, ours)
    except LayoutError:
        raise
    except ValueError as error:
        raise LayoutError("layout-not-understood", f"{unit}: {error}") from None
    return command


def _read(snapshot: Snapshot, unit: str, service: Service) -> Command:
    properties = service.unit.properties
    if properties.get("NeedDaemonReload") == "yes":
        raise LayoutError("need-daemon-reload", f"{unit} was changed without systemctl daemon-reload")
    if service.process is None:
        raise LayoutError("runtime-not-running", f"{unit} does not run; it was unhealthy before")
    paths = (properties["FragmentPath"], *properties.get("DropInPaths", "").split())
    texts = {path: layout.text_of(snapshot.files.get(path), path) for path in paths}
    start = unit_file.start(texts, layout.specifiers_of(snapshot, unit))
    command = Command(unit, start, texts, layout.environments_of(snapshot, start), service.process.command_line)
    unit_file.check_known(start, command.variables)
    return command


def _check_running(command: Command, ours: frozenset[str]) -> None:
    if command.running[1:] == command.asked:
        return
    runs, asked = others(command.running[1:], ours), others(command.asked, ours)
    if runs == asked:
        return
    said = [diff.redacted(word) for word in (*runs, *asked) if (word in runs) != (word in asked)]
    different = ", ".join(said) or "the order"
    raise LayoutError("layout-drifted", f"the running {command.unit} differs from its unit and files: {different}")


def others(words: tuple[str, ...], ours: frozenset[str]) -> list[str]:
    """The arguments that are not flags of ours, a flag and its value as one."""
    skipped = {at for flag in arguments.given(words) if flag.name in ours for at in range(flag.start, flag.end)}
    return [word for at, word in enumerate(words) if at not in skipped]


def with_environment(command: Command, path: str, text: str) -> Command:
    """The command with ``text`` in this environment file."""
    return replace(command, environments={**command.environments, path: text})


def with_drop_in(command: Command, path: str, text: str) -> Command:
    """The command with ``text`` in this drop-in; systemd applies drop-ins sorted by file name."""
    fragment, *rest = command.texts.items()
    drop_ins = sorted({**dict(rest), path: text}.items(), key=lambda entry: entry[0].rsplit("/", 1)[-1])
    texts = dict([fragment, *drop_ins])
    return replace(command, texts=texts, start=unit_file.start(texts, command.start.specifiers))
