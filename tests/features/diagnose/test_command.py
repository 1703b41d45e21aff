"""`rollout diagnose` as typed."""

from __future__ import annotations

import gzip
import io
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rollout.cli.main import run
from rollout.core.plans import snapshot_codec
from tests.documents import only
from tests.features.diagnose.rules.logs import RECORDED, event_list, klog, lines, pulls
from tests.kubelet.nodes import fleet, inventory, kubeadm

EVENTS, LOG = RECORDED / "incident-1.events.txt", RECORDED / "incident-2.kubelet.log"
PLEG = klog(
    0, "skipping pod synchronization - PLEG is not healthy: pleg was last seen active 3m5s ago; threshold is 3m0s", "E"
)


def test_the_text_names_cause_lines_fix_and_risk(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diagnose", "--events", str(EVENTS), "--cluster", "rno"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == (
        "pull-progress-deadline  likely on tess-node-2g2mc.sutarts.rno.yabe.com, since 14 min before the events were printed"
    )
    (fix,) = [line for line in out if line.startswith("  fix:")]
    limit = "--limit 'tess-node-2g2mc.sutarts.rno.yabe.com'"
    assert fix == f"  fix:   rollout plan --cluster rno {limit} --set imagePullProgressDeadline=5m0s"
    assert any(line.startswith("  risk:  ") for line in out)
    assert any(f"{EVENTS}:5: " in line for line in out)


def test_the_document_has_the_names_of_the_issue(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diagnose", "--logs", str(LOG), "--events", str(EVENTS), "-o", "json"]) == 0
    document = only(capsys.readouterr().out)
    assert list(document) == ["apiVersion", "kind", "findings", "unreadLines", "notRead", "timelines"]
    for each in document["findings"]:
        assert list(each) == ["id", "confidence", "nodes", "since", "evidence", "cause", "proposal", "fetchNext"]
        assert each["evidence"]
        assert {tuple(line) for line in each["evidence"]} == {("file", "line", "text")}
    assert {each["id"] for each in document["findings"]} >= {
        "pull-progress-deadline",
        "negative-grace-period",
        "prestop-twice",
    }
    assert document["unreadLines"] == 0


def test_any_mix_of_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed = tmp_path / "kubelet.log.gz"
    packed.write_bytes(gzip.compress(lines(PLEG).encode()))
    events = tmp_path / "events.json"
    events.write_text(event_list(pulls("web:1", "web-1", 0, 7500, "pull QPS exceeded")))
    assert run(["diagnose", "--logs", str(packed), str(LOG), "--events", str(events), "-o", "json"]) == 0
    ids = {each["id"] for each in only(capsys.readouterr().out)["findings"]}
    assert ids >= {"pleg-unhealthy", "slow-termination", "serial-pull-queue", "pull-qps-exceeded"}


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input(packed: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    data = gzip.compress(LOG.read_bytes()) if packed else LOG.read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data))))
    assert run(["diagnose", "--logs", "-"]) == 0
    assert "(standard input):21: " in capsys.readouterr().out


def test_a_healthy_log_has_no_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "kubelet.log"
    log.write_text(
        lines(*(klog(number, '"SyncLoop UPDATE" source="api" pods=["shop/web-1"]') for number in range(500)))
    )
    assert run(["diagnose", "--logs", str(log)]) == 0
    assert capsys.readouterr().out.splitlines() == ["No finding.", f"read: {log}: 500 lines, 0 unreadable lines"]


def test_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It has all that the text has. Words of a log are no markup, and secrets are left out."""
    page, log = tmp_path / "diagnosis.html", tmp_path / "kubelet.log"
    log.write_text(LOG.read_text() + PLEG.replace("PLEG is", "<b>password=hunter2</b> PLEG is") + "\n")
    pod = "default/kirovpre-krds-sf-f3dec-0"
    assert run(["diagnose", "--logs", str(log), "--pod", pod, "--html", str(page), "--cluster", "rno"]) == 0
    text = page.read_text()
    assert "<h1>Diagnosis of rno</h1>" in text
    assert f"<h2>End of pod {pod}</h2>" in text
    assert "<time>+11.4 s</time><span>SIGTERM to agent-kirovpre-krds-ys02, -3 s left (20:39:49.2)</span>" in text
    assert "about 23.6 s of 33.6 s remain" in text
    assert "<b>password" not in text
    assert "hunter2" not in text
    assert "<script" not in text
    assert "slow-termination" in capsys.readouterr().out


def test_what_cannot_be_read_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "access.log"
    log.write_text('10.0.0.1 - - "GET / HTTP/1.1" 200\n' * 9)
    assert run(["diagnose", "--logs", str(log)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[1:3] == [f"read: {log}: 0 lines, 9 unreadable lines", "  note: no line of it is of a form that is known"]
    assert out[3] == f'  unreadable: {log}:1: 10.0.0.1 - - "GET / HTTP/1.1" 200'


def test_a_gzip_file_that_is_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "kubelet.log.gz"
    log.write_bytes(gzip.compress(lines(*(klog(number, "healthy") for number in range(2000)), PLEG).encode())[:-2000])
    assert run(["diagnose", "--logs", str(log)]) == 0
    assert "the compressed file is cut or damaged here" in capsys.readouterr().out


def test_a_year_that_is_by_the_time_of_the_file_is_named_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "kubelet.log"
    log.write_text(lines(PLEG))
    os.utime(log, (0, datetime(2021, 12, 1, tzinfo=UTC).timestamp()))
    assert run(["diagnose", "--logs", str(log)]) == 0
    out = capsys.readouterr().out
    assert "pleg-unhealthy  certain, since 2021-11-20T09:00:00Z" in out
    assert "  note: its lines have no year: 2021 is by the time of the file" in out


def test_a_journals_date_gives_the_year_and_the_zone_of_a_kubelets_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file was copied years later, and both dates are on either side of New Year."""
    log = tmp_path / "journal.log"
    log.write_text(lines(f"2022-01-01T01:00:00+0800 n1 kubelet[7]: {PLEG.replace('E1120 09', 'E0101 01')}"))
    assert run(["diagnose", "--logs", str(log)]) == 0
    out = capsys.readouterr().out
    assert "pleg-unhealthy  certain on n1, since 2021-12-31T17:00:00Z" in out
    assert "no year" not in out


def test_nodes_of_a_snapshot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = inventory(1)
    (name,) = known.nodes
    saved = tmp_path / "nodes.json"
    node = kubeadm(name, version="1.33.4", runtime="containerd", extra="KUBELET_EXTRA_ARGS=--max-pods=20\n")
    saved.write_bytes(snapshot_codec.encode(fleet(known, {name: node})))
    assert run(["diagnose", "--snapshot", str(saved)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == f"not-in-force  certain on {name}"
    assert f"  fix:   rollout plan --cluster rno --limit '{name}' --set maxPods=20" in out


@pytest.mark.parametrize(
    ("arguments", "reference"),
    [
        ([], "nothing-to-read"),
        (["--logs", "no-such.log"], "file-missing"),
        (["--logs", "."], "file-unreadable"),
        (["--logs", str(LOG), "--kubelet", "latest"], "kubelet-unknown"),
    ],
)
def test_what_cannot_be_done_is_exit_code_2(
    arguments: list[str],
    reference: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["diagnose", *arguments]) == 2
    assert f"[{reference}]" in capsys.readouterr().err
