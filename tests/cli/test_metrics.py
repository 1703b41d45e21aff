"""``rollout show metrics`` as typed, and the same on the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollout.cli.main import run
from tests.core.presentation import journals
from tests.features.serve.serving import keep, serving

RUN = "r20261120-160000-ab12"


def test_a_file_for_node_exporter_is_whole_and_readable_by_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(tmp_path, "r20261119-160000-0001", *journals.done(60)).close()
    keep(tmp_path, RUN, *journals.halted(120)).close()
    file = tmp_path / "rollout.prom"
    state = str(tmp_path / "state")
    assert run(["show", "metrics", "--textfile", str(file), "--state", state]) == 0
    assert capsys.readouterr().out == ""
    assert f'rollout_run_info{{cluster="rno",run="{RUN}"' in file.read_text(), "the newest run"
    assert "0001" not in file.read_text()
    assert oct(file.stat().st_mode & 0o777) == "0o644"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rollout.prom", "state"]
    assert run(["show", "metrics", "--state", state]) == 0
    assert capsys.readouterr().out == file.read_text()


def test_without_a_run_there_are_none_and_a_bad_file_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["show", "metrics", "--state", str(tmp_path / "state")]) == 0
    assert capsys.readouterr().out == ""
    assert run(["show", "metrics", "--textfile", str(tmp_path / "no/x.prom"), "--state", str(tmp_path / "state")]) == 2
    assert "[file-not-writable]" in capsys.readouterr().err


@pytest.mark.process
def test_the_page_has_them_for_a_scraper_with_the_token(tmp_path: Path) -> None:
    keep(tmp_path, RUN, *journals.halted(120)).close()
    with serving(tmp_path) as served:
        assert served.ask_stranger("/metrics").status == 401
        found = served.ask_stranger("/metrics", Authorization=served.bearer)
        assert found.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert 'rollout_run_exit_code{cluster="rno"} ' in found.text
