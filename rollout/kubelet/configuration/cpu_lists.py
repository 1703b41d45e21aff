"""Lists of CPUs such as ``0-3,8``, as ``cpuset.Parse`` reads them. Ranges are never written out: a node's file may name billions."""

from __future__ import annotations

import re

from rollout.kubelet.configuration.go_values import quoted

_ATOI = re.compile(r"[-+]?[0-9]+", re.ASCII)
_LONGEST_NUMBER = 100
"""Characters. Leading zeros count; more of them than this are not read, and no kubelet's file has them."""

_INT64 = 2**63


def cpu_list_error(listed: str) -> str:
    """The error for the first part that is no number, or ``""``. A part with two dashes is skipped."""
    for part in listed.split(","):
        bounds = part.split("-")
        if len(bounds) > 2:
            continue
        for bound in bounds:
            if not _ATOI.fullmatch(bound):
                return f"strconv.Atoi: parsing {quoted(bound)}: invalid syntax"
            if len(bound) > _LONGEST_NUMBER or not -_INT64 <= int(bound) < _INT64:
                return f"strconv.Atoi: parsing {quoted(bound)}: value out of range"
    return ""


def cpus(listed: str) -> int:
    """The number of CPUs in a list. ``ValueError``: the list has a ``cpu_list_error``."""
    error = cpu_list_error(listed)
    if error:
        raise ValueError(error)
    parts = (part.split("-") for part in listed.split(","))
    spans = sorted((int(bounds[0]), int(bounds[-1])) for bounds in parts if len(bounds) <= 2)
    count, next_free = 0, -_INT64
    for first, last in spans:
        count += max(0, last + 1 - max(first, next_free))
        next_free = max(next_free, last + 1)
    return count
