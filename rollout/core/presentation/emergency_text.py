"""What an emergency rollback prints before and between its runs: folded for people, one line each for programs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from rollout.core.model.proof import NodeProof, Proven
from rollout.core.plans.receipt_history import OnNodes, RunOnNodes
from rollout.core.presentation.rollback_time import TimeBack
from rollout.core.text.message_folding import folded, for_all, nameless
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable, seconds_text

# A rollback's proof in print: nodes folded for people, one line per node for programs.


PROOF_VERSION = 1


def proof_lines(proofs: Sequence[NodeProof]) -> Iterator[str]:
    """How many nodes are proven; for all others, which and why. Every node is named."""
    proven = [proof.node for proof in proofs if proof.proven is Proven.PROVEN]
    yield (
        f"proof: {len(proven)} of {counted(len(proofs), 'node')} reverted (read again: old files by digest, kubelet healthy, "
        "no guard left)" + (f": {printable(fold(proven), 400)}" if proven else "")
    )
    together: dict[tuple[Proven, str], list[str]] = {}
    for proof in proofs:
        if proof.proven is not Proven.PROVEN:
            text = nameless("; ".join(proof.evidence), proof.node)
            together.setdefault((proof.proven, text), []).append(proof.node)
    for (kind, text), names in sorted(together.items(), key=lambda item: (item[0][0] == Proven.UNKNOWN, -len(item[1]))):
        word = "not reverted" if kind is Proven.WRONG else "unknown"
        yield f"  {word} ({len(names)}) {printable(fold(names), 400)}: {printable(for_all(text, names), 400)}"


def proof_documents(proofs: Sequence[NodeProof]) -> Iterator[dict[str, Any]]:
    """One line per node, then one for all."""
    for proof in proofs:
        yield {
            "version": PROOF_VERSION,
            "event": "NodeProof",
            "node": proof.node,
            "proof": proof.proven.value,
            "evidence": [printable(text, 400) for text in proof.evidence],
            "files": {printable(path, 400): digest for path, digest in proof.files},
        }
    counts = {str(kind.value): sum(proof.proven is kind for proof in proofs) for kind in Proven}
    yield {"version": PROOF_VERSION, "event": "Proof", **counts}


def all_proven(proofs: Sequence[NodeProof]) -> bool:
    return all(proof.proven is Proven.PROVEN for proof in proofs)


VERSION = 1
MOST_RUNS = 6
"""At most this many other runs are named; the rest are only counted."""

PULLS = "does not wait for image pulls: where a kubelet or runtime restarts, they are cancelled and tried again"


def seen_lines(seen: OnNodes, picked: tuple[str, ...], back: Collection[str], cluster: str) -> Iterator[str]:
    """Which runs are reverted, which other runs there are and how to revert those, and which nodes did not answer."""
    newest = seen.newest_run is not None and picked == (seen.newest_run.run,)
    picked_runs = [_on(each) for each in seen.runs if each.run in picked]
    yield (
        f"{'newest run on the nodes' if newest else 'reverting'}: {', '.join(picked_runs)}; {counted(len(back), 'node')} already reverted"
    )
    yield from _warnings(seen, cluster, newest=newest)
    others = [each for each in seen.runs if each.run not in picked and each.holding]
    for each in others[:MOST_RUNS]:
        yield f"  not reverted: {_held(each)}; `rollout rollback {each.run} --cluster {cluster} --emergency` reverts it too"
    if len(others) > MOST_RUNS:
        yield f"  and {len(others) - MOST_RUNS} older runs"
    if others:
        yield "  --every-run reverts each node's newest transaction, whichever run made it"
    for reason, names in folded(seen.silent).items():
        yield (
            f"no answer from {counted(len(names), 'node')}, pending recovery: {printable(fold(names), 400)}: "
            f"{printable(for_all(reason, names), 300)}"
        )


def _warnings(seen: OnNodes, cluster: str, *, newest: bool) -> Iterator[str]:
    """Warnings for a user who did not name the run: most nodes hold another one, or a node reports an impossible counter."""
    for each in seen.runs:
        if each.doubted:
            yield (
                f"WARNING: {_on(each)} has counter {each.counter}, which no run can have, so it is not treated as the newest; "
                f"check {printable(fold(each.newest_on or each.under), 200)}"
            )
    most = max(seen.runs, key=lambda each: len(each.newest_on))
    if newest and seen.newest_run is not None and len(most.newest_on) > len(seen.newest_run.newest_on):
        yield (
            f"WARNING: more nodes hold {_on(most)}, which is not reverted. A rollout that has just begun looks like this, "
            f"and so does a node that reports a false run. If {most.run} caused the failure: rollout rollback {most.run} --cluster {cluster} --emergency"
        )


def _on(each: RunOnNodes) -> str:
    return f"run {each.run} on {counted(len(each.newest_on), 'node')}"


def _held(each: RunOnNodes) -> str:
    return f"run {each.run} on {counted(len(each.holding), 'node')} {printable(fold(each.holding), 200)}"


def seen_document(seen: OnNodes, picked: tuple[str, ...], back: Collection[str]) -> dict[str, Any]:
    return {
        "version": VERSION,
        "event": "OnNodes",
        "picked": list(picked),
        "back": sorted(back),
        "runs": [
            {
                "run": each.run,
                "holding": fold(each.holding),
                "back": fold(each.back),
                "under": fold(each.under),
                "doubted": each.doubted,
            }
            for each in seen.runs
        ],
        "silent": _reasons(seen.silent),
    }


def predicted_lines(time: TimeBack) -> Iterator[str]:
    if not time.nodes:
        yield "nothing to revert"
        return
    yield str(time)
    yield PULLS


def predicted_document(time: TimeBack) -> dict[str, Any]:
    return {
        "version": VERSION,
        "event": "Predicted",
        "nodes": time.nodes,
        "seconds": round(time.seconds, 1),
        "perNode": round(time.each.seconds, 1),
        "why": time.each.why,
    }


def waiting_lines(owed: Mapping[str, str], seconds: float) -> Iterator[str]:
    for reason, names in folded(owed).items():
        yield f"pending recovery ({len(names)}) {printable(fold(names), 400)}: {printable(for_all(reason, names), 300)}"
    yield f"next attempt in {seconds_text(seconds)}; Ctrl-C stops this, and the same command continues it"


def left_lines(nodes: Mapping[str, str]) -> Iterator[str]:
    for reason, names in folded(nodes).items():
        yield f"left to another run ({len(names)}) {printable(fold(names), 400)}: {printable(reason, 300)}"


def unfinished_lines(cluster: str, picked: tuple[str, ...], owed: Mapping[str, str]) -> Iterator[str]:
    if owed:
        yield f"still pending recovery: {printable(fold(owed), 400)}"
    yield f"To continue, from any machine: rollout rollback {' '.join(picked)} --cluster {cluster} --emergency --until-done"


def nodes_document(event: str, nodes: Mapping[str, str], **more: Any) -> dict[str, Any]:
    """Nodes that are pending recovery or left to another run, each with the reason."""
    return {"version": VERSION, "event": event, "nodes": _reasons(nodes), **more}


def _reasons(nodes: Mapping[str, str]) -> dict[str, str]:
    return {name: printable(why, 300) for name, why in nodes.items()}
