"""Which kinds of work use the controller's CPU in an apply: cProfile in every thread, by the CPU time of that thread.

``python -m benchmarks.controller_cpu FILE WORD…`` runs ``rollout WORD…`` and writes seconds by kind as JSON. A profiler slows small
functions most, so the shares are what counts.
"""

from __future__ import annotations

import builtins
import cProfile
import importlib
import json
import os
import re
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import CodeType
from typing import Any

IMPORTS = "imports, and what modules do when they are imported"
KINDS: Mapping[str, tuple[str, ...]] = {
    "SSH: key exchange, ciphers, packets (paramiko, cryptography)": ("/paramiko/", "/cryptography/", "/fabric/"),
    "SSH: rollout's connections and conversations": ("/rollout/adapters/ssh/",),
    "journal: writes, JSON of events, SQL": ("/rollout/adapters/journal/", "/sqlalchemy/", "/sqlite3/", "/core/run/journal_codec"),
    "machine: transitions, limits, order of nodes": ("/rollout/core/run/",),
    "agent: requests and answers, gates of a node": ("/rollout/kubelet/",),
    "driver and use cases": ("/rollout/app/",),
    "screen, files and other adapters": ("/rollout/adapters/", "/rollout/cli/", "/rollout/composition/", "/rich/", "/click/"),
    "other parts of the core: plans, texts, JSON": ("/rollout/core/",),
}  # fmt: skip
PACKAGES: Mapping[str, tuple[str, ...]] = {
    "rollout": ("rollout",),
    "SQLAlchemy": ("sqlalchemy", "greenlet"),
    "pydantic": ("pydantic", "pydantic_core", "annotated_types", "typing_inspection", "typing_extensions"),
    "paramiko, cryptography and theirs": (
        "paramiko",
        "cryptography",
        "nacl",
        "bcrypt",
        "cffi",
        "_cffi_backend",
        "invoke",
    ),
    "PyYAML, ruamel.yaml, tomlkit": ("yaml", "_yaml", "ruamel", "_ruamel_yaml", "tomlkit"),
    "click, rich, ClusterShell": ("click", "rich", "ClusterShell"),
}
"""Kind → the first parts of the names of its modules."""
LIBRARY = "Python's library, and other packages"
OTHER = "Python itself: starts of threads, and what has no caller of ours"
DEEP = 12
"""Calls of the library in the library that are followed."""
Code = CodeType | str
"""A function; in C its name."""
_IMPORTED = re.compile(r"import time:\s+(?P<own>\d+) \|\s+\d+ \| *(?P<name>\S+)")
_profiles: list[cProfile.Profile] = []
_imported: list[float] = []


class _Thread(threading.local):
    """Of the current thread: its profile, and whether it imports something."""

    profile: cProfile.Profile
    imports = False


_thread = _Thread()


def main() -> None:
    file, *words = sys.argv[1:]
    builtins.__import__ = _timed(builtins.__import__)
    importlib.import_module = _timed(importlib.import_module)
    threading.setprofile(_begin)
    _begin()
    from rollout.cli.main import run  # noqa: PLC0415 - its imports count

    code = run(words)
    _thread.profile.disable()
    Path(file).write_text(json.dumps(_by_kind()))
    sys.stdout.flush()
    os._exit(code)


def _begin(*_: object) -> None:
    """Of a new thread, its first event: from here on its own profile receives the events."""
    _thread.profile = cProfile.Profile(time.thread_time)
    _profiles.append(_thread.profile)
    _thread.profile.enable()


def _timed(load: Any) -> Any:
    """An import that counts its CPU, unless it is in another one; nothing in it counts as something else."""

    def timed(name: str, *rest: Any, **more: Any) -> Any:
        if _thread.imports or name in sys.modules:
            return load(name, *rest, **more)
        _thread.profile.disable()
        _thread.imports, began = True, time.thread_time()
        try:
            return load(name, *rest, **more)
        finally:
            _imported.append(time.thread_time() - began)
            _thread.imports = False
            _thread.profile.enable()

    return timed


def _by_kind() -> dict[str, float]:
    """Seconds. Python's library and functions in C work for their callers: their time goes to these, in parts."""
    own: dict[Code, float] = defaultdict(float)
    callers: dict[Code, dict[Code, float]] = defaultdict(lambda: defaultdict(float))
    for profile in _profiles:
        for entry in profile.getstats():
            own[entry.code] += entry.inlinetime
            for each in entry.calls or ():
                callers[each.code][entry.code] += each.totaltime
    found: dict[str, float] = defaultdict(float, {IMPORTS: sum(_imported)})
    shares = _shares(list(own), callers)
    for code, seconds in own.items():
        for kind, share in shares[code].items():
            found[kind] += share * seconds
    return dict(found)


def _shares(codes: Sequence[Code], callers: Mapping[Code, Mapping[Code, float]]) -> dict[Code, dict[str, float]]:
    """Of each function: kind → the part of its time that belongs to it."""
    shares = {code: {_kind(code): 1.0} for code in codes}
    library = [code for code in codes if _kind(code) == OTHER and sum(callers[code].values()) > 0]
    for _ in range(DEEP):
        for code in library:
            found: dict[str, float] = defaultdict(float)
            for caller, seconds in callers[code].items():
                for kind, share in shares[caller].items():
                    found[kind] += share * seconds / sum(callers[code].values())
            shares[code] = found
    return shares


def imports_by_package(said: str) -> dict[str, float]:
    """Of what ``python -X importtime`` prints: kind of ``PACKAGES`` → seconds, of each module without what it imports."""
    found: dict[str, float] = defaultdict(float)
    for line in said.splitlines():
        if match := _IMPORTED.fullmatch(line):
            first = match["name"].partition(".")[0]
            found[next((kind for kind, names in PACKAGES.items() if first in names), LIBRARY)] += (
                int(match["own"]) / 1e6
            )
    return dict(found)


def _kind(code: Code) -> str:
    path = code.co_filename if isinstance(code, CodeType) else ""
    if path.startswith("<frozen importlib"):
        return IMPORTS
    return next((kind for kind, parts in KINDS.items() if any(part in path for part in parts)), OTHER)


if __name__ == "__main__":
    main()
