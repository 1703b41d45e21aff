"""What a person waits for: CPU of single commands on small fleets, as processes from start to end."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.cheap_fleet import PLAYBOOK
from benchmarks.cheap_nodes import cheap_nodes, prototype
from benchmarks.figures import Row
from benchmarks.measured import measured
from rollout.cli.table_group import COMPLETE

ROOT = Path(__file__).parent.parent
TIMES = 3
"""The least of them is what the command costs; the rest is what others do on this machine."""
PLANNED = 3


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        examples = Path(name)
        for part in ("inventories", "playbooks", "templates"):
            (examples / part).symlink_to(ROOT / part)
        for line in ("rollout apply --", "rollout status --cluster ", "rollout plan --limit "):
            asked = {COMPLETE: "bash_complete", "COMP_WORDS": line}
            yield Row(f"Tab after `{line}`, CPU", _least(examples, (), asked), 0.25, "s")
        yield Row("`rollout check` of the examples, CPU", _least(examples, ("check",), {}), 0.6, "s")
    with tempfile.TemporaryDirectory() as name, cheap_nodes(Path(name), PLANNED) as nodes:
        nodes.lay_out(prototype(nodes.folder / "prototype", nodes.folder / "tools").root)
        for path, text in (("inventories/cheap.yaml", nodes.inventory("cheap")), ("playbooks/pulls.yaml", PLAYBOOK)):
            (nodes.folder / path).parent.mkdir()
            (nodes.folder / path).write_text(text)
        (nodes.folder / "templates").symlink_to(ROOT / "templates")
        words = ("plan", "--cluster", "cheap", "--out", "p.json", "--ssh-config", str(nodes.ssh_config))
        what = f"`rollout plan` of {PLANNED} nodes over SSH, CPU"
        yield Row(what, _least(nodes.folder, words, {"PYTHONPATH": str(ROOT)}), 0.7, "s")


def _least(folder: Path, words: tuple[str, ...], environment: dict[str, str]) -> float:
    """Seconds of CPU of one command of rollout."""
    command = (sys.executable, "-m", "rollout.cli", *words)
    return min(measured(command, folder, environment).cpu for _ in range(TIMES))
