"""The input and the output: ``Sources`` and ``KubeletOutcome``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from rollout.core.model.frozen import dataclass
from rollout.core.model.settings import Value
from rollout.errors import Place


@dataclass(frozen=True, slots=True)
class File:
    """A file's name (for messages) and its bytes."""

    path: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Sources:
    """All input of a kubelet's start. ``config`` ``None``: no ``--config``; ``drop_ins`` ``None``: no ``--config-dir``.

    ``drop_ins`` are in the order in which the kubelet merges them. ``flags`` are the words of its command line without
    the program; ``--config`` and ``--config-dir`` among them are ignored here. ``environment`` holds the variables that
    it reads (``KUBELET_CONFIG_DROPIN_DIR_ALPHA``). ``cgroup_v1`` is the host's; ``None``: not known.
    """

    config: File | None = None
    drop_ins: tuple[File, ...] | None = None
    flags: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    cgroup_v1: bool | None = None


class Layer(StrEnum):
    """The layers that can set a field, from low to high."""

    DEFAULT = "default"
    FILE = "file"
    DROP_IN = "drop-in"
    FLAG = "flag"


@dataclass(frozen=True, slots=True)
class Origin:
    """The layer that wins and the place in it: a path, or the flag as given."""

    layer: Layer
    where: str = ""


class MessageLevel(StrEnum):
    """What a message means, and whether it is the kubelet's."""

    FATAL = "fatal"  # the kubelet's: it does not start
    WARNING = "warning"  # the kubelet's: it starts, but ignores what was written
    POLICY = "policy"  # ours: the kubelet would accept it, but operators should not use it
    NOTE = "note"  # ours: right as it is, and worth knowing


@dataclass(frozen=True, slots=True)
class Message:
    """A kubelet's message has the kubelet's own ``text``. ``reference`` is stable: ``unknown-field``, ``bad-value``,
    ``unknown-gate`` … ``about``: the top-level field of a fatal message, where that is known. ``hint``, ours: the setting
    that a fatal message does not name, or what to write instead; ``""``: none."""

    level: MessageLevel
    reference: str
    text: str
    place: Place | None = None
    about: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class KubeletOutcome:
    """``starts`` is the kubelet's verdict alone. ``ignored`` are paths (``a.b``) that it drops with a warning.

    ``effective`` is top-level field → value as ``/configz`` shows it (durations as Go prints them; defaults where known);
    empty when it does not start. ``origins`` names the origin of each field of ``effective``.
    """

    starts: bool
    ignored: tuple[str, ...] = ()
    effective: Mapping[str, Value] = field(default_factory=dict)
    origins: Mapping[str, Origin] = field(default_factory=dict)
    messages: tuple[Message, ...] = ()
