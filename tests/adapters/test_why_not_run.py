"""Whether a wave gate's program can be run on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollout.adapters.local import why_not_run


def test_a_path_and_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "check-pulls"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert why_not_run(str(program)) == "no such file"
    assert why_not_run("check-pulls") == "program not found in PATH"
    program.write_text("#!/bin/sh\n")
    assert why_not_run(str(program)) == "not an executable file"
    program.chmod(0o755)
    assert (why_not_run(str(program)), why_not_run("check-pulls")) == ("", "")
