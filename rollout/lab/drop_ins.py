"""The kubelet's ``--config-dir``: which files it reads, how it merges them, and which errors are fatal.

Rules: cmd/kubelet/app/server.go of 1.28 to 1.36. Unknown fields are dropped silently.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rollout.lab import configfile
from rollout.lab.configfile import FatalError
from rollout.lab.units import Tree

_GATED = (28, 29)
"""These minors need KUBELET_CONFIG_DROPIN_DIR_ALPHA in their environment."""
_PATCHED_ON_V1BETA1 = 32
"""From this minor on ``null`` restores the default and a drop-in must have its kind."""


def merged(
    minor: int, tree: Tree, folder: str, base: Mapping[str, object], variables: Mapping[str, str]
) -> tuple[dict[str, object], bytes]:
    """``base`` with the drop-ins over it, and all of their bytes; ``FatalError`` has the kubelet's own message."""
    if minor in _GATED and "KUBELET_CONFIG_DROPIN_DIR_ALPHA" not in variables:
        raise FatalError(
            f"flag {folder} specified but environment variable KUBELET_CONFIG_DROPIN_DIR_ALPHA not set, cannot start kubelet"
        )
    if not tree.is_folder(folder):
        raise FatalError(f"failed to merge kubelet configs: lstat {folder}: no such file or directory")
    values, read = dict(base), b""
    for path in _walk(tree, folder):
        content = tree.read(path) or b""
        values = _patched(minor, values, _decoded(minor, content, path))
        read += content
    if "maxParallelImagePulls" not in base and "maxParallelImagePulls" in values:
        values.setdefault("serializeImagePulls", True)  # the base had its defaults before the merge
    return values, read


def _walk(tree: Tree, folder: str) -> Iterator[str]:
    for name in tree.names(folder):
        path = f"{folder}/{name}"
        if tree.is_folder(path):
            yield from _walk(tree, path)
        elif name.endswith(".conf"):
            yield path


def _decoded(minor: int, content: bytes, path: str) -> Mapping[str, object]:
    try:
        decoded = configfile.decode(minor, content, path)
    except FatalError as error:
        raise FatalError(f"failed to load kubelet dropin file, path: {path}, error: {error}") from None
    twice = [said for said in decoded.strict if "already set" in said]
    if twice:
        raise FatalError(f"failed to load kubelet dropin file, path: {path}, error: {twice[0]}")
    return {name: value for name, value in decoded.values.items() if name not in {"kind", "apiVersion"}}


def _patched(minor: int, base: Mapping[str, object], patch: Mapping[str, object]) -> dict[str, object]:
    """A JSON merge patch; before 1.29 a zero value could not override (mergo)."""
    result = dict(base)
    for name, value in patch.items():
        before = result.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            result[name] = _patched(minor, before, value)
        elif value is None:
            if minor >= _PATCHED_ON_V1BETA1:
                result.pop(name, None)
        elif value or minor > _GATED[0]:
            result[name] = value
    return result
