"""dockershim's stand-in in the lab."""

from __future__ import annotations

from collections.abc import Mapping

from rollout.kubelet.runtimes.dockerd import stand_in as dockerd
from rollout.kubelet.runtimes.stand_in import RuntimeStandIn


def _programs(_version: str) -> Mapping[str, str]:
    return {
        "docker": "Docker version 20.10.24, build 297e128",
        "containerd": "containerd github.com/containerd/containerd v1.6.20 2806fc1057397dbaeefbea0e4e17bddfbd388f38",
    }


RUNTIME = RuntimeStandIn(
    _programs,
    dockerd.files,
    "docker",
    "docker",
    folders=(dockerd.TMP,),
    kubelet_flags=("--network-plugin=cni",),
    extra_arguments=("--image-pull-progress-deadline=1m0s",),  # the bad setting of the incidents
)
