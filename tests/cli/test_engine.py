"""The options of an engine, and what is refused before any node is reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollout.cli.main import run

INVENTORY = "cluster: c\napiServer: v1.23.17\nnodes: {n1: }\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "inventories").mkdir()
    (tmp_path / "inventories/c.yaml").write_text(INVENTORY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_certificates_are_made_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["engine", "certs", "certs", "--host", "10.0.0.1"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"written: certs/{role}" for role in ("scheduler", "worker", "controller")
    ]
    assert run(["engine", "certs", "certs"]) == 2
    assert "[folder-not-empty]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "reference"),
    [
        (("engine", "workers"), "no-scheduler"),
        (("engine", "workers", "--engine", "dask"), "no-scheduler"),
        (("verify", "--cluster", "c", "--engine", "dask", "--scheduler", "tcp://10.0.0.1:8786"), "engine-needs-tls"),
        (("engine", "workers", "--engine", "dask", "--scheduler", "8786"), "scheduler-address"),
    ],
)
def test_an_engine_that_cannot_be_used_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], reference: str
) -> None:
    assert run([*words]) == 2
    assert f"[{reference}]" in capsys.readouterr().err
