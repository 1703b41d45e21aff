"""The agent's text, as it is sent to every node. ``python -m rollout.adapters.agent_program`` prints it.

The text is one program. The folder ``rollout/agent/`` holds it in parts; the file ``parts`` there lists them in their order.
One of them is made from the descriptions of the container runtimes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.resources import files

from rollout.kubelet.agent.runtime_part import runtime_part

LIST = "parts"
RUNTIMES = "runtimes.sh"
"""The part that is made."""


def agent_program() -> str:
    return joined(part)


def part(name: str) -> str:
    """A part's text, or the list of them."""
    if name == RUNTIMES:
        runtimes = files("rollout.kubelet.runtimes")
        return runtime_part(lambda path: (runtimes / path).read_text(encoding="utf-8"))
    return (files("rollout.agent") / name).read_text(encoding="utf-8")


def joined(read: Callable[[str], str]) -> str:
    """The program out of the files that ``read`` returns by their names, with an empty line between two parts."""
    return "\n".join(read(line.split()[0]) for line in read(LIST).splitlines())


if __name__ == "__main__":
    sys.stdout.write(agent_program())
