"""Records results of a real kubelet: ``python -m tests.kubelet.newer_kubelets.record KUBELET``.

It needs root, cgroup v1 and grpcio of ``requirements/record.txt``. It reads the kubelet's log to its end or to the end
of its start.

The kubelets 1.28 to 1.36 were built from the trees that github.com/openshift/microshift vendors, a fork with small
changes, with Debian's golang-1.26 and ``go build -mod=vendor`` of ``k8s.io/kubernetes/cmd/kubelet/app``. No released
source package of Debian contains them, so this is not a target of the Makefile; the results are stored in
``recorded/``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.controllers import until
from tests.kubelet.newer_kubelets import empty_cri
from tests.kubelet.newer_kubelets.cases import CONFIG, DIRECTORY, HERE, ROOT_DIR, RUNTIME, Newer, of_minor
from tests.kubelet.newer_kubelets.heard import Heard, heard
from tests.kubelet.real_kubelet.kubelets import shut_in
from tests.kubelet.real_kubelet.room import PATIENCE, STARTED, furnish

RECORDED = Path(__file__).parent / "recorded"
PLAIN = "newer: serializeImagePulls: false"
"""The case with the configuration that the others are stored as differences from."""


def tried(program: str, case: Newer) -> Heard:
    """Start one kubelet in this process's namespaces, and wait until it has ended or is up."""
    Path(CONFIG).unlink(missing_ok=True)
    for path in (DIRECTORY, ROOT_DIR):  # the kubelet's own contains the state of the managers of CPUs and memory
        shutil.rmtree(path, ignore_errors=True)
    if case.config is not None:
        Path(CONFIG).write_bytes(case.config)
    if case.drop_ins is not None:
        Path(DIRECTORY).mkdir()
        for name, content in case.drop_ins:
            Path(DIRECTORY, name).write_bytes(content)
    log = Path(HERE, "log")
    with log.open("wb") as out:
        process = subprocess.Popen(
            [program, *case.words],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd=HERE,
            env=dict(case.environment),
        )
        try:
            until(lambda: process.poll() is not None or STARTED in _text(log), PATIENCE, f"{case.name} starts or ends")
        finally:
            process.kill()
            process.wait()
    return heard(_text(log))


def _text(log: Path) -> str:
    return log.read_text("utf-8", "replace")


def written(case: Newer, found: Heard, plain: dict[str, Any]) -> str:
    """One line."""
    parts: dict[str, Any] = {"case": case.name, "digest": case.digest, "taken": found.taken}
    parts |= {key: value for key, value in (("said", found.said[:300]), ("late", found.late[:300])) if value}
    parts |= {key: value for key, value in (("unknown", found.unknown), ("twice", found.twice)) if value}
    other = {key: value for key, value in found.effective.items() if value != plain.get(key, ...)}
    if found.taken:
        parts["effective"] = other if found.effective else None
    return json.dumps(parts, ensure_ascii=True)


def _room(program: str, part: int, parts: int, minor: int, *hierarchies: str) -> None:
    """Every ``parts``-th case, in this process's own namespaces."""
    furnish(list(hierarchies))
    runtime = subprocess.Popen(
        [sys.executable, "-m", empty_cri.__name__, RUNTIME], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert runtime.stdout is not None
    assert runtime.stdout.readline() == "ready\n"
    for case in of_minor(minor)[part::parts]:
        sys.stdout.write(json.dumps([case.name, asdict(tried(program, case))]) + "\n")
    runtime.kill()
    runtime.wait()


def _rooms(program: str, minor: int) -> dict[str, Heard]:
    """All cases, as many at a time as there are processors."""
    parts = os.cpu_count() or 1
    alone = (sys.executable, "-m", __spec__.name if __spec__ else "", program)
    with ExitStack() as stack:
        rooms = [
            stack.enter_context(
                shut_in(f"rollout-newer-{os.getpid()}-{part}", *alone, str(part), str(parts), str(minor))
            )
            for part in range(parts)
        ]
        texts = list(stack.enter_context(ThreadPoolExecutor(parts)).map(lambda room: room.communicate()[0], rooms))
    told = [json.loads(line) for text in texts for line in text.splitlines()]
    return {
        name: Heard(**{**entry, "unknown": tuple(entry["unknown"]), "twice": tuple(entry["twice"])})
        for name, entry in told
    }


def main() -> None:
    program = str(Path(sys.argv[1]).resolve())
    if len(sys.argv) > 2:
        _room(program, int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), *sys.argv[5:])
        return
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    minor = int(version.split(".")[1])
    found = _rooms(program, minor)
    plain = found[PLAIN].effective
    lines = [json.dumps({"version": version, "runtime": True, "plain": plain})]
    lines += [written(case, found[case.name], plain) for case in of_minor(minor)]
    (RECORDED / f"1.{minor}.jsonl").write_text("\n".join(lines) + "\n")
    print(f"{version}: {len(found)} cases, {sum(each.taken for each in found.values())} taken")  # noqa: T201


if __name__ == "__main__":
    main()
