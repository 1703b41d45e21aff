"""Every parser of rollout is met by hostile texts: called with them, or reached by a reader of ``targets``."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from types import CodeType, FrameType

import pytest

from tests.hostile import adversarial, limited, parsers
from tests.hostile.property import Target, judge
from tests.hostile.targets import TARGETS
from tests.places import ROOT
from tests.sampling import sample

SIGNED = "host-certificate"
"""Its seeds are made in a process."""

UNREACHED = {
    "core.text.wanted_settings:as_setting": "a value of a plan that was decoded before its run began",
    "adapters.agent_program:joined": "the parts of the agent in this package",
    "features.notices.client.postman:": "addresses of notices in a private file of the operator; apprise reads them, and opens a socket when it is imported",
    "adapters.journal.": "columns of a journal that only its owner, or a team's database user, may write; `journal-event` and `journal-order` read their texts",
    "adapters.kubernetes.cluster:": "asks for lists, and hands each object of an answer to `objects` and `pods`, which `api-nodes` and `api-pods` reach",
    "features.regions.client.scheduler:_check_address": "the address of `--scheduler`, typed by the operator",
    "features.approvals.client.files:keep_signature": "the file of an earlier signature: ssh-keygen judges it whole; tests/features/approvals",
    "features.approvals.client.signatures:": "lines that ssh-keygen of this machine prints; tests/adapters runs it",
    "gates.alertmanager.asking:": "numbers and identities of silences that `alertmanager-silence` has read",
    "app.check_kubelet:assumed_kubelet": "options of `rollout check --kubelet-config`, typed by the operator",
    "adapters.node_sources:InventoryScripts.ansible_values": "names of hosts and variables of an inventory that `ansible` has read; Ansible gets those of a strict alphabet",
    "app.driver:": "takes values of a run; its text is an identity of ours",
    "app.following:": "run ids of ours in an order of ours, searched with `in`",
    "app.live_run:": "takes a run id that was found in the journal",
    "gates.prometheus.asking:": "evidence of ours in the journal",
    "app.proofs:": "run ids and transactions of our order",
    "app.reverted_elsewhere:": "transactions of ours, in receipts of nodes that `agent-status` has read and in our orders; split at a dash",
    "app.roll_call:": "names of the inventory, compared only",
    "features.sequence.asking:": "run ids of ours in orders of ours",
    "features.export.rules.settings:": "takes plans of ours",
    "features.export.words:exported_lines": "texts that this module has made, cut into lines",
    "core.plans.wanted_fields:wanted_fields": "takes a change of a plan; the bytes of its files are read by `_document`, which is called alone",
    "kubelet.effects.needs:_at": "a path of ours in a configuration that was read; `number` reads what is there, and is called alone",
    "kubelet.effects.needs:_signals": "names of disks of ours, and numbers of a snapshot that was read",
    "app.config_maps:with_config_map": "names of settings that a playbook has accepted; texts of ConfigMaps are read by `kubelet.kubeadm`",
    "features.doctor.rules.fixes:fix": "references of ours, and names of nodes that were accepted as names",
    "features.init.rules.guesses:_reachable": "addresses that `ansible` and `api-nodes` have read, compared only",
    "core.run.state_builder:": "transactions of ours",
    "core.presentation.pages.sections:_labelled": "markup that `tag` has made; texts in it are escaped",
    "core.text.diff:_without_value": "a match of the pattern beside it, which the growth of its patterns covers",
    "gates.prometheus.judging:_node_in": "labels of samples, compared with names of nodes only",
    "kubelet.changes.flag_changes:_agrees": "two values that were decoded",
    "kubelet.changes.templated_config:": "text that our templates rendered within their limits; tests/kubelet/changes",
    "features.diagnose.rules.node_journals:summed": "readings of ours, of lines that `diagnosed-logs` reads",
    "features.diagnose.rules.not_in_force:": "settings of a plan and of a node that were decoded",
    "features.diagnose.rules.timed_pulls:pull_command": "an image's name that `is_image` has accepted, which is called alone",
    "features.explain.rules:": "values of a node's configuration that were decoded",
    "kubelet.node.unloaded:effective": "the reading of a node's files that a plan does too, see `fleet`",
    "kubelet.restarts.readmission:": "strings of pods and taints that `api-pods` has read, compared only",
    "kubelet.runtimes.": "files of a runtime beside its main one, behind a plan for a setting that needs them; tests/kubelet/runtimes",
    "features.serve.client.snapshots:": "the header Last-Event-ID of a browser that was let in: one partition and at most 12 digits; tests/features/serve",
}
"""Parsers that need values of our own and that no seed reaches, by the beginning of their names, with the reason."""


@contextmanager
def noting(seen: set[CodeType]) -> Iterator[None]:
    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            seen.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


def forget_what_was_read_before() -> None:
    """Tests that ran before have left results in caches: a reader behind one would not be called."""
    for module in [each for name, each in sys.modules.items() if name.startswith("rollout.")]:
        for value in list(vars(module).values()):
            if callable(clear := getattr(value, "cache_clear", None)):
                clear()


def called_by_seeds_of(targets: Iterable[Target]) -> frozenset[tuple[str, int]]:
    """The file and first line of every function that the readers call for their seeds."""
    forget_what_was_read_before()
    seen: set[CodeType] = set()
    for target in targets:
        if target.name != SIGNED:
            for seed in target.seeds():
                with noting(seen):
                    judge(target, seed)
    return frozenset((code.co_filename, code.co_firstlineno) for code in seen)


@cache
def called_by_seeds() -> frozenset[tuple[str, int]]:
    """By those of all targets: two tests ask, and to note every call of a thousand plans takes seconds."""
    return called_by_seeds_of(TARGETS.values())


def test_every_parser_meets_hostile_texts() -> None:
    seen = called_by_seeds()
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
