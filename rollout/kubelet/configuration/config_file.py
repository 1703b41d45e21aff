"""One configuration file as the kubelet's loader reads it, up to and not including the defaults.

A file that begins with ``{`` is read as JSON alone, any other as YAML. Strict decoding comes first. When only
strictness fails (unknown fields, duplicate keys), the kubelet warns and goes on. Source:
``kubeletconfig/util/codec/codec.go``.
"""

from __future__ import annotations

import json
import posixpath
import re
from typing import Any

from rollout.core.model.frozen import dataclass
from rollout.kubelet.configuration.decoding import Decoded, Object, decode
from rollout.kubelet.configuration.outcome import File
from rollout.kubelet.configuration.yaml_document import DocumentError, Duplicate, GoYamlDocument, Json, Path, read

API_VERSION = "kubelet.config.k8s.io/v1beta1"
KIND = "KubeletConfiguration"

WANTED = f"the first document must have `apiVersion: {API_VERSION}` and `kind: {KIND}`"

_PEEKED = 2048
_MOST_DIGITS = 4000
_TYPE_META_STRUCT = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)
_PATHS = ("staticPodPath", "tlsCertFile", "tlsPrivateKeyFile", "resolvConf", "volumePluginDir", "podLogsDir")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_SPACE = " \t\n\v\f\r\x85\xa0"


class LoadError(ValueError):
    """The kubelet cannot load the file; the text is its own. ``path`` is the field; ``line`` 0: no place in the file.

    ``hint`` is ours.
    """

    def __init__(
        self, reference: str, text: str, path: Path = (), line: int = 0, column: int = 0, hint: str = ""
    ) -> None:
        super().__init__(text)
        self.hint = hint
        self.reference = reference
        self.text = text
        self.path = path
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True)
class TypeMeta:
    """The kind and version that the file gives; encoding/json finds these two in any letter case."""

    api_version: str
    kind: str


def document(file: File) -> GoYamlDocument:
    """The file as JSON, or ``LoadError``."""
    if not file.content:
        raise LoadError("empty-file", f'kubelet config file "{file.path}" was empty')
    try:
        return _json(file.content) if is_json(file.content) else read(file.content)
    except DocumentError as error:
        reference = "yaml-syntax" if error.text.startswith("yaml: ") else "bad-document"
        hint = "a file that begins with `{` is read as JSON" if is_json(file.content) else ""
        raise LoadError(reference, f"failed to decode: {error.text}", (), error.line, error.column, hint) from None


def is_json(content: bytes) -> bool:
    """Does the kubelet's recogniser detect JSON?"""
    return content[:_PEEKED].decode("utf-8", "replace").lstrip(_SPACE).startswith("{")


def type_meta(value: Json) -> TypeMeta:
    """Kind and version; ``LoadError`` when they cannot be read."""
    if value is None:
        return TypeMeta("", "")
    if not isinstance(value, dict):
        type_name = {str: "string", list: "array", bool: "bool"}.get(type(value), "number")
        raise LoadError(
            "bad-document", f"{_UNREAD} json: cannot unmarshal {type_name} into Go value of type {_TYPE_META_STRUCT}"
        )
    found_meta = {"apiversion": "", "kind": ""}
    for name in sorted(value):
        folded = name.casefold()
        if folded in found_meta and value[name] is not None:
            found_meta[folded] = _meta_text(value[name], name)
    return TypeMeta(found_meta["apiversion"], found_meta["kind"])


_UNREAD = "failed to decode: couldn't get version/kind; json parse error:"


def _meta_text(value: Any, name: str) -> str:
    if isinstance(value, str):
        return value
    type_name = {list: "array", dict: "object", bool: "bool"}.get(type(value), "number")
    message = f"{_UNREAD} json: cannot unmarshal {type_name} into Go struct field .{name} of type string"
    raise LoadError("bad-value", message, (name,))


def check_kind(meta: TypeMeta) -> None:
    """``LoadError`` unless this is a KubeletConfiguration of the only existing version."""
    if not meta.kind:
        raise LoadError("no-kind", "failed to decode: Object 'Kind' is missing in '...'", hint=WANTED)
    if not meta.api_version:
        raise LoadError("no-api-version", "failed to decode: Object 'apiVersion' is missing in '...'", hint=WANTED)
    if meta.api_version.count("/") > 1:
        message = f"couldn't get version/kind; json parse error: unexpected GroupVersion string: {meta.api_version}"
        raise LoadError("unknown-kind", f"failed to decode: {message}", ("apiVersion",), hint=WANTED)
    if (meta.api_version, meta.kind) != (API_VERSION, KIND):
        message = f'no kind "{meta.kind}" is registered for version "{meta.api_version}"'
        text = f'failed to decode: {message} in scheme "pkg/kubelet/apis/config/scheme/scheme.go"'
        raise LoadError("unknown-kind", text, ("apiVersion" if meta.kind == KIND else "kind",), hint=WANTED)


def decoded(value: Json, minor: int) -> Decoded:
    """The typed configuration without its kind and version."""
    decoded = decode(value, minor)
    for name in ("kind", "apiVersion"):
        decoded.value.pop(name, None)
    return decoded


def with_absolute_paths(configuration: Object, file: File) -> Object:
    """Makes relative paths absolute: they are relative to the file's directory (``KubeletConfigurationPathRefs``).

    A relative name of the file itself is made absolute first (``loadConfigFile``); a service is started in ``/``.
    """
    folder = posixpath.join("/", posixpath.dirname(file.path))
    full = dict(configuration)
    for name in _PATHS:
        if name in full:
            full[name] = _absolute(full[name], folder)
    authority = full.get("authentication", {}).get("x509", {}).get("clientCAFile")
    if authority:
        x509 = {**full["authentication"]["x509"], "clientCAFile": _absolute(authority, folder)}
        full["authentication"] = {**full["authentication"], "x509": x509}
    return full


def _absolute(path: str, folder: str) -> str:
    return path if not path or path.startswith("/") else posixpath.normpath(posixpath.join(folder, path))


def _json(content: bytes) -> GoYamlDocument:
    """JSON as encoding/json reads it; a whole number with a point or an exponent stays a float."""
    duplicates: list[Duplicate] = []

    def entries(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        object_: dict[str, Any] = {}
        for name, value in pairs:
            name = _without_surrogates(name)  # noqa: PLW2901 (as encoding/json reads it)
            if name in object_:
                duplicates.append(Duplicate((name,), 0))
                value = _both(object_[name], value)  # noqa: PLW2901 (the later one over the earlier)
            object_[name] = _without_surrogates(value)
        return object_

    try:
        text = content.decode("utf-8", "replace")
        return GoYamlDocument(
            json.loads(text, object_pairs_hook=entries, parse_constant=_no_constant, parse_int=_whole),
            tuple(duplicates),
        )
    except RecursionError:
        raise DocumentError("couldn't get version/kind; json parse error: exceeded max depth") from None
    except json.JSONDecodeError as error:
        message = f"couldn't get version/kind; json parse error: {error.msg}"
        raise DocumentError(message, error.lineno, error.colno) from None


def _without_surrogates(value: Any) -> Any:
    """encoding/json reads half of a surrogate pair as U+FFFD. Maps are clean already."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    return [_without_surrogates(entry) for entry in value] if isinstance(value, list) else value


def _both(first: Any, second: Any) -> Any:
    """JSON objects are decoded into one another; any other value is replaced."""
    if isinstance(first, dict) and isinstance(second, dict):
        return {**first, **{name: _both(first.get(name), value) for name, value in second.items()}}
    return first if second is None else second


def _whole(digits: str) -> int | float:
    """Python does not read longer numbers; no field accepts one of that length."""
    return int(digits) if len(digits) <= _MOST_DIGITS else float("inf")


def _no_constant(name: str) -> Any:
    raise json.JSONDecodeError(f"invalid character '{name[0]}' looking for beginning of value", "", 0)
