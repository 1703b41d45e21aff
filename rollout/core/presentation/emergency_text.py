"""What an emergency says before and between its runs: for people folded, for programs one line each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from rollout.core.model.proof import NodeProof, Proven
from rollout.core.plans.receipt_history import OnNodes, RunOnNodes
from rollout.core.presentation.rollback_time import TimeBack
from rollout.core.text.message_folding import folded, for_all, nameless
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable, seconds_text

# A rollback's proof, told: nodes folded for people, a line a node for programs.


PROOF_VERSION = 1


def proof_lines(proofs: Sequence[NodeProof]) -> Iterator[str]:
    """How many are proven, and of all others which and why; nobody is left unnamed."""
    proven = [proof.node for proof in proofs if proof.proven is Proven.PROVEN]
    yield (
        f"proof: {len(proven)} of {counted(len(proofs), 'node')} read again: old files by digest, kubelet healthy on them, "
        "no guard left" + (f": {printable(fold(proven), 400)}" if proven else "")
    )
    together: dict[tuple[Proven, str], list[str]] = {}
    for proof in proofs:
        if proof.proven is not Proven.PROVEN:
            text = nameless("; ".join(proof.evidence), proof.node)
            together.setdefault((proof.proven, text), []).append(proof.node)
    for (kind, text), names in sorted(together.items(), key=lambda item: (item[0][0] == Proven.UNKNOWN, -len(item[1]))):
        word = "not back as it was" if kind is Proven.WRONG else "unknown"
        yield f"  {word} ({len(names)}) {printable(fold(names), 400)}: {printable(for_all(text, names), 400)}"


def proof_documents(proofs: Sequence[NodeProof]) -> Iterator[dict[str, Any]]:
    """A line a node, then one for all."""
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
"""Other runs that are named; of more only how many."""

PULLS = "no node's image pulls are waited for: where a kubelet or runtime restarts, they are cancelled and tried again"


def seen_lines(seen: OnNodes, picked: tuple[str, ...], back: Collection[str], cluster: str) -> Iterator[str]:
    """Which runs are taken back, what other runs there are and how those are, and who did not answer."""
    newest = seen.newest_run is not None and picked == (seen.newest_run.run,)
    meant = [_on(each) for each in seen.runs if each.run in picked]
    yield (
        f"{'newest run on the nodes' if newest else 'taking back'}: {', '.join(meant)}; {counted(len(back), 'node')} already reverted"
    )
    yield from _warnings(seen, cluster, newest=newest)
    others = [each for each in seen.runs if each.run not in picked and each.holding]
    for each in others[:MOST_RUNS]:
        yield f"  stays: {_held(each)}; `rollout rollback {each.run} --cluster {cluster} --emergency` takes it back too"
    if len(others) > MOST_RUNS:
        yield f"  and {len(others) - MOST_RUNS} older runs"
    if others:
        yield "  --every-run takes each node's newest transaction back, whichever run it is of"
    for reason, names in folded(seen.silent).items():
        yield (
            f"no answer from {counted(len(names), 'node')}, still owed: {printable(fold(names), 400)}: "
            f"{printable(for_all(reason, names), 300)}"
        )


def _warnings(seen: OnNodes, cluster: str, *, newest: bool) -> Iterator[str]:
    """What whoever did not name the run must know: that most nodes hold another, and who says what cannot be."""
    for each in seen.runs:
        if each.doubted:
            yield (
                f"WARNING: {_on(each)} has counter {each.counter}, which no run can have: not taken for the newest; "
                f"look at {printable(fold(each.newest_on or each.under), 200)}"
            )
    most = max(seen.runs, key=lambda each: len(each.newest_on))
    if newest and seen.newest_run is not None and len(most.newest_on) > len(seen.newest_run.newest_on):
        yield (
            f"WARNING: more nodes hold {_on(most)}, which stays. A rollout that has just begun looks so, and so does a node "
            f"that lies; if {most.run} is what broke: rollout rollback {most.run} --cluster {cluster} --emergency"
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
        yield "nothing to take back"
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
        yield f"owed ({len(names)}) {printable(fold(names), 400)}: {printable(for_all(reason, names), 300)}"
    yield f"asking them again in {seconds_text(seconds)}; Ctrl-C ends this, and the same command goes on"


def left_lines(nodes: Mapping[str, str]) -> Iterator[str]:
    for reason, names in folded(nodes).items():
        yield f"no longer ours ({len(names)}) {printable(fold(names), 400)}: {printable(reason, 300)}"


def unfinished_lines(cluster: str, picked: tuple[str, ...], owed: Mapping[str, str]) -> Iterator[str]:
    if owed:
        yield f"still owed: {printable(fold(owed), 400)}"
    yield f"on, from anywhere: rollout rollback {' '.join(picked)} --cluster {cluster} --emergency --until-done"


def nodes_document(event: str, nodes: Mapping[str, str], **more: Any) -> dict[str, Any]:
    """Who is owed, or left to others, each with why."""
    return {"version": VERSION, "event": event, "nodes": _reasons(nodes), **more}


def _reasons(nodes: Mapping[str, str]) -> dict[str, str]:
    return {name: printable(why, 300) for name, why in nodes.items()}
