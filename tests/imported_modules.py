"""What the import of each command takes: ``python -m tests.imported_modules`` writes the table anew.

Each module costs every call of the command 0.3 to 2 ms of CPU, and a library of weight up to 100 ms.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import NamedTuple

from rollout.cli.command_table import COMMANDS
from tests.places import ROOT

FILE = ROOT / "tests/cli/imported_modules.txt"
LIBRARIES = (
    "ClusterShell", "alembic", "apprise", "click", "cryptography", "dask", "distributed", "fabric", "httpcore", "invoke",
    "jinja2", "paramiko", "psycopg", "pydantic", "rich", "ruamel", "sqlalchemy", "starlette", "tomlkit", "uvicorn", "yaml",
)  # fmt: skip
STEP = 10
"""The table is rounded up to it: not each new module of a feature needs a new table."""

COUNTS = """\
import os, sys
from importlib import import_module
import rollout.cli.main
for module in {modules}:
    if os.fork() == 0:
        import_module("rollout.composition.kinds").install()
        import_module(f"rollout.{{module}}")
        ours = [name for name in sys.modules if name.startswith("rollout.")]
        there = [name for name in {libraries} if name in sys.modules]
        os.write(1, " ".join([module, str(len(ours)), *there, "\\n"]).encode())
        os._exit(0)
    os.wait()
"""


class Imported(NamedTuple):
    """``modules``: at most so many of rollout."""

    modules: int
    libraries: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.modules:>4}  {' '.join(self.libraries)}"


def measured() -> Mapping[str, Imported]:
    """Each command of the table → what its module imports. Each is imported in a process of its own."""
    places = {name: listed.where.partition(":")[0] for name, listed in COMMANDS.items()}
    script = COUNTS.format(modules=sorted(set(places.values())), libraries=LIBRARIES)
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    found = {module: Imported(int(count), tuple(libraries)) for module, count, *libraries in lines}
    return {name: found[module] for name, module in places.items()}


def recorded() -> Mapping[str, Imported]:
    rows = [line.partition(": ") for line in FILE.read_text().splitlines()]
    return {name: Imported(int(words.split()[0]), tuple(words.split()[1:])) for name, _, words in rows}


def rounded_up(found: Imported) -> Imported:
    return found._replace(modules=-(-found.modules // STEP) * STEP)


if __name__ == "__main__":
    FILE.write_text("".join(f"{name}: {rounded_up(found)}\n" for name, found in measured().items()))
