"""The content of the lock files, and whether a list of parts names the same.

python -m tests.hostile.parts SBOM LOCK    exit code 1 and each difference, if they differ
python -m tests.hostile.parts SBOM         writes the list without addresses
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PIN = re.compile(
    r"(?P<name>[a-z0-9][a-z0-9-]*)(?:\[[a-z0-9,-]+\])?==(?P<version>[A-Za-z0-9.+!-]+)(?: ; (?P<marker>.+?))?"
)
_HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


class NotALockError(ValueError):
    """A line that is neither a pinned package with its hashes nor a comment."""


@dataclass(frozen=True)
class Pin:
    """One package at one version; ``marker`` is the environment that it is for (``""``: every one)."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]


def locked(text: str) -> tuple[Pin, ...]:
    """Every pin of a lock file, or ``NotALockError``: no address, no option, nothing without a hash."""
    whole = re.sub(r"(?m)^\s*#.*\n?", "", text).replace("\\\n", " ")
    return tuple(_pin(line) for line in whole.splitlines() if line.strip())


def _pin(line: str) -> Pin:
    what, *hashes = re.split(r"\s+(?=--hash=)", line.strip())
    found = _PIN.fullmatch(what)
    if found is None or not hashes or not all(_HASH.fullmatch(each) for each in hashes):
        raise NotALockError(line[:200])
    return Pin(found["name"], found["version"], found["marker"] or "", tuple(hashes))


def without_addresses(part: Any) -> Any:
    """A list of parts, or what it contains, without external references: its package URL names a part well enough.

    The hashes of its files, which stand there, become the part's own.
    """
    if isinstance(part, list):
        return [without_addresses(each) for each in part]
    if not isinstance(part, dict):
        return part
    hashes = [each for reference in part.get("externalReferences", ()) for each in reference.get("hashes", ())]
    own = {key: without_addresses(value) for key, value in part.items() if key != "externalReferences"}
    return {**own, "hashes": hashes} if hashes else own


def differences(sbom: str, lock: str) -> list[str]:
    """What only one of them contains; nothing if the list of parts is complete and correct."""
    parts = {(part["name"].lower().replace("_", "-"), part["version"]) for part in json.loads(sbom)["components"]}
    pins = {(pin.name, pin.version) for pin in locked(lock)}
    missing = [f"not in the list of parts: {name} {version}" for name, version in sorted(pins - parts)]
    return missing + [f"not in the lock file: {name} {version}" for name, version in sorted(parts - pins)]


if __name__ == "__main__":
    if len(sys.argv) == 2:
        file = Path(sys.argv[1])
        tidy = without_addresses(json.loads(file.read_text(encoding="utf-8")))
        file.write_text(json.dumps(tidy, indent=2) + "\n", encoding="utf-8")
        sys.exit()
    found = differences(*(Path(name).read_text(encoding="utf-8") for name in sys.argv[1:3]))
    sys.stdout.write("".join(f"{line}\n" for line in found))
    sys.exit(1 if found else 0)
