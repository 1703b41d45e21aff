"""A copy of the agent's program that can be killed at any line.

A call of ``_tick LINE`` is inserted before every line that begins a command. It counts. At the count ``ROLLOUT_KILL_AT`` the agent
kills itself with SIGKILL, as a power cut or a guard would. At ``ROLLOUT_STOP_AT`` it stops until it is continued.
With ``ROLLOUT_TRACE`` it records the lines that it passes.
"""

from __future__ import annotations

import re

_TICK = """_tick() {
  _status=$?
  ticks=$((${ticks-0} + 1))
  [ "$ticks" != "${ROLLOUT_KILL_AT-}" ] || kill -9 "${self:-$$}"
  [ "$ticks" != "${ROLLOUT_STOP_AT-}" ] || kill -STOP "${self:-$$}"
  [ -z "${ROLLOUT_TRACE-}" ] || echo "$1" >>"$ROLLOUT_TRACE"
  return $_status
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
