"""A rollback's proof, told: nodes folded for people, a line a node for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rollout.core.model.proof import NodeProof, Proven
from rollout.core.text.message_folding import for_all, nameless
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable

VERSION = 1


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
            "version": VERSION,
            "event": "NodeProof",
            "node": proof.node,
            "proof": proof.proven.value,
            "evidence": [printable(text, 400) for text in proof.evidence],
            "files": {printable(path, 400): digest for path, digest in proof.files},
        }
    counts = {str(kind.value): sum(proof.proven is kind for proof in proofs) for kind in Proven}
    yield {"version": VERSION, "event": "Proof", **counts}


def all_proven(proofs: Sequence[NodeProof]) -> bool:
    return all(proof.proven is Proven.PROVEN for proof in proofs)
