"""Faults of connections and nodes, kind by kind: which nodes are charged, what halts, how every node ends.

Only by the command line, on nodes with the real agent. The lab's faults are in ``rollout lab fault --help``.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from rollout.core.text.nodesets import expand
from tests.controllers import PATIENCE, Done, Process, at_work, until
from tests.sampling import sample
from tests.story.conftest import Site, served
from tests.story.silent import silent

pytestmark = [pytest.mark.process, pytest.mark.drawn(1)]

OURS = {"lock", "holder", "token", "touched", "tx", "voided"}
"""What may remain on a node, in /var/lib/rollout."""


@pytest.fixture
def few(tmp_path: Path) -> Iterator[Site]:
    """Six nodes in two racks."""
    with served(tmp_path, "small-[001-003,061-063]") as made:
        yield made


FEW = ("small-001", "small-002", "small-003", "small-061", "small-062", "small-063")


def policy(site: Site, old: str, new: str) -> None:
    """Change the playbook."""
    path = site.folder / "playbooks/pulls.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def plan(site: Site, limit: str, *words: str, code: int = 0) -> dict[str, Any]:
    """Plan into p.json, and return its content."""
    done = site.rollout("plan", "--cluster", "small", "--limit", limit, "--out", "p.json", *words)
    assert done.code == code, done.err
    found: dict[str, Any] = json.loads((site.folder / "p.json").read_text())
    return found


def apply(site: Site, limit: str) -> Done:
    return site.rollout("apply", "--cluster", "small", "--limit", limit, "--yes")


def begun(site: Site, *words: str) -> AbstractContextManager[Process]:
    """A running controller."""
    log = site.folder / f"{site.state}.out"
    log.unlink(missing_ok=True)
    return at_work(site.command(*words), site.folder, log)


def said(site: Site) -> str:
    """The output of the background controller so far."""
    return (site.folder / f"{site.state}.out").read_text()


def where(site: Site) -> Any:
    """The newest run, by its journal; empty while there is none."""
    done = site.rollout("status", "-o", "json")
    if "no-runs" in done.err:
        return {"counts": {}}
    assert done.code == 0, done.err
    return done.json()


def transactions(site: Site, name: str) -> list[str]:
    """All transactions that were started on this node."""
    folder = site.node(name) / "var/lib/rollout/tx"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def token(site: Site, name: str) -> list[str]:
    """Counter, run, and ``live`` or ``ended``: the claim that the node reports."""
    return (site.node(name) / "var/lib/rollout/token").read_text().split()


def nothing_left(site: Site, *names: str) -> None:
    """Law 8: no guard, timer, unit or claim; only receipts and copies remain."""
    for name in names:
        top = site.node(name)
        assert not [*top.glob("etc/systemd/system/*rollout*"), *top.glob("etc/systemd/system/*/*rollout*")], name
        state = top / "var/lib/rollout"
        if state.exists():
            assert {path.name for path in state.iterdir()} <= OURS, name
            assert token(site, name)[2] == "ended", name
        config = ("ssh", "-F", str(site.lab / "ssh_config"), name)
        asked = [*config, "systemctl list-units --all --plain --no-legend 'rollout-*'; systemctl list-timers --all"]
        units = subprocess.run(asked, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert "rollout" not in units.stdout, f"{name}: {units.stdout}"


# ---------------------------------------------------------------------------------------------- nodes that do not answer


def test_a_node_that_does_not_answer_the_plan_is_listed_with_the_reason_and_the_others_are_planned(few: Site) -> None:
    before = few.everything(*FEW)
    few.fault("small-001", "refuse")
    with silent(few, "small-062", "small-063") as silence:
        made = plan(few, "@all&small-[001-003,061-063]", "--save-snapshot", "s.json", code=4)
    assert silence.most == 2, "hung nodes are waited for in parallel"
    assert sorted(silence.came) == ["small-062", "small-063"], "and they are not waited for twice"
    left = {entry["name"]: (entry["standing"], entry["reference"]) for entry in made["left"]}
    assert left == {
        "small-001": ("unreachable", "connection-refused"),
        "small-062": ("unreachable", "no-banner"),
        "small-063": ("unreachable", "no-banner"),
    }
    assert made["nodes"].keys() == {"small-002", "small-003", "small-061"}

    refused = few.rollout("apply", "p.json", "--yes")
    assert refused.code == 2, "half the nodes are unreachable: an unhealthy cluster is not changed"
    assert refused.err.count("\n") == 1
    assert "small-[001,062-063]" in refused.err
    assert "[preflight]" in refused.err

    plan(few, "small-001", code=4)
    nobody = few.rollout("apply", "p.json", "--yes")
    assert nobody.code == 4, nobody.out + nobody.err
    first, named = nobody.out.splitlines()[:2]
    assert first.startswith("no node can be changed, as the nodes were at ")
    assert named.startswith("not in the plan, unreachable (1) small-001: "), "the unreachable node is named"

    policy(few, "pace: 20}", "pace: 20, preflight: 50%}")
    plan(few, "@all&small-[001-003,061-063]", "--snapshot", "s.json")
    done = few.rollout("apply", "p.json", "--yes")
    assert done.code == 4, done.out + done.err
    assert "not in the run, unreachable (1) small-001" in done.out
    assert "not in the run, unreachable (2) small-[062-063]" in done.out
    assert [few.is_new(name) for name in FEW] == [False, True, True, True, False, False]
    assert {k: v for k, v in few.everything(*FEW).items() if "001" in k} == {
        k: v for k, v in before.items() if "001" in k
    }


def test_a_node_that_does_not_answer_its_claim_is_charged_and_too_many_stop_the_run_before_it_starts(few: Site) -> None:
    before = few.everything(*FEW)
    plan(few, ",".join(FEW))
    few.fault("small-002", "refuse")
    with silent(few, "small-003") as silence:
        refused = few.rollout("apply", "p.json", "--yes")
    assert silence.came == ["small-003"], "it is not waited for twice"
    assert refused.code == 2, refused.out
    assert "nothing was touched" in refused.out
    assert few.everything(*FEW) == before
    assert [transactions(few, name) for name in FEW] == [[]] * 6, "not even started"
    nothing_left(few, "small-001", "small-061")
    for words in (
        ("resume",),
        ("resume", "--recover-only"),
    ):  # for a run that touched nothing, neither hint names the other command
        sent_on = few.rollout(*words, "--yes")
        assert (sent_on.code, "plan again" in sent_on.err) == (5, True), sent_on.err

    few.fault(
        "small-003", "never-healthy"
    )  # one node refuses and one is unhealthy: together they use up the budget of two
    halted = few.rollout("apply", "p.json", "--yes")
    assert halted.code == 3, halted.out
    assert "halting: 2 of 5 nodes of wave 'rest' failed" in halted.out
    found = where(few)
    assert ("small-002", "unreachable", "connection-refused") in {
        (entry["nodes"], entry["state"], entry["reference"]) for entry in found["troubles"]
    }
    assert found["pendingRecovery"]["nodes"] == "small-002"
    assert not few.is_new("small-003")

    few.fault("small-[002-003]", "--clear")
    resumed = few.rollout("resume", "--yes")
    assert resumed.code == 4, resumed.out + resumed.err
    assert [name for name in FEW if not few.is_new(name)] == ["small-003"], "the unhealthy node is not tried again"
    found = where(few)
    assert found["counts"] == {"confirmed": 5, "reverted": 1}
    assert found["pendingRecovery"]["nodes"] == ""
    nothing_left(few, "small-002", "small-003", "small-061")


def test_a_connection_that_drops_in_the_middle_of_an_apply_changes_nothing_about_how_it_ends(few: Site) -> None:
    for name, after in (("small-001", "0.1"), ("small-002", "0.3"), ("small-061", "0.6")):
        few.fault(name, "drop-mid-apply", "--after", after)
    done = apply(few, "small-[001-003,061-062]")
    assert done.code == 0, done.out + done.err
    assert where(few)["counts"] == {"confirmed": 5}
    assert all(few.is_new(name) for name in FEW[:5])
    nothing_left(few, *FEW[:5])


# ------------------------------------------------------------------------------------------------------------ unhealthy nodes


def test_a_rack_that_never_gets_healthy_halts_the_run_inside_its_budget(site: Site) -> None:
    sick = [f"small-{number:03}" for number in range(61, 71)]
    well = [f"small-{number:03}" for number in range(1, 11)]
    before, untouched = site.everything(*sick, *well), site.everything(*sick)
    site.fault("small-[061-070]", "never-healthy")
    done = apply(site, "small-[001-010,061-070]")
    assert done.code == 3, done.out + done.err
    assert "its budget is 2" in done.out

    touched = [name for name in sick if transactions(site, name)]
    assert 1 <= len(touched) <= 2, f"the rack's budget is two nodes: {touched}"
    assert site.everything(*sick) == untouched, "same bytes and mode"
    found = where(site)
    told = [entry for entry in found["troubles"] if entry["reference"] != "taken-back-with-others"]
    assert {entry["state"] for entry in told} == {"reverted"}
    assert sorted(name for entry in told for name in expand(entry["nodes"])) == touched
    reasons = ("exited", "ended, and systemd", "restarted", "not report the same process")
    assert all(any(reason in entry["message"] for reason in reasons) for entry in told), told
    assert found["ending"] == "halted"

    new = [name for name in well if site.is_new(name)]
    assert new == ["small-001"], "the canary's wave had passed; this node is reverted"
    assert found["counts"]["confirmed"] == 1
    nothing_left(site, *touched, "small-001", "small-002")

    back = site.rollout("rollback", "--cluster", "small", "--emergency", "--yes", "--limit", "small-[001-010,061-070]")
    assert back.code == 0, back.out + back.err
    assert site.everything(*sick, *well) == before
    states = site.rollout("lab", "status", "-o", "json", "--dir", str(site.lab)).json()["states"]
    assert len(expand(states["running"])) == 20, "with their old files all nodes are healthy"


@pytest.mark.parametrize("kind", sample("unhealthy in the soak", ["sick-in-soak", "deaf-in-soak"], 1))
def test_a_node_that_becomes_unhealthy_in_the_soak_is_reverted(few: Site, kind: str) -> None:
    before = few.everything(*FEW)
    policy(few, "{wave: 2, rack: 2, fleet: 2}", "{wave: 1, rack: 1, fleet: 1}")
    few.fault("small-062", kind, "--after", "0.1")
    done = apply(few, ",".join(FEW))
    assert done.code == 3, done.out + done.err
    found = where(few)
    charged = {
        (entry["nodes"], entry["state"]) for entry in found["troubles"] if entry["reference"].startswith("gate-")
    }
    assert charged == {("small-062", "reverted")}
    assert [few.is_new(name) for name in FEW] == [True, False, False, False, False, False], (
        "its wave is reverted with it"
    )
    assert {k: v for k, v in few.everything(*FEW).items() if "001" not in k} == {
        k: v for k, v in before.items() if "001" not in k
    }
    nothing_left(few, "small-001", "small-062")


def test_a_power_cut_during_an_apply_ends_with_old_or_new_files_as_the_journal_reports(few: Site) -> None:
    with begun(few, "apply", "--cluster", "small", "--limit", ",".join(FEW), "--yes") as process:
        until(lambda: transactions(few, "small-061"), PATIENCE, "its transaction began")
        few.fault("small-061", "reboot")
        code = process.wait(PATIENCE)
    found = where(few)
    states = {entry["nodes"]: entry["state"] for entry in found["troubles"]}
    assert few.is_new("small-061") == ("small-061" not in states)
    assert code == (4 if states else 0), said(few)
    assert states in ({}, {"small-061": "reverted"}), "old at boot; or a second attempt, where nothing was armed yet"
    assert found["counts"]["confirmed"] == sum(few.is_new(name) for name in FEW)
    nothing_left(few, *FEW)

    again = apply(few, ",".join(FEW))
    assert again.code == 0, again.out + again.err
    assert all(few.is_new(name) for name in FEW)


def test_controller_and_node_may_die_together(few: Site) -> None:
    with begun(few, "apply", "--cluster", "small", "--limit", "small-[061-062]", "--yes") as process:
        until(lambda: transactions(few, "small-061"), PATIENCE, "the canary's transaction began")
        process.kill()
        few.fault("small-061", "reboot")
    until(lambda: few.is_well("small-061"), PATIENCE, "the node is back")
    resumed = few.rollout("resume", "--yes")
    assert resumed.code == 0, resumed.out + resumed.err
    assert where(few)["counts"] == {"confirmed": 2}
    assert few.is_new("small-061")
    assert few.is_new("small-062")
    nothing_left(few, "small-061", "small-062")


# ------------------------------------------------------------------------------------ nodes that are not what was planned


def test_a_node_that_changed_since_the_plan_is_refused_and_not_touched(few: Site) -> None:
    policy(few, "{wave: 2, rack: 2, fleet: 2}", "{wave: 3, rack: 3, fleet: 3}")
    made = plan(few, ",".join(FEW))
    assert len(made["nodes"]) == 6
    edited = few.node("small-002") / "var/lib/kubelet/config.yaml"
    edited.write_text(edited.read_text() + "# edited by hand\n")
    (few.node("small-062") / "etc/machine-id").write_text("0123456789abcdef0123456789abcdef\n")
    before = few.everything("small-002", "small-062")
    done = few.rollout("apply", "p.json", "--yes")
    assert done.code == 4, done.out + done.err
    found = where(few)
    assert {(entry["nodes"], entry["state"], entry["reference"]) for entry in found["troubles"]} == {
        ("small-002", "refused", "drifted"),
        ("small-062", "gone", "machine-id-changed"),
    }
    drifted = next(entry for entry in found["troubles"] if entry["reference"] == "drifted")
    assert "/var/lib/kubelet/config.yaml" in drifted["message"], "the file is named"
    assert few.everything("small-002", "small-062") == before
    assert transactions(few, "small-002") == transactions(few, "small-062") == []
    assert found["counts"] == {"confirmed": 4, "gone": 1, "refused": 1}
    nothing_left(few, *FEW)


# ---------------------------------------------------------------------------------------------------- more than one run


def test_of_two_controllers_the_second_ends_and_leaves_nothing_behind(few: Site) -> None:
    policy(few, "soak: 600ms", "soak: 30s")
    first, second = "small-[001-002]", "small-[002-003]"
    with begun(few, "apply", "--cluster", "small", "--limit", first, "--yes") as process:
        until(lambda: "soaking" in said(few), PATIENCE, "the first run is in progress")
        same = apply(few, second)
        assert same.code == 5, same.out + same.err
        assert "[locked]" in same.err, "its controller is alive: wait for it instead of a resume"
        assert where(few)["run"] in same.err
        assert few.rollout("resume", "--yes").code == 5

        other = few.apart("elsewhere")
        claimed = apply(other, second)
        assert claimed.code == 5, claimed.out + claimed.err
        assert "claimed" in claimed.out
        assert where(few)["run"] in claimed.out, "the claiming run is named"
        assert transactions(few, "small-003") == []
        assert token(few, "small-003")[2] == "ended", "the node that it had claimed is free again"
        assert process.poll() is None
        process.send_signal(signal.SIGINT)  # the test needs no more of this run
        assert process.wait(PATIENCE) == 130
    policy(few, "soak: 30s", "soak: 600ms")
    after = apply(few.apart("third"), "small-003")
    assert after.code == 0, after.out + after.err


def test_nodes_of_a_controller_that_died_stay_claimed_until_resume_or_an_emergency_rollback(few: Site) -> None:
    names = FEW[:2]
    before = few.everything(*names)
    policy(few, "soak: 600ms", "soak: 20s")
    with begun(few, "apply", "--cluster", "small", "--limit", "small-[001-002]", "--yes") as process:
        until(lambda: "soaking" in said(few), PATIENCE, "the canary is confirmed")
        process.kill()
    other = few.apart("elsewhere")
    refused = apply(other, "small-[001-002]")
    assert refused.code == 5, refused.out + refused.err
    assert "claimed" in refused.out
    assert where(few)["run"] in refused.out

    same = apply(few, "small-003")
    assert same.code == 5, "this journal knows of the run that has not ended"
    assert f"rollout resume {where(few)['run']}" in same.err

    back = other.rollout("rollback", "--cluster", "small", "--emergency", "--limit", "small-[001-002]", "--yes")
    assert back.code == 0, back.out + back.err
    assert few.everything(*names) == before
    nothing_left(few, *names)


def test_claims_of_an_ended_run_do_not_block_a_new_run(few: Site) -> None:
    """Follows the printed hints: no recovery is pending, the claims are ended, and a new run succeeds."""
    plan(few, ",".join(FEW))
    assert few.rollout("apply", "p.json", "--yes").code == 0
    run = where(few)["run"]
    counter = token(few, "small-001")[0]
    for name in FEW[:4]:  # as if the connection had been lost between the claim and its answer
        (few.node(name) / "var/lib/rollout/token").write_text(f"{counter} {run} live\n")
    plan(few, ",".join(FEW), "--set", "maxPods=99")
    done = few.rollout("apply", "p.json", "--yes")
    assert done.code == 0, done.all
    nothing_left(few, *FEW)

    run = where(few)["run"]
    counter = token(few, "small-001")[0]
    (few.node("small-002") / "var/lib/rollout/token").write_text(f"{counter} {run} live\n")
    freed = few.rollout("resume", "--recover-only", "--yes")
    assert freed.code == 0, freed.all
    assert freed.out == f"run {run} has no pending recovery; its claim was ended on 1 node\n"
    again = few.rollout("resume", "--recover-only", "--yes")
    assert (again.code, "[nothing-owed]" in again.err) == (5, True), again.all
