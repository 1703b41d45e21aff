"""``apply``, ``status``, ``resume`` and ``rollback`` as typed: the confirmation, the reports, and what is refused."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.core.model.snapshot import digest
from rollout.core.plans import plan_codec
from tests.controllers import PATIENCE, Done
from tests.story.conftest import Site, served

pytestmark = pytest.mark.process


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Site]:
    """Two nodes."""
    with served(tmp_path, "small-[001-002]") as made:
        yield made


ONE = ("--cluster", "small", "--limit", "small-001")


def typing(site: Site, text: str, *words: str) -> Done:
    """The call with a terminal as standard input, where an operator types ``text``."""
    person, terminal = pty.openpty()
    try:
        os.write(person, f"{text}\n".encode())
        done = subprocess.run(
            site.command(*words),
            cwd=site.folder,
            stdin=terminal,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    finally:
        os.close(person)
        os.close(terminal)
    return Done(done.returncode, done.stdout, done.stderr)


def test_a_run_from_its_confirmation_to_its_later_reports(pair: Site) -> None:
    before = pair.everything("small-001", "small-002")
    for wrong in ("smal", ""):
        refused = typing(pair, wrong, "apply", *ONE)
        assert refused.code == 2, refused.out
        assert refused.err.count("error: ") == 1
        assert f"'{wrong}' is not 'small'; nothing was done [not-confirmed]" in refused.err
    assert pair.everything("small-001", "small-002") == before
    assert pair.rollout("status").code == 2, "not even a journal"

    done = typing(pair, "small", "apply", *ONE, "--reason", "pulls time out")
    assert done.code == 0, done.out + done.err
    assert "1 nodes of small will be changed" in done.out or "1 node of small will be changed" in done.out
    assert pair.is_new("small-001")
    first = pair.rollout("status", "-o", "json").json()
    assert (first["kind"], first["cluster"], first["goal"], first["ending"]) == ("Status", "small", "apply", "done")
    assert (first["exitCode"], first["counts"], first["troubles"]) == (0, {"confirmed": 1}, [])
    assert first["pendingRecovery"] == {"nodes": "", "changes": "", "cordons": ""}
    assert (first["reason"], first["controller"], first["age"] > 0) == ("pulls time out", None, True)
    assert [(wave["name"], wave["total"]) for wave in first["waves"]] == [("canary", 1)]

    over = pair.rollout("resume", first["run"], "--yes")
    assert over.code == 5
    assert over.err == f"error: run {first['run']} has ended: done (plan again) [nothing-to-resume]\n"

    unsaid = pair.rollout("rollback", first["run"])
    assert (unsaid.code, "[not-confirmed]" in unsaid.err) == (2, True)
    assert pair.is_new("small-001")
    back = typing(pair, "small", "rollback", first["run"])
    assert back.code == 0, back.out + back.err
    assert not pair.is_new("small-001")

    told = pair.rollout("status")
    assert told.code == 0
    assert told.out.startswith("rollback r")
    assert f"earlier: run {first['run']} on small by " in told.out
    named = pair.rollout("status", first["run"])
    assert named.out.startswith(f"run {first['run']} on small: done, exit code 0\n")
    assert "revert" not in named.out.splitlines()[0]
    assert "rolled it back on 1 node (small-001)" in named.out
    assert "  later: rollback r" in named.out
    assert "earlier" not in named.out

    old = pair.rollout("resume", first["run"], "--yes")
    assert (old.code, "[superseded]" in old.err) == (5, True)
    for words in (("status", "r1"), ("resume", "r1", "--yes"), ("rollback", "r1", "--yes")):
        unknown = pair.rollout(*words)
        assert unknown.code == 2, unknown.err
        assert "has no run `r1`" in unknown.err
        assert unknown.err.count("\n") == 1
    misspelt = pair.rollout("status", first["run"][:-1] + "x")
    assert f"did you mean `{first['run']}`?" in misspelt.err


@contextmanager
def asked(site: Site, *words: str) -> Iterator[Callable[[str], Done]]:
    """The call, waiting at its prompt. Yields a function that types an answer and waits for the end."""
    person, terminal = pty.openpty()
    with subprocess.Popen(
        site.command(*words),
        cwd=site.folder,
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        said = ""
        while "to continue" not in said:
            more = process.stdout.read(1)
            assert more, said + process.stderr.read()
            said += more

        def answer(text: str) -> Done:
            os.write(person, f"{text}\n".encode())
            out, err = process.communicate(timeout=PATIENCE)
            return Done(process.returncode, said + out, err)

        try:
            yield answer
        finally:
            process.kill()
            os.close(person)
            os.close(terminal)


def test_unlock_checks_the_lease_again_after_the_confirmation(pair: Site) -> None:
    """A run started on this machine while ``unlock`` waited at its prompt."""
    with (
        closing(SqlJournal(pair.folder / ".rollout")) as journal,
        asked(pair, "cluster", "unlock", *ONE, "--reason", "that laptop was stolen") as answer,
    ):
        journal.acquire("small", "r1")
        refused = answer("small")
        assert (refused.code, "[locked]" in refused.err) == (5, True), refused.out + refused.err
        assert journal.holder("small") is not None


def test_with_json_output_every_line_is_json(pair: Site) -> None:
    done = pair.rollout("apply", "--cluster", "small", "--limit", "small-[001-002]", "--yes", "-o", "json")
    assert done.code == 0, done.err
    assert all(line.startswith("{") for line in done.out.splitlines())
    run = pair.rollout("status", "-o", "json").json()["run"]
    assert f'"run": "{run}"' in done.out.splitlines()[-1]
    nothing = pair.rollout("apply", "--cluster", "small", "--yes", "-o", "json", "--limit", "small-001")
    assert (nothing.code, nothing.err) == (0, "")
    said = nothing.json()
    assert (said["kind"], said["why"]) == ("NothingToDo", "as-wanted")
    assert (said["cluster"], said["runs"], said["leftOut"], said["exitCode"]) == ("small", [], [], 0)
    back = pair.rollout(
        "rollback", "--cluster", "small", "--emergency", "--limit", "small-[001-002]", "--yes", "-o", "json"
    )
    assert back.code == 0, back.err
    assert all(line.startswith("{") for line in back.out.splitlines())
    assert pair.everything("small-001") != {}


def test_applying_a_plan_twice_is_no_failure(pair: Site) -> None:
    planned = pair.rollout("plan", "--cluster", "small", "--limit", "small-[001-002]", "--out", "p.json")
    assert planned.code == 0, planned.err
    assert pair.rollout("apply", "p.json", "--yes").code == 0
    run = pair.rollout("status", "-o", "json").json()["run"]
    again = pair.rollout("apply", "p.json", "--yes")
    assert (again.code, again.err) == (0, "")
    assert again.out == f"nothing to do: already applied by run {run}; every node has the plan's files\n"
    told = pair.rollout("apply", "p.json", "--yes", "-o", "json")
    assert (told.code, told.err) == (0, "")
    digest = json.loads((pair.folder / "p.json").read_bytes())["digest"]
    assert told.json() == {
        "apiVersion": "rollout/v1",
        "kind": "NothingToDo",
        "cluster": "small",
        "plan": digest,
        "why": "already-applied",
        "readAt": "",
        "runs": [run],
        "leftOut": [],
        "exitCode": 0,
    }
    assert pair.rollout("status", "-o", "json").json()["run"] == run, "no run was begun"

    (pair.node("small-001") / "etc/default/kubelet").write_text("KUBELET_EXTRA_ARGS=\n")
    stale = pair.rollout("apply", "p.json", "--yes")
    assert stale.code == 2, stale.all
    assert (
        "nothing was touched: the plan fits no node any more; "
        "changed since the plan: small-001; already as planned: small-002" in stale.err
    )
    proposed = "rollout plan --cluster small --playbook pulls --limit 'small-[001-002]'"
    assert f"(plan again, with the same --set options (if any): `{proposed}`) [plan-is-stale]" in stale.err
    assert pair.rollout("status", "-o", "json").json()["run"] == run, "no run was begun"


# A plan file between its review and its apply: its digest, what it writes, and what it must not write.


NODES = ("small-001", "small-002")
CRON = "* * * * * root touch /tmp/owned\n"


@pytest.fixture
def planned(tmp_path: Path) -> Iterator[tuple[Site, str]]:
    """Two nodes, a plan for them in p.json, and the digest that was printed with it."""
    with served(tmp_path, "small-[001-002]") as site:
        done = site.rollout("plan", "--cluster", "small", "--limit", "small-[001-002]", "--out", "p.json")
        assert done.code == 0, done.err
        printed = [line.removeprefix("digest: ") for line in done.out.splitlines() if line.startswith("digest: ")]
        assert printed == [json.loads((site.folder / "p.json").read_bytes())["digest"]]
        yield site, printed[0]


def test_apply_shows_the_files_first_and_the_digest_accepts_only_this_plan(
    planned: tuple[Site, str],
) -> None:
    site, printed = planned
    before = site.everything(*NODES)
    for words in (("--digest", printed[:11] + "g"), ("--digest", "f" * 64), ("--digest", printed + "0")):
        refused = site.rollout("apply", "p.json", "--yes", *words)
        assert refused.code == 2, refused.all
    assert site.everything(*NODES) == before
    assert not any((site.node(name) / "var/lib/rollout").exists() for name in NODES)

    unsaid = site.rollout("apply", "p.json", "--digest", printed[:12].upper())
    assert (unsaid.code, "[not-confirmed]" in unsaid.err) == (2, True), "only the confirmation is missing"
    done = site.rollout("apply", "p.json", "--digest", printed[:12], "--yes")
    assert done.code == 0, done.all
    for said in (unsaid.out.splitlines(), done.out.splitlines()):
        assert said[0] == f"plan {printed}"
        paths = [line for line in said if line.startswith("  writes /")]
        assert "  writes /var/lib/kubelet/config.yaml  on 2 nodes" in paths
        assert "  writes /etc/default/kubelet  on 2 nodes" in paths
        assert "  restarts kubelet.service  on 2 nodes" in said


def test_a_resealed_plan_that_writes_elsewhere_touches_nothing(planned: tuple[Site, str]) -> None:
    site, _ = planned
    before = site.everything(*NODES)
    document = json.loads((site.folder / "p.json").read_bytes())
    document.pop("digest")
    document["blobs"][digest(CRON.encode())] = CRON
    entry = {"path": "/etc/cron.d/zz", "before": "", "after": digest(CRON.encode()), "mode": "644", "reasons": []}
    document["groups"][0]["change"]["files"].append(entry)
    (site.folder / "p.json").write_bytes(plan_codec._sealed(document)[1])  # noqa: SLF001
    for words in (("apply", "p.json", "--yes"), ("simulate", "p.json"), ("export", "kubeadm", "p.json")):
        done = site.rollout(*words)
        assert done.code == 2, done.all
        assert "writes /etc/cron.d/zz: it is not a home of a setting" in done.err
        assert "[plan-foreign-path]" in done.err
    assert site.everything(*NODES) == before
    assert not any((site.node(name) / "var/lib/rollout").exists() for name in NODES)
