"""The agent's verbs alone on every node: claim, apply, confirm, cleanup, by rollout's own connections and a pool of threads.

``python -m benchmarks.bare_verbs SSH_CONFIG ORDERS``. No plan, waves, gates, limits, journal or report: what an apply costs beyond it is
what these cost. ``ORDERS`` is a JSON file: name of a node → its machine-id, and the path of each file with its old and its new text. Exits with 1 if a node
failed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.floor import TOGETHER
from rollout.adapters.agent_program import agent_program
from rollout.adapters.ssh import SshNodes
from rollout.app.ports import Target
from rollout.core.model.plan import Change, FileChange
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_answer import parse_report

RUN, TX, COUNTER, GUARD, KEEP = "20260101-000000-bare", "20260101-000000-bare-1", 1, 180, 3
SECONDS = 600.0


def change(ssh: SshNodes, name: str, order: Mapping[str, Any]) -> str:
    """What failed, or nothing."""
    program = agent_program()
    files = tuple(
        FileChange(path, None if old is None else old.encode(), new.encode())
        for path, (old, new) in order["files"].items()
    )
    apply = agent_call.ApplyOrder(
        tx=TX, run=RUN, counter=COUNTER, machine_id=order["machineId"], guard=GUARD, keep=KEEP, unit="kubelet.service",
        change=Change(files, ("kubelet.service",), healthz_port=10248),
    )  # fmt: skip
    claim = agent_call.Claim(COUNTER, RUN, force=True)
    said = ""
    for verb, command in (
        ("status", agent_call.status(program, claim=claim, sudo=True, deadline=SECONDS)),
        ("apply", agent_call.apply(program, apply, sudo=True, deadline=SECONDS)),
        (
            "confirm",
            agent_call.confirm(program, tx=TX, run=RUN, counter=COUNTER, keep=KEEP, sudo=True, deadline=SECONDS),
        ),
        ("cleanup", agent_call.cleanup(program, run=RUN, counter=COUNTER, sudo=True, deadline=SECONDS)),
    ):
        answer = ssh.run(Target(name=name, address=name), command)
        report = parse_report(name, verb, answer, 0.0)
        said += f"{verb}: {report.outcome} {report.reference} {report.message}; "
        if verb == "confirm" and (report.receipt is None or report.receipt.state.value != "confirmed"):
            return f"{name}: not confirmed: {said}"
    return ""


def main() -> None:
    config, orders = sys.argv[1:]
    found: dict[str, Any] = json.loads(Path(orders).read_text())
    ssh = SshNodes(ssh_config=Path(config))
    try:
        with ThreadPoolExecutor(TOGETHER) as pool:
            failed = [wrong for wrong in pool.map(lambda name: change(ssh, name, found[name]), found) if wrong]
    finally:
        ssh.close()
    sys.stderr.write("".join(f"{wrong}\n" for wrong in failed[:20]))
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
