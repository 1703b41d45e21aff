"""dockershim, a part of kubelets before 1.24: the progress deadline is a flag of the kubelet, the rest is dockerd's."""

from __future__ import annotations

from rollout.core.model.playbook import Disruption
from rollout.kubelet.intents import DEADLINE, DEADLINE_FLAG
from rollout.kubelet.node import layout
from rollout.kubelet.runtimes.description import (
    FIRST,
    Description,
    Number,
    PullMessage,
    PullStep,
    PullTool,
    Row,
    Runtime,
)
from rollout.kubelet.runtimes.dockerd import daemon as dockerd
from rollout.kubelet.runtimes.dockershim import stand_in

_END: Number = (1000, 0, 0)

# pkg/kubelet/dockershim/libdocker: in words up to 1.20, and with keys from 1.21.
_LOGS = (
    PullMessage(
        PullStep.CUT,
        "Cancel pulling image ",
        r'"(?P<image>[^"]+)" because of no progress for (?P<deadline>[^,]+), latest progress: "(?P<progress>.*)"',
        by="the kubelet",
    ),
    PullMessage(
        PullStep.CUT,
        "Cancel pulling image because of exceed image pull deadline, record latest progress",
        keys=(("image", "image"), ("deadline", "deadline"), ("progress", "progress")),
        by="the kubelet",
    ),
    PullMessage(PullStep.PROGRESS, "Pulling image ", r'"(?P<image>[^"]+)": "(?P<progress>.*)"'),
    PullMessage(PullStep.PROGRESS, "Pulling image", keys=(("image", "image"), ("progress", "progress"))),
    *dockerd.LOGS,
)

DOCKERSHIM = Description(
    Runtime.DOCKERSHIM,
    "docker",
    dockerd.change,
    pull_tools=(PullTool.DOCKER,),
    end=_END,
    rows=(
        Row(DEADLINE, Runtime.DOCKERSHIM, FIRST, _END, DEADLINE_FLAG, "1m0s", "the kubelet's flags",
            layout.UNIT, Disruption.RESTART_KUBELET),
        *dockerd.rows(Runtime.DOCKERSHIM, _END),
    ),
    labels=("dockershim", "docker"),
    built_in_until=23,
    successor=Runtime.CRI_DOCKERD,
    usual_version="20.10.24",
    hung_up=dockerd.HUNG_UP,
    readers=dockerd.READERS,
    is_home=(dockerd.is_daemon_json,),
    daemon=dockerd.DAEMON,
    logs=_LOGS,
    id_scheme="docker",
    negative_grace=dockerd.NEGATIVE_GRACE,
    traps={DEADLINE: ("verifying and unpacking count as no progress: 1m cuts large images",)},
    stand_in=stand_in.RUNTIME,
)  # fmt: skip
