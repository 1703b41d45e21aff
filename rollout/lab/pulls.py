"""A pull in flight: a runtime's journal lines at its start and end, and the file of an unfinished layer."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

from rollout import known_faults
from rollout.lab.runtimes import DOCKERS_TMP, INGEST

PULLING = known_faults.PULLING.name
IMAGE = "registry.example/team/large:1"
_REQUEST = "id=5f6c0f4e-6b8a-4c55-9a5e-8d0c7a3b1e9d name=/runtime.v1.ImageService/PullImage"


@dataclass(frozen=True, slots=True)
class PullLines:
    """A runtime's journal lines, as logrus writes them, and the place of its layer. ``cancelled``: the kubelet ended."""

    begins: str = ""
    ends: str = ""
    cancelled: str = ""
    layer: str = ""


_HEAD = 'time="2026-11-20T09:00:00.000000000Z" level='

WORDS: Mapping[str, PullLines] = {
    "containerd.service": PullLines(
        f'{_HEAD}info msg="PullImage \\"{IMAGE}\\""',
        f'{_HEAD}info msg="PullImage \\"{IMAGE}\\" returns image reference \\"sha256:0f\\""',
        f'{_HEAD}error msg="PullImage \\"{IMAGE}\\" failed" error="rpc error: code = Canceled desc = context canceled"',
        f"{INGEST}/0f1e2d3c/data",
    ),
    "crio.service": PullLines(
        f'{_HEAD}info msg="Pulling image: {IMAGE}" {_REQUEST}',
        f'{_HEAD}info msg="Pulled image: {IMAGE.rpartition(":")[0]}@sha256:0f" {_REQUEST}',
    ),
    "cri-docker.service": PullLines(
        f'{_HEAD}info msg="Pulling image {IMAGE}: 0f1e2d3c4b5a: Downloading [=====>     ] 1.1GB/2.9GB"',
        f'{_HEAD}info msg="Stop pulling image {IMAGE}: Status: Downloaded newer image for {IMAGE}"',
        f'{_HEAD}info msg="Stop pulling image {IMAGE}: 0f1e2d3c4b5a: Downloading [=====>     ] 1.1GB/2.9GB"',
    ),
    "docker.service": PullLines(layer=f"{DOCKERS_TMP}/GetImageBlob918273645"),
}
"""By unit. dockerd itself writes no line, and its layer is the pull of dockershim and of cri-dockerd alike."""


def pullers(units: Container[str]) -> tuple[tuple[str, PullLines], ...]:
    """The unit that does the kubelet's pulls: docker's own containerd does not."""
    aside = "containerd.service" if "docker.service" in units else ""
    return tuple((unit, words) for unit, words in WORDS.items() if unit in units and unit != aside)
