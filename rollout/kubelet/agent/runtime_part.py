"""The agent's part about container runtimes: their units, the programs with a version, and what belongs to one of them.

It is made from the descriptions (``known.DAEMONS``) and the file ``agent.sh`` of each daemon's package. Functions there
have fixed names: ``NAME_note`` notes more files that the daemon reads, ``NAME_layers`` finds image layers under way, or
is false where that cannot be known, ``NAME_root`` finds the folder of its images, and ``NAME_embedded`` finds pulls where k3s or RKE2 contains it. ``NAME`` is the package, with which all its
functions begin; each of the four may be absent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from rollout.kubelet.runtimes.description import Daemon
from rollout.kubelet.runtimes.known import DAEMONS


def runtime_part(read: Callable[[str], str]) -> str:
    """The part, in POSIX sh. ``read`` returns a file below ``rollout/kubelet/runtimes/``."""
    own = {daemon.unit: read(f"{daemon.agent_part}/agent.sh") for daemon in DAEMONS if daemon.agent_part}
    versions = (f"  homes_version runtime-{daemon.program} {daemon.program} --version\n" for daemon in DAEMONS)
    notes = _arms((daemon, tuple(_notes(daemon, own))) for daemon in DAEMONS)
    layers = _arms((daemon, tuple(_calls("layers", daemon, own))) for daemon in DAEMONS)
    roots = _arms((daemon, tuple(_calls("root", daemon, own))) for daemon in DAEMONS)
    embedded = [call for daemon in DAEMONS for call in _calls("embedded", daemon, own)]
    made = _FORM.format(
        units=" ".join(daemon.unit for daemon in DAEMONS),
        versions="".join(versions),
        notes=notes,
        layers=layers,
        roots=roots,
        embedded=" || ".join(embedded),
    )
    return "\n".join((made, *own.values()))


_FORM = """\
RUNTIMES='{units}'

runtimes_show_versions() {{
{versions}}}

runtimes_note() {{ # UNIT: the files that its process, with the command line `n_words`, reads
  case $1 in
{notes}  esac
}}

runtimes_find_layers() {{ # UNIT, of the process `process`: image layers under way; false where that cannot be known
  case $1 in
{layers}    *) [ "$q_readable" = 1 ] ;;
  esac
}}

runtimes_find_embedded() {{ # of k3s or RKE2, in the folder `p_home`: pulls under way; false where that cannot be known
  {embedded}
}}

runtimes_find_root() {{ # UNIT, of the process `process`: the folder that it keeps images in, into `data`; none where that is not known
  case $1 in
{roots}  esac
}}
"""


def _notes(daemon: Daemon, own: Mapping[str, str]) -> Iterator[str]:
    for file in daemon.reads:
        yield f"homes_option ' {' '.join(file.options)} '"
        yield f'homes_note_read {daemon.unit} "${{n_value:-{file.usual}}}"'
    yield from _calls("note", daemon, own)


def _calls(verb: str, daemon: Daemon, own: Mapping[str, str]) -> Iterator[str]:
    function = f"{daemon.agent_part}_{verb}"
    if f"{function}() {{" in own.get(daemon.unit, ""):
        yield function


def _arms(choices: Iterable[tuple[Daemon, tuple[str, ...]]]) -> str:
    lines = "\n      "
    return "".join(f"    {daemon.unit})\n      {lines.join(does)}\n      ;;\n" for daemon, does in choices if does)
