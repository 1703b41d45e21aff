"""``rollout serve`` as typed: what it needs, and that nothing else loads it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rollout.cli.main import run

PAGE = ("starlette", "uvicorn", "anyio")
LISTS = "import sys; from rollout.cli.main import run; run(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"


@pytest.mark.process
@pytest.mark.parametrize("words", [["--help"], ["status"], ["serve", "--help"]])
def test_only_a_server_imports_what_serves(tmp_path: Path, words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LISTS, *words], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert [name for name in PAGE if name in done.stderr.split()] == []


def test_without_its_extra_it_names_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rollout.features.serve.command.find_spec", lambda _name: None)
    assert run(["serve"]) == 2
    assert "pipx install --force 'PATH[page]'" in capsys.readouterr().err
