"""Conversations with very many nodes, open and idle: what they cost the controller.

``python -m benchmarks.waiting_sessions COUNT`` prints JSON. Root only: see ``loopback``.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.loopback import address, loopback_sshd
from rollout.adapters.agent_program import agent_program
from rollout.adapters.ssh import SshLimits, SshNodes, within_files
from rollout.app.ports import Target
from rollout.kubelet.agent import agent_call

SECONDS = 30.0
TOGETHER = 100
DEADLINE = 300.0


def memory() -> float:
    """MB of this process."""
    found = re.search(r"^VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(found[1]) / 1000 if found else 0.0


def measure(config: Path, count: int) -> dict[str, object]:
    nodes = SshNodes(ssh_config=config, limits=within_files(SshLimits()))
    asked = agent_call.status(agent_program(), sudo=False, deadline=DEADLINE)

    def ask(number: int) -> str:
        answer = nodes.run(Target(f"n{number}", address(number)), asked)
        return answer.reference or ("" if answer.status == 0 else f"exit {answer.status}")

    began, before = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(TOGETHER) as pool:
        said = Counter(filter(None, pool.map(ask, range(count))))
    opened, spent = time.perf_counter() - began, time.process_time() - before
    before = time.process_time()
    threading.Event().wait(SECONDS)
    idle = (time.process_time() - before) / SECONDS
    connections = sum(1 for _ in Path("/proc/self/fd").iterdir())
    with ThreadPoolExecutor(TOGETHER) as pool:
        said += Counter(filter(None, pool.map(ask, range(count))))
    most = memory()
    nodes.close()
    return {
        "sessions": count, "failed": dict(said), "memory": most, "idleCore": idle, "openSeconds": opened,
        "openCpuMs": 1000 * spent / count, "files": connections,
    }  # fmt: skip


def main() -> None:
    count = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as name, loopback_sshd(Path(name)) as config:
        sys.stdout.write(json.dumps(measure(config, count)) + "\n")


if __name__ == "__main__":
    main()
