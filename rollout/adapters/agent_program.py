"""The agent's text, as it is sent to every node. ``python -m rollout.adapters.agent_program`` prints it.

The text is one program. The folder ``rollout/agent/`` holds it in parts; the file ``parts`` there lists them in their order.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.resources import files

LIST = "parts"


def agent_program() -> str:
    folder = files("rollout.agent")
    return joined(lambda name: (folder / name).read_text(encoding="utf-8"))


def joined(read: Callable[[str], str]) -> str:
    """The program out of the files that ``read`` returns by their names, with an empty line between two parts."""
    return "\n".join(read(line.split()[0]) for line in read(LIST).splitlines())


if __name__ == "__main__":
    sys.stdout.write(agent_program())
