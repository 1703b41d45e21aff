"""The findings about one start: messages with their places, ignored fields, and the layer that sets each field."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import yaml

from rollout.errors import Place
from rollout.kubelet import fields
from rollout.kubelet.configuration import hints
from rollout.kubelet.configuration.config_file import LoadError
from rollout.kubelet.configuration.decoding import Mistake, dotted
from rollout.kubelet.configuration.outcome import File, Layer, Message, MessageLevel, Origin
from rollout.kubelet.configuration.validation.checked import Complaint
from rollout.kubelet.configuration.yaml_document import Path

_STRUCTURED_SINCE = 21


class KubeletStoppedError(Exception):
    """The kubelet does not start; the messages contain the reason."""


@dataclass(slots=True)
class Findings:
    """Collected during the start; ``origins`` by top-level field."""

    minor: int
    messages: list[Message] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    origins: dict[str, Origin] = field(default_factory=dict)
    files: dict[str, File] = field(default_factory=dict)

    def fatal(self, reference: str, text: str, where: Place | None = None, about: str = "", hint: str = "") -> None:
        """The kubelet stops here, or after the step that it is in."""
        self.messages.append(Message(MessageLevel.FATAL, reference, text, where, about, hint))

    def stop(self, reference: str, text: str, where: Place | None = None, hint: str = "") -> KubeletStoppedError:
        """The kubelet stops here: raise the error that this returns."""
        self.fatal(reference, text, where, hint=hint)
        return KubeletStoppedError()

    def refused(self, reference: str, text: str, complaint: Complaint) -> None:
        """A value that the kubelet does not start with, at its place."""
        name = complaint.field
        origin = self.origins.get(name)
        by_flag = f"`{origin.where}` sets `{name}`" if origin is not None and origin.layer is Layer.FLAG else ""
        path = (name, *complaint.inner)
        hint = hints.joined(by_flag or hints.named(path if name else (), text), complaint.hint)
        self.fatal(reference, text, self.place_of(*path), name, hint)

    def bad_value(self, text: str, file: File | None, mistake: Mistake) -> None:
        """A value that the kubelet cannot decode."""
        where = place(file, mistake.path) if file else None
        about = str(next(iter(mistake.path), ""))
        hint = hints.joined(hints.named(mistake.path, text), mistake.hint)
        self.fatal("bad-value", text, where, about, hint)

    def mistake(self, reference: str, text: str, where: Place | None) -> None:
        """Ours: the kubelet gives no message."""
        self.messages.append(Message(MessageLevel.POLICY, reference, text, where))

    def note(self, reference: str, text: str, where: Place | None = None) -> None:
        """Ours: no mistake."""
        self.messages.append(Message(MessageLevel.NOTE, reference, text, where))

    def doubt(self, reference: str, text: str, name: str) -> None:
        """Ours: rollout does not know enough of this minor to call it fatal. Reported once."""
        message = Message(MessageLevel.POLICY, reference, text, self.place_of(name))
        if message not in self.messages:
            self.messages.append(message)

    def unreadable(self, file: File, error: LoadError, message: str) -> KubeletStoppedError:
        """A file that could not be loaded."""
        known = Place(file.path, error.line, error.column) if error.line else place(file, error.path)
        return self.stop(error.reference, message, known or Place(file.path, 1, 1), hint=error.hint)

    def unknown_field(self, file: File, path: Path) -> None:
        """The kubelet warns and drops the field."""
        name = dotted(path)
        self.ignored.append(name)
        where = place(file, path)
        self._warn("unknown-field", f'unknown field "{name}"', f"found unknown field: {path[-1]}", where)
        self.dropped_field(file, path)

    def dropped_field(self, file: File, path: Path) -> None:
        """Ours: the kubelet gives no message, or none that anybody reads."""
        message = f"`{dotted(path)}` is not a field of kubelet 1.{self.minor} and is ignored{self._instead(path)}"
        self.messages.append(Message(MessageLevel.POLICY, "unknown-field", message, place(file, path)))

    def wrong_case(self, file: File, name: str, typed: str) -> None:
        """Ours: in a drop-in a name in another letter case sometimes sets the field, and sometimes does not."""
        message = f"`{name}` must be written `{typed}`; whether a kubelet reads it in a drop-in is not defined"
        self.messages.append(Message(MessageLevel.POLICY, "unknown-field", message, place(file, (name,))))

    def duplicate_key(self, file: File, path: Path, line: int) -> None:
        """The kubelet warns and uses the last one."""
        where = place(file, path)
        message = f'yaml: unmarshal errors:\n  line {line}: key "{path[-1]}" already set in map'
        self._warn("duplicate-key", message, message, where)
        first = place(file, path, last=False)
        earlier = f", first in line {first.line}" if first else ""
        text = f"`{dotted(path)}` is written twice{earlier}; the last one counts"
        self.messages.append(Message(MessageLevel.POLICY, "duplicate-key", text, where))

    def swallowed_flag(self, given: str) -> None:
        """Ours: the kubelet gives no message."""
        message = (
            f"`{given}` has no effect: the switch before it takes it as its value; write `=true` behind the switch"
        )
        self.messages.append(Message(MessageLevel.POLICY, "flag-without-effect", message))

    def second_document(self, file: File, line: int) -> None:
        """Ours: the kubelet gives no message. ``line`` 0: there is none."""
        if line:
            message = "this is in a second document; a kubelet reads only the first one"
            self.messages.append(Message(MessageLevel.POLICY, "yaml-documents", message, Place(file.path, line, 1)))

    def _warn(self, reference: str, message: str, before: str, where: Place | None) -> None:
        text = (
            f"Using lenient decoding as strict decoding failed: strict decoding error: {message}"
            if self.minor >= _STRUCTURED_SINCE
            else f"using lenient decoding as strict decoding failed: strict decoder error: {before}"
        )
        self.messages.append(Message(MessageLevel.WARNING, reference, text, where))

    def place_of(self, name: str, *inner: str) -> Place | None:
        """Where the winning layer sets this top-level field, or the key in it; ``None`` for a flag and a default."""
        origin = self.origins.get(name)
        file = self.files.get(origin.where) if origin and origin.layer in {Layer.FILE, Layer.DROP_IN} else None
        return (place(file, (name, *inner)) or place(file, (name,))) if file else None

    def _instead(self, path: Path) -> str:
        name = str(path[-1])
        if len(path) == 1 and (known := fields.field(name)):
            if known.since <= self.minor <= known.last:
                return "; a drop-in of this minor cannot set it"
            if known.since > self.minor:
                return f"; it was added in 1.{known.since}"
            return f"; it was removed after 1.{known.last}"
        instead = hints.unknown_field(path, self.minor)
        return f" ({instead})" if instead else ""


# Where a field is in a file: looked up only when there is a message about it.


_LOADER: Any = yaml.CBaseLoader if yaml.__with_libyaml__ else yaml.BaseLoader


def place(file: File, path: Path, *, last: bool = True) -> Place | None:
    """The place of the key (or the list's entry) at ``path``; of a duplicate key the ``last``, else the first one.

    ``None`` when the path cannot be followed in the file: an alias, a merged key, JSON that is no YAML.
    """
    mark = _walk(_root(file.content), path, last=last)
    return Place(file.path, mark.line + 1, mark.column + 1) if mark else None


@lru_cache(maxsize=8)
def _root(content: bytes) -> Any:
    loader = _LOADER(content)
    try:
        loader.check_node()
        return loader.get_node()
    except yaml.YAMLError:
        return None
    finally:
        loader.dispose()


def _walk(node: Any, path: Path, *, last: bool) -> Any:
    mark = node.start_mark if node else None
    for part in path:
        step = _entry(node, part, last=last) if node else None
        if step is None:
            return None
        mark, node = step
    return mark


def _entry(node: Any, part: str | int, *, last: bool) -> tuple[Any, Any] | None:
    if isinstance(node, yaml.MappingNode):
        pairs = node.value[::-1] if last else node.value
        return next(((key.start_mark, value) for key, value in pairs if key.value == part), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        entry = node.value[part]
        return entry.start_mark, entry
    return None
