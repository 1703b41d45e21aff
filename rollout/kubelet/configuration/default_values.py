"""What a kubelet takes for the fields that nobody set, by minor, in the form in which ``/configz`` shows it.

The data is ``kubelet_defaults.json`` in ``rollout/kubelet``; it says how it was derived. Source of the rules below:
``SetDefaults_KubeletConfiguration`` in ``pkg/kubelet/apis/config/v1beta1/defaults.go`` and ``loadConfigFile`` in
``cmd/kubelet/app/server.go``. What is not in the table because it hangs on other values:

* A field that is no pointer (``schema.FieldType``) takes its default when it is zero, too; a map or list only when it is null.
* ``nodeStatusReportFrequency`` follows ``nodeStatusUpdateFrequency`` where only that is written.
* ``podPidsLimit`` below 0 becomes -1.
* ``serializeImagePulls`` is false where only ``maxParallelImagePulls`` of 2 or more is written (1.27).
* ``mergeDefaultEvictionSettings`` (1.33) keeps the default thresholds that ``evictionHard`` does not name.
* Without ``serverTLSBootstrap``, ``tlsCertFile`` and ``tlsPrivateKeyFile`` become ``kubelet.crt`` and ``kubelet.key`` under
  ``--cert-dir`` where neither is written (``InitializeTLS``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from rollout.core.model.settings import Value


@dataclass(frozen=True, slots=True)
class GatedDefault:
    """``value`` is taken for the field at ``path`` (``("a", "b")`` is ``a.b``) where ``gate`` is on, and nothing where it is off."""

    path: tuple[str, ...]
    gate: str
    value: Value


def defaults(minor: int) -> Mapping[str, Value]:
    """Top-level field → value (objects are nested mappings) of a kubelet 1.``minor`` given a file that sets nothing.

    Fields whose default is "nothing" are not in it, unless ``/configz`` shows them all the same (``shutdownGracePeriod``
    ``0s``); what hangs on a gate is in ``gated``. Empty for a minor without data. Callers do not change what they are given.
    """
    return _of_minor("defaults", minor)


def legacy(minor: int) -> Mapping[str, Value]:
    """The same for a kubelet without ``--config``: anonymous, AlwaysAllow, no webhook, read-only port 10255.

    From 1.26 on it has no ``evictionHard`` either: the default thresholds come with the file. Sources:
    ``applyLegacyDefaults`` in ``cmd/kubelet/app/options/options.go`` and ``loadConfigFile``.
    """
    both = {**defaults(minor), **_of_minor("legacy", minor)}
    return {name: value for name, value in both.items() if value is not None}


def gated(minor: int) -> tuple[GatedDefault, ...]:
    """The defaults of a kubelet 1.``minor`` that hang on feature gates."""
    return tuple(
        GatedDefault(tuple(path.split(".")), span["gate"], span["value"])
        for path, span in _spans("gated", minor).items()
    )


@cache
def _data() -> Mapping[str, Any]:
    text = resources.files("rollout.kubelet").joinpath("kubelet_defaults.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


def _spans(table: str, minor: int) -> Mapping[str, Any]:
    return {
        name: span for name, spans in _data()[table].items() for span in spans if span["since"] <= minor <= span["last"]
    }


@cache
def _of_minor(table: str, minor: int) -> Mapping[str, Value]:
    return {name: span["value"] for name, span in _spans(table, minor).items()}
