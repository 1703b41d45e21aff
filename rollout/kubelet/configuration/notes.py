"""What is right and worth knowing: flags over a file, flags that a runtime ignores, what later minors refuse."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rollout.kubelet import fields
from rollout.kubelet.configuration import feature_gates
from rollout.kubelet.configuration.decoding import dotted
from rollout.kubelet.configuration.findings import Findings, place
from rollout.kubelet.configuration.flags import Flags, field_path, value_at
from rollout.kubelet.configuration.outcome import File, Sources
from rollout.kubelet.configuration.yaml_document import Path


def about_flags(before: Mapping[str, Any], after: Mapping[str, Any], flags: Flags, findings: Findings) -> None:
    """Call it before the flags are the origin of any field. ``after``: the configuration with them."""
    for name, given in flags.given.items():
        _over_a_file(field_path(name, findings.minor), given, before, after, findings)
        known = fields.flag(name)
        if known is not None and known.removed is not None:
            until = known.removed_text or f"1.{known.removed}"
            findings.note("removed-later", f"`{given}`: kubelets do not start with this flag from {until} on")


def _over_a_file(
    path: tuple[str, ...], given: str, before: Mapping[str, Any], after: Mapping[str, Any], findings: Findings
) -> None:
    origin = findings.origins.get(path[0]) if path else None
    file = findings.files.get(origin.where) if origin else None
    if file is None or path[0] == "logging":
        return
    changed: list[tuple[str, ...]] = []
    if path == ("featureGates",):
        gates = before.get("featureGates") or {}
        changed += [(*path, name) for name in sorted(gates) if gates[name] is not after["featureGates"][name]]
    elif value_at(before, path) != value_at(after, path):
        changed.append(path)
    for inner in changed:
        where = place(file, inner)
        if where is not None:
            findings.note("flag-over-file", f"`{given}` wins over `{dotted(inner)}` of this file", where)


def about_lost_fields(lost: Iterable[tuple[str, ...]], flags: Flags, findings: Findings) -> None:
    """Fields of a file that the defaults of flags overwrite, unless the flags themselves are given."""
    given = {field_path(name, findings.minor) for name in flags.given}
    origin = findings.origins.get("logging")
    file = findings.files.get(origin.where) if origin else None
    for path in lost:
        if path not in given:
            message = f"no file can set `{dotted(path)}`: the default of its flag overwrites it; give the flag"
            findings.mistake("value-without-effect", message, place(file, path) if file else None)


_DOCKER_ONLY = ("--cni-", "--docker", "--image-pull-progress-deadline", "--network-plugin")
_DOCKER_UNTIL = 23
_ENDPOINT_NEEDED = range(24, 27)
"""1.23 has dockershim, and from 1.27 on containerd's socket is the default of a field."""


def about_runtime(flags: Flags, findings: Findings) -> None:
    """Flags that only dockershim reads, and the one without which three minors find no runtime."""
    if findings.minor <= _DOCKER_UNTIL and flags.text("--container-runtime") == "remote":
        for name, given in flags.given.items():
            if name.startswith(_DOCKER_ONLY) and name != "--docker-only":
                text = f"`{given}` has no effect: with `--container-runtime=remote` no kubelet reads it"
                findings.note("flag-without-effect", text)
    if findings.minor in _ENDPOINT_NEEDED and "--container-runtime-endpoint" not in flags.values:
        text = f"a kubelet 1.{findings.minor} starts only with `--container-runtime-endpoint`, which is not among the flags"
        findings.note("no-runtime-endpoint", text)


def about_sources(sources: Sources, flags: Flags, findings: Findings) -> None:
    """A folder that the kubelet reads, and rollout does not."""
    if sources.drop_ins is None and flags.text("--config-dir"):
        text = f"`{flags.given['--config-dir']}`: its drop-ins are not taken into account; give the folder with --config-dir"
        findings.note("drop-ins-not-read", text)


def about_gates(written: Mapping[str, bool], findings: Findings) -> None:
    """Gates that later minors do not know."""
    last = fields.known_minors().stop - 1
    for name in sorted(written):
        until = max(
            (minor for minor in fields.known_minors() if name in feature_gates.known_gates(minor)), default=last
        )
        if until < last:
            text = f"kubelets after 1.{until} do not start with the gate `{name}`"
            findings.note("removed-later", text, findings.place_of("featureGates", name))


# Values that a kubelet accepts and that have no effect, or another one than was meant.


_LEFT_OVER = re.compile(r"\{\{.*?\}\}|\$\{[^}]*\}|%%[^%]+%%|<no value>", re.DOTALL)
_DRIVERS = ("cgroupfs", "systemd")


def about_values(written: Any, file: File, findings: Findings) -> None:
    """``written``: the file as decoded."""
    told = set()
    for path, text in _texts(written, ()):
        left = _LEFT_OVER.search(text)
        if left is not None:
            told.add(path)
            message = (
                f"`{dotted(path)}` contains `{left.group()}`, which a kubelet uses as it is: it fills in no variables"
            )
            findings.mistake("unfilled-variable", message, place(file, path))
    for at, entry in enumerate(written.get("clusterDNS") or []):
        if ("clusterDNS", at) not in told and not _is_address(entry):
            message = f"`{entry}` is no IP address: the kubelet leaves it out of `clusterDNS`"
            findings.mistake("value-without-effect", message, place(file, ("clusterDNS", at)))
    driver = written.get("cgroupDriver") or _DRIVERS[0]
    if driver not in _DRIVERS and ("cgroupDriver",) not in told:
        message = (
            f"`cgroupDriver: {driver}` is taken for `{_DRIVERS[0]}`: the words are `{_DRIVERS[0]}` and `{_DRIVERS[1]}`"
        )
        findings.mistake("value-without-effect", message, place(file, ("cgroupDriver",)))


def _texts(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in inside:
        yield from _texts(inner, (*path, name))


def _is_address(text: str) -> bool:
    """As ``ParseIPSloppy`` reads it: zeros ahead are allowed."""
    parts = (part.lstrip("0") or "0" for part in text.split("."))
    try:
        ipaddress.ip_address(".".join(parts) if ":" not in text else text)
    except ValueError:
        return False
    return "%" not in text
