"""Defaults: the test data of Kubernetes contain the result of its own defaulting of an empty file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

_DEFAULTED = "pkg/kubelet/apis/config/scheme/testdata/KubeletConfiguration/after/v1beta1.yaml"


def read(source: Path) -> Mapping[str, Any]:
    """Field → default, including those that depend on a gate that is on by default."""
    found = yaml.safe_load((source / _DEFAULTED).read_text(encoding="utf-8"))
    if not isinstance(found, dict):
        raise TypeError(f"{_DEFAULTED} is no map")
    return found
