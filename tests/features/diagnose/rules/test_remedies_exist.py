"""No remedy names a setting that ``explain`` does not know for this kubelet, runtime and version.

Each finding's log is read with the lines of a kubelet's and a runtime's start before it, for every runtime, each version at
which something changes, and each minor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import pytest

from rollout.features.diagnose.rules.diagnosis import IDS
from rollout.features.diagnose.rules.finding import Finding
from rollout.kubelet import fields
from rollout.kubelet.explained.explanation import explain
from rollout.kubelet.intents import INTENTS
from rollout.kubelet.runtimes.description import Runtime, RuntimeVersion, parse
from rollout.kubelet.runtimes.known import describe, dotted
from tests.features.diagnose.rules.logs import NODE, diagnosis, event_list, journal, klog, logrus, pulls
from tests.features.diagnose.rules.test_each_finding import LOGS, PODS

IMAGE = "reg.example.net/ml/train:9"
LAYER = 'failed to extract layer sha256:4a2d0c3f7f7c to overlayfs as "extract-1": context canceled'
STARTS = {
    Runtime.CONTAINERD: ("starting containerd", " revision=0 version=v{}"),
    Runtime.CRIO: ("Starting CRI-O, version: {}, git: 0", ""),
    Runtime.CRI_DOCKERD: ("Starting cri-dockerd {} (0f1e2d3)", ""),
}


def of_containerd(last: str, requests: int = 1, read: int = 231_231_231) -> list[str]:
    failed = f'rpc error: code = Canceled desc = failed to pull and unpack image "{IMAGE}": {last}'
    return [
        logrus(0, f'PullImage "{IMAGE}"'),
        logrus(300, f"cancel pulling image {IMAGE} because of no progress in 5m0s", "error"),
        logrus(300, f"stop pulling image {IMAGE}: active requests={requests}, bytes read={read}"),
        logrus(300, f'PullImage "{IMAGE}" failed', "error", ' error="' + failed.replace('"', '\\"') + '"'),
    ]


def of_docker(state: str) -> str:
    return f"Cancel pulling image {IMAGE} because it exceeded image pull deadline 1m0s. Latest progress 0dd0445527a5: {state}"


PULLS = {
    Runtime.CONTAINERD: (
        of_containerd(LAYER), of_containerd("context canceled", requests=13), of_containerd("context canceled"), of_containerd("x", read=0),
        [logrus(0, f"no timeout and will not start pulling image {IMAGE} reporter"), logrus(900, 'PullImage "a.example/b:1"')],
    ),
    Runtime.CRIO: ([logrus(14, "Timed out on waiting up to 10s for image pull progress updates", "warning")],),
    Runtime.CRI_DOCKERD: tuple([logrus(90, of_docker(state), "error")] for state in ("Extracting", "Verifying Checksum", "Downloading", "Waiting")),
    Runtime.DOCKERSHIM: (
        [klog(90, f'Cancel pulling image "{IMAGE}" because of no progress for 1m0s, latest progress: "0dd0: Extracting"', "E")],
        [klog(90, f'"Cancel pulling image because of exceed image pull deadline, record latest progress" image="{IMAGE}" deadline="1m0s" progress="0dd0: Extracting"', "E")],
    ),
}  # fmt: skip
"""What each runtime writes when it gives up a pull."""
WORDS = {
    Runtime.CRIO: "rpc error: code = Canceled desc = copying system image from manifest list: copying config: context canceled",
    Runtime.CRI_DOCKERD: "rpc error: code = Canceled desc = context canceled",
    Runtime.CONTAINERD: f'rpc error: code = Canceled desc = failed to pull and unpack image "{IMAGE}": context canceled',
    Runtime.DOCKERSHIM: "rpc error: code = Canceled desc = context canceled",
}
"""The same in the words of an event."""
SINCE = {"use_local_image_pull": (2, 1, 0), "concurrent_layer_fetch_buffer": (2, 1, 0), "hosts.toml": (1, 5, 0)}
"""Keys that a cause may name, and the first containerd that has them."""
PRINTED_SINCE = {"cgroup-v1-refused": 31}
"""The first minor that prints the line which a finding is made of: earlier kubelets cannot have it."""
DEFECTS = {Runtime.CONTAINERD: ((2, 2, 0),), Runtime.CRIO: (), Runtime.CRI_DOCKERD: ((0, 2, 6), (0, 3, 15))}
"""Versions at which defects begin or end."""


def versions(runtime: Runtime) -> Iterator[RuntimeVersion]:
    """Each at which a home changes, the last one before it, and those of ``DEFECTS``."""
    described = describe(runtime)
    numbers = {edge for row in described.rows for edge in (row.since, row.before) if edge < (900, 0, 0)} | {
        *DEFECTS[runtime]
    }
    for major, minor, patch in sorted(numbers):
        numbers |= {(major, minor, patch - 1) if patch else (major, max(minor - 1, 0), 99)}
    for number in sorted(numbers):
        version = parse(dotted(number))
        assert version is not None
        yield version


def minors() -> Iterator[int]:
    known = fields.known_minors()
    yield from (minor for minor in known if minor in (20, 23, 24, 26, 27, known[-1]))


def begin(runtime: Runtime, version: RuntimeVersion | None, minor: int) -> str:
    """The kubelet's and the runtime's first lines on the node of the logs."""
    kubelet = f'"Kubelet version" kubeletVersion="v1.{minor}.0"' if minor >= 21 else f"Version: v1.{minor}.0"
    text = journal(klog(-900, kubelet), -900)
    if version is None or runtime not in STARTS:
        return f"{text}\n"
    message, rest = STARTS[runtime]
    daemon = describe(runtime).daemon
    assert daemon is not None
    return (
        text
        + "\n"
        + journal(
            logrus(-950, message.format(version.text), rest=rest.format(version.text)), -950, f"{daemon.program}[1]"
        )
        + "\n"
    )


def on_node(text: str) -> str:
    """Lines without a node, on the node of the logs."""
    if text.startswith("{"):
        return text
    return "".join(
        f"{line}\n" if NODE in line.split(": ")[0] else f"{journal(line, 0)}\n" for line in text.splitlines()
    )


@cache
def logs_of(runtime: Runtime) -> tuple[str, ...]:
    cut = [event for at in range(4) for event in pulls(IMAGE, "a", 400 * at, 400 * at + 75, WORDS[runtime])]
    named = "pull-progress-deadline"  # its sample in LOGS is of dockershim
    samples = [on_node(shows) for id_, (shows, _) in {**LOGS, **PODS}.items() if id_ != named]
    return (
        *samples,
        event_list(cut),
        *("".join(journal(each, 0) + "\n" for each in given) for given in PULLS[runtime]),
    )


def lacks(finding: Finding, runtime: Runtime, version: RuntimeVersion | None, minor: int) -> list[str]:
    """The settings of its remedy that this node has not."""
    wrong = []
    for name in re.findall(r"--set (\w+)=", finding.proposal):
        if name in INTENTS:
            here, successor = describe(runtime), describe(runtime).successor
            now = successor if successor and not here.contained_in(minor) else runtime
            has = any(row.key for row in explain(name, minor, now, version).homes)
        else:
            has = name in fields.known_fields(minor)
        wrong += [] if has else [name]
    if runtime is Runtime.CONTAINERD and version is not None:
        wrong += [key for key, since in SINCE.items() if key in finding.cause and version.number < since]
    return wrong


CASES = [
    pytest.param(runtime, version, id=f"{runtime.value} {version.text if version else 'of no known version'}")
    for runtime in STARTS
    for version in (None, *versions(runtime))
] + [pytest.param(Runtime.DOCKERSHIM, None, id="dockershim")]


@pytest.mark.parametrize(("runtime", "version"), CASES)
def test_no_remedy_names_a_setting_that_the_node_has_not(runtime: Runtime, version: RuntimeVersion | None) -> None:
    for minor in minors():
        for text in logs_of(runtime):
            for finding in diagnosis(begin(runtime, version, minor), text).findings:
                if minor >= PRINTED_SINCE.get(finding.id, 0):
                    assert lacks(finding, runtime, version, minor) == [], (minor, finding)


def test_every_finding_with_a_remedy_is_among_the_logs() -> None:
    shown = {finding.id for runtime in PULLS for text in logs_of(runtime) for finding in diagnosis(text).findings}
    assert shown >= {*IDS} - {"not-in-force"}, "that one is of a node and not of a log"


def test_the_test_sees_a_setting_that_is_missing() -> None:
    version = parse("1.6.39")
    proposed = Finding("x", next(iter(diagnosis(logs_of(Runtime.CRI_DOCKERD)[-3]).findings)).confidence, (), "", "use_local_image_pull", (),
                       "rollout plan --set imagePullProgressDeadline=5m0s --set maxParallelImagePulls=5")  # fmt: skip
    assert lacks(proposed, Runtime.CONTAINERD, version, 20) == [
        "imagePullProgressDeadline",
        "maxParallelImagePulls",
        "use_local_image_pull",
    ]
