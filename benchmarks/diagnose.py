"""The CPU time and the memory of ``rollout diagnose`` over 1 GB: of each form one file in which every line matters.

``make bench-diagnose`` writes what it measured to ``diagnose.md`` beside this file. The goal is less than 60 s of CPU and
less than 200 MB. Logs of real nodes take less time: most of their lines are passed over.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count, repeat
from multiprocessing import get_context
from pathlib import Path

from benchmarks.check_kubelet import PROGRAM, machine

TABLE = Path(__file__).with_name("diagnose.md")
GIGABYTE = 10**9
BEGIN = datetime(2026, 11, 20, 9, 0, 0, tzinfo=UTC)
NODE = "tess-node-0007"
UID = "01473fb7-a17b-11ea-8d10-c88d83d31d55"


@dataclass(frozen=True, slots=True)
class Moment:
    """A line's number and its time: 100 lines a second."""

    number: int
    at: datetime

    @property
    def klog(self) -> str:
        return f"{self.at:%m%d %H:%M:%S}.{self.at.microsecond:06}    3033 "

    @property
    def journal(self) -> str:
        return f"{self.at:%b %d %H:%M:%S} {NODE} "

    @property
    def id(self) -> str:
        return f"{self.number % 997:064x}"

    @property
    def image(self) -> str:
        return f"r{self.number % 7}.example/team/web:{self.number % 1009}"


Line = Callable[[Moment], str]


def words(moment: Moment) -> str:
    """A kubelet up to 1.20, at a verbosity that logs events, hooks and states."""
    pod = f'"web-{moment.number % 500}_shop({UID})"'
    about = f'{{Kind:"Pod", Namespace:"shop", Name:"web-{moment.number % 500}", UID:"{UID}", APIVersion:"v1", ResourceVersion:"81", FieldPath:"spec.containers{{app}}"}}'
    messages = (
        f'kubelet.go:1913] SyncLoop (DELETE, "api"): {pod}',
        f'kuberuntime_container.go:468] Running preStop hook for container "docker://{moment.id}"',
        f'kuberuntime_container.go:485] preStop hook for container {{"docker" "{moment.id}"}} completed',
        f'kuberuntime_container.go:580] Killing container "docker://{moment.id}" with a 30 second grace period',
        f'kuberuntime_container.go:587] Container "docker://{moment.id}" exited normally',
        f'kubelet.go:1942] SyncLoop (PLEG): {pod}, event: &pleg.PodLifecycleEvent{{ID:"{UID}", Type:"ContainerDied", Data:"{moment.id}"}}',
        f"event.go:221] Event(v1.ObjectReference{about}): type: 'Normal' reason: 'Pulling' Pulling image \"{moment.image}\"",
        f"event.go:221] Event(v1.ObjectReference{about}): type: 'Normal' reason: 'Pulled' Successfully pulled image \"{moment.image}\"",
        f"event.go:221] Event(v1.ObjectReference{about}): type: 'Warning' reason: 'Failed' Failed to pull image \"{moment.image}\": rpc error: code = Canceled desc = context canceled",
        f"event.go:221] Event(v1.ObjectReference{about}): type: 'Normal' reason: 'BackOff' Back-off pulling image \"{moment.image}\"",
        f'kube_docker_client.go:345] Cancel pulling image "{moment.image}" because of no progress for 1m0s, latest progress: "a1: Verifying Checksum "',
        f'kube_docker_client.go:348] Pulling image "{moment.image}": "a1: Downloading [==>      ] {moment.number} B/2.147GB"',
        f'kubelet.go:1907] SyncLoop (REMOVE, "api"): {pod}',
    )
    return f"I{moment.klog}{messages[moment.number % len(messages)]}"


def keyed(moment: Moment) -> str:
    """A kubelet from 1.21 on."""
    pod = f'pod="shop/web-{moment.number % 500}"'
    of = f'{pod} podUID="{UID}" containerName="app" containerID="containerd://{moment.id}"'
    about = f'"Event occurred" object="shop/web-{moment.number % 500}" fieldPath="spec.containers{{app}}" kind="Pod" apiVersion="v1"'
    messages = (
        f'kubelet.go:2449] "SyncLoop DELETE" source="api" pods=["shop/web-{moment.number % 500}"]',
        f'kuberuntime_container.go:640] "Running preStop hook" {of}',
        f'kuberuntime_container.go:660] "PreStop hook completed" {of}',
        f'kuberuntime_container.go:808] "Killing container with a grace period" {of} gracePeriod=30',
        f'kuberuntime_container.go:822] "Container exited normally" {of}',
        f'kubelet.go:2479] "SyncLoop (PLEG): event for pod" {pod} event={{"ID":"{UID}","Type":"ContainerDied","Data":"{moment.id}"}}',
        f'event.go:389] {about} type="Normal" reason="Pulling" message="Pulling image \\"{moment.image}\\""',
        f'event.go:389] {about} type="Warning" reason="Failed" message="Failed to pull image \\"{moment.image}\\": rpc error: code = NotFound desc = manifest unknown"',
        f'event.go:389] {about} type="Normal" reason="BackOff" message="Back-off pulling image \\"{moment.image}\\""',
        f'log.go:32] "Failed to pull image" err="rpc error: code = NotFound desc = manifest unknown" image="{moment.image}"',
        f'pod_workers.go:1301] "Error syncing pod, skipping" err="failed to \\"StartContainer\\" for \\"app\\" with ImagePullBackOff: \\"Back-off pulling image \\\\\\"{moment.image}\\\\\\"\\"" {pod} podUID="{UID}"',
        f'kubelet.go:2456] "SyncLoop REMOVE" source="api" pods=["shop/web-{moment.number % 500}"]',
    )
    return f"I{moment.klog}{messages[moment.number % len(messages)]}"


def as_json(moment: Moment) -> str:
    """A kubelet from 1.21 on with ``--logging-format=json``."""
    pod = {"name": f"web-{moment.number % 500}", "namespace": "shop"}
    of: dict[str, object] = {
        "pod": pod,
        "podUID": UID,
        "containerName": "app",
        "containerID": {"Type": "containerd", "ID": moment.id},
    }
    messages: tuple[tuple[str, dict[str, object]], ...] = (
        ("SyncLoop DELETE", {"source": "api", "pods": [pod]}),
        ("Running preStop hook", of),
        ("Killing container with a grace period", of | {"gracePeriod": 30}),
        ("Container exited normally", of),
        ("Failed to pull image", {"err": "rpc error: code = NotFound desc = manifest unknown", "image": moment.image}),
        ("SyncLoop REMOVE", {"source": "api", "pods": [pod]}),
    )
    message, keys = messages[moment.number % len(messages)]
    head = {"ts": moment.at.timestamp() * 1000, "caller": "kubelet/kubelet.go:2449", "msg": message, "v": 2}
    return json.dumps(head | keys, separators=(",", ":"))


def logrus(moment: Moment) -> str:
    """containerd's own log."""
    head = f'time="{moment.at:%Y-%m-%dT%H:%M:%S.%f}000Z" level='
    image = f'\\"{moment.image}\\"'
    messages = (
        f'info msg="PullImage {image}"',
        f'info msg="Pulled image {image} with image id \\"sha256:{moment.id}\\", repo tag {image}, size \\"12345678\\" in 3.214s"',
        f'info msg="PullImage {image} returns image reference \\"sha256:{moment.id}\\""',
        f'error msg="PullImage {image} failed" error="rpc error: code = NotFound desc = failed to pull and unpack image {image}: not found"',
    )
    return head + messages[moment.number % len(messages)]


def in_journal(moment: Moment) -> str:
    """``journalctl -u kubelet -u containerd``."""
    if moment.number % 3 == 0:
        return f"{moment.journal}containerd[71]: {logrus(moment)}"
    return f"{moment.journal}kubelet[3033]: {(words, keyed)[moment.number % 3 - 1](moment)}"


def journal_as_json(moment: Moment) -> str:
    """``journalctl -o json``, with the fields that systemd adds to each line."""
    micro = str(int(moment.at.timestamp() * 1e6))
    fields = {
        "__CURSOR": f"s=2f;i={moment.number:x};b={UID};m=1;t=2;x=3", "__REALTIME_TIMESTAMP": micro, "__MONOTONIC_TIMESTAMP": micro,
        "_BOOT_ID": moment.id[-32:], "PRIORITY": "6", "_UID": "0", "_GID": "0", "_SYSTEMD_SLICE": "system.slice", "_MACHINE_ID": moment.id[-32:],
        "_HOSTNAME": NODE, "_TRANSPORT": "stdout", "SYSLOG_FACILITY": "3", "SYSLOG_IDENTIFIER": "kubelet", "_COMM": "kubelet",
        "_EXE": "/usr/bin/kubelet", "_SYSTEMD_UNIT": "kubelet.service", "_PID": "3033", "MESSAGE": keyed(moment),
    }  # fmt: skip
    return json.dumps(fields)


def mixed(moment: Moment) -> str:
    """All of them, one after the other."""
    return (words, keyed, as_json, logrus, in_journal, journal_as_json)[moment.number % 6](moment)


def cloudwatch(moment: Moment) -> str:
    """``aws logs filter-log-events``: one document with a list of records."""
    at = int(moment.at.timestamp() * 1000)
    record = {
        "logStreamName": f"{NODE}-application.var.log.messages", "timestamp": at, "message": f"{moment.journal}kubelet[3033]: {keyed(moment)}",
        "ingestionTime": at + 900, "eventId": moment.id[-56:],
    }  # fmt: skip
    return ("" if moment.number else '{\n"events": [\n') + json.dumps(record, indent=4) + ","


def unknown(moment: Moment) -> str:
    """Lines of another program."""
    return f'10.0.0.{moment.number % 256} - - [{moment.at:%d/%b/%Y:%H:%M:%S} +0000] "GET /v2/team/web/manifests/{moment.number} HTTP/1.1" 200 612 "-" "curl/8"'


def events(moment: Moment) -> str:
    """``kubectl get events -A -o json``."""
    stamp, reason = f"{moment.at:%Y-%m-%dT%H:%M:%SZ}", ("Pulling", "Failed", "BackOff")[moment.number % 3]
    message = {"Pulling": "Pulling image", "Failed": "Failed to pull image", "BackOff": "Back-off pulling image"}[
        reason
    ]
    about = {
        "apiVersion": "v1", "fieldPath": "spec.containers{app}", "kind": "Pod", "name": f"web-{moment.number % 500}",
        "namespace": "shop", "resourceVersion": "81", "uid": UID,
    }  # fmt: skip
    event = {
        "apiVersion": "v1", "count": 1, "eventTime": None, "firstTimestamp": stamp, "involvedObject": about, "kind": "Event",
        "lastTimestamp": stamp, "message": f'{message} "{moment.image}": manifest unknown',
        "metadata": {"creationTimestamp": stamp, "name": f"web.{moment.number:x}", "namespace": "shop", "uid": UID}, "reason": reason,
        "reportingComponent": "", "source": {"component": "kubelet", "host": NODE}, "type": "Warning",
    }  # fmt: skip
    return ("" if moment.number else '{"apiVersion": "v1", "items": [\n') + json.dumps(event, indent=4) + ","


def events_as_yaml(moment: Moment) -> str:
    """``kubectl get events -A -o yaml``."""
    event = json.loads(events(Moment(moment.number + 1, moment.at)).rstrip(","))
    lines = ["- apiVersion: v1"]
    for key, value in event.items():
        if key == "apiVersion":
            continue
        if isinstance(value, dict):
            lines += [f"  {key}:", *(f"    {name}: {json.dumps(inner)}" for name, inner in value.items())]
        else:
            lines.append(f"  {key}: {value if key in ('reason', 'type', 'kind') else json.dumps(value)}")
    return ("" if moment.number else "apiVersion: v1\nitems:\n") + "\n".join(lines)


FORMS: dict[str, Line] = {
    "a kubelet's log in words": words,
    "a kubelet's log with keys": keyed,
    "a kubelet's log as JSON": as_json,
    "containerd's log": logrus,
    "a journal of both": in_journal,
    "a journal as JSON": journal_as_json,
    "all of these, line by line": mixed,
    "a document of CloudWatch": cloudwatch,
    "events as JSON": events,
    "events as YAML": events_as_yaml,
    "lines of another program": unknown,
}


PARTS = 10
"""A file is a tenth of it, as often: the newest lines of each kind, which are read, are different ones."""


def generated(line: Line, size: int) -> Iterator[bytes]:
    """A file of about ``size`` bytes, in pieces."""
    yield f"{line(Moment(0, BEGIN))}\n".encode()
    texts, written = [], 0
    for number in count(1):
        texts.append(f"{line(Moment(number, BEGIN + timedelta(milliseconds=10 * number)))}\n".encode())
        written += len(texts[-1])
        if written * PARTS >= size:
            break
    part = b"".join(texts)
    yield from repeat(part, PARTS)


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds and bytes of one process, and the lines of its file."""

    lines: int
    size: int
    cpu: float
    wall: float
    memory: float

    @property
    def per_gigabyte(self) -> float:
        return self.cpu * GIGABYTE / self.size


def measured(line: Line, size: int) -> Measured:
    """One process over one file. Another one writes the file: the kernel counts the memory of a process's parent as its own."""
    with tempfile.NamedTemporaryFile(suffix=".log") as file:
        writer = get_context("fork").Process(target=_write, args=(file.name, line, size))
        writer.start()
        writer.join()
        with Path(file.name).open("rb") as written:
            lines = sum(1 for _ in written)
        began = time.perf_counter()
        process = subprocess.Popen([PROGRAM, "diagnose", "--logs", file.name, "-o", "json"], stdout=subprocess.DEVNULL)
        status, used = _ended(process)
        if status != 0:
            raise SystemExit(f"rollout ended with {status}")
        wall, cpu = time.perf_counter() - began, used.ru_utime + used.ru_stime
        return Measured(lines, Path(file.name).stat().st_size, cpu, wall, used.ru_maxrss * 1024)


def _write(path: str, line: Line, size: int) -> None:
    with Path(path).open("wb") as file:
        file.writelines(generated(line, size))


def _ended(process: subprocess.Popen[bytes]) -> tuple[int, resource.struct_rusage]:
    """The exit code and what the process used. Of several children the kernel adds up the times, and not the memory."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, used


def rows(size: int, only: str) -> Iterator[str]:
    for name, line in FORMS.items():
        if only in name:
            each = measured(line, size)
            yield (
                f"| {name} | {each.size / 1e6:,.0f} MB | {each.lines:,} | {each.cpu:.1f} s | {each.per_gigabyte:.0f} s | "
                f"{each.wall:.1f} s | {each.memory / 1e6:.0f} MB |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.diagnose", description=__doc__)
    parser.add_argument("--size", type=int, default=1000, help="MB of each file")
    parser.add_argument("--only", default="", help="forms with these words in their name; the table is only printed")
    given = parser.parse_args()
    head = (
        "# Large logs through `rollout diagnose`",
        "",
        f"One process for each file, its start included. Its rules take a few seconds of CPU for any size. {machine()}. Written by `make bench-diagnose`.",
        "",
        "| every line of the file is of | size | lines | CPU | CPU for 1 GB | wall | memory |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    )
    text = "\n".join(head) + "\n"
    sys.stdout.write(text)
    for row in rows(given.size * 10**6, given.only):
        sys.stdout.write(f"{row}\n")
        sys.stdout.flush()
        text += f"{row}\n"
    if not given.only:
        TABLE.write_text(text)


if __name__ == "__main__":
    main()
