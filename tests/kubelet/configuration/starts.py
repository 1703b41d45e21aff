"""Short helpers to start a kubelet model and to read the result."""

from __future__ import annotations

from typing import Any

from rollout.kubelet import versions
from rollout.kubelet.configuration.outcome import File, KubeletOutcome, Message, MessageLevel, Sources
from rollout.kubelet.configuration.startup import outcome

HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
CONFIG = "/var/lib/kubelet/config.yaml"
DROP_INS = "/etc/kubernetes/kubelet.conf.d"
ALLOWED = {"KUBELET_CONFIG_DROPIN_DIR_ALPHA": ""}


def started(
    version: str, written: str | None = None, *flags: str, drop_ins: tuple[str, ...] | None = None, bare: bool = False
) -> KubeletOutcome:
    """A kubelet with this file (kind and version are put before it, unless ``bare``), these drop-ins and flags."""
    config = None if written is None else File(CONFIG, (written if bare else HEAD + written).encode())
    files = None
    if drop_ins is not None:
        named = enumerate(drop_ins, 1)
        files = tuple(File(f"{DROP_INS}/{at}0.conf", (text if bare else HEAD + text).encode()) for at, text in named)
    sources = Sources(config=config, drop_ins=files, flags=flags, environment=ALLOWED)
    return outcome(versions.known(version), sources)


def said(found: KubeletOutcome, level: MessageLevel = MessageLevel.FATAL) -> list[str]:
    """The texts of one level, in order."""
    return [message.text for message in found.messages if message.level is level]


def in_force(found: KubeletOutcome, *path: str | int) -> Any:
    """The effective value at a path; ``None`` where there is none."""
    value: Any = found.effective
    for part in path:
        missing = isinstance(value, dict) and part not in value
        value = None if missing else value[part]
    return value


def worse(found: KubeletOutcome) -> list[Message]:
    """All but notes."""
    return [message for message in found.messages if message.level is not MessageLevel.NOTE]


def references(found: KubeletOutcome, level: MessageLevel) -> list[str]:
    return [message.reference for message in found.messages if message.level is level]
