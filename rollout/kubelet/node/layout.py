"""How one node starts its kubelet: read from its unit, drop-ins, environment files and running process, never assumed.

kubeadm's packages (kubernetes/release ``10-kubeadm.conf``) read ``KUBELET_EXTRA_ARGS`` from ``/etc/default/kubelet``
(deb) or ``/etc/sysconfig/kubelet`` (rpm); others have everything in ``ExecStart=``. RKE2 starts the kubelet in a unit
of its own (``rancher``). Whatever does not fit is ``LayoutError``: the node is refused rather than guessed at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from rollout.core.model.frozen import dataclass
from rollout.core.model.snapshot import FileState, Snapshot
from rollout.core.text.terminal import printable
from rollout.errors import Place
from rollout.kubelet.node import arguments, env_file, managers, rancher, unit_file
from rollout.kubelet.node.rancher import Embedding, KubeletArg
from rollout.kubelet.node.unit_file import Piece

UNIT = "kubelet.service"
KUBELET_UNITS = frozenset({UNIT, *rancher.EMBEDDINGS})
"""The units that have a kubelet in them."""
DROP_IN = "/etc/systemd/system/kubelet.service.d/90-rollout.conf"
VARIABLE = "KUBELET_EXTRA_ARGS"
FLAG_FILES = ("/etc/default/kubelet", "/etc/sysconfig/kubelet")
NOT_OURS = frozenset({"KUBELET_KUBEADM_ARGS"})
"""kubeadm writes its file anew at each upgrade."""
_USUAL = ("ARGS", "OPTS", "OPTIONS", "FLAGS")
"""How names of variables end that have flags of any kind. Others, such as ``KUBELET_HOSTNAME``, are for one flag."""
DEFAULT_HEALTHZ_PORT = 10248
PROGRAMS = frozenset({"kubelet", "hyperkube"})
"""The names of programs that are a kubelet."""


class LayoutError(ValueError):
    """This node's layout is not one that we may change; ``reference`` is stable.

    ``place``: in a template, if that is the cause. ``about``: the settings that it concerns, if known.
    """

    def __init__(
        self, reference: str, message: str, *, place: Place | None = None, about: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message)
        self.reference = reference
        self.place = place
        self.about = about


@dataclass(frozen=True, slots=True)
class EnvHome:
    """Flags go into ``variable`` of this environment file, which the unit reads: systemd needs no daemon-reload for it."""

    path: str
    variable: str = VARIABLE


@dataclass(frozen=True, slots=True)
class DropInHome:
    """Flags go into a drop-in of ours that repeats ``ExecStart=``."""

    path: str = DROP_IN


@dataclass(frozen=True, slots=True)
class ArgumentsHome:
    """Flags go into ``kubelet-arg`` of a file of ours, which k3s or RKE2 reads.

    ``texts``: its configuration files, path → text, in their order. ``refused``: why no flag of ours would be in force.
    """

    embedding: Embedding
    texts: Mapping[str, str]
    refused: str = ""

    @property
    def path(self) -> str:
        return self.embedding.own_file

    @property
    def args(self) -> tuple[KubeletArg, ...]:
        return rancher.kubelet_args(self.texts)


@dataclass(frozen=True, slots=True)
class Layout:
    """``texts`` are the unit's files in the order systemd applies them, ``environments`` those of its environment files."""

    name: str
    start: unit_file.UnitStart
    pieces: tuple[unit_file.Piece, ...]  # the command line in the files, program first
    running: tuple[str, ...]  # the running command line, program first
    texts: Mapping[str, str]
    environments: Mapping[str, str]
    flags_home: EnvHome | DropInHome | ArgumentsHome
    unit: str = UNIT

    @property
    def embedding(self) -> Embedding | None:
        """What has this kubelet in its own unit."""
        return self.flags_home.embedding if isinstance(self.flags_home, ArgumentsHome) else None

    def copies(self, paths: Iterable[str]) -> Mapping[str, str]:
        """The drop-ins that the next start copies, each → its source, of the files ``paths``."""
        home, folder = self.flags_home, self.flag("--config-dir") or ""
        if not isinstance(home, ArgumentsHome) or home.refused:
            return {}
        return rancher.copies(folder.rstrip("/"), rancher.copied(self.running, home.args), paths)

    @property
    def asked(self) -> tuple[str, ...]:
        """The arguments in the files."""
        return tuple(piece.text for piece in self.pieces[1:])

    def flag(self, name: str) -> str | None:
        """The value of a flag on the command line in the files."""
        given = arguments.last(self.asked, name)
        return given.value if given else None

    def origin(self, name: str) -> str:
        """Where that flag is written, for people."""
        given = arguments.last(self.asked, name)
        return self.pieces[1 + given.start].origin if given else ""

    @property
    def config_path(self) -> str:
        return self.flag("--config") or ""

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment that the unit gives to its kubelet."""
        return _environment(self.start, self.environments)[0]

    @property
    def variable(self) -> str:
        """The variable for flags: ``KUBELET_EXTRA_ARGS``, or another one that an environment file sets."""
        return self.flags_home.variable if isinstance(self.flags_home, EnvHome) else VARIABLE

    @property
    def variable_value(self) -> str:
        """Its value now."""
        return self.variables.get(self.variable, "")

    @property
    def over_drop_in(self) -> Layout:
        """The same layout with our drop-in as the home of flags."""
        return replace(self, flags_home=DropInHome())


LONGEST_PATH = 300
"""Characters of a file's name that a refusal shows: the name is the node's own."""


def text_of(state: FileState | None, path: str) -> str:
    """The text of a file in the snapshot, or why it cannot be used."""
    shown = printable(path, LONGEST_PATH)
    if state is None:
        raise LayoutError("layout-not-understood", f"the snapshot does not contain {shown}")
    if state.kind == "absent":
        raise LayoutError("not-a-regular-file", f"{shown} does not exist")
    if state.kind != "regular":
        raise LayoutError("not-a-regular-file", f"{shown} is not a regular file ({state.kind})")
    if not state.digest:
        raise LayoutError("layout-not-understood", f"{shown} could not be read on the node")
    if state.content is None:
        raise LayoutError("file-too-large", f"{shown} has {state.size} bytes, more than the agent can send")
    try:
        text = state.content.decode()
    except UnicodeDecodeError:
        raise LayoutError("layout-not-understood", f"{shown} is not UTF-8") from None
    if not state.whole and text.startswith(UNREADABLE):
        raise LayoutError("layout-not-understood", text.removeprefix(UNREADABLE).strip())
    return text


UNREADABLE = "# rollout keeps nothing of this file: "
"""How the text of a file begins that may hold secrets and cannot be read; its reason follows (``rancher_secrets``)."""


def find(snapshot: Snapshot) -> Layout:
    """The layout of a node, or ``LayoutError``."""
    unit = snapshot.measurement.unit
    fragment = unit.properties.get("FragmentPath", "") if unit else ""
    if unit is None or not fragment:
        raise LayoutError("no-kubelet-unit", f"systemd reports no unit file for {UNIT}")
    drop_ins = unit.properties.get("DropInPaths", "").split()
    texts = {path: text_of(snapshot.files.get(path), path) for path in (fragment, *drop_ins)}
    embedding = rancher.EMBEDDINGS.get(unit.name)
    try:
        start = unit_file.start(texts, specifiers_of(snapshot, unit.name))
        environments = environments_of(snapshot, start)
        running = snapshot.measurement.process.command_line if snapshot.measurement.process else ()
        if embedding is not None:
            return _embedded(snapshot, embedding, start, texts, environments, running)
        return _layout(start, texts, environments, running, lost=_lost(snapshot, start))
    except LayoutError:
        raise
    except ValueError as error:
        raise LayoutError("layout-not-understood", str(error)) from None


def _embedded(
    snapshot: Snapshot,
    embedding: Embedding,
    start: unit_file.UnitStart,
    texts: Mapping[str, str],
    environments: Mapping[str, str],
    running: tuple[str, ...],
) -> Layout:
    """Of a kubelet in the unit of k3s or RKE2."""
    truncated = snapshot.facts.get(f"{CONFIG_FACT}-truncated", "")
    if truncated:
        raise LayoutError(
            "layout-not-understood", f"{embedding.folder} contains more than the agent lists: {truncated}"
        )
    paths = [path for path, state in snapshot.files.items() if state.kind not in {"absent", "directory"}]
    read = {path: text_of(snapshot.files.get(path), path) for path in rancher.in_order(embedding, paths)}
    command = unit_file.expand(start.command, start.file, *_environment(start, environments), start.specifiers)
    words = tuple(piece.text for piece in command)
    if not words or words[0].rsplit("/", 1)[-1] != embedding.name:
        raise LayoutError("layout-not-understood", f"{start.file} does not start {embedding.name}")
    refused = rancher.own_options(words[1:], _environment(start, environments)[0], embedding)
    home = ArgumentsHome(embedding, read, refused)
    return _with_arguments(
        Layout(embedding.title, start, (), running, texts, environments, home, embedding.unit), home, home
    )


def _with_arguments(now: Layout, home: ArgumentsHome, before: ArgumentsHome) -> Layout:
    """The layout with the command line that the files of ``home`` make. The kubelet that runs was started with those of ``before``."""
    program, *words = now.running or ("",)
    if not home.embedding.child and program.rsplit("/", 1)[-1] not in PROGRAMS:
        message = (
            f"the journal of {now.unit} has no line `Running kubelet …` of its process, so the arguments of its kubelet are"
            f" unknown; they are known after a restart of {now.unit}"
        )
        raise LayoutError("kubelet-arguments-unknown", message)
    rest = words[next((at for at, word in enumerate(words) if word.startswith("--")), len(words)) :]
    strange = next((word for word in rest if not word.startswith("--")), "")
    if strange:  # k3s makes only words of this form
        raise LayoutError("layout-not-understood", f"its kubelet has the argument {printable(strange, LONGEST_PATH)}")
    own = f"{home.embedding.title}'s own arguments"
    args, started_with = ((), ()) if home.refused else (home.args, before.args)
    try:
        words_by_file = rancher.expected(rest, args, home.embedding, started_with)
    except ValueError as error:
        raise LayoutError("layout-not-understood", str(error)) from None
    gone = next((word for word, file in words_by_file if not file and not rancher.is_own(word)), "")
    if gone and not home.refused:
        message = (
            f"{printable(gone, LONGEST_PATH)} is in the running process, but no file sets it, and {home.embedding.title} does"
            " not set it itself: a restart would take it away"
        )
        raise LayoutError("layout-drifted", message)
    pieces = (Piece(word, f"{rancher.KEY} in {file}" if file else own, "", file) for word, file in words_by_file)
    return replace(now, pieces=(Piece(program, own, "", ""), *pieces), flags_home=home)


CONFIG_FACT = "rancher-config"
"""The agent's name for the configuration files of k3s and RKE2."""


def _lost(snapshot: Snapshot, start: unit_file.UnitStart) -> frozenset[str]:
    """The environment files where a flag does not stay, so that our drop-in is its home: a tool writes them anew.

    Where containers have GPUs they are homes all the same: a drop-in needs a daemon-reload, which may take these. A file
    that a reboot removes is never one.
    """
    paths = [entry.path for entry in start.files]
    volatile = frozenset(path for path in paths if is_volatile(path))
    devices = snapshot.surroundings.devices if snapshot.surroundings is not None else None
    if devices is not None and devices.names:
        return volatile
    return volatile | frozenset(path for path in paths if managers.renderer(snapshot, path))


def is_volatile(path: str) -> bool:
    """Whether a reboot removes this file: file-hierarchy(7)."""
    return path.startswith(("/run/", "/var/run/", "/dev/shm/"))  # noqa: S108 - the node's, and nothing is written there


HOSTNAME = "hostname"
"""The fact with the node's own name, as its kernel has it."""


def specifiers_of(snapshot: Snapshot, unit: str) -> unit_file.Specifiers:
    """systemd's specifiers in this node's unit. A name that changed after systemd has read the unit differs from the
    running command line, which is compared.
    """
    name = snapshot.facts.get(HOSTNAME, "")
    own = {"H": name, "l": name.partition(".")[0], "m": snapshot.machine_id, "b": snapshot.boot_id.replace("-", "")}
    return unit_file.specifiers(unit, own)


def rewritten(layout: Layout, texts: Mapping[str, str]) -> Layout:
    """The layout once these files (environment files that the unit reads, our drop-in) contain these texts."""
    if isinstance(layout.flags_home, ArgumentsHome):
        home = layout.flags_home
        held = {**home.texts, **texts}
        ordered_texts = {path: held[path] for path in rancher.in_order(home.embedding, held)}
        return _with_arguments(layout, replace(home, texts=ordered_texts), home)
    named = {entry.path for entry in layout.start.files}
    environments = {**layout.environments, **{path: text for path, text in texts.items() if path in named}}
    units = {path: text for path, text in texts.items() if path not in named}
    fragment, *rest = layout.texts.items()
    drop_ins = sorted({**dict(rest), **units}.items(), key=lambda entry: unit_file.drop_in_order(entry[0]))
    ordered = dict([fragment, *drop_ins])
    new_layout = _layout(unit_file.start(ordered, layout.start.specifiers), ordered, environments, layout.running)
    return replace(new_layout, name=layout.name, flags_home=layout.flags_home)


def _layout(
    start: unit_file.UnitStart,
    texts: Mapping[str, str],
    environments: Mapping[str, str],
    running: tuple[str, ...],
    *,
    lost: frozenset[str] = frozenset(),
) -> Layout:
    environment, sources = _environment(start, environments)
    unit_file.check_known(start, environment)
    pieces = unit_file.expand(start.command, start.file, environment, sources, start.specifiers)
    if not pieces or pieces[0].text.rsplit("/", 1)[-1] not in PROGRAMS:
        program = pieces[0].text if pieces else "nothing"
        message = f"ExecStart= in {start.file} starts {program}, which is not a kubelet"
        raise LayoutError("layout-not-understood", message)
    words = unit_file.exec_words(start.command, start.specifiers)
    home = _flags_home(start, environments, sources, words, lost)
    return Layout(_name(words, home), start, pieces, running, texts, environments, home)


def _name(words: tuple[str, ...], home: EnvHome | DropInHome) -> str:
    if isinstance(home, DropInHome):
        return "plain unit"
    family = {"/etc/default/kubelet": " (deb)", "/etc/sysconfig/kubelet": " (rpm)"}.get(home.path, "")
    return f"{'kubeadm' if '$KUBELET_KUBEADM_ARGS' in words else 'environment file'} layout{family}"


def environments_of(snapshot: Snapshot, start: unit_file.UnitStart) -> dict[str, str]:
    """The texts of a unit's environment files, by path; ``LayoutError`` where one that the unit needs is absent."""
    texts: dict[str, str] = {}
    for entry in start.files:
        state = snapshot.files.get(entry.path)
        if state is not None and state.kind == "absent":
            if not entry.optional:
                raise LayoutError("layout-not-understood", f"{entry.path} is absent and the unit needs it")
            continue
        texts[entry.path] = text_of(state, entry.path)
    return texts


def _environment(start: unit_file.UnitStart, texts: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Variables and the file that sets each; files override ``Environment=``, later files override earlier ones."""
    environment = dict(start.environment)
    sources = dict(start.set_by)
    for entry in start.files:
        for name, value in _values(entry.path, texts.get(entry.path, "")).items():
            environment[name] = value
            sources[name] = entry.path
    return environment, sources


def _values(path: str, text: str) -> dict[str, str]:
    try:
        return env_file.values(text)
    except ValueError as error:
        raise LayoutError("layout-not-understood", f"{path}: {error}") from None


def _flags_home(
    start: unit_file.UnitStart,
    texts: Mapping[str, str],
    sources: Mapping[str, str],
    words: tuple[str, ...],
    lost: frozenset[str],
) -> EnvHome | DropInHome:
    """The environment file with the ``KUBELET_EXTRA_ARGS`` in force, else one that may set it, else one with another variable
    of flags. Without one, flags go into our drop-in: ``Environment=`` is in a unit's file of others, which is never
    edited, and it has no effect once a file sets the variable.
    """
    if f"${VARIABLE}" in words:
        if sources.get(VARIABLE) in texts and not is_volatile(sources[VARIABLE]):
            return EnvHome(sources[VARIABLE])
        named = [entry for entry in start.files if entry.path in FLAG_FILES]
        if named:
            return EnvHome(next((entry.path for entry in reversed(named) if entry.path in texts), named[-1].path))
    split = [word[1:] for word in words if word.startswith("$") and sources.get(word[1:]) in texts]
    usable = [name for name in split if name not in NOT_OURS and sources[name] not in lost]
    usual = [name for name in usable if name.endswith(_USUAL)]
    return EnvHome(sources[(usual or usable)[-1]], (usual or usable)[-1]) if usable else DropInHome()
