"""Kubelet versions as a node prints them: ``1.20.15``, ``v1.23.17-eks-1234``, ``Kubernetes v1.20.2``."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from rollout.core.model.frozen import dataclass
from rollout.kubelet import fields

CURRENT = "v1.36.1"
"""A kubelet of the newest minor with tables that were read from its release. Those of 1.37 were read from a beta."""

_VERSION = re.compile(r"(?:Kubernetes )?v?1\.(\d{1,3})(?:\.(\d{1,4}))?(?:[-+.][0-9A-Za-z.+~-]*)?")


@dataclass(frozen=True, slots=True)
class Version:
    """``1.MINOR.PATCH``; ``text`` is the version as printed, without ``v``."""

    minor: int
    patch: int
    text: str

    @property
    def short(self) -> str:
        """``1.20``, as in release notes."""
        return f"1.{self.minor}"


@lru_cache(maxsize=1024)
def parse(text: str) -> Version | None:
    """The version that a kubelet printed, or ``None`` if it cannot be parsed."""
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        return None
    return Version(int(match[1]), int(match[2] or 0), text.strip().removeprefix("Kubernetes ").removeprefix("v"))


def known(text: str) -> Version:
    """The version of a kubelet that passed the checks; ``ValueError`` otherwise."""
    version = parse(text)
    if version is None:
        raise ValueError(f"{text!r} is not a kubelet version")
    return version


def too_new(text: str) -> bool:
    """Whether this kubelet is newer than every minor in the table."""
    version = parse(text)
    return version is not None and version.minor >= fields.known_minors().stop


def taken_for(text: str, assumed: int | None) -> Version:
    """The version that a fit kubelet is judged by: its own, or the minor that a too new one is treated as."""
    version = known(text)
    if assumed is None or not too_new(text):
        return version
    return replace(version, minor=assumed, patch=0, text=f"{version.text} (treated as 1.{assumed})")
