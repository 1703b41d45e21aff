"""Kubelets that run and cannot register their node. Sources: pkg/kubelet/kubelet_node_status.go, plugin/pkg/admission/noderestriction; k3s pkg/agent/config."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from rollout.core.text.terminal import printable
from rollout.features.diagnose.rules.facts import Fact, Facts, Kind
from rollout.features.diagnose.rules.finding import Confidence, Finding, nodes_of, proof, since
from rollout.features.diagnose.rules.repeated import LASTS, OFTEN, apart_by, how_often, until_text

ID = "node-not-registered"
_REASONS = (
    (re.compile(r'failed calling webhook \\*"(?P<webhook>[\w.:/-]{1,253})\\*"'),
     "the API server asks the webhook {webhook} about it, and that call fails"),
    (re.compile(r'admission webhook \\*"(?P<webhook>[\w.:/-]{1,253})\\*" denied the request'), "the webhook {webhook} denies it"),
    (re.compile(r'node "(?P<whose>[\w.:-]{1,253})" (?:is not allowed to modify|cannot modify) node "(?P<node>[\w.-]{1,253})"'),
     "its credentials are those of node {whose}, and its own name is {node}: `hostnameOverride`, the host's name or the kubeconfig is another node's"),
    (re.compile(r"[Nn]ode password rejected"),
     "the server knows a node of this name with another password: two hosts have one name, or the host was installed anew"),
    (re.compile(r"Unauthorized\b|[Uu]ser \\*\"system:anonymous\\*\""),
     "the API server does not accept its credentials, or gets none: a certificate or a token that has expired or is of another cluster, or an identity that the cluster does not know"),
    (re.compile(r"\bforbidden: "), "the API server does not allow it"),
    (re.compile(r"x509: "), "one of the two does not accept the other's certificate"),
    (re.compile(r"connection refused|no route to host|i/o timeout|TLS handshake timeout|no such host|Client\.Timeout exceeded|context deadline exceeded|network is unreachable|: EOF"),
     "its requests get no answer from the API server"),
)  # fmt: skip


def registration_findings(facts: Facts) -> Iterator[Finding]:
    """One for each node: of the last run of tries that lasted."""
    tries: dict[tuple[str, str], list[Fact]] = defaultdict(list)
    for fact in facts.of(Kind.NOT_REGISTERED):
        if fact.at is not None:
            tries[fact.node, fact.clock].append(fact)
    for (node, clock), lines in tries.items():
        done = [
            fact
            for fact in facts.of(Kind.NODE)
            if fact.at is not None and fact.clock == clock and fact.node in ("", node) and fact["registered"]
        ]
        runs = list(apart_by(lines, [fact.at or 0.0 for fact in done]))
        run = next((each for each in reversed(runs) if len(each) >= OFTEN and _lasts(each) >= LASTS), None)
        if run is not None:
            end = next((fact for fact in done if (fact.at or 0.0) > (run[-1].at or 0.0)), None)
            yield _finding(run, end)


def _lasts(run: list[Fact]) -> float:
    return (run[-1].at or 0.0) - (run[0].at or 0.0)


def _finding(run: list[Fact], end: Fact | None) -> Finding:
    error = run[-1]["error"]
    why = next((words.format(**match.groupdict()) for form, words in _REASONS if (match := form.search(error))), "")
    begins = (
        "the agent of k3s or RKE2 gets no configuration from its server, so its kubelet does not begin"
        if run[-1]["by"] == "agent"
        else "the kubelet runs and cannot register its node"
    )
    cause = f"{begins}{f': {why}' if why else ''}. Its last error: {printable(error.strip(), 300)}."
    cause += how_often([replace(line, fields={**line.fields, "by": ""}) for line in run])
    cause = until_text(end, cause) if end else cause
    fetch = "the kubelet's kubeconfig and client certificate on the node (openssl x509 -noout -subject -dates), and the API server's address from there"
    shown = proof([*run, *([end] if end else [])])
    return Finding(ID, Confidence.CERTAIN, nodes_of(run), since(run), cause, shown, fetch_next=fetch)
