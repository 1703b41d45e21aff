"""One set of facts in every form in which `rollout diagnose` may get it: kubelet × runtime × wrapper × language × order.

A kubelet is killed four times by its own configuration, a pod ends late, a pull is cut, and the runtime does not list its
containers. ``every_form`` names all forms; ``printed`` prints one of them. The words of kubelets are those of
pkg/kubelet/{kubelet,kuberuntime/kuberuntime_container}.go and cmd/kubelet in each minor; the wrappers' are those of the
programs that are named beside them. Months are glibc's, as ``journalctl`` prints them.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import product
from typing import Any

from tests.features.diagnose.rules.logs import BEGIN, NODE

UID = "f5d85c9b-ed4e-44d4-a075-7eb277ddcc85"
ID = "d5be3864132695f5b23fa572b4bc183263db2e3ad4d22f2a8871b734a3c5bc13"
REASON = "misconfiguration: kubelet cgroup driver: cgroupfs is different from the runtime's: systemd"
PLEG = "PLEG is not healthy: pleg was last seen active 3m15.79s ago; threshold is 3m0s"
IMAGE = "reg.example/shop/big:1"


@dataclass(frozen=True, slots=True)
class Entry:
    """What one program logs once."""

    at: datetime
    unit: str
    pid: int
    text: str

    @property
    def micro(self) -> int:
        return (self.at - datetime(1970, 1, 1, tzinfo=self.at.tzinfo)) // timedelta(microseconds=1)

    def iso(self, zone: str = "Z", digits: int = 6) -> str:
        fraction = f".{self.at:%f}000"[: digits + 1] if digits else ""
        return f"{self.at:%Y-%m-%dT%H:%M:%S}{fraction}{zone}"

    @property
    def program(self) -> str:
        return "systemd" if self.unit == "init" else self.unit

    @property
    def syslog(self) -> str:
        return f"{NODE} {self.program}[{self.pid}]: {self.text}"

    @property
    def fields(self) -> dict[str, str]:
        """As systemd keeps them."""
        return {
            "__CURSOR": f"s=2f;i={self.micro:x}", "__REALTIME_TIMESTAMP": str(self.micro), "__MONOTONIC_TIMESTAMP": "7", "PRIORITY": "6",
            "_HOSTNAME": NODE, "SYSLOG_IDENTIFIER": self.program, "_PID": str(self.pid), "_SYSTEMD_UNIT": f"{self.unit}.service",
            "MESSAGE": self.text,
        }  # fmt: skip


# Kubelets.

Keys = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kubelet:
    """``as_json``: ``--logging-format=json``, from 1.19 on. ``inside``: the server that runs it in its own process, or its own supervisor."""

    minor: int
    as_json: bool = False
    inside: str = ""

    @property
    def name(self) -> str:
        return f"1.{self.minor}{' JSON' * self.as_json}{f' in {self.inside}' * bool(self.inside)}"

    @property
    def unit(self) -> str:
        return {"k3s": "k3s", "RKE2": "rke2-agent", "k0s": "k0sworker"}.get(self.inside, "kubelet")

    def said(
        self, seconds: float, message: str, keys: Keys | None = None, level: str = "I", place: str = "kubelet.go:2449"
    ) -> Entry:
        """A message with keys; one in words has none."""
        at = BEGIN + timedelta(seconds=seconds)
        if self.as_json:
            stamp = at.timestamp() * (1 if self.minor <= 20 else 1000)
            text = json.dumps(
                {"ts": stamp, "caller": place, "msg": message, "v": 0, **(keys or {})}, separators=(",", ":")
            )
        else:
            text = (
                message
                if keys is None
                else " ".join((json.dumps(message), *(f"{key}={self._value(value)}" for key, value in keys.items())))
            )
            text = f"{level}{at:%m%d %H:%M:%S.%f}    3033 {place}] {text}"
        if self.inside == "k0s":
            text = f'time="{at:%Y-%m-%d %H:%M:%S}" level=info msg={json.dumps(text)} component=kubelet stream=stderr'
        return Entry(at, self.unit, 3033, text)

    def _value(self, value: Any) -> str:
        if isinstance(value, dict) and "namespace" in value:
            return json.dumps(f"{value['namespace']}/{value['name']}")
        if isinstance(value, dict) and "Data" in value:
            old = "&{" + " ".join(f"{key}:{each}" for key, each in value.items()) + "}"
            return old if self.minor <= 26 else json.dumps(value, separators=(",", ":"))
        if isinstance(value, dict):
            return json.dumps(f"{value['Type']}://{value['ID']}")
        if isinstance(value, list):
            pods = ",".join(f"{each['namespace']}/{each['name']}" for each in value)
            return f"[{pods}]" if self.minor <= 26 else f'["{pods}"]'
        return json.dumps(value)

    def story(self, scheme: str) -> Iterator[Entry]:
        pod = {"name": "cart-0", "namespace": "shop"}
        container = {"pod": pod, "podUID": UID, "containerName": "cart", "containerID": {"Type": scheme, "ID": ID}}
        if self.minor <= 20:
            named = f'"cart-0_shop({UID})"'
            yield self.said(0, f"Version: v1.{self.minor}.9", place="server.go:416")
            yield self.said(2, f"Successfully registered node {NODE}", place="kubelet_node_status.go:74")
            yield self.said(10, f'SyncLoop (DELETE, "api"): {named}')
            yield self.said(
                10.1, f'Killing container "{scheme}://{ID}" with {"a " * (self.minor > 18)}30 second grace period'
            )
            yield self.said(
                40.9,
                f'SyncLoop (PLEG): {named}, event: &pleg.PodLifecycleEvent{{ID:"{UID}", Type:"ContainerDied", Data:"{ID}"}}',
            )
            yield self.said(90, f'SyncLoop (REMOVE, "api"): {named}')
            yield self.said(400, f"skipping pod synchronization - {PLEG}", level="E")
            return
        yield self.said(0, "Kubelet version", {"kubeletVersion": f"v1.{self.minor}.4"}, place="server.go:440")
        yield self.said(2, "Successfully registered node", {"node": NODE}, place="kubelet_node_status.go:74")
        yield self.said(10, "SyncLoop DELETE", {"source": "api", "pods": [pod]})
        yield self.said(10.1, "Killing container with a grace period", {**container, "gracePeriod": 30})
        yield self.said(
            40.9,
            "SyncLoop (PLEG): event for pod",
            {"pod": pod, "event": {"ID": UID, "Type": "ContainerDied", "Data": ID}},
        )
        yield self.said(90, "SyncLoop REMOVE", {"source": "api", "pods": [pod]})
        yield self.said(400, "Skipping pod synchronization", {"err": PLEG}, level="E")

    def failed(self, seconds: float) -> Iterator[Entry]:
        """A start that ends, and its end."""
        at = BEGIN + timedelta(seconds=seconds + 0.5)
        error = f"failed to run Kubelet: {REASON}"
        if self.inside == "k3s":
            yield Entry(
                at,
                self.unit,
                3033,
                f'time="{at:%Y-%m-%dT%H:%M:%SZ}" level=fatal msg={json.dumps(f"kubelet exited: {error}")}',
            )
        elif self.minor <= 20:
            yield self.said(seconds, error, level="F", place="server.go:274")
        elif self.minor <= 22:
            yield self.said(seconds, "Failed to run kubelet", {"err": error}, level="E", place="server.go:294")
        else:
            yield self.said(seconds, "command failed", {"err": error}, level="E", place="run.go:74")
        if self.inside == "RKE2":
            yield Entry(
                at, self.unit, 812, f'time="{at:%Y-%m-%dT%H:%M:%SZ}" level=error msg="Kubelet exited: exit status 1"'
            )
        elif self.inside != "k0s":
            yield Entry(at, "init", 1, f"{self.unit}.service: Main process exited, code=exited, status=1/FAILURE")


KUBELETS = (
    *(Kubelet(minor) for minor in range(18, 37)),
    *(Kubelet(minor, as_json=True) for minor in range(21, 37)),
    *(Kubelet(minor, inside=server) for minor in range(21, 37) for server in ("k3s", "RKE2", "k0s")),
)


# Runtimes.


def _logrus(unit: str, seconds: float, message: str, level: str = "info", digits: int = 9) -> Entry:
    at = BEGIN + timedelta(seconds=seconds)
    stamp = f"{at:%Y-%m-%dT%H:%M:%S}" + f".{at:%f}000"[: digits + 1] * bool(digits)
    return Entry(at, unit, 77, f'time="{stamp}Z" level={level} msg={json.dumps(message)}')


def _containerd(_: Kubelet) -> Iterator[Entry]:
    yield _logrus("containerd", 200, f'PullImage "{IMAGE}"')
    yield _logrus("containerd", 260.5, f"cancel pulling image {IMAGE} because of no progress in 1m0s", "error")


def _containerd_as_json(_: Kubelet) -> Iterator[Entry]:
    """``[debug] format = "json"``."""
    for entry, message in zip(
        _containerd(_),
        (f'PullImage "{IMAGE}"', f"cancel pulling image {IMAGE} because of no progress in 1m0s"),
        strict=True,
    ):
        yield Entry(
            entry.at, entry.unit, entry.pid, json.dumps({"level": "info", "msg": message, "time": entry.iso(digits=9)})
        )


def _dockershim(kubelet: Kubelet) -> Iterator[Entry]:
    if kubelet.minor <= 20:
        words = f'Cancel pulling image "{IMAGE}" because of no progress for 1m0s, latest progress: "a1: Verifying Checksum "'
        yield kubelet.said(260.5, words, level="E", place="kube_docker_client.go:345")
        return
    keys = {"image": IMAGE, "deadline": "1m0s", "progress": "a1: Verifying Checksum "}
    yield kubelet.said(
        260.5, "Cancel pulling image because of exceed image pull deadline, record latest progress", keys, level="E"
    )


def _cri_dockerd(_: Kubelet) -> Iterator[Entry]:
    words = f"Cancel pulling image {IMAGE} because it exceeded image pull deadline 1m0s. Latest progress a1: Verifying Checksum "
    yield _logrus("cri-docker", 260.5, words, "error", digits=0)


def _crio(_: Kubelet) -> Iterator[Entry]:
    yield _logrus("crio", 200, f"Pulling image: {IMAGE}")
    yield _logrus("crio", 260.5, "Timed out on waiting up to 1m0s for image pull progress updates", "error")


@dataclass(frozen=True, slots=True)
class RuntimeOfForms:
    name: str
    scheme: str
    pull: Callable[[Kubelet], Iterator[Entry]]
    minors: range


RUNTIMES = (
    RuntimeOfForms("containerd", "containerd", _containerd, range(18, 37)),
    RuntimeOfForms("containerd JSON", "containerd", _containerd_as_json, range(18, 37)),
    RuntimeOfForms("dockershim", "docker", _dockershim, range(18, 24)),
    RuntimeOfForms("cri-dockerd", "docker", _cri_dockerd, range(24, 37)),
    RuntimeOfForms("CRI-O", "cri-o", _crio, range(18, 37)),
)


def entries(kubelet: Kubelet, runtime: RuntimeOfForms) -> list[Entry]:
    """The whole set of facts, the oldest first."""
    all_ = [*kubelet.story(runtime.scheme), *runtime.pull(kubelet)]
    for number in range(4):
        all_ += kubelet.failed(600 + 11 * number)
    return sorted(all_, key=lambda entry: entry.at)


# Languages: glibc 2.36's abmon of November. The days of the week of `short-full` are English in every language.

LANGUAGES = {
    "English": "Nov 20", "Chinese": "11月 20", "Chinese (Taiwan)": "11月 20", "Korean": "11월 20",
    "Japanese": "11月 20", "French": "nov. 20", "Russian": "ноя 20", "German": "Nov 20",
    "Spanish": "nov 20", "Portuguese": "nov 20", "Italian": "nov 20", "Polish": "lis 20",
    "Turkish": "Kas 20", "Ukrainian": "лис 20", "Czech": "lis 20", "Finnish": "marras 20",
    "Greek": "Νοε 20", "day first": "20 Nov",
}  # fmt: skip


# Wrappers: entries in, a file out.

Wrapper = Callable[[Sequence[Entry]], str | bytes]


def _each(line: Callable[[Entry], str]) -> Wrapper:
    return lambda all_: "".join(f"{line(entry)}\n" for entry in all_)


def _with_time(line: Callable[[Entry], str]) -> Wrapper:
    """Of programs: systemd's own lines have no time in them."""
    return lambda all_: "".join(f"{line(entry)}\n" for entry in all_ if entry.unit != "init")


def _short(language: str, fraction: str = "") -> Callable[[Entry], str]:
    date = LANGUAGES[language]
    return lambda entry: f"{date} {entry.at:%H:%M:%S}{f'.{entry.at:%f}' if fraction else ''} {entry.syslog}"


def _full(zone: str) -> Callable[[Entry], str]:
    return lambda entry: f"Fri {entry.at:%Y-%m-%d %H:%M:%S} {zone} {entry.syslog}"


def _export(all_: Sequence[Entry], *, binary: bool) -> bytes:
    out = b""
    for entry in all_:
        for name, value in entry.fields.items():
            if binary and name == "MESSAGE":
                out += b"MESSAGE\n" + struct.pack("<Q", len(value.encode())) + value.encode() + b"\n"
            else:
                out += f"{name}={value}\n".encode()
        out += b"\n"
    return out


def _verbose(all_: Sequence[Entry]) -> str:
    head = "Fri {:%Y-%m-%d %H:%M:%S.%f} UTC [s=2f;i=1;b=2f;m=7;t=7;x=1]\n"
    return "".join(
        head.format(entry.at)
        + "".join(f"    {name}={value}\n" for name, value in entry.fields.items() if name[:2] != "__")
        for entry in all_
    )


def _lines_of(value: Callable[[Entry], Any]) -> Wrapper:
    return _each(lambda entry: json.dumps(value(entry)))


def _list_of(
    value: Callable[[Entry], Any], around: Callable[[list[Any]], Any] = lambda all_: all_, indent: int | None = 2
) -> Wrapper:
    return lambda all_: json.dumps(around([value(entry) for entry in all_]), indent=indent) + "\n"


def _table(header: Sequence[str], row: Callable[[Entry], Sequence[str]]) -> Wrapper:
    def cell(text: str) -> str:
        return '"' + text.replace('"', '""') + '"'

    return lambda all_: "".join(",".join(map(cell, each)) + "\n" for each in (header, *(row(entry) for entry in all_)))


def _in_cloudwatch(text: Callable[[Entry], str]) -> Callable[[Entry], Any]:
    return lambda entry: {
        "logStreamName": f"i-0abc/{NODE}",
        "timestamp": entry.micro // 1000,
        "message": text(entry),
        "ingestionTime": entry.micro // 1000 + 900,
        "eventId": "37",
    }


def _in_a_query(entry: Entry) -> Any:
    return [
        {"field": "@timestamp", "value": f"{entry.at:%Y-%m-%d %H:%M:%S}.{entry.at.microsecond // 1000:03}"},
        {"field": "@message", "value": _short("English")(entry)},
        {"field": "@ptr", "value": "Cl"},
    ]


def _in_stackdriver(payload: Callable[[Entry], Any]) -> Callable[[Entry], Any]:
    resource = {"type": "k8s_node", "labels": {"cluster_name": "rno", "location": "eu", "node_name": NODE}}
    return lambda entry: {
        "insertId": "x",
        **payload(entry),
        "logName": "projects/p/logs/kubelet",
        "receiveTimestamp": entry.iso(),
        "resource": resource,
        "timestamp": entry.iso(),
    }


def _in_container_insights(entry: Entry) -> str:
    return json.dumps({"hostname": NODE, "systemd_unit": f"{entry.unit}.service", "message": entry.text, "az": "eu-1a"})


def _of_journald(entry: Entry) -> dict[str, Any]:
    """What fluent-bit's and promtail's readers of a journal send."""
    return {name: value for name, value in entry.fields.items() if name[:2] != "__"}


def _streams(all_: Sequence[Entry]) -> Any:
    found: dict[str, list[Any]] = {}
    for entry in all_:
        found.setdefault(entry.unit, []).append([str(entry.micro * 1000), entry.text])
    return {
        "status": "success",
        "data": {
            "resultType": "streams",
            "result": [
                {"stream": {"hostname": NODE, "unit": f"{unit}.service"}, "values": values}
                for unit, values in found.items()
            ],
        },
    }


def _hit(entry: Entry) -> Any:
    source = {
        "@timestamp": entry.iso(digits=3),
        "message": entry.text,
        "host": {"name": NODE},
        "systemd": {"unit": f"{entry.unit}.service"},
        "log": {"syslog": {"priority": 6}},
    }
    return {"_index": "logs-1", "_id": "x", "_score": None, "_source": source, "sort": [entry.micro // 1000]}


def _in_azure(all_: Sequence[Entry]) -> str:
    names = ("TimeGenerated", "Computer", "ProcessName", "SyslogMessage", "Type")
    rows = [[entry.iso(), NODE, entry.program, entry.text, "Syslog"] for entry in all_]
    return json.dumps(
        {
            "tables": [
                {"name": "PrimaryResult", "columns": [{"name": name, "type": "string"} for name in names], "rows": rows}
            ]
        },
        indent=1,
    )


def _otlp(all_: Sequence[Entry]) -> str:
    records = [
        {"timeUnixNano": str(entry.micro * 1000), "body": {"stringValue": entry.text}, "attributes": []}
        for entry in all_
    ]
    about = {"attributes": [{"key": "host.name", "value": {"stringValue": NODE}}]}
    return json.dumps({"resourceLogs": [{"resource": about, "scopeLogs": [{"logRecords": records}]}]})


def _arrows(entry: Entry) -> str:
    pairs = ", ".join(f"{json.dumps(key)}=>{json.dumps(value)}" for key, value in _of_journald(entry).items())
    return f"[0] host.{entry.unit}: [[{entry.micro / 1e6:.6f}, {{}}], {{{pairs}}}]"


WRAPPERS: dict[str, Wrapper] = {
    "the programs' own files": _with_time(lambda entry: entry.text),
    **{f"journalctl -o short, {language}": _each(_short(language)) for language in LANGUAGES},
    **{f"journalctl -o short-precise, {language}": _each(_short(language, "precise")) for language in LANGUAGES},
    "journalctl -o short-full": _each(_full("UTC")),
    "journalctl -o short-full, a zone without a name": _each(_full("+00")),
    "journalctl -o short-iso": _each(lambda entry: f"{entry.iso('+0000', 0)} {entry.syslog}"),
    "journalctl -o short-iso-precise": _each(lambda entry: f"{entry.iso('+00:00')} {entry.syslog}"),
    "journalctl -o short-unix": _each(lambda entry: f"{entry.micro / 1e6:.6f} {entry.syslog}"),
    "journalctl -o short-monotonic": _with_time(lambda entry: f"[{entry.micro / 1e6 - 1.7e9:12.6f}] {entry.syslog}"),
    "journalctl -o short-delta": _with_time(lambda entry: f"[{entry.micro / 1e6 - 1.7e9:12.6f} <    0.000001 >] {entry.syslog}"),
    "journalctl -o with-unit": _each(lambda entry: f"Fri {entry.at:%Y-%m-%d %H:%M:%S} UTC {NODE} {entry.unit}.service[{entry.pid}]: {entry.text}"),
    "journalctl -o cat": _with_time(lambda entry: entry.text),
    "journalctl -o json": _lines_of(lambda entry: entry.fields),
    "journalctl -o json, bytes": _lines_of(lambda entry: {**entry.fields, "MESSAGE": list(entry.text.encode())}),
    "journalctl -o json-pretty": lambda all_: "".join(json.dumps(entry.fields, indent="\t") + "\n" for entry in all_),
    "journalctl -o json-sse": _each(lambda entry: f"data: {json.dumps(entry.fields)}\n"),
    "journalctl -o json-seq": _each(lambda entry: f"\x1e{json.dumps(entry.fields)}"),
    "journalctl -o export": lambda all_: _export(all_, binary=False),
    "journalctl -o export, binary": lambda all_: _export(all_, binary=True),
    "journalctl -o verbose": _verbose,
    "minikube logs": _each(lambda entry: f"* {_short('English')(entry)}"),
    "rsyslog, RFC 5424": _each(lambda entry: f"<30>1 {entry.iso()} {NODE} {entry.program} {entry.pid} - - {entry.text}"),
    "rsyslog, RFC 3164": _each(lambda entry: f"<30>{_short('English')(entry)}"),
    "rsyslog, a table of fields": _lines_of(lambda entry: {"timestamp": entry.iso(), "host": NODE, "msg": entry.text}),
    "CRI": _each(lambda entry: f"{entry.iso(digits=9)} stderr F {entry.text}"),
    "docker json-file": _lines_of(lambda entry: {"log": f"{entry.text}\n", "stream": "stderr", "time": entry.iso(digits=9)}),
    "docker logs -t": _with_time(lambda entry: f"{entry.iso(digits=9)} {entry.text}"),
    "docker compose": _with_time(lambda entry: f"{NODE}  | {entry.text}"),
    "talosctl": _with_time(lambda entry: f"10.0.0.7: {entry.text}"),
    "pdsh": _with_time(lambda entry: f"{NODE}: {entry.text}"),
    "aws logs tail": _each(lambda entry: f"{entry.iso('+00:00')} host/{NODE} {_short('English')(entry)}"),
    "aws logs tail, the programs' lines": _with_time(lambda entry: f"{entry.iso('+00:00')} host/{NODE} {entry.text}"),
    "aws logs tail --format short": _with_time(lambda entry: f"{entry.iso('', 0)} {entry.text}"),
    "aws logs filter-log-events": _list_of(_in_cloudwatch(lambda entry: entry.text), lambda all_: {"events": all_, "searchedLogStreams": []}),
    "aws logs get-log-events": _list_of(_in_cloudwatch(_short("English")), lambda all_: {"events": all_, "nextForwardToken": "f/3"}, None),
    "aws logs, Container Insights": _list_of(_in_cloudwatch(_in_container_insights), lambda all_: {"events": all_}),
    "aws logs, a journal in JSON": _list_of(_in_cloudwatch(lambda entry: json.dumps(_of_journald(entry))), lambda all_: {"events": all_}),
    "aws logs, events by line": _lines_of(_in_cloudwatch(_short("English"))),
    "aws logs get-query-results": _list_of(_in_a_query, lambda all_: {"results": all_, "statistics": {"recordsMatched": 9.0}, "status": "Complete"}),
    "Logs Insights, CSV": _table(("@timestamp", "@message"), lambda entry: (f"{entry.at:%Y-%m-%d %H:%M:%S}.{entry.at.microsecond // 1000:03}", entry.text)),
    "gcloud logging read, jsonPayload": _list_of(_in_stackdriver(lambda entry: {"jsonPayload": _of_journald(entry)})),
    "gcloud logging read, textPayload": _list_of(_in_stackdriver(lambda entry: {"textPayload": entry.text})),
    "Cloud Logging, by line": _lines_of(_in_stackdriver(lambda entry: {"jsonPayload": _of_journald(entry)})),
    "Cloud Logging, entries": _list_of(_in_stackdriver(lambda entry: {"jsonPayload": {"message": entry.text}}), lambda all_: {"entries": all_}),
    "Loki's API": lambda all_: json.dumps(_streams(all_)),
    "Loki's API, indented": lambda all_: json.dumps(_streams(all_), indent=2),
    "logcli": _each(lambda entry: f'{entry.iso(digits=0)} {{hostname="{NODE}", job="systemd-journal", unit="{entry.unit}.service"}} {entry.text}'),
    "logcli -o raw": _with_time(lambda entry: entry.text),
    "logcli -o jsonl": _lines_of(lambda entry: {"labels": {"hostname": NODE}, "line": entry.text, "timestamp": entry.iso(digits=9)}),
    "Grafana": _list_of(lambda entry: {"line": entry.text, "timestamp": str(entry.micro * 1000), "date": entry.iso(digits=3), "fields": {"hostname": NODE}}),
    "promtail, a journal in JSON": _lines_of(lambda entry: {"labels": {"job": "j"}, "line": json.dumps(_of_journald(entry)), "timestamp": entry.iso(digits=9)}),
    "fluentd, a file": _each(lambda entry: f"{entry.iso('+00:00', 0)}\tkube.{entry.unit}\t{json.dumps(_of_journald(entry))}"),
    "fluentd, standard output": _each(lambda entry: f"{entry.at:%Y-%m-%d %H:%M:%S.%f}000 +0000 kube.{entry.unit}: {json.dumps(_of_journald(entry))}"),
    "fluent-bit, lines": _lines_of(lambda entry: {"date": entry.micro / 1e6, **_of_journald(entry)}),
    "fluent-bit, tail": _lines_of(lambda entry: {"date": entry.micro / 1e6, "log": f"{entry.text}\n"}),
    "fluent-bit, lists": _lines_of(lambda entry: [[entry.micro / 1e6, {}], _of_journald(entry)]),
    "fluent-bit, standard output": _each(_arrows),
    "Elasticsearch": _list_of(_hit, lambda all_: {"took": 3, "timed_out": False, "hits": {"total": {"value": 9}, "hits": all_}}),
    "Elasticsearch, by line": _lines_of(_hit),
    "Kibana, CSV": _table(("@timestamp", "host.name", "message"), lambda entry: (f"{entry.at:%b %d, %Y @ %H:%M:%S}.{entry.at.microsecond // 1000:03}", NODE, entry.text)),
    "Filebeat": _lines_of(lambda entry: _hit(entry)["_source"]),
    "Log Analytics' API": _in_azure,
    "az monitor log-analytics query": _list_of(lambda entry: {"TimeGenerated": entry.iso(), "Computer": NODE, "SyslogMessage": entry.text, "TableName": "PrimaryResult"}),
    "Log Analytics, CSV": _table(("TimeGenerated [UTC]", "Computer", "SyslogMessage"), lambda entry: (f"{entry.at:%m/%d/%Y, %I:%M:%S}.{entry.at.microsecond // 1000:03} {entry.at:%p}", NODE, entry.text)),
    "Splunk": _lines_of(lambda entry: {"preview": False, "result": {"_raw": _short("English")(entry), "_time": f"{entry.iso('+00:00', 3)}", "host": NODE}}),
    "OTLP": _otlp,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Form:
    kubelet: Kubelet
    runtime: RuntimeOfForms
    wrapper: str
    newest_first: bool = False

    @property
    def name(self) -> str:
        return f"{self.kubelet.name}, {self.runtime.name}, {self.wrapper}{', newest first' * self.newest_first}"


def every_form() -> list[Form]:
    return [
        Form(kubelet, runtime, wrapper, newest_first)
        for kubelet, runtime in product(KUBELETS, RUNTIMES)
        if kubelet.minor in runtime.minors and (not kubelet.inside or runtime.name == "containerd")
        for wrapper in WRAPPERS
        for newest_first in (False, True)
    ]


def printed(form: Form) -> str | bytes:
    all_ = entries(form.kubelet, form.runtime)
    return WRAPPERS[form.wrapper](all_[::-1] if form.newest_first else all_)


def counted_forms() -> str:
    return f"{len(every_form()):,} forms: {len(KUBELETS)} kubelets, {len(RUNTIMES)} runtimes, {len(WRAPPERS)} wrappers, each in both orders\n"


if __name__ == "__main__":
    sys.stdout.write(counted_forms())
