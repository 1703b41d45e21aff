"""A pull through a node's own runtime, timed on the node: the program, and its answer.

The program is POSIX sh and changes nothing except that the image is on the node afterwards. It reads what the tool prints
about its progress and keeps only numbers: the whole time, and the longest time in which nothing changed.

* ``ctr`` prints a frame every 0.1 s, which ends with a line ``elapsed``. It asks containerd itself and not the CRI plugin: it
  does not have the credentials of the kubelet and of the plugin, and reads mirrors only from ``--hosts-dir``.
* ``docker`` prints a line for each change of a layer's state, without bytes: a long download looks silent.
* ``crictl`` prints nothing until the end: the silence is not known. It pulls as the kubelet does.

No credentials are given to any of them: an argument list is visible to every user of the node.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from rollout.core.text.documents import PrintedKey, Shown
from rollout.core.text.durations import go_format
from rollout.core.text.redaction import without_secrets
from rollout.core.text.terminal import printable, seconds_text
from rollout.features.diagnose.rules.cut_pulls import proposed_deadline
from rollout.features.diagnose.rules.finding import ProposalTarget
from rollout.features.diagnose.rules.pulls import full_name, registry
from rollout.kubelet.intents import DEADLINE
from rollout.kubelet.runtimes.description import PullTool, Runtime
from rollout.kubelet.runtimes.known import describe

_IMAGE = re.compile(
    r"(?:[a-z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?(?::\d{1,5})?/)?[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)
SILENT = 30.0
"""Seconds without progress from which a deadline is proposed: half of the shortest default, 1 min."""
HOSTS_DIR = "/etc/containerd/certs.d"


@dataclass(frozen=True, slots=True)
class PullWay:
    """How images are pulled on a node: its runtime, and the runtime's socket (``""``: the tool's default).

    ``no_deadline``: why this runtime and version have no progress deadline that could be set.
    """

    runtime: Runtime
    socket: str = ""
    no_deadline: str = ""


def is_image(text: str) -> bool:
    """Whether it is a whole reference: name with optional registry, tag and digest; no scheme, user or password."""
    return len(text) <= 512 and _IMAGE.fullmatch(text) is not None


def pull_command(image: str, way: PullWay, seconds: float, *, watched: bool) -> str:
    """A line for a POSIX shell. ``watched``: a tool that shows its progress is taken before one that pulls as the kubelet does."""
    tools: Sequence[PullTool] = describe(way.runtime).pull_tools
    tools = tools[::-1] if watched else tools
    words = (image, full_name(image), str(max(int(seconds), 1)), " ".join(tools), way.socket, HOSTS_DIR)
    return f"set -- {shlex.join(words)}\n{_PROGRAM}"


_PROGRAM = r"""
clock() { read -r up rest </proc/uptime; now=${up%.*}${up#*.}; }
say() { printf -- '-- %s\n' "$*"; }
tool=none
for name in $4; do
  if command -v "$name" >/dev/null 2>&1; then tool=$name; break; fi
done
say tool "$tool"
there() {
  case $tool in
    ctr) [ -n "$(ctr ${5:+--address "$5"} --namespace k8s.io images ls -q "name==$2")" ] ;;
    crictl) crictl ${5:+--runtime-endpoint "unix://$5" --image-endpoint "unix://$5"} inspecti -q "$1" ;;
    docker) docker image inspect "$1" ;;
  esac >/dev/null 2>&1
}
pull() {
  hosts=''
  [ ! -d "$6" ] || hosts=$6
  case $tool in
    ctr) timeout -k 5 "$3" ctr ${5:+--address "$5"} --namespace k8s.io images pull ${hosts:+--hosts-dir "$hosts"} "$2" ;;
    crictl) timeout -k 5 "$3" crictl --timeout "$3s" ${5:+--runtime-endpoint "unix://$5" --image-endpoint "unix://$5"} pull "$1" ;;
    docker) timeout -k 5 "$3" docker pull "$1" ;;
  esac </dev/null 2>&1
  say status "$?"
}
moved() {
  silence=$((now - changed))
  [ "$silence" -le "$longest" ] || { longest=$silence phase=$quiet; }
  changed=$now
}
watch() {
  clock
  began=$now changed=$now longest=0 phase='' said='' quiet='' frame='' before='' status='' last=''
  while IFS= read -r line; do
    clock
    case $line in
      '-- status '*) status=${line#-- status }; continue ;;
      *elapsed:*)
        [ "$frame" = "$before" ] || moved
        before=$frame frame='' quiet=$said
        continue
        ;;
    esac
    case $tool in
      ctr) frame=$frame$line ;;
      *) moved && quiet=$line ;;
    esac
    case $line in *' done '* | *resolved* | *' exists '*) ;; *) said=$line last=$line ;; esac
  done
  clock
  moved
  say took "$((now - began))"
  [ "$tool" = crictl ] || say silence "$longest"
  [ "$tool" = crictl ] || printf -- '-- phase %.200s\n' "$phase"
  printf -- '-- last %.500s\n' "$last"
  say status "$status"
}
if [ "$tool" != none ]; then
  if there "$@"; then say present; else pull "$@" | watch; fi
fi
say end
"""


class PullEnd(StrEnum):
    PULLED = "pulled"
    PRESENT = "present"
    FAILED = "failed"
    LATE = "late"
    NO_TOOL = "no-tool"


PULL_WORDS = {
    PullEnd.PULLED: "pulled",
    PullEnd.PRESENT: "on the node already",
    PullEnd.FAILED: "failed",
    PullEnd.LATE: "did not end in time",
    PullEnd.NO_TOOL: "no tool",
}
"""The end of a pull for people."""


@dataclass(frozen=True, slots=True)
class TimedPull:
    """One pull on one node. ``silence``: the longest time without progress in seconds, ``None`` if the tool shows none.

    ``phase``: what the tool had printed before it. ``error``: its last line, if it failed. ``no_deadline``: see ``PullWay``.
    """

    node: str
    image: str
    end: PullEnd
    tool: PullTool
    took: float = 0.0
    silence: float | None = None
    phase: str = ""
    error: str = ""
    no_deadline: str = ""

    @property
    def there(self) -> bool:
        return self.end in (PullEnd.PULLED, PullEnd.PRESENT)


def timed_pull(node: str, image: str, output: str) -> TimedPull | None:
    """The program's answer; ``None`` if it is none."""
    values: dict[str, str] = {}
    for line in output.splitlines():
        if line.startswith("-- "):
            key, _, value = line[3:].partition(" ")
            values[key] = value
    if "end" not in values or values.get("tool") not in set(PullTool):
        return None
    tool = PullTool(values["tool"])
    if tool is PullTool.NONE or "present" in values:
        return TimedPull(node, image, PullEnd.NO_TOOL if tool is PullTool.NONE else PullEnd.PRESENT, tool)
    end = {"0": PullEnd.PULLED, "124": PullEnd.LATE, "137": PullEnd.LATE}.get(values.get("status", ""), PullEnd.FAILED)
    error = _plain(values.get("last", "")) if end is PullEnd.FAILED else ""
    silence = _seconds(values["silence"]) if "silence" in values else None
    return TimedPull(
        node, image, end, tool, _seconds(values.get("took", "")), silence, _plain(values.get("phase", "")), error
    )


def _seconds(hundredths: str) -> float:
    return int(hundredths) / 100 if hundredths.isascii() and hundredths.isdigit() and len(hundredths) < 12 else 0.0


_BAR = re.compile(r"\x1b\[[0-9;]*m|\|[\x1b\[\d;m+-]*\||\s{2,}")


def _plain(line: str) -> str:
    """Without a bar of progress, colours and secrets."""
    return printable(without_secrets(_BAR.sub(" ", line).strip()), 240)


def longest_silence(pulls: Iterable[TimedPull]) -> TimedPull | None:
    """The pull with the longest silence that ended well; of a pull that did not end nothing can be proposed."""
    ended = [pull for pull in pulls if pull.end is PullEnd.PULLED and pull.silence is not None]
    return max(ended, key=lambda pull: pull.silence or 0.0, default=None)


LABELS = {
    PullTool.CTR: "ctr, not through CRI",
    PullTool.CRICTL: "crictl, which shows no progress",
    PullTool.DOCKER: "docker, which shows no bytes",
    PullTool.NONE: "no tool",
}
"""What people must know of a tool's numbers."""


def pull_line(pull: TimedPull) -> str:
    """One pull on one node, for people."""
    end = PULL_WORDS[pull.end] if pull.end is not PullEnd.NO_TOOL else "the node has no tool for its runtime"
    took = "" if pull.end in (PullEnd.PRESENT, PullEnd.NO_TOOL) else f" after {pull.took:.1f} s"
    silence = "" if pull.silence is None else f"; longest time without progress {pull.silence:.1f} s"
    phase = f" ({pull.phase})" if pull.silence is not None and pull.silence >= 1 and pull.phase else ""
    error = f": {pull.error}" if pull.error else ""
    return f"{pull.node}  {pull.image}: {end}{took}{silence}{phase}{error}  [{LABELS[pull.tool]}]"


ShownPull = Annotated[
    TimedPull,
    Shown(
        "One pull on one node. ``longest_silent_seconds``: without progress, ``None`` if the tool shows none;\n"
        "``silent_after``: what the tool had printed before it.",
        (
            "node", "image", "end", "tool", PrintedKey("tool", "through_cri", write=PullTool.CRICTL.__eq__, kind=bool),
            PrintedKey("took", "seconds"), PrintedKey("silence", "longest_silent_seconds"), PrintedKey("phase", "silent_after"), "error",
        ),
    ),
]  # fmt: skip


def conclusions(pulls: Sequence[TimedPull], target: ProposalTarget) -> Iterator[str]:
    """What the pulls show together: registries that hang beside others that do not, and the deadline to propose."""
    late = {registry(pull.image) for pull in pulls if pull.end is PullEnd.LATE}
    quick = {registry(pull.image) for pull in pulls if pull.end is PullEnd.PULLED} - late
    if late:
        beside = f", and those of {', '.join(sorted(quick))} did" if quick else ""
        yield f"Pulls of images of {', '.join(sorted(late))} did not end{beside}: with serializeImagePulls such a pull blocks all others of its node."
    slowest = longest_silence(pulls)
    if slowest is not None and (slowest.silence or 0.0) >= SILENT:
        nodes = {pull.node for pull in pulls if pull.silence is not None and not pull.no_deadline}
        deadline = go_format(proposed_deadline(None, slowest.silence or 0.0))
        plan = f" {target.plan(nodes, f'{DEADLINE}={deadline}')}" if nodes else ""
        without = sorted({pull.no_deadline for pull in pulls if pull.silence is not None and pull.no_deadline})
        named = "".join(f" {why}." for why in without)
        yield (
            f"The pull of {slowest.image} on {slowest.node} made no progress for {seconds_text(slowest.silence or 0.0)} and succeeded: "
            f"a progress deadline must be longer.{named}{plan}"
        )
