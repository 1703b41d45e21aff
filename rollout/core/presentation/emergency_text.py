"""What an emergency rollback prints before and between its runs: folded for people, one line each for programs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated

from rollout.core.model.frozen import dataclass
from rollout.core.model.proof import NodeProof, Proven
from rollout.core.plans.receipt_history import OnNodes, RunOnNodes
from rollout.core.presentation.rollback_time import NoTimeBack, TimeBack
from rollout.core.text.documents import Inline, PrintedKey, Shown
from rollout.core.text.message_folding import folded, for_all, nameless
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable, seconds_text

# A rollback's proof in print: nodes folded for people, one line per node for programs.


def proof_lines(proofs: Sequence[NodeProof]) -> Iterator[str]:
    """How many nodes are proven; for all others, which and why. Every node is named."""
    proven = [proof.node for proof in proofs if proof.proven is Proven.PROVEN]
    unchanged = [proof.node for proof in proofs if proof.proven is Proven.UNCHANGED]
    yield (
        f"proof: {len(proven)} of {counted(len(proofs) - len(unchanged), 'node')} reverted (read again: old files by digest, "
        "kubelet healthy, no guard left)" + (f": {printable(fold(proven), 400)}" if proven else "")
    )
    if unchanged:
        yield f"  no change of the run is on {counted(len(unchanged), 'node')}: {printable(fold(unchanged), 400)}"
    together: dict[tuple[Proven, str], list[str]] = {}
    for proof in proofs:
        if proof.proven in (Proven.WRONG, Proven.UNKNOWN):
            text = nameless("; ".join(proof.evidence), proof.node)
            together.setdefault((proof.proven, text), []).append(proof.node)
    for (kind, text), names in sorted(together.items(), key=lambda item: (item[0][0] == Proven.UNKNOWN, -len(item[1]))):
        word = "not reverted" if kind is Proven.WRONG else "unknown"
        yield f"  {word} ({len(names)}) {printable(fold(names), 400)}: {printable(for_all(text, names), 400)}"


def _evidence(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(printable(text, 400) for text in texts)


def _files(files: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return {printable(path, 400): digest for path, digest in files}


_PROOF = Shown(
    "",
    (
        "node", PrintedKey("proven", "proof"), PrintedKey("evidence", write=_evidence), PrintedKey("files", write=_files),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NodeProofDocument:
    """One node, read again after its revert. ``files``: path → digest, ``""`` where the file is absent, as it was before."""

    proof: Inline[Annotated[NodeProof, _PROOF]]


@dataclass(frozen=True, slots=True)
class ProofDocument:
    """How many nodes have which proof: the line after those of the nodes."""

    proven: int
    wrong: int
    unknown: int
    unchanged: int


def proof_documents(proofs: Sequence[NodeProof]) -> Iterator[NodeProofDocument | ProofDocument]:
    """One line per node, then one for all."""
    yield from map(NodeProofDocument, proofs)
    yield ProofDocument(*(sum(proof.proven is kind for proof in proofs) for kind in Proven))


MOST_RUNS = 6
"""At most this many other runs are named; the rest are only counted."""

PULLS = "a rollback does not wait for image pulls: a restart of the kubelet or runtime cancels them, and they are tried again"


def seen_lines(seen: OnNodes, picked: tuple[str, ...], back: Collection[str], cluster: str) -> Iterator[str]:
    """Which runs are reverted, which other runs there are and how to revert those, and which nodes did not answer."""
    newest = seen.newest_run is not None and picked == (seen.newest_run.run,)
    picked_runs = [_on(run) for run in seen.runs if run.run in picked]
    yield (
        f"{'newest run on the nodes' if newest else 'reverting'}: {', '.join(picked_runs)}; {counted(len(back), 'node')} already reverted"
    )
    yield from _warnings(seen, cluster, newest=newest)
    others = [run for run in seen.runs if run.run not in picked and run.holding]
    for each in others[:MOST_RUNS]:
        yield f"  not reverted: {_held(each)}; {revert_command(each.run, each.cluster or cluster)} reverts it{'' if each.cluster else ' too'}"
    if len(others) > MOST_RUNS:
        yield f"  and {len(others) - MOST_RUNS} older runs"
    if any(not each.cluster for each in others):
        yield "  --every-run reverts each node's newest transaction, whichever run made it"
    yield from _claimed_elsewhere(seen)
    for reason, names in folded(seen.silent).items():
        yield (
            f"no answer from {counted(len(names), 'node')}, pending recovery: {printable(fold(names), 400)}: "
            f"{printable(for_all(reason, names), 300)}"
        )


def _claimed_elsewhere(seen: OnNodes) -> Iterator[str]:
    """Runs of other clusters that are at work on machines of both."""
    for run, cluster in dict.fromkeys(seen.claims.values()):
        names = [name for name, claim in seen.claims.items() if claim == (run, cluster)]
        yield (
            f"  run {run}{of_other(cluster)} has claimed {counted(len(names), 'node')} {printable(fold(names), 200)}: it keeps those where "
            f"nothing is reverted; {revert_command(run, cluster)} ends that"
        )


def without_lines(names: Collection[str], cluster: str) -> Iterator[str]:
    """Nodes that answered and have no transaction of the cluster: none of the lines about runs is about them."""
    if names:
        yield f"no transaction of {cluster} is on {counted(len(names), 'node')} that answered: {printable(fold(names), 400)}"


def _warnings(seen: OnNodes, cluster: str, *, newest: bool) -> Iterator[str]:
    """Warnings for a user who did not name the run: most nodes hold another one, or a node reports an impossible counter."""
    for run in seen.runs:
        if run.doubted:
            yield (
                f"WARNING: {_on(run)} has counter {run.counter}, which no run can have, so it is not treated as the newest; "
                f"check {printable(fold(run.newest_on or run.under), 200)}"
            )
    most = max((each for each in seen.runs if not each.cluster), key=lambda each: len(each.newest_on))
    if newest and seen.newest_run is not None and len(most.newest_on) > len(seen.newest_run.newest_on):
        yield (
            f"WARNING: {_on(most)} has more nodes than the newest run, and is not reverted. A rollout that has just begun looks like this, "
            f"and so does a node that reports a false run. If {most.run} caused the failure: rollout rollback {most.run} --cluster {cluster} --emergency"
        )


def revert_command(run: str, cluster: str) -> str:
    return f"`rollout rollback {run} --cluster {cluster} --emergency`"


def of_other(cluster: str) -> str:
    """After the name of a run. ``cluster``: of the run, if it is another one than the one in question."""
    return f" of cluster {printable(cluster, 80)}" if cluster else ""


def _on(each: RunOnNodes) -> str:
    return f"run {each.run}{of_other(each.cluster)} on {counted(len(each.newest_on), 'node')}"


def _held(each: RunOnNodes) -> str:
    return f"run {each.run}{of_other(each.cluster)} on {counted(len(each.holding), 'node')} {printable(fold(each.holding), 200)}"


def _reasons(nodes: Mapping[str, str]) -> Mapping[str, str]:
    return {name: printable(why, 300) for name, why in nodes.items()}


_RUN_SEEN = Shown(
    "A run as the nodes report it, in nodesets: ``holding`` its change, ``reverted``, or ``under`` a newer run's. ``doubted``: its counter is impossible. "
    "``cluster``: the other cluster that it belongs to, if two inventories list a machine.",
    (
        "run", PrintedKey("holding", write=fold), PrintedKey("back", "reverted", write=fold), PrintedKey("under", write=fold),
        "doubted", "cluster",
    ),
)  # fmt: skip
_SEEN = Shown(
    "",
    (PrintedKey("runs", kind=tuple[Annotated[RunOnNodes, _RUN_SEEN], ...]), PrintedKey("silent", write=_reasons)),
)


@dataclass(frozen=True, slots=True)
class OnNodesDocument:
    """What an emergency rollback found: ``picked`` runs are reverted, ``reverted`` is the nodeset that is already.

    ``silent``: node → why it did not answer. ``without``: the nodeset that answered and has no transaction of the cluster.
    """

    picked: tuple[str, ...]
    reverted: str
    seen: Inline[Annotated[OnNodes, _SEEN]]
    without: str


def seen_document(
    seen: OnNodes, picked: tuple[str, ...], back: Collection[str], without: Collection[str] = ()
) -> OnNodesDocument:
    return OnNodesDocument(picked, fold(back), seen, fold(without))


def predicted_lines(time: TimeBack | NoTimeBack) -> Iterator[str]:
    if not time.nodes:
        yield "nothing to revert"
        return
    yield str(time) if isinstance(time, TimeBack) else f"{counted(time.nodes, 'node')} to revert; the time is not known"
    yield PULLS


def _tenths(seconds: float) -> float:
    return round(seconds, 1)


_TIME = Shown(
    "",
    (
        PrintedKey("nodes", "count"), PrintedKey("seconds", write=_tenths), PrintedKey("each.seconds", "node_seconds", write=_tenths),
        "each.why",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PredictedDocument:
    """How long reverting ``count`` nodes will take; ``why``: where the time of one node is from."""

    time: Inline[Annotated[TimeBack, _TIME]]


@dataclass(frozen=True, slots=True)
class NotPredictedDocument:
    """``count`` nodes will be reverted. The estimate of the time failed or was late."""

    time: Inline[Annotated[NoTimeBack, Shown("", (PrintedKey("nodes", "count"),))]]


def predicted_document(time: TimeBack | NoTimeBack) -> PredictedDocument | NotPredictedDocument:
    return NotPredictedDocument(time) if isinstance(time, NoTimeBack) else PredictedDocument(time)


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


@dataclass(frozen=True, slots=True)
class WaitingDocument:
    """Nodes that are pending recovery, with the reason; in ``seconds`` they are tried again."""

    nodes: Mapping[str, str]
    seconds: float


def waiting_document(owed: Mapping[str, str], seconds: float) -> WaitingDocument:
    return WaitingDocument(_reasons(owed), seconds)


@dataclass(frozen=True, slots=True)
class LeftToDocument:
    """Nodes that are left to another run, with the reason."""

    nodes: Mapping[str, str]


def left_document(nodes: Mapping[str, str]) -> LeftToDocument:
    return LeftToDocument(_reasons(nodes))


@dataclass(frozen=True, slots=True)
class UnfinishedDocument:
    """The rollback stops before its end: nodes that are still pending recovery, with the reason."""

    nodes: Mapping[str, str]
    picked: tuple[str, ...]


def unfinished_document(picked: tuple[str, ...], owed: Mapping[str, str]) -> UnfinishedDocument:
    return UnfinishedDocument(_reasons(owed), picked)


PROOF_DOCUMENTS = (NodeProofDocument, ProofDocument)
"""What a rollback prints at its end, as ``proof_documents`` makes it."""

EMERGENCY_DOCUMENTS = (
    OnNodesDocument, PredictedDocument, NotPredictedDocument, WaitingDocument, LeftToDocument, UnfinishedDocument,
)  # fmt: skip
"""What an emergency rollback prints apart from its runs and their proofs."""
