"""The last log lines of failed nodes, as they sent them; of a node that sent none, the command that reads them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rollout.core.presentation.pages.markup import Html, lines, raw, tag
from rollout.core.presentation.pages.moments import Fallen
from rollout.core.presentation.pages.story import Story
from rollout.core.presentation.summary import WITH_OTHERS, FailureLog, failure_log
from rollout.core.run.state import NodeState
from rollout.core.text.terminal import wall

MOST_LOGS = 3


def logs(story: Story, groups: Sequence[Fallen]) -> Html:
    """Of each kind that failed itself: the log of a node, or the command that reads it."""
    kinds_ = [kind for kind in groups if kind.reference != WITH_OTHERS and kind.state is not NodeState.UNREACHABLE]
    return raw(*(_log(story, kind) for kind in kinds_[:MOST_LOGS]))


def _log(story: Story, kind: Fallen) -> Html:
    log = failure_log(story.state, kind.nodes)
    if log is not None:
        return log_lines(log)
    command = tag("code", log_command(story.past.order.cluster, kind.nodes[0], kind.first), class_="command")
    return raw(tag("p", "Exit status and last log lines of a kubelet, up to its failure:", class_="dim"), command)


def log_lines(log: FailureLog) -> Html:
    """How the node's process exited, and its last lines before the revert."""
    label = f"last log lines of {log.node}"
    return raw(
        tag("p", str(log), class_="dim"), tag("pre", lines(log.lines), tabindex="0", role="region", aria_label=label)
    )


def log_command(cluster: str, node: str, at: float) -> str:
    """What prints the exit status of a node's kubelet and the end of its log before ``at`` (seconds since the epoch)."""
    until = wall(at + 1)
    read = f'systemctl show -p ExecMainStatus kubelet; journalctl -u kubelet -n 20 --no-pager --until "{until}"'
    return f"rollout exec {shlex.quote(node)} --cluster {shlex.quote(cluster)} --sudo -- {shlex.quote(read)}"
