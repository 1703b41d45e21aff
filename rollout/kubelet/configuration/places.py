"""Where a field is in a file: looked up only when there is a message about it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import yaml

from rollout.errors import Place
from rollout.kubelet.configuration.outcome import File
from rollout.kubelet.configuration.yaml_document import Path

_LOADER: Any = yaml.CBaseLoader if yaml.__with_libyaml__ else yaml.BaseLoader


def place(file: File, path: Path, *, last: bool = True) -> Place | None:
    """The place of the key (or the list's entry) at ``path``; of a duplicate key the ``last``, else the first one.

    ``None`` when the path cannot be followed in the file: an alias, a merged key, JSON that is no YAML.
    """
    found = _walk(_root(file.content), path, last=last)
    return Place(file.path, found.line + 1, found.column + 1) if found else None


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
