"""`rollout approve`, and `apply` and `resume` that check it before anything is touched."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from rollout.cli.main import run
from rollout.core.plans import plan_codec
from rollout.features.approvals.client.files import signatures_beside
from tests.cli.test_plan import SOME_CHANGE, planned, site
from tests.documents import only

__all__ = ["site"]

pytestmark = pytest.mark.process

PLAN = Path("p.plan.json")


@pytest.fixture
def asks(site: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The inventory asks for one approval by another person than the applier; alice has a key, and so has the user of the tests."""
    monkeypatch.delenv("SUDO_USER", raising=False)
    lines = []
    for name in ("alice", getpass.getuser()):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"key-{name}"], check=True)
        lines.append(f"{name}@example.net {Path(f'key-{name}.pub').read_text()}")
    Path("allowed_signers").write_text("".join(lines))
    with Path("inventories/small.yaml").open("a") as file:
        file.write("approvals: {count: 1, allowedSigners: allowed_signers}\n")
    assert planned(site, SOME_CHANGE) == 0
    return site


def approve(name: str) -> int:
    return run(["approve", str(PLAN), "--key", f"key-{name}", "--yes"])


def test_a_second_person_approves(asks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert planned(asks, SOME_CHANGE) == 0
    text = capsys.readouterr().out
    assert "needs 1 approval (inventories/small.yaml)" in text
    assert (
        "it still needs: the plan has 0 of 1 approval that inventories/small.yaml asks for\n"
        "another person approves it: rollout approve p.plan.json --key FILE\nthen apply it: rollout apply p.plan.json\n"
    ) in text
    assert run(["apply", str(PLAN), "--yes"]) == 2
    said = capsys.readouterr().err
    assert "the plan has 0 of 1 approval that inventories/small.yaml asks for" in said
    assert "(another person: `rollout approve p.plan.json --key FILE`) [approval-missing]" in said
    assert approve(getpass.getuser()) == 0
    capsys.readouterr()
    assert run(["apply", str(PLAN), "--yes"]) == 2
    assert "applies it and does not count" in capsys.readouterr().err
    assert run(["approve", str(PLAN), "--key", "key-alice", "--yes", "-o", "json"]) == 0
    document = only(capsys.readouterr().out)
    assert (document["person"], document["missing"]) == ("alice@example.net", [])
    assert document["plan"] == plan_codec.digest(plan_codec.decode(PLAN.read_bytes(), "p"))
    assert len(signatures_beside(PLAN)) == 2
    run(["apply", str(PLAN), "--yes"])
    printed = capsys.readouterr()
    assert "preflight" in printed.out, "approved, the run begins, and no node can be claimed here"
    assert "approval" not in printed.err


def test_status_names_the_plans_that_wait_for_people(asks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert approve("alice") == 0
    run(["apply", str(PLAN), "--yes"])
    capsys.readouterr()
    assert run(["status"]) == 0
    assert "waits for you" not in capsys.readouterr().out, "a run has followed the plan"
    later = time.time() + 60
    os.utime(PLAN, (later, later))
    assert run(["status"]) == 0
    assert "waits for you" not in capsys.readouterr().out, "a copy of the file is newer than the run"
    assert planned(asks, SOME_CHANGE, "--set", "maxPods=60") == 0
    shutil.rmtree("p.plan.json.approvals")
    capsys.readouterr()
    assert run(["status"]) == 0
    said = capsys.readouterr().out
    assert (
        "  waits for you: p.plan.json on small: the plan has 0 of 1 approval that inventories/small.yaml asks for\n"
        "      another person: rollout approve p.plan.json --key FILE\n"
    ) in said
    assert approve("alice") == 0
    capsys.readouterr()
    assert run(["status", "-o", "json"]) == 0
    (plan,) = only(capsys.readouterr().out)["waitingPlans"]
    assert (plan["file"], plan["cluster"], plan["missing"]) == ("p.plan.json", "small", [])
    assert run(["status"]) == 0
    assert "it has every approval and may be applied\n      rollout apply p.plan.json\n" in capsys.readouterr().out


def test_a_sequence_needs_the_approvals_of_each_of_its_plans(asks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert planned(asks, SOME_CHANGE) == 0
    Path("two.yaml").write_text(f"name: two\nstages:\n  - {{name: one, clusters: {{small: {PLAN}}}}}\n")
    capsys.readouterr()
    assert run(["apply", "--sequence", "two.yaml", "--yes"]) == 2
    assert "[approval-missing]" in capsys.readouterr().err


def test_an_approval_is_for_one_plan(asks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert approve("alice") == 0
    PLAN.unlink()
    assert planned(asks, SOME_CHANGE, "--set", "maxPods=60") == 0
    assert run(["apply", str(PLAN), "--yes"]) == 2
    assert "[approval-other-plan]" in capsys.readouterr().err


def test_a_key_of_nobody_writes_nothing(asks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("allowed_signers").write_text("")
    assert approve("alice") == 2
    assert "[approval-unknown-signer]" in capsys.readouterr().err
    assert signatures_beside(PLAN) == {}


def test_the_same_key_approves_once(asks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert approve("alice") == 0
    assert approve("alice") == 2
    assert "[approval-same-signer]" in capsys.readouterr().err


def test_an_approval_that_has_expired_is_given_again(asks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert approve("alice") == 0
    assert (
        "it has every approval for a person that did not sign it: rollout apply p.plan.json" in capsys.readouterr().out
    )
    ((file, text),) = signatures_beside(PLAN).items()
    Path(file).write_text(text.replace("not after: 2", "not after: 1", 1))
    assert approve("alice") == 0
    assert run(["apply", str(PLAN), "--yes"]) == 2
    assert "approval" not in capsys.readouterr().err


def test_where_no_approval_is_asked_for_there_is_nothing_to_approve(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert planned(site, SOME_CHANGE) == 0
    assert approve("nobody") == 2
    assert "[no-approval-needed]" in capsys.readouterr().err


def test_the_home_of_an_unknown_user_is_a_key_that_does_not_exist(
    asks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run(["approve", str(PLAN), "--key", "~nobody-of-this-name/key", "--yes"]) == 2
    assert "~nobody-of-this-name/key" in capsys.readouterr().err
