"""The journal on SQLite and on a real PostgreSQL: writes are durable when they return, events are chained, a lease has
one holder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from rollout.adapters.journal import PostgresUrl, SqlJournal
from rollout.adapters.journal.journal import Leases
from rollout.adapters.journal.owner import LEASE_SECONDS, is_alive
from rollout.app.following import replay
from rollout.app.ports import Note, RunHeader
from rollout.app.runs import check_nothing_unfinished
from rollout.core.model.regions import RegionStanding
from rollout.core.model.report import CommandResult
from rollout.core.presentation.summary import NodeCount, RunSummary
from rollout.core.run.events import Request
from rollout.core.run.journal_codec import GENESIS, chain, encode_order
from rollout.core.run.state import RULES
from rollout.errors import StateError
from rollout.features.exec.words import recorded_end, recorded_start
from tests.adapters.journal.conftest import Change, Place
from tests.orders import make_order


def header(run: str = "r1", cluster: str = "rno", counter: int = 1) -> RunHeader:
    return RunHeader(run, cluster, "apply", "{}", counter, b"plan", 1.0, "me@here", "why")


def another(place: Place, words: str) -> list[str]:
    """The command of a process that runs ``words`` with ``journal``."""
    opened = (
        f"SqlJournal(PostgresUrl.reading({place.url!r}))"
        if isinstance(place, PostgresUrl)
        else f"SqlJournal(Path({str(place)!r}))"
    )
    code = f"from pathlib import Path; from rollout.adapters.journal import PostgresUrl, SqlJournal; journal = {opened}; {words}"
    return [sys.executable, "-c", code]


def elsewhere(place: Place, words: str) -> subprocess.CompletedProcess[str]:
    """Run ``words`` with ``journal`` in another process."""
    return subprocess.run(another(place, words), capture_output=True, text=True, timeout=300, check=False)


def test_runs_and_events_are_read_in_order(journal: SqlJournal) -> None:
    journal.begin(header("r1", counter=3))
    journal.begin(header("r2", counter=2))
    journal.begin(header("r3", cluster="iad", counter=9))
    journal.acquire("rno", "r1")
    journal.append("r1", ["a", "b"])
    journal.append("r1", ["c"])
    assert journal.events("r1") == ("a", "b", "c")
    assert journal.events("r2") == ()
    assert [found.run for found in journal.runs("rno")] == ["r2", "r1"]
    assert journal.listed() == tuple(replace(found, order="", plan=b"") for found in journal.runs())
    assert journal.header("r1") == header("r1", counter=3)
    assert journal.highest_counter("rno") == 3
    assert journal.highest_counter("nowhere") == 0


def test_the_folder_is_for_its_owner_only(tmp_path: Path) -> None:
    SqlJournal(tmp_path / "state").close()
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700


def test_another_terminal_sees_what_was_written(journal: SqlJournal, other: SqlJournal) -> None:
    journal.begin(header())
    journal.acquire("rno", "r1")
    journal.append("r1", ["a"])
    assert other.events("r1") == ("a",)


@pytest.mark.parametrize("how", ["UPDATE events SET body='x' WHERE number=1", "DELETE FROM events WHERE number=1"])
def test_a_journal_that_was_changed_is_refused(journal: SqlJournal, change: Change, how: str) -> None:
    journal.begin(header())
    journal.acquire("rno", "r1")
    journal.append("r1", ["a", "b"])
    change(how)
    with pytest.raises(StateError, match="is not the one that was written"):
        journal.events("r1")


SUMMARY = RunSummary(
    9.0,
    "halted",
    3,
    "2 of 60 nodes [budget]",
    7,
    {"confirmed": NodeCount(2, "a-[1-2]")},
    "a-3",
    "a-4",
    {"r0": "a-[1-2]"},
)


def test_a_summary_is_written_with_the_last_events_of_a_run(journal: SqlJournal, other: SqlJournal) -> None:
    journal.begin(header())
    journal.acquire("rno", "r1")
    journal.append("r1", ["a"])
    assert other.summary("r1") is None
    journal.append("r1", ["b"], SUMMARY)
    assert other.summary("r1") == SUMMARY
    assert other.summary("r2") is None


def test_a_run_that_continues_has_no_summary_until_it_ends_again(journal: SqlJournal) -> None:
    journal.begin(header())
    journal.acquire("rno", "r1")
    journal.append("r1", ["a"], SUMMARY)
    journal.append("r1", ["b"])
    assert journal.summary("r1") is None
    again = replace(SUMMARY, ending="done", exit_code=0, counter=8)
    journal.append("r1", ["c"], again)
    assert journal.summary("r1") == again


def test_a_summary_and_its_events_are_written_together_or_not_at_all(journal: SqlJournal, other: SqlJournal) -> None:
    journal.begin(header())
    journal.acquire("rno", "r1")
    with pytest.raises(StateError):
        journal.append("r1", ["a"], replace(SUMMARY, ending=None))  # type: ignore[arg-type]
    assert (other.events("r1"), other.summary("r1")) == ((), None)


@pytest.mark.parametrize("how", ["nodes='[]'", "nodes='{\"failed\": {}}'", "reverted='7'", "nodes='{'"])
def test_a_summary_that_was_changed_is_refused(journal: SqlJournal, change: Change, how: str) -> None:
    journal.begin(header())
    journal.acquire("rno", "r1")
    journal.append("r1", ["a"], SUMMARY)
    change(f"UPDATE summaries SET {how}")  # noqa: S608 - the table above
    with pytest.raises(StateError, match="summary of r1 is not the one that was written") as raised:
        journal.summary("r1")
    assert raised.value.reference == "journal-broken"


def test_a_heartbeat_tells_the_regions_of_its_controller(journal: SqlJournal) -> None:
    regions = (RegionStanding("eu", ("eu-1", "eu-2"), 3, 40, 0.02), RegionStanding("us", (), 0, 0))
    journal.begin(header())
    journal.acquire("rno", "r1")
    journal.renew("rno", "r1", regions)
    found = journal.holder("rno")
    assert found is not None
    assert found.regions == regions
    journal.renew("rno", "r1")
    assert (found := journal.holder("rno")) is not None
    assert found.regions == ()


def test_the_version_that_began_a_run_is_in_its_header(journal: SqlJournal) -> None:
    begun = replace(header(), version="0.7.1")
    journal.begin(begun)
    assert journal.header("r1") == begun


def test_an_unknown_run_is_named(journal: SqlJournal) -> None:
    with pytest.raises(StateError, match="no run 'r9'"):
        journal.header("r9")


def test_a_file_that_is_no_journal_is_refused(tmp_path: Path) -> None:
    (tmp_path / "journal.db").write_bytes(b"x" * 5000)
    with pytest.raises(StateError, match="cannot be opened"):
        SqlJournal(tmp_path)


def test_a_write_that_fails_is_an_error_that_names_the_journal_and_leaves_nothing(
    journal: SqlJournal, place: Place
) -> None:
    journal.begin(header())
    with pytest.raises(StateError, match="the run could not be recorded; nothing was done") as raised:
        journal.begin(header())
    assert raised.value.message.endswith(f"({place if isinstance(place, PostgresUrl) else place / 'journal.db'})")
    assert "free space" in raised.value.hint
    assert len(journal.runs()) == 1


def test_a_lease_that_is_released_between_two_looks_is_named_so(
    journal: SqlJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process took the free lease before us, and has released it when we look for its holder."""
    monkeypatch.setattr(Leases, "_take_free", lambda *_: False)
    with pytest.raises(StateError, match=r"the lease of rno was released during this attempt .*\[locked\]"):
        journal.acquire("rno", "r1")


@pytest.mark.process
def test_a_lease_has_one_holder(journal: SqlJournal, place: Place) -> None:
    journal.acquire("rno", "r1")
    journal.acquire("rno", "r1")  # a process may take its own lease again
    other = elsewhere(place, "journal.acquire('rno', 'r2')")
    assert "run r1 holds rno" in other.stderr
    journal.renew("rno", "r1")
    journal.release("rno", "r1")
    with pytest.raises(StateError, match="the lease of rno is gone"):
        journal.renew("rno", "r1")
    with pytest.raises(StateError, match="this one stops"):
        journal.append("r1", ["too late"])
    assert journal.events("r1") == ()
    assert elsewhere(place, "journal.acquire('rno', 'r2')").returncode == 0


@pytest.mark.process
def test_a_lease_of_a_dead_process_is_free_at_once(journal: SqlJournal, place: Place) -> None:
    assert elsewhere(place, "journal.acquire('rno', 'r2')").returncode == 0
    journal.acquire("rno", "r1")


@pytest.mark.process
def test_a_lease_of_a_zombie_process_is_free_at_once(journal: SqlJournal, place: Place) -> None:
    """Its parent hangs, or is the init of a container that never waits. So the process stays in the process table."""
    holds = another(place, "journal.acquire('rno', 'r2'); print(); input()")
    with subprocess.Popen(holds, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        alive = journal.holder("rno")
        assert alive is not None
        assert alive.alive
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # waits for its death and leaves it a zombie
        assert Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        dead = journal.holder("rno")
        assert dead is not None
        assert not dead.alive
        journal.acquire("rno", "r1")


HIDDEN = """
import os
from rollout.adapters.journal.owner import LEASE_SECONDS, is_alive, this_process
me = this_process()
if (child := os.fork()) == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    print(is_alive(me, 1.0), is_alive(me, LEASE_SECONDS + 1), is_alive(me.replace(f":{os.getppid()}:", ":99999999:"), 1.0), flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""


@pytest.mark.process
@pytest.mark.root  # a process table of its own
def test_a_process_that_this_user_may_not_see_is_not_dead() -> None:
    """Where /proc has ``hidepid``, another user's process looks like none: its heartbeat decides."""
    script = f"mount -o remount,hidepid=2 /proc && {sys.executable} -c '{HIDDEN}'"
    done = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", script],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["True", "False", "False"], done.stderr


def test_a_heartbeat_is_old_after_lease_seconds() -> None:
    assert is_alive("elsewhere:1:1", LEASE_SECONDS)
    assert not is_alive("elsewhere:1:1", LEASE_SECONDS + 0.001)


@pytest.mark.parametrize(("age", "free"), [(-3600, False), (LEASE_SECONDS + 1, True)])
def test_a_lease_of_another_machine_is_free_when_its_heartbeat_is_old(
    journal: SqlJournal, change: Change, age: float, free: bool
) -> None:
    """A heartbeat in the future counts as new, however slow this machine is."""
    journal.acquire("rno", "r2")
    change(f"UPDATE leases SET owner='elsewhere:1:1', heartbeat=NOW-({age})")  # noqa: S608 - a number of ours
    if free:
        journal.acquire("rno", "r1")
    else:
        with pytest.raises(StateError, match="elsewhere"):
            journal.acquire("rno", "r1")


def test_events_after_a_number_are_chained_to_the_events_before(journal: SqlJournal, change: Change) -> None:
    journal.begin(header())
    journal.acquire("rno", "r1")
    journal.append("r1", ["a", "b", "c"])
    assert journal.events("r1", after=1) == ("b", "c")
    assert journal.events("r1", after=3) == ()
    change("UPDATE events SET body='x' WHERE number=3")
    assert journal.events("r1", after=3) == ()
    with pytest.raises(StateError, match="event 3 of r1 is not the one"):
        journal.events("r1", after=2)


def test_requests_are_numbered_and_kept_by_run(journal: SqlJournal, other: SqlJournal) -> None:
    first = journal.ask("r1", "pause", "ops@desk", "lunch", "")
    journal.ask("r2", "pause", "ops@desk", "", "")
    second = other.ask("r1", "abort", "ops@desk", "wrong", "run")
    assert journal.requests("r1", 0) == (
        Request(first, "pause", "ops@desk", "lunch"),
        Request(second, "abort", "ops@desk", "wrong", "run"),
    )
    assert journal.requests("r1", first) == (Request(second, "abort", "ops@desk", "wrong", "run"),)


def test_a_withdrawn_request_is_not_read_and_its_number_is_not_reused(journal: SqlJournal, other: SqlJournal) -> None:
    first = journal.ask("r1", "pause", "ops@desk", "lunch", "")
    last = journal.ask("r1", "abort", "ops@desk", "wrong", "")
    for _ in range(2):
        other.withdraw(last)
    assert [request.number for request in journal.requests("r1", 0)] == [first]
    assert journal.ask("r1", "abort", "ops@desk", "wrong again", "") > last


def test_an_unlocked_cluster_is_free_and_records_who_unlocked_it(journal: SqlJournal, other: SqlJournal) -> None:
    journal.begin(header())
    journal.acquire("rno", "r1")
    held = journal.holder("rno")
    assert held is not None
    assert (held.run, held.alive, held.here) == ("r1", True, True)
    note = Note(5.0, "ops@desk", "unlocked: the machine is gone")
    other.unlock("rno", note)
    assert (journal.holder("rno"), journal.notes("rno")) == (None, (note,))
    with pytest.raises(StateError, match="it was unlocked"):
        journal.append("r1", ["a"])


def test_what_an_operator_ran_by_hand_is_read_back_as_it_was_written(journal: SqlJournal, other: SqlJournal) -> None:
    """Any text, and of any length: nodes and command are in it."""
    start = recorded_start(
        "exec r1", ["a-1", "a-2"], "echo 'ü\t\x1b$(x)'\n" + "x" * 100_000, sudo=True, seconds=30, reason="OPS-1"
    )
    end = recorded_end("exec r1", [CommandResult("a-1", 0), CommandResult("a-2", 3)], [])
    written = [Note(5.0, "ops@desk", start), Note(6.5, "ops@desk", end)]
    for note in written:
        journal.note("rno", note)
    journal.note("iad", Note(7.0, "ops@desk", "elsewhere"))
    assert [*other.notes("rno")] == written


def test_whether_a_run_with_other_rules_still_holds_its_nodes_is_decided_by_the_nodes(journal: SqlJournal) -> None:
    order = json.loads(encode_order(make_order({"a": 2}))) | {"rules": RULES + 1, "cluster": "rno"}
    journal.begin(replace(header(), order=json.dumps(order)))
    with pytest.raises(StateError, match=f"follows rules {RULES + 1}"):
        replay(journal, "r1")
    check_nothing_unfinished(journal, "rno")


HEADER_CHANGES = (
    "UPDATE runs SET plan='x'", "UPDATE runs SET counter=7", "UPDATE runs SET who='mallory'", "UPDATE runs SET goal='revert'",
    "UPDATE runs SET reason='other'", "UPDATE runs SET \"order\"='{\"guard\": 3600}'", "UPDATE runs SET at=at+1",
    "UPDATE runs SET version='9'",
)  # fmt: skip


@pytest.mark.parametrize("how", HEADER_CHANGES)
@pytest.mark.parametrize("events", [(), ("a", "b")], ids=["begun", "going"])
def test_a_header_that_was_changed_is_refused(
    journal: SqlJournal, change: Change, how: str, events: tuple[str, ...], place: Place, tmp_path: Path
) -> None:
    """The header starts the chain. A run without events has only the head that is kept in a file."""
    kept = journal if isinstance(place, Path) else SqlJournal(place, tmp_path)
    kept.begin(header())
    if events:
        kept.acquire("rno", "r1")
        kept.append("r1", events)
    change(how)
    with pytest.raises(StateError, match="header") as error:
        kept.events("r1")
    assert error.value.reference == "journal-broken"
    kept.close()


@pytest.mark.parametrize("left", [0, 2])
def test_a_truncated_chain_is_detected_by_the_head_outside_the_database(
    place: Place, tmp_path: Path, change: Change, left: int
) -> None:
    with closing(SqlJournal(place, tmp_path / "beside")) as journal:
        journal.begin(header())
        journal.acquire("rno", "r1")
        journal.append("r1", ("a", "b"))
        journal.append("r1", ("c",))
        number, hashed = journal.head("r1")
        file = tmp_path / "beside/heads/r1"
        assert json.loads(file.read_text()) == [number, hashed] == [3, hashed]
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        change(f"DELETE FROM events WHERE number > {left}")  # noqa: S608 - a number of ours
        with pytest.raises(StateError, match=f"the journal has {left}, .*/r1 records 3"):
            journal.events("r1")


def test_a_restored_journal_names_the_file_to_move_away_and_works_without_it(
    place: Place, tmp_path: Path, change: Change
) -> None:
    """A backup is an older chain. Its tail is missing, as after a cut; only a person knows the difference."""
    with closing(SqlJournal(place, tmp_path / "beside")) as journal:
        journal.begin(header())
        journal.acquire("rno", "r1")
        journal.append("r1", ("a", "b", "c"))
        journal.release("rno", "r1")
    change("DELETE FROM events WHERE number > 2")
    file = tmp_path / "beside/heads/r1"
    with closing(SqlJournal(place, tmp_path / "beside")) as restored:
        with pytest.raises(StateError) as raised:
            restored.events("r1")
        assert raised.value.reference == "journal-broken"
        assert f"was the journal restored from a backup? Then move {file} away" in str(raised.value)
        assert "`rollout rollback --cluster C --emergency`" in str(raised.value), (
            "if it was not restored, do not trust it"
        )
        file.rename(tmp_path / "r1.before-restore")
        assert restored.events("r1") == ("a", "b")
        restored.acquire("rno", "r1")
        restored.append("r1", ("d",))
        assert restored.events("r1") == ("a", "b", "d")
        assert json.loads(file.read_text())[0] == 3, "its head is written again"


def test_a_head_of_another_chain_is_reported_with_its_file(place: Place, tmp_path: Path, change: Change) -> None:
    """The journal was restored, and another machine continued it before this one read it."""
    with closing(SqlJournal(place, tmp_path / "one")) as one, closing(SqlJournal(place, tmp_path / "two")) as two:
        one.begin(header())
        one.acquire("rno", "r1")
        one.append("r1", ("a", "b"))
        change("DELETE FROM events WHERE number > 1")
        two.acquire("rno", "r1")
        two.append("r1", ("c", "d"))
        with pytest.raises(StateError, match=r"Then move .*/one/heads/r1 away"):
            one.events("r1")


def test_an_older_or_unreadable_head_is_no_error(place: Place, tmp_path: Path) -> None:
    """After a power cut, or when another machine has continued the run."""
    with closing(SqlJournal(place, tmp_path / "one")) as one, closing(SqlJournal(place, tmp_path / "two")) as two:
        one.begin(header())
        one.acquire("rno", "r1")
        one.append("r1", ("a",))
        kept = (tmp_path / "one/heads/r1").read_text()
        one.append("r1", ("b",))
        (tmp_path / "one/heads/r1").write_text(kept)
        assert one.events("r1") == two.events("r1") == ("a", "b")
        (tmp_path / "one/heads/r1").write_text("")
        assert one.events("r1", 1) == ("b",)


def test_a_chain_of_an_older_version_is_read_and_continued(place: Place, tmp_path: Path, change: Change) -> None:
    """Its header is not covered by the chain: the chain started from an empty hash."""
    with closing(SqlJournal(place, tmp_path)) as journal:
        journal.begin(header())
        first = chain(GENESIS, "a")
        change(f"INSERT INTO events (run, number, body, hash) VALUES ('r1', 1, 'a', '{first}')")  # noqa: S608 - ours
        journal.acquire("rno", "r1")
        journal.append("r1", ("b",))
        assert journal.events("r1") == ("a", "b")
