"""What only Linux checks (``validation_linux.go``): the host's cgroups, and users inside pods."""

from __future__ import annotations

from collections.abc import Iterator

from rollout.kubelet.configuration.validation.checked import Checked, Complaint, wrong

_UNIT = 65536
_MOST = 2**32 - 1


def oom_kill(checked: Checked) -> Iterator[Complaint]:
    """``singleProcessOOMKill``, since 1.32: cgroup v1 knows nothing else."""
    if checked.minor >= 32 and checked.cgroup_v1 and checked.values.get("singleProcessOOMKill") is False:
        said = "singleProcessOOMKill must not be explicitly set to false when using cgroup v1"
        yield wrong("singleProcessOOMKill", said)


def user_namespaces(checked: Checked) -> Iterator[Complaint]:
    """``userNamespaces.idsPerPod``, since 1.33: whole units."""
    ids = checked.inner("userNamespaces").get("idsPerPod")
    if checked.minor < 33 or not isinstance(ids, int):
        return
    if ids < _UNIT:
        yield wrong("userNamespaces", f"userNamespaces.idsPerPod must not be less than {_UNIT}")
    elif ids % _UNIT:
        yield wrong("userNamespaces", f"userNamespaces.idsPerPod must be a multiple of {_UNIT}")
    elif ids > _MOST:
        yield wrong("userNamespaces", f"userNamespaces.idsPerPod must not be more than {_MOST}")
