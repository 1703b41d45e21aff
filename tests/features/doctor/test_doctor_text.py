"""What the doctor found is folded by message, stays on one screen, and each trouble has what fixes it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rollout.core.model.verdict import Verdict
from rollout.core.model.ways_in import DoctorCheck, Way
from rollout.features.doctor.words import (
    NOT_REACHED,
    NOT_SET,
    SCREEN,
    DoctorDocument,
    DoctorPart,
    DoctorResult,
    doctor_lines,
    folded_checks,
    is_well,
)
from tests.places import ROOT

NODES = tuple(f"n{number:04}" for number in range(1, 2001))
WAYS = {name: Way(name, f"{name}.example.net", 22, "sre", known_hosts="/home/sre/.ssh/known_hosts") for name in NODES}
NODE_CHECKS = tuple(DoctorCheck)[: tuple(DoctorCheck).index(DoctorCheck.API)]


def results(
    name: str, fails_at: DoctorCheck | None = None, message: str = "", reference: str = ""
) -> list[DoctorResult]:
    found = []
    verdict = Verdict.PASS
    for check in NODE_CHECKS:
        if check is fails_at:
            found.append(DoctorResult(name, check, Verdict.FAIL, message, reference))
            verdict = Verdict.UNKNOWN
        else:
            found.append(DoctorResult(name, check, verdict, "", "" if verdict is Verdict.PASS else NOT_REACHED))
    return found


def document(found: list[DoctorResult]) -> DoctorDocument:
    read = tuple(dict.fromkeys(each.node for each in found if each.node))
    parts = folded_checks("rno", found, WAYS)
    return DoctorDocument("rno", is_well(parts), len(NODES), read, parts)


def test_messages_that_differ_only_in_the_nodes_name_and_address_are_one() -> None:
    found = [
        each
        for name in NODES[:40]
        for each in results(
            name, DoctorCheck.CONNECTION, f"no answer in time (at {name}.example.net)", "connect-timeout"
        )
    ]
    (failed,) = (part for part in document(found).parts if part.verdict is Verdict.FAIL)
    assert failed.nodes == NODES[:40]
    assert failed.checks == (DoctorCheck.CONNECTION,)
    assert failed.message == "no answer in time (at the address of NODE)"


def test_what_was_not_reached_is_never_a_pass() -> None:
    made = document(results("n0001", DoctorCheck.LOGIN, "the login was refused", "auth-failed"))
    assert not made.ok
    (missed,) = (part for part in made.parts if part.reference == NOT_REACHED)
    assert missed.checks == NODE_CHECKS[NODE_CHECKS.index(DoctorCheck.SHELL) :]
    assert missed.verdict is Verdict.UNKNOWN
    assert any("other checks" in line and "1 node n0001: not checked" in line for line in doctor_lines(made))


def test_two_thousand_nodes_with_many_troubles_stay_on_one_screen() -> None:
    found = [
        each
        for at, name in enumerate(NODES)
        for each in results(name, NODE_CHECKS[at % len(NODE_CHECKS)], f"trouble {at % 90}", "connect-timeout")
    ]
    made = document(found)
    lines = doctor_lines(made)
    assert len(lines) <= SCREEN + 2
    assert any(re.fullmatch(r"… and \d+ more; -o json has all of them", line) for line in lines)
    assert {name for part in made.parts if part.verdict is Verdict.FAIL for name in part.nodes} == set(NODES)
    assert all("\x1b" not in line for line in lines)


def test_a_fleet_without_trouble_ends_with_that() -> None:
    made = document([each for name in NODES for each in results(name)])
    assert made.ok
    lines = doctor_lines(made)
    assert lines[0] == "rno: 2,000 of 2,000 nodes read"
    assert lines[-1] == "every check passes: 2,000 nodes"
    assert len(lines) == len(NODE_CHECKS) + 2


def test_a_sample_names_the_option_for_all_nodes() -> None:
    assert doctor_lines(document(results("n0001")))[0] == "rno: 1 of 2,000 nodes read; --all reads every node"


def test_a_back_end_that_is_not_set_is_no_trouble_and_one_that_fails_is() -> None:
    unset = [
        DoctorResult("", check, Verdict.UNKNOWN, reference=NOT_SET) for check in (DoctorCheck.API, DoctorCheck.ALERTS)
    ]
    made = document([*results("n0001"), *unset])
    assert made.ok
    assert any(line.startswith("unknown  API server, alerts") for line in doctor_lines(made))
    assert doctor_lines(made)[-1] == "every check of the nodes passes: 1 node; not checked: API server, alerts"
    broken = DoctorResult(
        "", DoctorCheck.PROMETHEUS, Verdict.FAIL, "http://p: connection refused", "connection-refused"
    )
    made = document([*results("n0001"), broken])
    assert not made.ok
    assert doctor_lines(made)[-1].endswith("0 with a failed or unknown check, 1 back end with a failed check")


def test_when_no_node_can_be_logged_in_to_the_machine_itself_is_named() -> None:
    found = [
        each
        for name in NODES[:9]
        for each in results(name, DoctorCheck.CONNECTION, "no answer in time", "connect-timeout")
    ]
    assert doctor_lines(document(found))[-1].startswith("no login to a node succeeded: check the network")


@pytest.mark.parametrize(
    ("reference", "nodes", "shown"),
    [
        ("host-key-unknown", 2, "rollout doctor --cluster rno --limit 'n[0001-0002]' --accept-new"),
        ("host-key-changed", 1, "ssh-keygen -R n0001.example.net -f /home/sre/.ssh/known_hosts"),
        ("auth-failed", 1, "ssh-copy-id sre@n0001.example.net"),
        ("auth-too-many-keys", 1, "    IdentitiesOnly yes"),
        ("name-not-known", 1, "  Host n0001"),
        ("no-sudo", 3, "rollout doctor --cluster rno --limit 'n[0001-0003]' --ask-sudo-password"),
        ("sudo-needs-tty", 1, "Defaults:sre !requiretty"),
        ("clock-offset", 2, "rollout exec 'n[0001-0002]' --cluster rno --sudo -- timedatectl set-ntp true"),
    ],
)
def test_a_trouble_has_the_command_or_the_line_that_fixes_it(reference: str, nodes: int, shown: str) -> None:
    found = [DoctorResult(name, DoctorCheck.LOGIN, Verdict.FAIL, "why", reference) for name in NODES[:nodes]]
    (part,) = folded_checks("rno", found, WAYS)
    assert shown in part.fix


def test_host_keys_of_a_sample_are_accepted_for_all_nodes_that_it_was_drawn_from() -> None:
    found = [DoctorResult("n0001", DoctorCheck.HOST_KEY, Verdict.FAIL, "why", "bastion-host-key-unknown")]
    (part,) = folded_checks("rno", found, WAYS, "@rack1 & @gpu")
    assert part.fix == "rollout doctor --cluster rno --limit '@rack1 & @gpu' --all --accept-new"
    (part,) = folded_checks("rno", found, WAYS, "")
    assert part.fix == "rollout doctor --cluster rno --all --accept-new"


def test_a_bastion_that_refuses_the_login_is_the_one_that_is_tried_again() -> None:
    found = [DoctorResult("n0001", DoctorCheck.CONNECTION, Verdict.FAIL, "why", "bastion-refused")]
    ways = {"n0001": Way("n0001", "n0001", 22, "sre", "gate.example.net")}
    (part,) = folded_checks("rno", found, ways)
    assert part.fix.splitlines()[0] == "ssh -v gate.example.net true"
    assert part.fix.splitlines()[-1] == "    ProxyJump USER@gate.example.net"


def test_a_fix_shows_no_terminal_escape_of_a_node() -> None:
    found = [DoctorResult("n1", DoctorCheck.LOGIN, Verdict.FAIL, "why", "auth-failed")]
    ways = {"n1": Way("n1", "n1\x1b[2J", 22, "s\x1bre")}
    assert "\x1b" not in folded_checks("rno", found, ways)[0].fix


def test_a_part_of_a_pass_has_no_reference() -> None:
    parts = folded_checks("rno", results("n0001"), WAYS)
    assert all(isinstance(part, DoctorPart) and part.reference is None and not part.fix for part in parts)


def test_every_reference_with_a_fix_is_raised_somewhere() -> None:
    fixes = (ROOT / "rollout/features/doctor/rules/fixes.py").read_text()
    others = "".join(
        path.read_text() for path in Path(ROOT / "rollout").rglob("*.py") if path.name != "doctor_fixes.py"
    )
    named = re.findall(r'^    "([a-z-]+)": lambda|^    "([a-z-]+)": _', fixes, re.MULTILINE)
    assert len(named) > 20
    assert [name for name in map("".join, named) if f'"{name}"' not in others] == []


def test_a_login_that_fails_may_only_need_the_passphrase_of_its_key() -> None:
    locked = results("n0001", DoctorCheck.LOGIN, "/k needs a passphrase; add it to an agent", "auth-failed")
    told = next(part.fix for part in folded_checks("rno", locked, WAYS) if part.reference == "auth-failed")
    assert told.splitlines()[:2] == [
        "ssh-add ~/.ssh/KEY   # if the key needs a passphrase",
        "or ssh-copy-id sre@n0001.example.net",
    ]
