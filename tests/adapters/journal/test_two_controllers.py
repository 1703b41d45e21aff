"""Two machines, one PostgreSQL, real agents, one lease.

The holder dies or freezes, and the other machine takes over; or the journal becomes unreachable.

A machine is a host name of its own, by which its leases are told apart. The age of a lease is changed in the database:
the tests do not wait for it.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from rollout.adapters.journal.postgres import MOST_CONNECTIONS
from tests.adapters.journal.conftest import name_of
from tests.adapters.journal.proxy import Fault, Proxy, proxied
from tests.adapters.journal.server import Server
from tests.controllers import PATIENCE, Done, Process, at_work, finished, until
from tests.sampling import sample
from tests.story.conftest import Site, fresh, served
from tests.story.test_faults import FEW, nothing_left, policy, token, transactions

ALL = ",".join(FEW)
APPLY = ("apply", "--cluster", "small", "--limit", ALL, "--yes", "--reason", "OPS-7")
pytestmark = [
    pytest.mark.root,  # a host name of its own
    pytest.mark.drawn(2),
]


@dataclass(frozen=True)
class Machine:
    """The machine on which ``rollout`` is called, and its address of the journal."""

    name: str
    site: Site
    journal: str
    pass_file: Path

    def _command(self, *words: str) -> tuple[list[str], dict[str, str]]:
        environment = {**os.environ, "ROLLOUT_JOURNAL": self.journal, "PGPASSFILE": str(self.pass_file)}
        return self.site.command(*words), environment

    def rollout(self, *words: str) -> Done:
        command, environment = self._command(*words)
        return finished(command, self.site.folder, environment=environment, host=self.name)

    def begun(self, *words: str) -> AbstractContextManager[Process]:
        command, environment = self._command(*words)
        self._out.unlink(missing_ok=True)
        return at_work(command, self.site.folder, self._out, environment, self.name)

    def said(self) -> str:
        return self._out.read_text()

    @property
    def _out(self) -> Path:
        return self.site.folder / f"{self.name}.out"

    def status(self) -> Any:
        done = self.rollout("status", "-o", "json")
        return done.json() if done.code == 0 else {"counts": {}}


@dataclass(frozen=True)
class Team:
    """``first`` reaches the journal through ``way``, ``second`` directly."""

    site: Site
    server: Server
    way: Proxy
    database: str
    first: Machine
    second: Machine

    def lease_is_old(self, seconds: int = 31) -> None:
        now = "extract(epoch from now())"
        self.server.query(f"UPDATE leases SET heartbeat = {now} - {seconds}", self.database)  # noqa: S608 - a number

    def events(self) -> list[tuple[int, int]]:
        """The number of events, and the number of the last one."""
        return self.server.query("SELECT count(*), max(number) FROM events", self.database)


@pytest.fixture
def team(tmp_path: Path, server: Server) -> Iterator[Team]:
    database = name_of(server.database())
    with served(tmp_path, "small-[001-003,061-063]") as site, proxied(server.port) as way:
        machines = (
            Machine("ops-1", site, server.over_tcp(database, way.port), server.pass_file),
            Machine("ops-2", site, server.over_tcp(database), server.pass_file),
        )
        yield Team(site, server, way, database, *machines)


def starts(site: Site, name: str) -> int:
    """The number of starts of this node's kubelet, according to the node's journal."""
    command = ("ssh", "-F", str(site.lab / "ssh_config"), name, "journalctl -u kubelet.service --no-pager -o cat")
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    return sum(line.startswith("Started") for line in done.stdout.splitlines())


def done_on(site: Site) -> int:
    return sum(site.is_new(name) for name in FEW)


def test_the_second_gets_the_name_of_the_holder_and_takes_over_when_the_first_has_died(team: Team) -> None:
    policy(team.site, "waves: [canary, rest]", "waves: [{canary: true, hold: true}, rest]")
    before = {name: starts(team.site, name) for name in FEW}
    with team.first.begun(*APPLY) as process:
        until(lambda: team.first.status().get("paused"), PATIENCE, "the canary has passed and the run holds")
        run = team.second.status()["run"]
        refused = team.second.rollout(*APPLY)
        assert (refused.code, f"run {run} holds small: ops-1" in refused.err) == (5, True), refused.out + refused.err
        assert "[locked]" in refused.err
        heard = team.second.rollout("pause")
        assert "paused-already" in heard.err, "a request can come from any machine"
        process.send_signal(signal.SIGKILL)
        process.wait()
    team.lease_is_old(0)
    too_early = team.second.rollout("resume", "--yes", "--promote")
    assert (too_early.code, "[locked]" in too_early.err) == (5, True), too_early.out + too_early.err
    team.lease_is_old()
    resumed = team.second.rollout("resume", "--yes", "--promote")
    assert resumed.code == 0, resumed.out + resumed.err
    assert done_on(team.site) == len(FEW)
    nothing_left(team.site, *FEW)
    assert {name: starts(team.site, name) - before[name] for name in FEW} == dict.fromkeys(FEW, 1), (
        "one restart for one change"
    )
    assert {token(team.site, name)[1] for name in FEW} == {run}
    [(count, last)] = team.events()
    assert count == last, "no event is missing or duplicated"


@pytest.mark.parametrize("how", sample("how a journal becomes unreachable", ["terminated", "crashed", "silent"], 2))
def test_a_temporarily_unreachable_journal_only_delays_the_run(team: Team, how: str) -> None:
    policy(team.site, "pace: 20", "pace: 0.5")
    before = {name: starts(team.site, name) for name in FEW}
    with team.first.begun(*APPLY) as process:
        until(lambda: transactions(team.site, "small-061"), PATIENCE, "the second wave has begun")
        if how == "terminated":
            team.server.query(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'rollout'"
            )
        elif how == "crashed":
            team.server.stop()
        else:
            team.way.fault = Fault.SILENT
        if how != "terminated":
            until(lambda: "nothing is started" in team.first.said(), PATIENCE, "it notices")
            begun = {name: transactions(team.site, name) for name in FEW}
            came = team.way.came
            until(lambda: team.way.came >= came + 3, PATIENCE, "it retries the journal")
            assert {name: transactions(team.site, name) for name in FEW} == begun, "no node is touched meanwhile"
            assert any(not found for found in begun.values())
            if how == "crashed":
                team.server.start()
            else:
                team.way.heal()
        code = process.wait(PATIENCE)
    assert code in (0, 4), team.first.said()  # 4: a node with a guard that fired before the journal was reachable again
    found = team.first.status()
    assert found["counts"].get("confirmed", 0) == done_on(team.site), "the journal matches the nodes"
    assert found["counts"].get("confirmed", 0) + found["counts"].get("reverted", 0) == len(FEW)
    if how != "terminated":
        assert "the journal is back after" in team.first.said()
    nothing_left(team.site, *FEW)
    [(count, last)] = team.events()
    assert count == last
    ours = {name: starts(team.site, name) - before[name] for name in FEW}
    assert ours == {name: 1 if team.site.is_new(name) else 2 for name in FEW}, (
        "one restart for the change, one for the revert"
    )


def test_a_journal_that_stays_unreachable_ends_the_run_and_armed_nodes_are_reverted_and_recorded(team: Team) -> None:
    """After its change the canary only prints garbage. So nothing is confirmed, however late the journal fails."""
    policy(team.site, "guard: 60s", "guard: 15s")  # the test waits for it
    before = team.site.everything(*FEW)
    team.site.fault("small-001", "garbage-output", "--at", "apply")
    with team.first.begun(*APPLY) as process:
        until(lambda: "=5m" in team.site.flags("small-001"), PATIENCE, "the canary is changed")
        team.server.stop()
        try:
            until(lambda: "nothing is started" in team.first.said(), PATIENCE, "it notices")
            os.killpg(process.pid, signal.SIGINT)  # instead of waiting for its timeout
            assert process.wait(PATIENCE) == 5, team.first.said()
            assert "rollout resume" in team.first.said()
            until(
                lambda: team.site.everything(*FEW) == before,
                PATIENCE,
                "the guard reverts everything by itself",
            )
        finally:
            team.server.start()
    team.site.fault("small-001", "--clear")
    back = team.first.rollout("resume", "--yes")
    events = "\n".join(row[0] for row in team.server.query("SELECT body FROM events ORDER BY number", team.database))
    assert '"taken-back-alone"' in events, "the revert by the node itself is in the journal"
    assert back.code in (0, 4), back.out + back.err
    assert team.first.status()["counts"].get("confirmed", 0) == done_on(team.site)
    nothing_left(team.site, *FEW)


def test_a_controller_that_lost_its_lease_while_disconnected_stops_and_touches_nothing(team: Team) -> None:
    policy(team.site, "waves: [canary, rest]", "waves: [{canary: true, hold: true}, rest]")
    with team.first.begun(*APPLY) as process:
        until(lambda: team.second.status().get("paused"), PATIENCE, "the canary has passed and the run holds")
        team.way.fault = Fault.SILENT
        until(lambda: "nothing is started" in team.first.said(), PATIENCE, "it notices")
        team.lease_is_old()
        taken = team.second.rollout("resume", "--yes", "--promote")
        assert taken.code == 0, taken.out + taken.err
        after = {name: (starts(team.site, name), token(team.site, name)) for name in FEW}
        team.way.heal()
        assert process.wait(PATIENCE) == 5, team.first.said()
    assert "[lease-lost]" in team.first.said()
    assert {name: (starts(team.site, name), token(team.site, name)) for name in FEW} == after
    assert done_on(team.site) == len(FEW)


def test_a_frozen_controller_that_thaws_after_another_took_over_reaches_no_node(team: Team) -> None:
    policy(team.site, "pace: 20", "pace: 0.5")
    with team.first.begun(*APPLY) as process:
        until(lambda: transactions(team.site, "small-061"), PATIENCE, "the second wave has begun")
        process.send_signal(signal.SIGSTOP)
        team.lease_is_old()
        taken = team.second.rollout("resume", "--yes")
        assert taken.code in (0, 4), taken.out + taken.err
        after = {name: (starts(team.site, name), token(team.site, name)) for name in FEW}
        process.send_signal(signal.SIGCONT)
        assert process.wait(PATIENCE) == 5, team.first.said()
    assert {name: (starts(team.site, name), token(team.site, name)) for name in FEW} == after
    nothing_left(team.site, *FEW)


def test_a_failover_without_the_last_events_stops_the_run_and_another_machine_ends_it(team: Team) -> None:
    """The replica that took over never had them. The first machine had; it shows what the second made of the run."""
    policy(team.site, "waves: [canary, rest]", "waves: [{canary: true, hold: true}, rest]")
    second = replace(team.second, site=team.site.apart("second"))
    ours = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{team.database}' AND application_name = 'rollout'"  # noqa: S608
    with team.first.begun(*APPLY) as process:
        until(lambda: second.status().get("paused"), PATIENCE, "the canary has passed and the run holds")
        assert team.server.query(ours)[0][0] <= MOST_CONNECTIONS
        team.server.query(
            "DELETE FROM events WHERE number > (SELECT max(number) - 3 FROM events AS all_events)", team.database
        )
        second.rollout("continue", "--yes")
        assert process.wait(PATIENCE) == 5, team.first.said()
    said = team.first.said()
    assert "3 events written by this run are missing in the database: a failover lost them" in said
    assert "then `rollout resume" in said
    assert done_on(team.site) == 1, "it started nothing more"
    with second.begun("resume", "--yes") as process:
        until(lambda: second.status().get("paused"), PATIENCE, "the hold was lost too: the run holds again")
        second.rollout("continue", "--yes")
        assert process.wait(PATIENCE) == 0, second.said()
    assert done_on(team.site) == len(FEW)
    shown = team.first.rollout("status")
    assert (shown.code, "done, exit code 0" in shown.out) == (0, True), shown.out + shown.err
    assert "warning: " in shown.err
    nothing_left(team.site, *FEW)


def test_no_password_is_in_a_process_list_a_journal_or_a_message(team: Team) -> None:
    from tests.adapters.journal.server import PASSWORD

    policy(team.site, "waves: [canary, rest]", "waves: [{canary: true, hold: true}, rest]")
    with replace(team.first, site=fresh(team.site)).begun(*APPLY) as process:
        until(lambda: team.first.status().get("paused"), PATIENCE, "the run holds")
        for shown in ("cmdline", "environ"):
            assert PASSWORD.encode() not in Path(f"/proc/{process.pid}/{shown}").read_bytes()
        process.kill()
    dumped = team.server.query(
        "SELECT row_to_json(r)::text FROM runs r UNION ALL SELECT row_to_json(e)::text FROM events e", team.database
    )
    assert PASSWORD not in str(dumped) + team.first.said()
    team.first.pass_file.rename(team.first.pass_file.with_suffix(".away"))
    try:
        refused = team.second.rollout("status")
        assert refused.code == 5
        assert "password" in refused.err
        assert PASSWORD not in refused.err
    finally:
        team.first.pass_file.with_suffix(".away").rename(team.first.pass_file)
