"""The transcript of the first hour with one's own fleet: each command with its output, its time and its exit code.

``python -m tests.first_hour.transcript FOLDER PAGE COMMANDS SECONDS``: exits with 1 if the first plan needed more than that, or
if a command has another exit code than the page of commands names.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

_EXITS = re.compile(r"\s+# exits with (\d+)$")
_MOST_LINES = 60
_HEAD = """\
# The first hour with one's own fleet

Written by `make first-hour-bastion`: the commands of [a project of your own](../docs/project.md#a-fleet-behind-a-bastion), typed on an empty Debian 12 with Python, \
an SSH key, an Ansible inventory and a checkout.

* **Real:** OpenSSH, with an sshd for the bastion and one for each of the 300 addresses, each with its own host key; ansible-core; three network namespaces, the first without a route to the nodes.
* **Stand-ins:** behind each node's sshd, the lab: the real agent in a real shell on the node's own files, without a real systemd, sudo and kubelet.
* The inventory has the form of kubespray's: groups, group_vars, templates. No host key is known at the beginning, and no file is edited.

"""


@dataclass(frozen=True, slots=True)
class Typed:
    """One command as it ended."""

    line: str
    printed: str
    status: int
    seconds: float

    @property
    def wanted(self) -> int:
        found = _EXITS.search(self.line)
        return int(found[1]) if found else 0


def read(folder: Path) -> list[Typed]:
    """All commands, in order."""
    typed = []
    for number, line in enumerate((folder / "typed.txt").read_text(encoding="utf-8").splitlines(), 1):
        status, nanoseconds = (folder / "printed" / f"{number}.end").read_text(encoding="ascii").split()
        printed = (folder / "printed" / f"{number}.txt").read_text(encoding="utf-8")
        typed.append(Typed(line, printed, int(status), int(nanoseconds) / 1e9))
    return typed


def page(typed: list[Typed], to_plan: int) -> str:
    """Long outputs lose their middle. What was printed stands behind a bar: only commands look like commands."""
    total, first = sum(each.seconds for each in typed), sum(each.seconds for each in typed[:to_plan])
    parts = [
        _HEAD,
        f"**{to_plan} commands and {first:.0f} s to the first plan**; {len(typed)} commands and {total:.0f} s in all.\n",
    ]
    for number, each in enumerate(typed, 1):
        lines = each.printed.rstrip("\n").split("\n")
        if len(lines) > _MOST_LINES:
            half = _MOST_LINES // 2
            lines = [*lines[:half], f"[{len(lines) - 2 * half} more lines]", *lines[-half:]]
        body = "\n".join([f"$ {each.line}", *(f"| {line}" for line in lines if line)])
        parts.append(f"\n{number}. {each.seconds:.1f} s, exit code {each.status}\n\n```text\n{body}\n```\n")
    return "".join(parts)


def main(folder: Path, target: Path, most_commands: int, most_seconds: float) -> int:
    """Writes the page in any case."""
    typed = read(folder)
    to_plan = next(number for number, each in enumerate(typed, 1) if each.line.startswith("rollout plan "))
    target.write_text(page(typed, to_plan), encoding="utf-8")
    wrong = [
        f"`{each.line}` exited with {each.status} instead of {each.wanted}"
        for each in typed
        if each.status != each.wanted
    ]
    seconds = sum(each.seconds for each in typed[:to_plan])
    if to_plan > most_commands:
        wrong.append(f"{to_plan} commands to the first plan, more than {most_commands}")
    if seconds > most_seconds:
        wrong.append(f"{seconds:.0f} s to the first plan, more than {most_seconds:.0f}")
    sys.stderr.write("".join(f"{line}\n" for line in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
