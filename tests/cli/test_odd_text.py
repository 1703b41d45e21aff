"""Arguments, variables, rollout.toml and names of files with escapes and bytes that are no text: nothing of it controls the terminal."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from rollout.cli.command_table import COMMANDS
from rollout.cli.main import INTERNAL, run
from rollout.core.reading.project_file import PROJECT_KEYS
from tests.cli.test_plan import site

__all__ = ["site"]

CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
ODD = {
    "escape": "a\x1b[31mb",
    "C1": "a\x9b31mb",
    "newline": "a\nb",
    "direction": "a\u202eb",
    "no text": os.fsdecode(b"a\xff"),
}
STAY_OR_WRITE = frozenset({"serve", "init", "lab"})


class Terminal(io.TextIOWrapper):
    """A terminal with this encoding. (Click removes escapes only from what goes elsewhere.)"""

    def __init__(self, encoding: str) -> None:
        super().__init__(io.BytesIO(), encoding, "backslashreplace", write_through=True)

    def isatty(self) -> bool:
        return True

    def shown(self) -> str:
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue().decode(self.encoding)


@pytest.fixture(params=["utf-8", "ascii"])
def encoding(request: pytest.FixtureRequest, site: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TERM", "dumb")
    assert site.is_dir()
    return str(request.param)


def _code(encoding: str, words: Sequence[str]) -> int:
    out, err = Terminal(encoding), Terminal(encoding)
    with redirect_stdout(out), redirect_stderr(err):
        code = run(list(words))
    said = out.shown() + err.shown()
    assert said, words
    assert code != INTERNAL, (words, said[-2000:])
    assert "Traceback" not in said, words
    assert not CONTROLS.search(said), (words, said[-300:])
    return code


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_argument_of_any_command(encoding: str, odd: str) -> None:
    for name in sorted(COMMANDS.keys() - STAY_OR_WRITE):
        command = name.split()
        for words in ([*command, f"--{ODD[odd]}"], [*command, ODD[odd], ODD[odd], ODD[odd]]):
            assert _code(encoding, words) in (2, 5), words
    assert _code(encoding, [ODD[odd]]) == 2


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_path_that_is_written(encoding: str, odd: str) -> None:
    assert _code(encoding, ["regions", "certs", ODD[odd]]) in (0, 2)


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_value_of_a_variable_and_of_the_project(
    encoding: str, odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = (["status"], ["show", "config"], ["check"], ["runs"])
    for key in PROJECT_KEYS.values():
        monkeypatch.setenv(key.variable, ODD[odd])
        for words in calls:
            _code(encoding, words)
        monkeypatch.delenv(key.variable)
    for name in PROJECT_KEYS:
        Path("rollout.toml").write_bytes(f'{name} = "'.encode() + os.fsencode(ODD[odd]) + b'"\n')
        for words in calls:
            _code(encoding, words)


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_name_of_a_file(encoding: str, odd: str) -> None:
    for folder in ("inventories", "playbooks"):
        Path(folder, f"{ODD[odd]}.yaml").write_text("broken: [\n")
        assert _code(encoding, ["check"]) == 2
