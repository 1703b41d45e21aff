"""The doctor: a sample of each kind, and for each error of a way in the check that it belongs to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from rollout.adapters.files import FolderFiles
from rollout.adapters.node_sources import RealSources
from rollout.app.load import load_cluster
from rollout.app.ports import Cluster, Target
from rollout.core.model.inventory import role_of
from rollout.core.model.report import RemoteAnswer, RemoteCommand
from rollout.core.model.verdict import Verdict
from rollout.core.model.ways_in import DoctorCheck, Probe, Way
from rollout.errors import RemoteError
from rollout.features.doctor.asking import EACH_KIND, Visit, examine_back_ends, examine_nodes, of_snapshot, sample
from rollout.features.doctor.words import NOT_REACHED, NOT_SET, DoctorResult
from rollout.kubelet.kinds import kinds, model_node
from tests.app.agents import access_to
from tests.places import ROOT

RNO = load_cluster(FolderFiles(ROOT), RealSources(), "rno")
NOW = 1763654400  # 2025-11-20T16:00:00Z
SHELL = RemoteAnswer(0, f"rollout-doctor {NOW}\n".encode(), b"", started=True)


def refused(reference: str, message: str = "why") -> RemoteAnswer:
    return RemoteAnswer(None, b"", b"", started=False, reference=reference, message=message)


@dataclass
class Doors:
    """Nodes that answer the login shell and the agent as told. ``unsupported``: what ssh_config asks for.

    ``trips``: node → the seconds of a round trip, or the reference of its error.
    """

    shell: RemoteAnswer = SHELL
    agent: RemoteAnswer = field(default_factory=lambda: refused("no-sudo"))
    unsupported: str = ""
    trips: Mapping[str, float | str] = field(default_factory=dict)
    measured: list[str] = field(default_factory=list)
    released: list[str] = field(default_factory=list)
    asked: list[RemoteCommand] = field(default_factory=list)

    def way(self, target: Target) -> Way:
        if self.unsupported:
            raise RemoteError(self.unsupported, "unsupported")
        return Way(target.address, target.address, 22, "sre", key="ssh-ed25519 SHA256:x")

    def run(self, target: Target, command: RemoteCommand) -> RemoteAnswer:
        self.asked.append(command)
        return self.shell if command.request is None else self.agent

    def round_trip(self, target: Target, times: int, seconds: float) -> float:
        self.measured.append(target.name)
        found = self.trips.get(target.name, 0.001)
        if isinstance(found, str):
            raise RemoteError(found, "why")
        return found

    def release(self, target: Target) -> None:
        self.released.append(target.name)

    def close(self) -> None: ...


class At:
    def now(self) -> float:
        return 0.0

    def wall(self) -> str:
        return "2025-11-20T16:00:00Z"


def checks(doors: Doors) -> Mapping[DoctorCheck, DoctorResult]:
    found = examine_nodes(Visit(access_to("n1"), doors, At(), 120.0))
    assert list(found.ways) == ["n1"]
    return {each.check: each for each in found.results}


@pytest.mark.parametrize(
    ("reference", "check"),
    [
        ("name-not-known", DoctorCheck.NAME),
        ("connection-refused", DoctorCheck.CONNECTION),
        ("connect-timeout", DoctorCheck.CONNECTION),
        ("no-banner", DoctorCheck.CONNECTION),
        ("handshake-timeout", DoctorCheck.HOST_KEY),
        ("host-key-unknown", DoctorCheck.HOST_KEY),
        ("bastion-host-key-changed", DoctorCheck.HOST_KEY),
        ("host-certificate-refused", DoctorCheck.HOST_KEY),
        ("auth-failed", DoctorCheck.LOGIN),
        ("auth-too-many-keys", DoctorCheck.LOGIN),
        ("no-channel", DoctorCheck.SHELL),
    ],
)
def test_an_error_of_the_way_in_fails_its_check_and_those_after_it_are_not_reached(
    reference: str, check: DoctorCheck
) -> None:
    doors = Doors(shell=refused(reference))
    found = checks(doors)
    assert (found[check].verdict, found[check].reference) == (Verdict.FAIL, reference)
    order = list(found)
    assert {found[each].verdict for each in order[: order.index(check)]} <= {Verdict.PASS}
    assert {found[each].reference for each in order[order.index(check) + 1 :]} == {NOT_REACHED}
    assert len(doors.asked) == 1, "the agent was not sent"


@pytest.mark.parametrize("reference", ["bastion-unreachable", "bastion-forbids", "deadline", "too-many-files"])
def test_a_trouble_that_shows_nothing_of_the_checks_before_it_passes_none_of_them(reference: str) -> None:
    """A bastion resolves the name, and a machine without a free file asks nobody."""
    found = checks(Doors(shell=refused(reference)))
    assert (found[DoctorCheck.CONNECTION].verdict, found[DoctorCheck.CONNECTION].reference) == (Verdict.FAIL, reference)
    assert found[DoctorCheck.ROUTE].verdict is Verdict.PASS
    assert found[DoctorCheck.NAME].reference == NOT_REACHED


@pytest.mark.parametrize("reference", ["deadline", "connection-lost"])
def test_a_login_shell_whose_end_was_not_seen_is_unknown(reference: str) -> None:
    """It may run commands, and slowly: no remedy for another shell."""
    lost = RemoteAnswer(None, b"", b"", started=True, reference=reference, message="why")
    found = checks(Doors(shell=lost))
    assert (found[DoctorCheck.SHELL].verdict, found[DoctorCheck.SHELL].reference) == (Verdict.UNKNOWN, reference)
    assert found[DoctorCheck.LOGIN].verdict is Verdict.PASS


def test_an_unsupported_option_of_ssh_config_is_found_without_a_connection() -> None:
    doors = Doors(unsupported="proxy-command-not-supported")
    found = checks(doors)
    assert found[DoctorCheck.ROUTE].verdict is Verdict.FAIL
    assert found[DoctorCheck.NAME].reference == NOT_REACHED
    assert doors.asked == []


@pytest.mark.parametrize("printed", [b"", b"This account is not available.\n", b"\x1b[2Jhello\n"])
def test_a_login_shell_that_runs_nothing_is_named_with_its_answer(printed: bytes) -> None:
    found = checks(Doors(shell=RemoteAnswer(1, printed, b"", started=True)))
    assert found[DoctorCheck.SHELL].reference == "no-shell"
    assert "\x1b" not in found[DoctorCheck.SHELL].message
    assert found[DoctorCheck.LOGIN].message == "user sre, key ssh-ed25519 SHA256:x"


@pytest.mark.parametrize(
    ("off", "verdict"),
    [(0, Verdict.PASS), (5, Verdict.PASS), (-5, Verdict.PASS), (6, Verdict.FAIL), (-86400, Verdict.FAIL)],
)
def test_a_clock_may_differ_by_some_seconds(off: int, verdict: Verdict) -> None:
    told = RemoteAnswer(0, f"motd\nrollout-doctor {NOW + off}\n".encode(), b"", started=True)
    assert checks(Doors(shell=told))[DoctorCheck.CLOCK].verdict is verdict


@pytest.mark.parametrize(
    "reference", ["no-sudo", "sudo-needs-tty", "sudo-password-wrong", "sudo-not-allowed", "doas-not-allowed"]
)
def test_a_refused_sudo_fails_after_a_login_that_passed(reference: str) -> None:
    found = checks(Doors(agent=refused(reference)))
    assert (found[DoctorCheck.SUDO].verdict, found[DoctorCheck.SUDO].reference) == (Verdict.FAIL, reference)
    assert found[DoctorCheck.CLOCK].verdict is Verdict.PASS
    assert found[DoctorCheck.KUBELET].reference == NOT_REACHED


@pytest.mark.parametrize("reference", ["deadline", "connection-lost", "shell-not-supported"])
def test_a_reading_that_failed_does_not_show_that_sudo_refuses(reference: str) -> None:
    found = checks(Doors(agent=refused(reference)))
    assert (found[DoctorCheck.SUDO].verdict, found[DoctorCheck.SUDO].reference) == (Verdict.UNKNOWN, reference)


def test_a_node_as_its_installer_left_it_passes() -> None:
    for kind in {kind for node in RNO.nodes.values() for kind in kinds(RNO.api_server, RNO.nodes.values()).of(node)}:
        found = list(of_snapshot(model_node(kind), 120.0))
        assert [each.check for each in found] == [
            DoctorCheck.DISK,
            DoctorCheck.SYSTEMD,
            DoctorCheck.KUBELET,
            DoctorCheck.RUNTIME,
        ]
        assert {each.verdict for each in found} == {Verdict.PASS}, found


def test_a_sample_has_every_kind_and_spreads_over_racks() -> None:
    chosen = sample(RNO, tuple(RNO.nodes))
    assert len(chosen) < 60
    assert list(chosen) == sorted(chosen, key=list(RNO.nodes).index)

    def kind(name: str) -> object:
        return role_of(RNO.nodes[name].labels), tuple(kinds(RNO.api_server, RNO.nodes.values()).of(RNO.nodes[name]))

    counted = Counter(map(kind, chosen))
    assert set(counted) == set(map(kind, RNO.nodes))
    assert max(counted.values()) <= EACH_KIND
    assert len({RNO.nodes[name].rack for name in chosen}) > len(chosen) / 2


def test_a_sample_stays_within_the_limit() -> None:
    few = tuple(RNO.nodes)[:2]
    assert sample(RNO, few) == few


def test_back_ends_that_are_not_set_are_unknown_and_those_that_fail_say_why() -> None:
    def no_cluster() -> Cluster:
        raise RemoteError("exec-plugin", "the plugin printed no credential in 10 s", hint="gcloud auth login")

    found = {
        each.check: each
        for each in examine_back_ends(
            "k",
            no_cluster,
            (Probe(DoctorCheck.PROMETHEUS, "http://p", lambda _: "http://p"), Probe(DoctorCheck.ALERTS, "", str)),
        )
    }
    api = found[DoctorCheck.API]
    assert (api.verdict, api.reference) == (Verdict.FAIL, "exec-plugin")
    assert "k: the plugin printed no credential in 10 s (gcloud auth login)" in api.message
    assert found[DoctorCheck.PROMETHEUS].verdict is Verdict.PASS
    assert (found[DoctorCheck.ALERTS].verdict, found[DoctorCheck.ALERTS].reference) == (Verdict.UNKNOWN, NOT_SET)


def test_round_trips_are_measured_last_and_a_node_that_does_not_answer_is_left_out() -> None:
    doors = Doors(trips={"n1": 0.03, "n2": "no-answer"})
    found = examine_nodes(Visit(access_to("n1", "n2"), doors, At(), 120.0))
    assert found.trips == {"n1": 0.03}
    assert sorted(doors.measured) == ["n1", "n2"]
    assert set(doors.released) == {"n1", "n2"}


@pytest.mark.parametrize("shell", [refused("connection-refused"), RemoteAnswer(1, b"no\n", b"", started=True)])
def test_a_node_without_a_login_has_no_round_trip(shell: RemoteAnswer) -> None:
    doors = Doors(shell=shell)
    assert examine_nodes(Visit(access_to("n1"), doors, At(), 120.0)).trips == {}
    assert doors.measured == []
    assert doors.released == ["n1"]
