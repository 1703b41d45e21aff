"""How cases are written."""

from __future__ import annotations

from tests.kubelet.real_kubelet.cases import Case

HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


def whole(name: str, content: str | bytes, *flags: str) -> Case:
    """A file as it is."""
    return Case(name, content if isinstance(content, bytes) else content.encode(), flags)


def inside(name: str, body: str, *flags: str) -> Case:
    """A valid head, and ``body`` below it."""
    return whole(name, f"{HEAD}{body}\n", *flags)


def flagged(name: str, *flags: str) -> Case:
    """No file at all."""
    return Case(name, None, flags)


def named(prefix: str, bodies: dict[str, str]) -> tuple[Case, ...]:
    """Bodies by name."""
    return tuple(inside(f"{prefix}: {name}", body) for name, body in bodies.items())


def each(prefix: str, field: str, values: tuple[str, ...]) -> tuple[Case, ...]:
    """One case for each value of one field, as written."""
    return tuple(inside(f"{prefix}: {field}: {value}".strip(), f"{field}: {value}") for value in values)
