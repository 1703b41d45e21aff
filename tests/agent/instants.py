"""The moments of a program that differ for everything around it.

Between two lines a shell may only have thought: it has asked the kernel for memory, or to hold signals back, and no process that it started
has asked for anything. Nobody can tell whether it was killed or stopped before the first of them or before the second: the disk is the
same. A stopped one goes on to the same end: it has read nothing between them that another process might change. A signal would tell, if
it were caught, but other processes send only SIGKILL. So the first of such moments is enough.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.agent.instrument import Moment

MARK = "/is/passed/"
"""Before a line the program looks for a file of this name and the line's number. In every shell that is one call."""

_ITS_OWN = ("brk", "mmap", "munmap", "mprotect", "madvise", "rt_sigprocmask")
_CALL = re.compile(r"(\d+) +(\w+)\(")
_PASSED = re.compile(rf'"{MARK}(\d+)"')


def instants(folder: Path, run: Callable[[list[str], dict[str, str]], object]) -> tuple[list[Moment], int]:
    """Of a program that ``run`` runs behind these words and in this environment; and how many lines it has passed."""
    calls = folder / "calls"
    run(["strace", "-f", "-qq", "-s", "0", "-o", str(calls)], {"ROLLOUT_MARK": MARK})
    found, passes = [], Counter[str]()
    silent = ""
    """The process of the latest moment, if nothing was asked since."""
    for line in calls.read_text().splitlines():
        call, passed = _CALL.match(line), _PASSED.search(line)
        if call and passed:
            passes[passed[1]] += 1
            if silent != call[1]:
                found.append(Moment(passed[1], passes[passed[1]]))
            silent = call[1]
        elif not call or call[2] not in _ITS_OWN:
            silent = ""
    return found, passes.total()
