"""What a kubelet takes for the fields that nobody set, by minor, in the form in which ``/configz`` shows it.

``defaults`` is the whole answer for a kubelet given a file that sets nothing; the rules below say which defaults hang on
other values. The data is ``kubelet_defaults.json`` in ``rollout/kubelet``; it says how it was derived. Source of the
rules: ``SetDefaults_KubeletConfiguration`` in ``pkg/kubelet/apis/config/v1beta1/defaults.go``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from rollout.core.model.settings import Value


def defaults(minor: int) -> Mapping[str, Value]:
    """Top-level field → value (objects are nested mappings) of a kubelet 1.``minor`` given a file that sets nothing.

    Fields whose default is "nothing" are not in it, unless ``/configz`` shows them all the same (``shutdownGracePeriod``
    ``0s``). Empty for a minor without data. Callers do not change what they are given.
    """
    return _of_minor("defaults", minor)


def legacy(minor: int) -> Mapping[str, Value]:
    """The same for a kubelet without ``--config``: anonymous, AlwaysAllow, no webhook, read-only port 10255.

    Source: ``applyLegacyDefaults`` in ``cmd/kubelet/app/options/options.go``, every minor.
    """
    return {**defaults(minor), **_of_minor("legacy", minor)}


@cache
def _data() -> Mapping[str, Any]:
    text = resources.files("rollout.kubelet").joinpath("kubelet_defaults.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


@cache
def _of_minor(table: str, minor: int) -> Mapping[str, Value]:
    return {
        name: span["value"]
        for name, spans in _data()[table].items()
        for span in spans
        if span["since"] <= minor <= span["last"]
    }
