"""k3s and RKE2: what rollout keeps of their files, which hold the cluster's tokens and the address of its datastore with its password.

Kept are the kubelet's arguments, the names of other keys, and what decides whether the files count at all. Each text is
made anew, since comments hold secrets, too. A text that lost something has no longer the bytes of its digest, so that no
change can write it (``FileState.whole``), and the digest still says what is on the disk. Of a file that they name as a
``config`` of any program, a kubelet's configuration alone is kept.
"""

from __future__ import annotations

import re
from dataclasses import replace

from rollout.core.model.snapshot import FileState, Process, Snapshot
from rollout.core.text.diff import REDACTED
from rollout.core.text.yaml_source import read_yaml
from rollout.kubelet.node import arguments, env_file, rancher, unit_file
from rollout.kubelet.node.layout import PROGRAMS, UNREADABLE, LayoutError, specifiers_of, text_of
from rollout.kubelet.node.rancher import Embedding
from rollout.kubelet.node.sources import DROP_INS_ALLOWED

_VARIABLE = re.compile(r"\$(?:\{[A-Za-z_]\w*\}|[A-Za-z_]\w*)")
_NAMED = re.compile(rb"""config(?:-dir)?=(/[^\s"',\]]*)""")
_READ = frozenset({"ExecStart", "Environment", "EnvironmentFile"})
_FOLDERS = ("/etc/default/", "/etc/sysconfig/")


def without_secrets(snapshot: Snapshot) -> Snapshot:
    """A node as rollout keeps it."""
    unit = snapshot.measurement.unit
    embedding = rancher.EMBEDDINGS.get(unit.name) if unit else None
    if unit is None or embedding is None:
        return snapshot
    units = (unit.properties.get("FragmentPath", ""), *unit.properties.get("DropInPaths", "").split())
    named = _environment_files(snapshot, unit.name, units)
    copied = _named(snapshot, embedding)
    files = {path: _kept(_kubelets(state, copied), embedding, units, named) for path, state in snapshot.files.items()}
    return replace(snapshot, files=files, measurement=replace(snapshot.measurement, files=files))


def process_of(unit: str, process: Process) -> Process:
    """The process of a unit as rollout keeps it: the command line of k3s itself may have its token."""
    program, *_ = process.command_line or ("",)
    embedding = rancher.EMBEDDINGS.get(unit)
    if embedding is None or embedding.child or program.rsplit("/", 1)[-1] in PROGRAMS:
        return process
    return replace(process, command_line=(program,))


def _environment_files(snapshot: Snapshot, unit: str, units: tuple[str, ...]) -> frozenset[str] | None:
    """The environment files that the unit names; ``None``: it cannot be read."""
    try:
        texts = {path: text_of(snapshot.files.get(path), path) for path in units}
        return frozenset(entry.path for entry in unit_file.start(texts, specifiers_of(snapshot, unit)).files)
    except ValueError:
        return None


def _named(snapshot: Snapshot, embedding: Embedding) -> tuple[str, ...]:
    """What their files may name as the configuration of a program, in comments, too."""
    texts = (state.content or b"" for path, state in snapshot.files.items() if rancher.is_read(embedding, path))
    return tuple(path.decode(errors="replace").rstrip("/") for text in texts for path in _NAMED.findall(text))


def _kubelets(state: FileState, named: tuple[str, ...]) -> FileState:
    """Without its content, if it is one of ``named`` and no kubelet's configuration: that of another program has its keys."""
    if state.content is None or not any(state.path == path or state.path.startswith(f"{path}/") for path in named):
        return state
    root = read_yaml(state.content.decode(errors="replace"), "").root
    kind = root.entries().get("kind") if root is not None else None
    return state if kind and kind.item.plain() == "KubeletConfiguration" else replace(state, content=None)


def _kept(state: FileState, embedding: Embedding, units: tuple[str, ...], named: frozenset[str] | None) -> FileState:
    path = state.path
    if state.content is None:
        return state
    if path.startswith(f"{embedding.folder}/") and not rancher.is_read(embedding, path):
        return replace(state, content=None)  # nothing reads it
    try:
        if rancher.is_read(embedding, path):
            text = rancher.arguments_alone(path, text_of(state, path))
        elif path in units:
            text = _unit(text_of(state, path))
        elif named is None or path in named or path.endswith(".env") or path.startswith(_FOLDERS):
            text = _environment(text_of(state, path))
        else:
            return state
    except LayoutError as error:
        text = f"{UNREADABLE}{error}\n"
    except ValueError as error:
        text = f"{UNREADABLE}{path}: {str(error).removeprefix(f'{path}: ')}\n"
    return replace(state, content=text.encode())


def _unit(text: str) -> str:
    lines = (f"{each.key}={_directive(each)}\n" for each in unit_file.service_lines(text) if each.key in _READ)
    return f"[Service]\n{''.join(lines)}"


def _directive(line: unit_file.UnitLine) -> str:
    if line.key == "ExecStart":
        program, *words = arguments.split(line.value) or (arguments.ArgumentWord("", 0, 0),)
        return " ".join([line.value[program.start : program.end], *(_word(each.text) for each in words)])
    if line.key == "Environment":
        pairs = (each.text.partition("=") for each in arguments.split(line.value))
        return " ".join(arguments.quote(f"{name}={_value(name, value)}") for name, equals, value in pairs if equals)
    return line.value


def _environment(text: str) -> str:
    """Of an environment file. systemd reads the last assignment of a name."""
    return "".join(f"{each.name}={env_file.quote(_value(each.name, each.value))}\n" for each in env_file.parse(text))


def _value(name: str, value: str) -> str:
    """Of a variable: whether it is empty, and the options that decide, if it has some."""
    if not value or name == DROP_INS_ALLOWED:
        return value
    try:
        return " ".join(_word(each.text) for each in arguments.split(value))
    except ValueError:
        return REDACTED


def _word(word: str) -> str:
    """Of a command line behind the program."""
    if word in rancher.DECIDING or word == ";" or _VARIABLE.fullmatch(word):
        return word
    option, equals, _ = word.partition("=")
    return f"{option}={REDACTED}" if equals and option in rancher.DECIDING else REDACTED
