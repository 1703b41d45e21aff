"""Every parser of rollout is met by hostile texts: called with them, or reached by a reader of ``targets``."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from tests.hostile import adversarial, limited, parsers
from tests.hostile.property import judge
from tests.hostile.targets import TARGETS
from tests.places import ROOT
from tests.sampling import sample

SIGNED = "host-certificate"
"""Its seeds are made in a process."""

UNREACHED = {
    "adapters.agent_program:joined": "our own program",
    "adapters.alertmanager:Alertmanager.standing": "as `firing`, which a reader reaches",
    "adapters.apprise_postman:": "the operator's own addresses of notices",
    "adapters.journal.": "the journal of this user, private and chained",
    "adapters.kubernetes.cluster:": "hands each object of an answer to `objects` and `pods`, which readers reach",
    "adapters.kubernetes.credentials:_failed": "the end of a text; see `_last_words`",
    "adapters.regions.": "workers of our own certificates; see tests/adapters/regions",
    "adapters.ssh.resolve:Resolver._endpoint": "the operator's names",
    "adapters.ssh.ssh_config:Reader._ignore": "the words of `ssh-config`, which a reader reaches",
    "adapters.ssh_signatures:": "what ssh-keygen prints; see tests/adapters",
    "app.": "values of a run; what nodes answer is read in `kubelet.agent`",
    "core.health_gates.name_pattern:_named": "our own names of nodes",
    "core.plans.kubeadm_patches:": "plans of ours",
    "core.presentation.doctor_fixes:fix": "our own references",
    "core.reading.guesses:_reachable": "addresses of found nodes, compared only",
    "core.run.": "values of a run",
    "core.text.diff:_without_value": "a match of the pattern beside it",
    "core.text.yaml_source:_syntax": "a position and its lines; the readers of broken YAML reach it",
    "kubelet.agent.agent_call:_match": "our own words before they are sent",
    "kubelet.agent.agent_lines:_failed": "a line of other verbs, of the same words as `refused`",
    "kubelet.agent.agent_lines:_healthy": "a line of other verbs, of the same words as `refused`",
    "kubelet.agent.agent_lines:_log": "a line of other verbs, of the same words as `refused`",
    "kubelet.changes.flag_changes:_agrees": "values that were decoded",
    "kubelet.changes.templated_config:": "our own rendered text; see tests/kubelet/changes",
    "kubelet.configuration.flags:_unknown": "one name of a flag, quoted",
    "kubelet.explained.on_node:": "values that were decoded",
    "kubelet.health_gates.expectations:shown_as_planned": "values that were decoded",
    "kubelet.kinds:": "labels of people's inventories",
    "kubelet.node.unloaded:effective": "the same reading of a node as in a plan",
    "kubelet.restarts.readmission:": "strings that are compared; see tests/kubelet/restarts",
    "kubelet.runtimes.": "files of a runtime behind others; see tests/kubelet/runtimes",
    "kubelet.diagnosis.": "a line of a table, a list or a log that no seed has",
    "web.": "requests of the page; see tests/web",
}
"""Parsers that need values of our own and that no seed reaches, by the beginning of their names, with the reason."""


@contextmanager
def _noting(seen: set[tuple[str, int]]) -> Iterator[None]:
    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            seen.add((frame.f_code.co_filename, frame.f_code.co_firstlineno))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


def _forget_what_was_read_before() -> None:
    """Tests that ran before have left results in caches: a reader behind one would not be called."""
    for module in [each for name, each in sys.modules.items() if name.startswith("rollout.")]:
        for value in list(vars(module).values()):
            if callable(clear := getattr(value, "cache_clear", None)):
                clear()


def test_every_parser_meets_hostile_texts() -> None:
    _forget_what_was_read_before()
    seen: set[tuple[str, int]] = set()
    for target in TARGETS.values():
        if target.name != SIGNED:
            for seed in target.seeds():
                with _noting(seen):
                    judge(target, seed)
    unmet = [
        parser.name.removeprefix("rollout.")
        for parser in parsers.found()
        if parsers.direct(parser) is None and (parser.file, parser.line) not in seen
    ]
    assert [name for name in unmet if not name.startswith(tuple(UNREACHED))] == []
    assert [beginning for beginning in UNREACHED if not any(name.startswith(beginning) for name in unmet)] == []
    assert len(parsers.found()) > 300


@pytest.mark.process
def test_a_sample_of_the_parsers_holds_the_limits() -> None:
    """All of them: ``python -m tests.hostile.limited``, which `make fuzz` runs first."""
    broken, _ = limited.try_all(sample("parsers in limits", limited.callable_ones(), 12))
    assert broken == []


@pytest.mark.process
@pytest.mark.parametrize("name", ["endless", "hungry", "overflowing"])
def test_a_parser_that_breaks_a_limit_is_found(name: str) -> None:
    code = f"from tests.hostile.limited import within_limits\nwithin_limits()\n{_CALLS[name]}"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    found = "ended" if done.returncode == -signal.SIGPROF else done.stderr.splitlines()[-1].partition(":")[0]
    assert found == {"endless": "ended", "hungry": "MemoryError", "overflowing": "OverflowError"}[name]


_CALLS = {
    "endless": "import re; re.fullmatch(r'(?:[0-9]+x?)+', '1' * 40 + '!')",
    "hungry": "set(range(9_999_999_999))",
    "overflowing": "int(float('9' * 400))",
}


def test_general_texts_have_each_kind_of_harm() -> None:
    assert len(dict(adversarial.texts())) >= 40
    assert max(map(len, dict(adversarial.texts()).values())) >= adversarial.LENGTH
