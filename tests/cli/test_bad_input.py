"""Every mistake a user can make: its exit code, exactly one clear message per mistake, and nothing touched or written.

The nodes are real and reachable, the inventory, playbook and plan are right; each row then breaks one thing.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rollout.cli.main import run
from tests.controllers import Done, finished
from tests.places import ROOT
from tests.sampling import sample
from tests.story.conftest import Site, served

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("bad input")]  # one fleet for all

INVENTORY = "inventories/small.yaml"
PLAYBOOK = "playbooks/pulls.yaml"
PLAN = ("plan", "--cluster", "small", "--limit", "small-001")
NODES = ("small-001", "small-002")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Two nodes, a snapshot of them and a plan for them."""
    with served(tmp_path_factory.mktemp("bad"), "small-[001-002]") as site:
        for folder in ("templates",):
            (site.folder / folder).unlink()
            shutil.copytree(ROOT / folder, site.folder / folder)
        words = ("--limit", "small-[001-002]", "--out", "p.json", "--save-snapshot", "s.json")
        done = site.rollout("plan", "--cluster", "small", *words)
        assert done.code == 0, done.err
        yield site


@pytest.fixture
def site(prepared: Site, tmp_path: Path) -> Site:
    """A copy of the files that a test may break, with the same nodes."""
    ignored = shutil.ignore_patterns("lab")
    shutil.copytree(prepared.folder, tmp_path / "site", ignore=ignored)
    return Site(tmp_path / "site", prepared.lab)


@dataclass(frozen=True)
class Case:
    """``edits``: (file, old, new). ``says``: for each mistake, in order, what its one line on stderr must contain."""

    words: tuple[str, ...]
    says: tuple[str, ...]
    code: int = 2
    edits: tuple[tuple[str, str, str], ...] = field(default=())


LABELS = "    labels: {kubeletVersion: v1.20.15, containerRuntime: dockershim}"

CASES = {
    "a kubelet to assume that is not known": Case(
        (*PLAN, "--assume-kubelet", "1.99"), ("--assume-kubelet takes a version that rollout knows (1.",),
    ),
    # files
    "unknown key in the inventory": Case(
        PLAN, ("small.yaml:1:1: `apiServer` is missing", "small.yaml:2:1: unknown key `apiSever` (did you mean `apiServer`?)"),
        edits=((INVENTORY, "apiServer", "apiSever"),),
    ),
    "unknown key of a node": Case(
        PLAN, ("small.yaml:8:5: unknown key `adress` (did you mean", "small.yaml:9:5: unknown key `lables` (did you mean"),
        edits=((INVENTORY, LABELS, "    adress: x\n    lables: {}"),),
    ),
    "bad nodeset": Case(PLAN, ("[bad-nodeset]",), edits=((INVENTORY, "  b: small-[061-120]", "  b: small-[061-120"),)),
    "duplicate node": Case(
        PLAN, ("duplicate node `small-007`, already in line 7 [duplicate-node]",),
        edits=((INVENTORY, LABELS, f"{LABELS}\n  small-007:"),),
    ),
    "duplicate address": Case(
        PLAN, ("duplicate address `10.0.0.1`",),
        edits=((INVENTORY, LABELS, f"{LABELS}\n    address: 10.0.0.1"),),
    ),
    "a key twice": Case(PLAN, ("[duplicate-key]",), edits=((INVENTORY, "apiServer:", "cluster: small\napiServer:"),)),
    "another cluster's name in the file": Case(PLAN, ("[wrong-name]",), edits=((INVENTORY, "cluster: small", "cluster: large"),)),
    "not YAML": Case(PLAN, ("playbooks/pulls.yaml:4:22: ",), edits=((PLAYBOOK, "settings:", "settings: ["),)),
    "misspelt setting": Case(
        PLAN, ("(did you mean `serializeImagePulls`?) [setting-unknown]",), edits=((PLAYBOOK, "serializeImagePulls", "serialiseImagePulls"),)
    ),
    "three mistakes in one playbook": Case(
        PLAN, ("unknown key `pasess` (did you mean `passes`?)", "unknown key `gaurd` (did you mean `guard`?)", "`revert` must be node, wave or run"),
        edits=((PLAYBOOK, "passes:", "pasess:"), (PLAYBOOK, "guard:", "gaurd:"), (PLAYBOOK, "{revert: wave}", "{revert: everything}")),
    ),
    "undefined template variable": Case(
        PLAN, ("`nodename`",),
        edits=(("templates/kubelet-flags.env.j2", "{{ variable }}=", "{{ nodename }}="),),
    ),
    # names on the command line
    "unknown cluster": Case(("plan", "--cluster", "smal"), ("there is no cluster `smal` (did you mean `small`?) [unknown-cluster]",)),
    "a path for a cluster": Case(("plan", "--cluster", "../inventories/small"), ("[unknown-cluster]",)),
    "unknown playbook": Case((*PLAN, "--playbook", "pull"), ("(did you mean `pulls`?) [unknown-playbook]",)),
    "empty limit": Case(("plan", "--cluster", "small", "--limit", "@a&@b"), ("[empty-limit]",)),
    "a limit of no words": Case(("plan", "--cluster", "small", "--limit", ""), ("--limit is empty (omit it to select every node) [empty-limit]",)),
    "a rollback with a limit of no words": Case(("rollback", "r1", "--limit", " "), ("[empty-limit]",)),
    "limit that cannot be meant": Case(("plan", "--cluster", "small", "--limit", "small-[1-"), ("[bad-nodeset]",)),
    "limit with an unknown rack": Case(("plan", "--cluster", "small", "--limit", "@c"), ("[unknown-group]",)),
    "limit with an unknown node": Case(
        ("plan", "--cluster", "small", "--limit", "smal-001"), ("(did you mean `small-001`?) [unknown-node]",)
    ),
    "misspelt setting in --set": Case(
        (*PLAN, "--set", "maxPod=3"), ("(did you mean `maxPods`?) [setting-unknown]",)
    ),
    "--set without a value": Case((*PLAN, "--set", "maxPods"), ("[bad-override]",)),
    "misspelt option": Case(("plan", "--clustr", "small"), ("--clustr",)),
    "cluster left out": Case(("plan",), ("no cluster was named (`--cluster small`; `cluster` in rollout.toml is that of commands that name none) [no-cluster]",)),
    "not a number": Case(("rollback", "r1", "--pace", "fast"), ("'fast' is not a valid float",)),
    # plan files
    "missing plan file": Case(("apply", "q.json", "--yes"), ("q.json: No such file or directory (a plan is a file that `rollout plan` writes) [file-missing]",)),
    "a folder for a plan file": Case(("apply", "templates", "--yes"), ("templates is not a plan or snapshot file",)),
    "something else for a plan file": Case(("apply", PLAYBOOK, "--yes"), (f"{PLAYBOOK}",)),
    "edited plan file": Case(("apply", "p.json", "--yes"), ("[plan-edited]",), edits=(("p.json", "small-002", "small-003"),)),
    "plan for another inventory": Case(
        ("apply", "p.json", "--yes"),
        ("small-[001-002]: its rack is elsewhere; planned: a (plan again, with the same --set options (if any): rollout plan --cluster small --playbook pulls --limit 'small-[001-002]') [plan-for-another-inventory]",),
        edits=((INVENTORY, "  a: small", "  elsewhere: small"),),
    ),
    "missing snapshot": Case((*PLAN, "--snapshot", "q.json"), ("q.json: No such file or directory [file-missing]",)),
    "another plan than the digest names": Case(
        ("apply", "p.json", "--digest", "0123456789ab", "--yes"),
        (", not the plan 0123456789ab that --digest names",),
    ),
    "a digest of too few digits": Case(("apply", "p.json", "--digest", "0123456789a", "--yes"), ("not '0123456789a' (`rollout plan` prints the digest) [digest-not-usable]",)),
    "an empty digest": Case(("apply", "p.json", "--digest", "", "--yes"), ("[digest-not-usable]",)),
    "a digest of no plan file": Case(("apply", *PLAN[1:], "--digest", "0123456789ab", "--yes"), ("[plan-is-made-now]",)),
    "plan file for a snapshot": Case((*PLAN, "--snapshot", "p.json"), ("p.json",)),
    "snapshot of another inventory": Case(
        (*PLAN, "--snapshot", "s.json"),
        ("small-001: read at small-001; the inventory now has small-001:2222 (read the nodes again: plan without --snapshot) [snapshot-of-another-inventory]",),
        edits=((INVENTORY, LABELS, f"{LABELS}\n    port: 2222"),),
    ),
    "nowhere to write": Case((*PLAN, "--out", "no/where.json"), ("no/where.json: No such file or directory [file-not-writable]",)),
    # options that contradict each other
    "neither plan nor cluster": Case(("apply", "--yes"), ("[plan-or-cluster]",)),
    "a cluster in the place of a plan": Case(
        ("apply", "small", "--yes"), ("small is a cluster, not the file of a plan (`--cluster small` plans and applies it in one step) [plan-or-cluster]",),
    ),
    "plan and cluster": Case(("apply", "p.json", "--cluster", "small", "--yes"), ("[plan-or-cluster]",)),
    "plan and limit": Case(("apply", "p.json", "--limit", "small-001", "--yes"), ("[plan-is-fixed]",)),
    "plan and set": Case(("apply", "p.json", "--set", "maxPods=3", "--yes"), ("[plan-is-fixed]",)),
    "rollback of nothing": Case(("rollback", "--yes"), ("[run-or-emergency]",)),
    "emergency without a cluster": Case(("rollback", "--emergency", "--yes"), ("[run-or-emergency]",)),
    "cluster without emergency": Case(("rollback", "--cluster", "small", "--yes"), ("[run-or-emergency]",)),
    # not interactive: no confirmation
    "apply unconfirmed": Case(("apply", "p.json"), ("use --yes when not interactive",)),
    "apply --cluster unconfirmed": Case(("apply", *PLAN[1:]), ("[not-confirmed]",)),
    # no such run
    "status of nothing": Case(("status",), ("holds no run yet (run it in the project's folder; `rollout show config` shows which journal is read; ",)),
    "resume of nothing": Case(("resume", "--yes"), ("holds no run yet (run it in the project's folder; `rollout show config` shows which journal is read; ",)),
    "rollback of a run that never was": Case(("rollback", "r1", "--yes"), ("holds no run yet (run it in the project's folder; `rollout show config` shows which journal is read; ",)),
    "emergency where nothing was ever done": Case(
        ("rollback", "--cluster", "small", "--emergency", "--limit", "small-[001-002]", "--yes"), ("[nothing-to-take-back]",)
    ),
}  # fmt: skip


IN_A_PROCESS = sample("bad input in a process of its own", [*CASES], 4)
"""The other cases are called in this process, the way a process of their own would call them: a tenth of the time."""


def written(site: Site) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in site.folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_gets_its_exit_code_and_one_message_and_nothing_is_touched(
    site: Site, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case = CASES[name]
    for file, old, new in case.edits:
        path = site.folder / file
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
    files, nodes = written(site), site.everything(*NODES)
    if name in IN_A_PROCESS:
        done = finished(["env", *site.command(*case.words)], site.folder, 600)
    else:
        monkeypatch.chdir(site.folder)
        with Path(os.devnull).open() as nobody_types:
            monkeypatch.setattr("sys.stdin", nobody_types)
            code = run(site.command(*case.words)[3:])
        done = Done(code, *capsys.readouterr())
    assert done.code == case.code, done.all
    lines = [line for line in done.err.splitlines() if line.startswith(("error: ", "Error: "))]
    assert len(lines) == len(case.says), done.err
    for line, expected in zip(lines, case.says, strict=True):
        assert expected in site.plain(line)
    assert "Traceback" not in done.err
    rest = [line for line in done.err.splitlines() if line not in lines]
    assert not rest or rest[0].startswith("Usage: "), "nothing else is printed"
    assert written(site) == files, "nothing written"
    assert not (site.folder / site.state).exists()
    assert site.everything(*NODES) == nodes, "nothing touched"
    assert not any((site.node(node) / "var/lib/rollout").exists() for node in NODES), "not even claimed"


def test_a_journal_that_cannot_be_used_is_exit_5_and_nothing_is_touched(site: Site) -> None:
    nodes = site.everything(*NODES)
    state = site.folder / site.state
    for spoil in ("a file where the folder belongs", "no database in it"):
        if spoil == "no database in it":
            state.unlink()
            state.mkdir()
            (state / "journal.db").write_text("not a database, but long enough to be looked at " * 40)
        else:
            state.write_text("")
        for words in (("apply", "p.json", "--yes"), ("status",)):
            done = site.rollout(*words)
            expected = 2 if spoil.startswith("a file") and words[0] != "apply" else 5
            assert done.code == expected, f"{spoil}, {words}: {done.out}{done.err}"
            assert done.err.startswith("error: ")
            assert done.err.count("\n") == 1
    assert site.everything(*NODES) == nodes
    assert not any((site.node(node) / "var/lib/rollout").exists() for node in NODES)
