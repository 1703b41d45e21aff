"""Every form of a log and of events gives the same facts; what cannot be read is counted and shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rollout.features.diagnose.rules.facts import MOST_FACTS, Fact, Facts, Kind, SourceLine
from rollout.features.diagnose.rules.reading import PIECE, FileReading
from rollout.features.diagnose.rules.sieve import Calendar
from tests.features.diagnose.rules.logs import (
    BEGIN,
    NODE,
    RECORDED,
    diagnosis,
    event,
    event_list,
    found,
    journal,
    klog,
    lines,
    logrus,
    pulls,
)

CUT_1_20 = 'Cancel pulling image "big:1" because of no progress for 1m0s, latest progress: "a1: Verifying Checksum "'
CUT_1_21 = '"Cancel pulling image because of exceed image pull deadline, record latest progress" image="big:1" deadline="1m0s" progress="a1: Verifying Checksum "'
KLOG = klog(7.25, CUT_1_20, "E", "kube_docker_client.go:345")
STAMP = BEGIN.timestamp() + 7.25


def facts_of(*texts: str, latest: datetime = datetime(2026, 12, 31, tzinfo=UTC)) -> list[Fact]:
    return list(FileReading("a.log").of(iter(lines(*texts).encode().splitlines(keepends=True)), latest))


FORMS = {
    "klog in words": (KLOG, "", STAMP),
    "klog with keys": (klog(7.25, CUT_1_21, "E", "kube_docker_client.go:340"), "", STAMP),
    "klog as JSON": (
        json.dumps({"ts": STAMP * 1000, "caller": "libdocker/kube_docker_client.go:340", "msg": CUT_1_21.split('"')[1],
                    "image": "big:1", "deadline": "1m0s", "progress": "a1: Verifying Checksum "}, separators=(",", ":")), "", STAMP,
    ),
    "klog as JSON, words": (json.dumps({"ts": STAMP, "msg": CUT_1_20, "v": 0}), "", STAMP),
    "journald short": (journal(KLOG, 7), NODE, STAMP),
    "journald short-iso": (f"2026-11-20T09:00:07+0000 {NODE} kubelet[3033]: {KLOG}", NODE, STAMP),
    "journald short-full": (f"Fri 2026-11-20 09:00:07 UTC {NODE} kubelet[3033]: {KLOG}", NODE, STAMP),
    "journald short-full, local": (f"Fri 2026-11-20 17:00:07 CST {NODE} kubelet[3033]: {KLOG}", NODE, STAMP + 8 * 3600),
    "journald short-unix": (f"{STAMP:.6f} {NODE} kubelet[3033]: {KLOG}", NODE, STAMP),
    "a container's log": (f"2026-11-20T09:00:07.250000000Z stderr F {KLOG}", "", STAMP),
    "journald json": (
        json.dumps({"__REALTIME_TIMESTAMP": f"{STAMP * 1e6:.0f}", "_HOSTNAME": NODE, "SYSLOG_IDENTIFIER": "kubelet", "MESSAGE": KLOG}), NODE, STAMP,
    ),
    "a cut line before it": (f'I1120 09:00:06.1    30{KLOG}', "", STAMP),
    "a line without its journal's pid": (f"Nov 20 09:00:07 {NODE} kubelet: {KLOG}", NODE, STAMP),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_a_line_is_the_same_fact(form: str) -> None:
    line, node, at = FORMS[form]
    (fact,) = [each for each in facts_of(line) if each.kind is Kind.PULL_CUT]
    assert (fact["image"], fact["deadline"], fact["by"]) == ("big:1", "1m0s", "the kubelet")
    assert fact["progress"].strip() == "a1: Verifying Checksum"
    assert fact.node == node
    assert fact.at == pytest.approx(at, abs=1e-5)
    assert fact.where.line == 1


def test_containerd_in_its_own_words_and_in_a_journal() -> None:
    started = logrus(1, 'PullImage "web:1"')
    failed = logrus(
        2, 'PullImage "web:1" failed', "error", ' error="rpc error: code = NotFound desc = manifest unknown"'
    )
    facts = facts_of(
        started,
        failed,
        journal(logrus(3, 'PullImage "web:1" returns image reference "sha256:0f"'), 3, "containerd[77]"),
    )
    assert [(fact.kind, fact["image"], fact["error"], fact.node) for fact in facts] == [
        (Kind.RUNTIME_STARTED, "web:1", "", ""),
        (Kind.RUNTIME_ENDED, "web:1", "rpc error: code = NotFound desc = manifest unknown", ""),
        (Kind.RUNTIME_ENDED, "web:1", "", NODE),
    ]


def test_dockerd_gives_up_a_pull() -> None:
    (fact,) = facts_of(logrus(0, "Not continuing with pull after error: context canceled", "error"))
    assert (fact.kind, fact["error"]) == (Kind.RUNTIME_ENDED, "context canceled")


EVENTS = pulls("web:1", "web-1", 0, 5, "manifest unknown")


@pytest.mark.parametrize(
    "text",
    [
        event_list(EVENTS),
        json.dumps({"kind": "EventList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": EVENTS}),
        "\n".join(json.dumps(each, indent=4) for each in EVENTS),
        yaml.safe_dump({"apiVersion": "v1", "items": EVENTS, "kind": "List", "metadata": {"resourceVersion": ""}}),
        "---\n".join(yaml.safe_dump(each) for each in EVENTS),
        lines(*(json.dumps({"type": "ADDED", "object": each}) for each in EVENTS)),
        f"\ufeff{event_list(EVENTS)}",
    ],
    ids=[
        "kubectl JSON",
        "the API's JSON",
        "single JSON",
        "kubectl YAML",
        "single YAML",
        "a watch",
        "a byte order mark",
    ],
)
def test_each_form_of_events_is_the_same_facts(text: str) -> None:
    facts = list(FileReading("events").of(iter(text.encode().splitlines(keepends=True)), BEGIN))
    assert [(fact.kind, fact.at, fact.node, fact["pod"], fact["container"], fact["image"]) for fact in facts] == [
        (Kind.QUEUED, BEGIN.timestamp(), NODE, "shop/web-1", "app", "web:1"),
        (Kind.PULL_FAILED, BEGIN.timestamp() + 5, NODE, "shop/web-1", "app", "web:1"),
    ]


NEWER = """\
NAMESPACE   LAST SEEN             TYPE      REASON    OBJECT      SUBOBJECT               SOURCE                    MESSAGE
shop        2m10s (x3 over 1h5m)  Warning   Failed    pod/web-1   spec.containers{app}    kubelet, tess-node-0007   Failed to pull image "web:1": manifest unknown
shop        45s                   Normal    Sync      pod/web-1                           kubelet, tess-node-0007   nothing of note
"""
OLDER = """\
LAST SEEN   FIRST SEEN   COUNT   NAME                     KIND   SUBOBJECT              TYPE      REASON   SOURCE                    MESSAGE
2m          1h           3       web-1.15a0f              Pod    spec.containers{app}   Warning   Failed   kubelet, tess-node-0007   Failed to pull image "web:1": manifest unknown
"""


@pytest.mark.parametrize(
    ("table", "pod", "ages"), [(NEWER, "shop/web-1", [-3900.0, -130.0]), (OLDER, "/web-1", [-3600.0, -120.0])]
)
def test_tables_have_ages(table: str, pod: str, ages: list[float]) -> None:
    facts = facts_of(*table.splitlines())
    assert [(fact.at, fact["pod"], fact["container"], fact.node, fact.times) for fact in facts] == [
        (age, pod, "app", "tess-node-0007", 3) for age in ages
    ]


def test_a_table_between_lines_of_a_log() -> None:
    facts = facts_of(KLOG, *NEWER.splitlines(), "", KLOG.replace("big", "other"))
    assert sorted((fact.where.line, fact.kind) for fact in facts) == [
        (1, Kind.PULL_CUT),
        (3, Kind.PULL_FAILED),
        (3, Kind.PULL_FAILED),
        (6, Kind.PULL_CUT),
    ]


def test_an_events_file_cut_in_the_middle_has_its_first_events() -> None:
    text = event_list([*EVENTS, *EVENTS])
    told = diagnosis(text[: text.rindex('"reason"')])
    (reading,) = told.readings
    assert (reading.read, reading.unread.lines) == (3, 1)
    assert reading.notes == ("its end is missing; 3 whole events of it were read",)


def test_yaml_that_is_cut_has_its_first_events() -> None:
    text = yaml.safe_dump({"apiVersion": "v1", "items": [*EVENTS, *pulls("web:2", "web-2", 9, 12)], "kind": "List"})
    (reading,) = diagnosis(text[: text.rindex("reason:")]).readings
    assert (reading.read, reading.unread.lines) == (3, 1)


def test_a_large_list_needs_no_large_memory() -> None:
    text = event_list(EVENTS * 3000)
    reading = FileReading("events")
    assert sum(1 for _ in reading.of(iter(text.encode().splitlines(keepends=True)), BEGIN)) == 6000
    assert sum(1 for _ in FileReading("one line").of(iter([text.replace("\n", "").encode()]), BEGIN)) == 6000


def test_damaged_yaml_is_counted() -> None:
    text = yaml.safe_dump({"apiVersion": "v1", "items": EVENTS}).replace("reason: Pulling", "reason: 'Pulling", 1)
    (reading,) = diagnosis(text).readings
    assert (reading.read, reading.unread.lines) == (1, 1)


# What is no log.


def test_a_binary_file() -> None:
    (reading,) = diagnosis(b"\x7fELF\x02\x01\x01\x00\x00\x00" + bytes(range(256)) * 50).readings
    assert reading.notes == ("it is a binary file, not a log",)
    assert reading.read == 0


def test_a_log_of_another_program() -> None:
    nginx = '10.0.0.1 - - [20/Nov/2026:09:00:00 +0000] "GET / HTTP/1.1" 200 612 "-" "curl/8"'
    told = diagnosis(lines(*[nginx] * 50))
    assert told.findings == ()
    assert told.unread_lines == 50
    assert told.readings[0].notes == ("no line of it is of a form that is known",)
    assert [where.line for where in told.readings[0].unread.examples] == [1, 2, 3]


def test_an_empty_file() -> None:
    assert diagnosis("").readings[0].notes == ("it is empty",)


def test_a_journal_of_other_programs_is_read_and_shows_nothing() -> None:
    told = diagnosis(
        lines(journal("Connection closed by 10.0.0.1", 1, "sshd[1]"), journal("pull QPS exceeded", 2, "cron[2]"))
    )
    assert (told.findings, told.unread_lines) == ((), 0)


@pytest.mark.parametrize(
    "line", ['{"ts": 1, "msg": "Failed to pull image"', '{"ts": [], "msg": []}', "{}", '{"msg":"' + "[" * 5000]
)
def test_broken_json_lines_are_counted_or_empty(line: str) -> None:
    told = diagnosis(lines(line, line))
    assert told.findings == ()
    assert told.unread_lines in (0, 2)


def test_an_endless_line_is_cut() -> None:
    pieces = [b"x" * PIECE] * 20 + [b"\n", f"{KLOG}\n".encode()]
    reading = FileReading("a.log")
    (fact,) = reading.of(iter(pieces), BEGIN)
    assert fact.where.line == 2
    assert reading.unread.lines == 1


def test_control_characters_do_not_reach_a_screen() -> None:
    (deadline,) = found(lines(KLOG.replace("a1:", "\x1b[31ma1\u202e:"))).values()
    assert "\x1b" not in deadline.evidence[0].text
    assert "\u202e" not in deadline.evidence[0].text


def test_the_lines_of_a_write_up_that_repeats_them_count_once() -> None:
    text = (RECORDED / "incident-2.kubelet.log").read_text()
    kinds = [fact.kind for fact in _kept(text)]
    assert len(text.splitlines()) == 39
    assert (kinds.count(Kind.HOOK), kinds.count(Kind.KILL), kinds.count(Kind.KILLED)) == (3, 4, 2)


def _kept(text: str) -> Facts:
    facts = Facts()
    for fact in facts_of(*text.splitlines()):
        facts.add(fact)
    return facts


@pytest.mark.parametrize("cut", [CUT_1_20, CUT_1_21])
def test_a_line_without_the_beginning_of_its_prefix_is_read(cut: str) -> None:
    told = diagnosis(lines(f"33 kube_docker_client.go:345] {cut}"))
    assert [finding.id for finding in told.findings] == ["pull-progress-deadline"]
    assert told.unread_lines == 0


def test_the_newest_facts_of_a_kind_are_kept() -> None:
    facts = Facts()
    for number in range(MOST_FACTS + 5):
        facts.add(Fact(Kind.PLEG, float(number), "", "a", SourceLine("a", number, str(number)), {}))
    assert len(facts.of(Kind.PLEG)) == MOST_FACTS
    assert (facts.left_out, facts.of(Kind.PLEG)[-1].at) == (5, MOST_FACTS + 4.0)


# Years and clocks.

EAST = 8 * 3600.0
LOCAL = klog(EAST + 0.25, CUT_1_20, "E")
ABROAD = logrus(EAST + 5, 'PullImage "web:1"').replace("000Z", "000+08:00")
BOTH = ((LOCAL, 0.25), (ABROAD, 5.0))
FRONTS: dict[str, tuple[Callable[[str, float], str], float]] = {
    "short": (lambda line, at: journal(line, EAST + at), EAST),
    "short-iso": (lambda line, at: f"2026-11-20T17:00:0{at:.0f}+0800 {NODE} kubelet[7]: {line}", 0.0),
    "json": (lambda line, at: json.dumps({"__REALTIME_TIMESTAMP": f"{(BEGIN.timestamp() + at) * 1e6:.0f}", "MESSAGE": line}), 0.0),
    "no journal": (lambda line, _at: line, 0.0),
}  # fmt: skip


@pytest.mark.parametrize("form", FRONTS)
@pytest.mark.parametrize("order", [BOTH, BOTH[::-1]], ids=["the kubelet first", "the runtime first"])
def test_all_lines_of_a_file_are_on_one_clock(form: str, order: tuple[tuple[str, float], ...]) -> None:
    """A node in UTC+8: the kubelet writes no zone and no year, and the runtime writes both. The file was copied three years later."""
    front, shift = FRONTS[form]
    facts = facts_of(*(front(line, at) for line, at in order), latest=datetime(2029, 12, 31, tzinfo=UTC))
    cut, started = sorted(facts, key=lambda fact: fact.kind is Kind.RUNTIME_STARTED)
    assert cut.at == pytest.approx(BEGIN.timestamp() + shift + 0.25, abs=1e-5)
    if form != "no journal":
        assert started.at == pytest.approx((cut.at or 0.0) + 4.75, abs=1e-5)
    else:
        assert started.at == BEGIN.timestamp() + 5


OF_2024 = datetime(2024, 11, 20, 9, 0, 7, 250000, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    "line",
    [
        journal(logrus(3, "x").replace("2026", "2024"), 3, "containerd[7]"),
        "-- Logs begin at Tue 2024-11-19 12:00:00 UTC, end at Wed 2024-11-20 10:00:00 UTC. --",
        "-- Journal begins at Tue 2024-11-19 12:00:00 UTC, ends at Wed 2024-11-20 10:00:00 UTC. --",
        "Log file created at: 2024/11/20 09:00:00",
    ],
)
def test_the_year_of_a_file_is_that_of_a_line_that_has_one(line: str) -> None:
    """A journal in short form that was read two years later."""
    for texts in ((line, journal(KLOG, 7)), (journal(KLOG, 7), journal("x", 7), line)):
        if texts[0] is line or line.startswith("Nov"):
            cut = next(each for each in facts_of(*texts) if each.kind is Kind.PULL_CUT)
            assert cut.at == pytest.approx(OF_2024, abs=1e-5)


@pytest.mark.parametrize("text", ["2024-02-31", "0000-00-00"])
def test_a_date_that_does_not_exist_is_no_year(text: str) -> None:
    (cut,) = facts_of(f"-- Logs begin at x, end at Wed {text} 10:00:00 UTC. --", journal(KLOG, 7))
    assert cut.at == pytest.approx(STAMP, abs=1e-5)


def test_the_29th_of_february_stays_where_it_was_in_a_year_without_one() -> None:
    line = KLOG.replace("1120", "0229")
    day = logrus(0, "x").replace("2026-11-20", "2023-02-29")
    (cut,) = [each for each in facts_of(line, day) if each.kind is Kind.PULL_CUT]
    assert cut.at == datetime(2024, 2, 29, 9, 0, 7, 250000, tzinfo=UTC).timestamp()


def test_a_month_of_an_unknown_language_is_learned_from_klog() -> None:
    """Also where two languages mean two months by one word."""
    exit_ = f"{NODE} systemd[1]: kubelet.service: Main process exited, code=exited, status=1/FAILURE"
    facts = facts_of(
        f"lis 20 09:00:07 {NODE} kubelet[7]: {KLOG}", f"lis 21 09:00:00 {exit_}", f"xyz 22 09:00:00 {exit_}"
    )
    assert [each.at for each in facts if each.kind is Kind.EXIT] == [BEGIN.timestamp() + 86_400, None]


def test_a_page_of_words_is_no_log() -> None:
    """Its blank lines are not lines of a log."""
    (reading,) = diagnosis(lines("The pods hang.", "", "We restarted containerd.", "")).readings
    assert reading.unread.lines == 2
    assert reading.notes == ("no line of it is of a form that is known",)


def test_a_log_over_new_year() -> None:
    turn = [
        klog(0, CUT_1_20, "E").replace("1120 09:00:00", stamp).replace("big", stamp[:4])
        for stamp in ("1231 23:59:50", "0101 00:00:10")
    ]
    first, last = facts_of(*turn, latest=datetime(2027, 1, 2, tzinfo=UTC))
    assert first.at == datetime(2026, 12, 31, 23, 59, 50, tzinfo=UTC).timestamp()
    assert (last.at or 0) - (first.at or 0) == 20


def test_lines_out_of_order_at_new_year() -> None:
    calendar = Calendar(datetime(2027, 1, 2, tzinfo=UTC))
    first, late, again = (calendar.midnight(month, day) for month, day in ((1, 1), (12, 31), (1, 1)))
    assert (first, late) == (again, (first or 0.0) - 86400)


def test_the_29th_of_february_is_of_a_leap_year() -> None:
    assert Calendar(datetime(2027, 1, 1, tzinfo=UTC)).midnight(2, 29) == datetime(2024, 2, 29, tzinfo=UTC).timestamp()
    assert Calendar(datetime(2027, 1, 1, tzinfo=UTC)).midnight(2, 30) is None


OLD_EVENT = 'Event(v1.ObjectReference{{Kind:"Pod", Namespace:"shop", Name:"web-1", UID:"1", FieldPath:"spec.containers{{app}}"}}): type: \'Normal\' reason: \'{}\' {}'


def test_clocks_are_aligned_by_shared_events() -> None:
    """The node's clock is eight hours ahead."""
    east = 8 * 3600.0
    log = [
        klog(east + 0.2, OLD_EVENT.format("Pulling", 'Pulling image "web:1"')),
        klog(east + 5.3, OLD_EVENT.format("Failed", 'Failed to pull image "web:1": manifest unknown')),
        klog(east + 700.5, '"Skipping pod synchronization" err="PLEG is not healthy: pleg was last seen active 3m5s ago; threshold is 3m0s"', "E"),
    ]  # fmt: skip
    told = diagnosis(lines(*log), event_list(EVENTS))
    (pleg,) = [each for each in told.findings if each.id == "pleg-unhealthy"]
    assert pleg.since == "2026-11-20T09:11:40Z"
    assert told.notes == ("file-1: its times are shifted by -28800 s to those of the events",)


def test_clocks_without_a_shared_event_stay_apart() -> None:
    told = diagnosis(lines(KLOG), event_list(EVENTS))
    assert told.notes == ("not aligned with the clock of the events, because no event is in both: file-1",)


def test_logs_of_two_nodes_without_events_are_not_compared() -> None:
    assert diagnosis(lines(KLOG), lines(KLOG.replace("big", "other"))).notes == (
        "the clocks of these files are not compared: no file has events with times",
    )


def test_a_file_has_the_node_that_one_of_its_lines_names() -> None:
    (deadline,) = found(lines(KLOG, klog(9, f'"Successfully registered node" node="{NODE}"'))).values()
    assert deadline.nodes == (NODE,)


@pytest.mark.parametrize(("other", "nodes"), [(NODE, (NODE,)), ("tess-node-0009", ())], ids=["one node", "two nodes"])
def test_a_file_has_the_node_of_the_events_of_its_pods(other: str, nodes: tuple[str, ...]) -> None:
    log = [klog(number, f'"SyncLoop DELETE" source="api" pods=["shop/web-{number}"]') for number in (1, 2)]
    events = [
        event(0, "Pulling", 'Pulling image "web:1"', "web-1"),
        event(0, "Pulling", 'Pulling image "web:1"', "web-2", node=other),
    ]
    assert found(lines(KLOG, *log), event_list(events))["pull-progress-deadline"].nodes == nodes


def test_an_event_of_a_series() -> None:
    newer = event(0, "Failed", "x") | {"note": 'Failed to pull image "web:1": EOF', "message": "", "regarding": {"kind": "Pod", "name": "web-1", "namespace": "shop"},
             "involvedObject": None, "eventTime": "2026-11-20T09:00:00.123456Z", "firstTimestamp": None, "lastTimestamp": None,
             "series": {"count": 4, "lastObservedTime": "2026-11-20T09:10:00.000000Z"}, "count": None}  # fmt: skip
    facts = list(FileReading("e").of(iter(event_list([newer]).encode().splitlines(keepends=True)), BEGIN))
    assert [(fact.at, fact.times) for fact in facts] == [
        (BEGIN.timestamp() + 0.123456, 4),
        (BEGIN.timestamp() + 600, 4),
    ]


PARTS = st.sampled_from(
    [*(line for line, _, _ in FORMS.values()), event_list(EVENTS), NEWER, OLDER, "\n", "{", "}", '"', "]", "- ", "reason:", "items:", "\x00",
     "E1120 09:00:07.250000    3033 a.go:1] ", 'time="', '" level=info msg=', "apiVersion: v1\n", "0229", "9999", "\udcff", "\u202e"]
)  # fmt: skip


@given(st.lists(st.tuples(PARTS, st.integers(0, 400), st.integers(0, 400)), max_size=12))
def test_no_file_is_an_internal_error(parts: list[tuple[str, int, int]]) -> None:
    """Any pieces of any forms, cut anywhere and put together."""
    text = "".join(part[min(first, last) : max(first, last)] or part for part, first, last in parts)
    diagnosis(text.encode("utf-8", "surrogateescape"), text[::2].encode("utf-8", "surrogateescape"))
