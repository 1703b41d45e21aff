"""``results/incidents.md`` from the results: every figure on the page is one of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.places import ROOT

RESULTS = Path(__file__).with_name("results.json")
PAGE = ROOT / "results/incidents.md"

Part = Mapping[str, Any]

_HEAD = """\
# The three incidents, reproduced

Three teams wrote down how a setting of their nodes, or the lack of one, hurt them. `make incidents` reproduces each on a real systemd node with a real kubelet 1.20.2,
runs `rollout diagnose` on the logs alone, and applies the remedy by `rollout plan` and `rollout apply` over SSH. It writes this page from `tests/incidents/results.json`; a test compares both.

What is real: the kubelet (built from Debian's source), containerd and dockerd (Debian's packages), systemd, OpenSSH, `rollout`. What is not: the pods have no processes, because a nested
node has no cgroups for them; `tests/incidents/cri/main.go` answers for them. The registry is a small one of ours over HTTP, which stops in the middle of a layer. The kubelet has no API server: its pods are static ones.
"""


def results() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    return found


def page(found: Part) -> str:
    parts = (
        _HEAD,
        _incident_3(found["3-stalling-runtime"], found["3-containerd"]),
        _incident_1(found["1"], found["1-docker"]),
        _incident_2(found["2"]),
        _NOT,
    )
    return "\n".join(parts)


def _incident_3(*runs: Part) -> str:
    return "\n".join(("## Incident 3: one registry hangs, and pulls from the other wait", "", *_of_the_queue(runs)))


def _of_the_queue(runs: tuple[Part, ...]) -> Iterator[str]:
    yield "The kubelet pulls one image at a time. A pull from the first registry hangs; pods that need the second registry come one after the other."
    yield ""
    yield f"| | {' | '.join(run['runtime'] for run in runs)} |"
    yield f"| --- |{' --- |' * len(runs)}"
    rows: tuple[tuple[str, Callable[[Part], str]], ...] = (
        ("the pull that hung took", lambda run: f"{run['before']['blocker']} s"),
        ("pulls that ended while it hung", lambda run: f"{run['before']['ended while it hung']}"),
        ("pulls from the other registry took", lambda run: ", ".join(f"{each} s" for each in run["before"]["waited"])),
        ("all of them ended after it within", lambda run: f"{run['before']['ended after the blocker']} s"),
        ("`diagnose` on the node's journal", lambda run: f"`serial-pull-queue`, {run['finding']['confidence']}"),
        ("**the remedy**: plan and apply, while a pull hangs again", lambda run: f"{run['after']['apply']} s"),
        ("the pull that waited ended after the kubelet's restart", lambda run: f"{run['after']['ended after the restart']} s"),
        ("a new pull from the other registry took", lambda run: f"{run['after']['new pull']} s"),
        ("the first registry still hung then", lambda run: "yes" if run["after"]["the other one still hung"] else "no"),
        ("`diagnose` on the journal since the restart", lambda run: ", ".join(run["after"]["finding"]["ids"]) or "no finding"),
    )  # fmt: skip
    for what, of in rows:
        yield f"| {what} | {' | '.join(of(run) for run in runs)} |"
    yield ""
    yield "The finding, and its proposal:"
    yield ""
    yield f"> {runs[-1]['finding']['cause']}"
    yield ""
    yield f"    {runs[-1]['finding']['proposal']}"
    yield ""


def _incident_1(run: Part, docker: Part) -> str:
    return "\n".join((
        "## Incident 1: a pull without progress is cancelled", "",
        f"A layer stops for {run['silence']:.0f} s in the middle of its download, as long as the write-up measured. The deadline is {run['deadline before']}, as in the write-up. No time is scaled.",
        "",
        f"| | deadline | {docker['runtime']} | {run['runtime']} |",
        "| --- | --- | --- | --- |",
        f"| before | {run['deadline before']} | cancelled after {docker['before']} s | {_ended(run['before'])} |",
        f"| **the remedy**: plan and apply | | {docker['apply']} s | {run['apply']} s |",
        f"| after | {run['deadline after']} | pulled in {docker['after']} s | {_ended(run['after'])} |",
        "",
        f"dockershim logs `{docker['line']}`. `diagnose` on that log is {docker['finding']['confidence']}:",
        "",
        f"> {docker['finding']['cause']}",
        "",
        f"    {docker['finding']['proposal']}",
        "",
        f"containerd logs `{run['line']}`. `diagnose` on that log is {run['finding']['confidence']}:",
        "",
        f"> {run['finding']['cause']}",
        "",
        f"    {run['finding']['proposal']}",
        "",
        "From the events of the write-up alone `diagnose` reports:",
        "",
        *(f"* `{id_}`, {each['confidence']}: {each['cause']}" for id_, each in sorted(run["events"].items())),
        "",
    ))  # fmt: skip


def _ended(pull: Part) -> str:
    return f"pulled in {pull['seconds']} s" if pull["ended"] else f"cancelled after {pull['seconds']} s: {pull['said']}"


def _incident_2(run: Part) -> str:
    budget, measured = run["budget"], run["measured"]
    return "\n".join((
        "## Incident 2: the end of a pod takes longer than its grace period", "",
        "From the log of the write-up alone `diagnose` reports:",
        "",
        *(f"* `{id_}`, {each['confidence']}: {each['cause']}" for id_, each in sorted(run["log"].items())),
        "",
        f"The kubelet of the write-up had a patch that no release has. What `rollout diagnose pod` computes for the same pod on released kubelets: a grace period of {budget['terminationGracePeriodSeconds']} s, two containers, each with a preStop hook:",
        "",
        "| kubelet | at most | which rule adds which second |",
        "| --- | --- | --- |",
        *(f"| {each['kubelets']} | {each['seconds']} s | {_rules(each)} |" for each in budget["budgets"]),
        "",
        f"A real kubelet {measured['kubelet']} gave the container {' and '.join(str(each) for each in measured['granted'])} s after a hook of 3 s, and its end took {measured['seconds']} s, with a container that needs 10 s after SIGTERM.",
        "",
    ))  # fmt: skip


def _rules(budget: Part) -> str:
    return "; ".join(f"{part['seconds']} s: {part['rule']}" for part in budget["parts"])


_NOT = """\
## What is not reproduced

* In incident 1 the silence was in the verification of a large layer. Here it is in its download: dockershim and containerd see no progress in both. With dockershim the pull is that of a sandbox's image, because the node has no runc.
* Incident 2 with the patch for sidecars (kubernetes #80744): it was never merged. Its log is in the write-up.
* The limit of the rate of pulls in incident 3: the kubelets here have none, so that a released queue ends in pulls. `pull QPS exceeded` is judged from events.
"""
