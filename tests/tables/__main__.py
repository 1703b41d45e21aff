"""``python -m tests.tables MINOR SOURCE [--compare]``: what ``make kubelet-tables`` runs.

Writes the minor into the tables, the newest one or the one after it, and prints what changed against the minor before.
``--compare`` writes nothing and exits with 1 if tables and tree differ.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.places import ROOT
from tests.tables import tables

FOLDER = ROOT / "rollout" / "kubelet"


def main(arguments: Sequence[str], folder: Path = FOLDER) -> int:
    words = [word for word in arguments if word != "--compare"]
    if len(words) != 2 or not (minor := re.fullmatch(r"(?:1\.)?(\d{2})", words[0])):
        print("set MINOR=38 (or 1.38) and SOURCE=/path/to/kubernetes, a source tree of that minor", file=sys.stderr)  # noqa: T201
        return 2
    held = tables.load(folder)
    last = held[tables.FIELDS]["minors"][1]
    source = tables.read(Path(words[1]), int(minor[1]))
    found = list(tables.differences(held, source))
    print("\n".join(found) or f"1.{source.minor}: the tables and the tree agree")  # noqa: T201
    if "--compare" in arguments:
        return int(bool(found))
    if source.minor not in (last, last + 1):
        print(f"the tables end with 1.{last}; only that minor or the next one can be written", file=sys.stderr)  # noqa: T201
        return 2
    for name, table in tables.with_source(held, source).items():
        (folder / f"{name}.json").write_text(tables.text(table), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
