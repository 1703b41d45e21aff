"""Wrappers around lines: what is taken off, what is left as it is, and documents of any size in bounded memory."""

from __future__ import annotations

import json
import struct
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.features.diagnose.rules import wrapped_documents
from rollout.features.diagnose.rules.facts import Fact, Kind
from rollout.features.diagnose.rules.finding import Confidence
from rollout.features.diagnose.rules.reading import FileReading
from rollout.features.diagnose.rules.wrapped_fields import Wrapping, records_in, time_in
from rollout.features.diagnose.rules.wrapped_lines import unwrapped
from tests.features.diagnose.rules.logs import BEGIN, NODE, found, klog, lines

DIED = '"SyncLoop DELETE" source="api" pods=["shop/web-{}"]'
AT = BEGIN.timestamp()


def read(content: str | bytes, piece: int = 64 * 1024) -> tuple[list[Fact], FileReading]:
    data = content.encode() if isinstance(content, str) else content
    pieces = (line[at : at + piece] for line in data.splitlines(keepends=True) for at in range(0, len(line), piece))
    reading = FileReading("f")
    return list(reading.of(pieces, datetime(2026, 12, 31, tzinfo=UTC))), reading


def pods(content: str | bytes) -> list[str]:
    return [fact["pod"] for fact in read(content)[0]]


def off(line: str) -> str:
    """The line without its wrappers; that the author of a pod wrote it is marked."""
    return "".join(text.decode().strip() + "(of a container)" * other for text, other in unwrapped(line.encode()))


# Lines.


@pytest.mark.parametrize(
    "line",
    [
        f"2026-11-20T09:00:00Z {NODE} kubelet[3033]: {klog(0, 'x')}",
        f"2026-11-20T09:00:00Z we saw {klog(0, 'x')}",
        f"the log had: {klog(0, 'x')}",
        f"web-1: an error: {klog(0, 'x')}",
        "2026-11-20T09:00:00Z",
        "10.0.0.1 - - [20/Nov/2026:09:00:00 +0000] \"GET / HTTP/1.1\" 200",
        "[0] tag: [no JSON",
        "[0] tag: {}",
        '{"level":"info","x":1}',
        '{"ts":1763629200.1,"caller":"a.go:1","msg":"SyncLoop"}',
        "{no JSON",
        "[1,2]",
    ],
)  # fmt: skip
def test_a_line_without_a_whole_wrapper_is_left_as_it_is(line: str) -> None:
    assert off(line) == line


@pytest.mark.parametrize(
    ("line", "inside"),
    [
        ("2026-11-20T09:00:00.25Z stderr F x y", "2026-11-20T09:00:00.250000+00:00 - -: x y"),
        ("2026-11-20T17:00:00+08:00 stdout P x", "2026-11-20T09:00:00.000000+00:00 - -: x"),
        ('2026-11-20T09:00:00Z {host="k-1"} x', "2026-11-20T09:00:00.000000+00:00 k-1 -: x"),
        ('2026-11-20T09:00:00Z {pod="a", container="b"} x', "2026-11-20T09:00:00.000000+00:00 - -: x(of a container)"),
        ("<30>1 2026-11-20T09:00:00Z k-1 kubelet - - [a b=\"c\"] \ufeffx", "2026-11-20T09:00:00.000000+00:00 k-1 kubelet: x"),
        ("<30>Nov 20 09:00:00 k-1 kubelet[7]: x", "Nov 20 09:00:00 k-1 kubelet[7]: x"),
        (f"k-1: {klog(0, 'x')}", f"[0.0] k-1 -: {klog(0, 'x')}"),
        (f"10.0.0.7: {klog(0, 'x')}", klog(0, "x")),
        (f"* {klog(0, 'x')}", klog(0, "x")),
        ('[0] t: [1763629200.5, {"log"=>"x => \\"y\\""}]', '2025-11-20T09:00:00.500000+00:00 - -: x => "y"'),
        ('{"log":"\\u001b[31mx\\u001b[0m\\n","time":"2026-11-20T09:00:00Z"}', "2026-11-20T09:00:00.000000+00:00 - -: x"),
        ('{"log":"first\\nsecond","time":"2026-11-20T09:00:00Z"}', "2026-11-20T09:00:00.000000+00:00 - -: first"),
        ('{"log":"x","kubernetes":{"pod_name":"a","container_name":"b","host":"k-1"},"time":"2026-11-20T09:00:00Z"}',
         "2026-11-20T09:00:00.000000+00:00 k-1 -: x(of a container)"),
        ('{"message":"{\\"message\\":\\"{\\\\\\"log\\\\\\":\\\\\\"x\\\\\\"}\\"}","@timestamp":"2026-11-20T09:00:00Z"}', "2026-11-20T09:00:00.000000+00:00 - -: x"),
        ('{"time":"2026-11-20T09:00:00Z","level":"error","msg":"a \\"b\\"","error":"c"}',
         '2026-11-20T09:00:00.000000+00:00 - -: time="2026-11-20T09:00:00Z" level=error msg="a \\"b\\"" error="c"'),
        ('{"jsonPayload":{"ts":1.5,"msg":"SyncLoop","message":"y"},"timestamp":"2026-11-20T09:00:00Z"}',
         '2026-11-20T09:00:00.000000+00:00 - -: {"ts": 1.5, "msg": "SyncLoop", "message": "y"}'),
        ('{"MESSAGE":[120,121],"__REALTIME_TIMESTAMP":"1763629200000000"}', '{"MESSAGE": "xy", "__REALTIME_TIMESTAMP": "1763629200000000"}'),
        ('{"MESSAGE":[999],"__REALTIME_TIMESTAMP":"1763629200000000"}', '{"MESSAGE":[999],"__REALTIME_TIMESTAMP":"1763629200000000"}'),
        ('{"fields":{"message":["x"]},"@timestamp":"2026-11-20T09:00:00Z"}', "2026-11-20T09:00:00.000000+00:00 - -: x"),
        ('{"message":"Nov 20 09:00:00 k-1 kubelet[7]: x","timestamp":1795165200000}', "2026-11-20T09:00:00.000000+00:00 k-1 kubelet: x"),
    ],
)  # fmt: skip
def test_a_wrapper_is_taken_off(line: str, inside: str) -> None:
    assert off(line) == inside


@pytest.mark.parametrize(
    ("value", "at"),
    [
        (1763629200, 1763629200.0), (1763629200.5, 1763629200.5), ("1763629200500", 1763629200.5), ("1763629200500000", 1763629200.5),
        ("1763629200500000000", 1763629200.5), ("2025-11-20T09:00:00.5Z", 1763629200.5), ("2025-11-20 09:00:00.500", 1763629200.5),
        ("11/20/2025, 9:00:00.500 AM", 1763629200.5), ("Nov 20, 2025 @ 09:00:00.500", 1763629200.5), (True, None), (7, None), ("x", None),
        ("", None), (None, None), ("2025-13-40T09:00:00Z", None), ("9" * 30, None),
    ],
)  # fmt: skip
def test_times_in_fields(value: object, at: float | None) -> None:
    assert time_in(value) == at


def test_what_is_nested_too_deeply_is_left_out() -> None:
    value: object = {"message": "x"}
    for _ in range(30):
        value = [value]
    assert list(records_in(value)) == []
    assert [each.text for each in records_in([[{"message": "x"}]])] == ["x"]


def test_the_output_of_a_container_proves_nothing() -> None:
    """A collector of a whole cluster sends the lines of kubelets and those of pods."""
    end = '"command failed" err="failed to run Kubelet: x"'
    of_a_pod = {"pod_name": "web-1", "container_name": "app"}
    forged, own = (
        lines(
            *(
                json.dumps({"log": klog(at * 11, end, "E"), "time": f"2026-11-20T09:00:{at * 11:02}Z"} | more)
                for at in range(4)
            )
        )
        for more in ({"kubernetes": of_a_pod}, {})
    )
    assert found(own)["kubelet-crash-loop"].confidence is Confidence.CERTAIN
    assert all(each.confidence is not Confidence.CERTAIN for each in found(forged).values())


# Documents.


def events(count: int, padding: int = 0) -> list[dict[str, object]]:
    return [{"timestamp": int(AT * 1000) + number, "message": klog(number, DIED.format(number)), "x": "y" * padding} for number in range(count)]  # fmt: skip


def test_a_long_list_is_read_record_by_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wrapped_documents, "LARGEST", 2_000)
    monkeypatch.setattr(wrapped_documents, "_AT_ONCE", 500)
    text = json.dumps({"events": events(300, 100), "nextToken": "t"})
    assert pods(text) == [f"shop/web-{number}" for number in range(300)]
    assert pods(json.dumps({"events": events(300, 100)}, indent=2)) == pods(text)


def test_what_stands_ahead_of_a_long_list_holds_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wrapped_documents, "LARGEST", 2_000)
    values = [[str(int((AT + number) * 1e9)), klog(number, DIED.format(number))] for number in range(100)]
    loki = {"status": "success", "data": {"result": [{"stream": {"hostname": "k-1"}, "values": values}]}}
    facts, _ = read(json.dumps(loki))
    assert ({fact.node for fact in facts}, len(facts)) == ({"k-1"}, 100)
    columns = [{"name": "TimeGenerated", "type": "datetime"}, {"name": "Computer"}, {"name": "SyslogMessage"}]
    rows = [["2026-11-20T09:00:00Z", "k-2", klog(number, DIED.format(number))] for number in range(100)]
    facts, _ = read(json.dumps({"tables": [{"columns": columns, "rows": rows}]}))
    assert ({fact.node for fact in facts}, len(facts)) == ({"k-2"}, 100)


def test_a_document_that_is_cut() -> None:
    facts, reading = read(json.dumps({"events": events(20)}, indent=1)[:-300])
    assert 16 <= len(facts) < 20
    assert [each.text for each in reading.unread.examples] == ["the end is missing"]


def test_words_between_documents_and_values_that_are_no_json() -> None:
    record = json.dumps(events(1)[0], indent=1)
    _, reading = read(f"{record}\nnext page:\n{record}\n")
    assert (reading.read, [each.text for each in reading.unread.examples]) == (2, ["no JSON"])
    assert [each.text for each in read(f'{BEGINS}{{"message": tru}}]\n')[1].unread.examples] == ["no JSON"]


@pytest.mark.parametrize(
    "middle",
    ['{"message": "' + "\\\"},{\\\"message\\\":\\\"" * 400 + '"}', '{"message": "' + "y" * 9_000 + '"}', '"' + "y" * 9_000 + '"'],
    ids=["quotes", "letters", "a text alone"],
)  # fmt: skip
def test_a_text_that_is_too_large_is_passed_over(monkeypatch: pytest.MonkeyPatch, middle: str) -> None:
    """Nothing in it is read as a document."""
    monkeypatch.setattr(wrapped_documents, "LARGEST", 1_000)
    monkeypatch.setattr(wrapped_documents, "_AT_ONCE", 100)
    one, two = (json.dumps(each) for each in events(2))
    facts, reading = read(f"[{one},\n{middle},\n{two}]\n", 100)
    assert [fact["pod"] for fact in facts] == ["shop/web-0", "shop/web-1"]
    assert reading.unread.lines == 1


BEGINS = '[{"message": "x", "timestamp": 1795165200000}, '


@pytest.mark.parametrize(
    "text",
    ["[" * 40 + "1," * 3_000, "{1: 2, " + '"a":"b",' * 900, '{"' + "y" * 5_000],
    ids=["too deep", "a name that is a number", "a name that is too long"],
)
def test_what_cannot_be_followed_ends_the_reading(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(wrapped_documents, "LARGEST", 1_000)
    _, reading = read(f"{BEGINS}{text}")
    assert (reading.read, reading.unread.lines) == (1, 1)


JSON = st.recursive(
    st.none() | st.integers(0, 99) | st.text('ab"\\{}[],: ', max_size=9) | st.sampled_from(["2026-11-20T09:00:00Z", "k-1"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["message", "a", "timestamp", "host"]), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(st.lists(JSON.map(lambda value: [value]), min_size=1, max_size=3), st.integers(1, 60))
def test_pieces_of_any_size_give_the_same_texts(values: list[object], at_once: int) -> None:
    """Values that are parsed as a whole, whatever pieces they came in."""
    data = "\n".join(json.dumps(value) for value in values).encode()
    reader = wrapped_documents._Values(iter([data[at : at + at_once] for at in range(0, len(data), at_once)]))  # noqa: SLF001
    read_: list[str] = []
    while reader.more():
        read_ += [each.text for each in reader.records(Wrapping())]
    assert read_ == [each.text for value in values for each in records_in(value)]
    assert (reader.damaged, reader.cut) == (0, False)


# journald's own documents.


def exported(*messages: bytes, end: bytes = b"\n") -> bytes:
    head = (
        b"__CURSOR=s=1\n__REALTIME_TIMESTAMP=1795165200000000\n_HOSTNAME=k-1\n_X\n"
        + struct.pack("<Q", 10)
        + b"1234\n67\n90\n"
    )
    return b"".join(head + b"MESSAGE\n" + struct.pack("<Q", len(each)) + each + b"\n" + end for each in messages)


def test_binary_fields_may_contain_anything() -> None:
    """A length with the byte of a line end in it, and a text that looks like fields."""
    first = klog(0, DIED.format(0)).encode()
    first += b" " * (10 - len(first) % 256 % 256 + 256 * 2) if len(first) < 10 else b" " * ((10 - len(first)) % 256)
    assert struct.pack("<Q", len(first))[:1] == b"\n"
    second = klog(1, DIED.format(1)).encode() + b"\n\nMESSAGE=" + klog(2, DIED.format(2)).encode()
    facts, reading = read(exported(first, second))
    assert [(fact["pod"], fact.node) for fact in facts] == [("shop/web-0", "k-1"), ("shop/web-1", "k-1")]
    assert (reading.read, reading.unread.lines, reading.unit) == (2, 0, "record")


def test_an_export_that_is_cut_or_has_a_huge_field(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wrapped_documents, "LARGEST", 300)
    huge = klog(0, DIED.format(0)).encode() + b" " + b"y" * 5_000
    assert pods(exported(huge, klog(1, DIED.format(1)).encode(), end=b"\n")) == ["shop/web-0", "shop/web-1"]
    assert pods(exported(klog(1, DIED.format(1)).encode())[:-20]) == []
    assert pods(exported(klog(1, DIED.format(1)).encode(), end=b"")) == ["shop/web-1"]


@pytest.mark.parametrize(("zone", "shift"), [("UTC", 0.0), ("-03", 3 * 3600.0)])
def test_the_verbose_form_in_a_zone(zone: str, shift: float) -> None:
    head = f"Fri 2026-11-20 09:00:00.000000 {zone} [s=01;i=1]\n    _HOSTNAME=k-1\n    MESSAGE="
    (ended,) = read(f"{head}kubelet.service: Main process exited, code=exited, status=1/FAILURE\n            more\n")[0]
    assert (ended.kind, ended.at, ended.node) == (Kind.EXIT, AT + shift, "k-1")


# Tables.


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("@timestamp,@message", "2026-11-20 09:00:00.000,{}"),
        ('"Date";"Line"', '"2026-11-20T09:00:00Z";{}'),
        ("timestamp\tjsonPayload.MESSAGE", "2026-11-20T09:00:00Z\t{}"),
    ],
)
def test_tables_of_consoles(header: str, row: str) -> None:
    cell = '"' + klog(0, DIED.format(0)).replace('"', '""') + '"'
    assert pods(f"{header}\r\n{row.format(cell)}\r\n") == ["shop/web-0"]


def test_a_field_of_a_table_that_does_not_end() -> None:
    _, reading = read('@timestamp,@message\n2026-11-20 09:00:00.000,x\n2026-11-20 09:00:00.000,"' + "y" * 200_000)
    assert reading.read == 1
    assert [each.text for each in reading.unread.examples] == ["a field of this row does not end"]


@pytest.mark.parametrize("text", ["@message\n", '{"message": "x"}', '["x"]'])
def test_short_files(text: str) -> None:
    assert pods(text) == []
