"""A copy of the agent's program that can be killed at any line.

A call of ``_tick LINE`` is inserted before every line that begins a command. With ``ROLLOUT_TRACE`` it records the lines that are
passed; with ``ROLLOUT_MARK`` ``strace`` shows them (``instants``). A ``Moment`` is one pass of one line: there the agent kills itself
with SIGKILL, as a power cut or a guard would, or it stops until it is continued. A file counts the passes: a command substitution is a
process of its own, and would count for itself.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

_TICK = """_tick() {
  _status=$?
  [ -z "${ROLLOUT_MARK-}" ] || [ -e "$ROLLOUT_MARK$1" ] || :
  [ -z "${ROLLOUT_TRACE-}" ] || echo "$1" >>"$ROLLOUT_TRACE"
  [ "$1" != "${ROLLOUT_LINE-}" ] || _passed
  return $_status
}
_passed() {
  printf . >>"$ROLLOUT_PASSES"
  IFS= read -r _passes <"$ROLLOUT_PASSES"
  [ "$_passes" != "$ROLLOUT_PASS" ] || kill -"$ROLLOUT_SIGNAL" "${self:-$$}"
}
"""

_WORD = r"""('[^']*'|"[^"]*"|\\.|[^()\s'"])+"""
_NO_COMMAND = re.compile(
    rf"""\s*( \#                                      # a comment
         | (then|else|elif|fi|do|done|esac|in)\b     # the middle or the end of a compound command
         | [}})] | ;;
         | {_WORD}(\s\|\s{_WORD})*(\)|\s\|\s\\$)              # an arm of a case, or its first line
         | $ )""",
    re.VERBOSE,
)
_CONTINUES = re.compile(r"(\\|\||&&|\|\||\bin)$")


def instrumented(program: str) -> str:
    """``program`` with a ``_tick`` before each command line inside its functions."""
    result: list[str] = []
    open_quote = goes_on = False
    for number, line in enumerate(program.splitlines(), start=1):
        if open_quote:
            open_quote = not line.endswith('"')
        else:
            if line.startswith("  ") and not goes_on and not _NO_COMMAND.match(line):
                result.append(f"_tick {number}")
            code = line.split(" # ")[0].rstrip()
            goes_on = bool(_CONTINUES.search(code)) and not line.lstrip().startswith("#")
            open_quote = line.lstrip().startswith('common="') and not line.endswith('"')
        result.append(line)
    first = next(index for index, line in enumerate(result) if line.startswith("PAYLOAD="))
    return "\n".join([*result[:first], *_TICK.splitlines(), *result[first:]]) + "\n"


@dataclass(frozen=True)
class Moment:
    """Before this line, when it is passed for the ``turn``-th time."""

    line: str
    turn: int

    def kill(self, folder: Path) -> dict[str, str]:
        """The environment in which the program dies here; it counts in ``folder``."""
        return self._environment(folder, "KILL")

    def stop(self, folder: Path) -> dict[str, str]:
        """The same, but it stops."""
        return self._environment(folder, "STOP")

    def _environment(self, folder: Path, signal: str) -> dict[str, str]:
        passes = folder / f"passes of {self.line} before {self.turn}"
        passes.unlink(missing_ok=True)
        return {
            "ROLLOUT_LINE": self.line,
            "ROLLOUT_PASS": "." * self.turn,
            "ROLLOUT_PASSES": str(passes),
            "ROLLOUT_SIGNAL": signal,
        }


def moments(trace: Path) -> list[Moment]:
    """All that a run has recorded, in their order."""
    passes: Counter[str] = Counter()
    found = []
    for line in trace.read_text().split():
        passes[line] += 1
        found.append(Moment(line, passes[line]))
    return found
