"""The live display, frame by frame. A terminal gets the display, and a pipe gets only lines."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from rollout.adapters.live import LiveDisplay, LiveProgress, bar, counts, log_texts, screen, watch
from rollout.adapters.progress import shows_live
from rollout.core.model.playbook import Cause
from rollout.core.presentation.event_log import LogLine, Tone
from rollout.core.presentation.view import view
from rollout.core.presentation.watch_keys import Keyboard, Panel
from rollout.core.run.events import RequestWord, Ticked
from rollout.core.run.state import NodeState, RunState
from tests.core.presentation import test_view as states
from tests.cost import calls
from tests.orders import in_state
from tests.story.conftest import Site, served

S = NodeState


STATES = (states.applying(), states.halted(), states.held(), states.paused())
KEYBOARDS = (
    Keyboard(),
    Keyboard(panel=Panel.NODES, said="abort: the journal cannot be read: " + "a long reason " * 30),
    Keyboard(panel=Panel.GATES, asking=RequestWord.CONTINUE),
)


def frame(state: RunState, width: int = 110, elapsed: float | None = 75.0) -> str:
    console = Console(record=True, force_terminal=True, width=width, file=io.StringIO(), color_system="truecolor")
    console.print(screen(view(state, state.now), elapsed))
    return console.export_text(styles=False)


def test_a_frame_shows_the_run_its_progress_and_its_duration() -> None:
    first, *rest = frame(states.applying()).splitlines()
    assert first == "run r1 on test   running   0 of 40 nodes"
    text = "\n".join(rest)
    assert re.search(r"time +75 s so far, about \d+ min( \d0 s)? left", text)
    assert re.search(r"▶ canary +2 ▒{30} 2 applying", text)
    assert re.search(r"  rest +38 ·{30} 38 pending", text)
    assert re.search(r"waits for +2 nodes of 2 racks: applying", text)
    assert re.search(r"budgets +wave 'canary' 0 of 1 · ", text)


def test_a_narrow_screen_loses_nothing_but_the_ends_of_bars() -> None:
    text = frame(states.halted(), width=80)
    assert "…" not in "".join(line for line in text.splitlines() if not re.match(r"[✓▶■ ] [a-z]+ +\d|racks", line))


def test_a_halted_frame_has_the_reason_and_the_failed_nodes() -> None:
    text = frame(states.halted())
    assert re.search(r"halted +1 of 40 nodes of the fleet failed", text)
    assert re.search(r"■ rest", text)
    assert "problems" in text
    assert re.search(r"1 reverted b-7: .*", text)


def test_a_frame_of_a_held_and_of_a_paused_run_shows_how_to_continue() -> None:
    assert "`rollout continue r1` promotes" in frame(states.held())
    assert "paused by ann@ops (lunch red)" in frame(states.paused())


def test_texts_of_nodes_cannot_control_the_terminal() -> None:
    state = states.soaking()
    bad = in_state(S.REVERTED, cause=Cause.FAILED, message="\x1b[2Jboo [bold]x[/bold]\nnext", reference="r\x1b]0;t\x07")
    text = frame(replace(state, nodes={**state.nodes, "a-1": bad}))
    assert "1 reverted a-1: boo [bold]x[/bold] next [r]" in text
    assert "\x1b" not in text


def test_a_held_run_is_on_hold_in_the_title() -> None:
    assert frame(states.held()).splitlines()[0].startswith("run r1 on test   on hold ")
    assert frame(states.paused()).splitlines()[0].startswith("run r1 on test   paused ")


def test_a_line_of_the_log_has_its_time_and_is_indented_where_it_is_wrapped() -> None:
    line = LogLine("wave rest: " + "a long reason " * 6, Tone.BAD)
    first, *rest = [text.plain for text in log_texts(line, 1_795_276_800.0, 50)]
    assert first.startswith("16:00:00  wave rest: a long")
    assert rest
    assert all(each.startswith(" " * 12) and len(each) <= 50 for each in rest)


def test_the_keys_are_on_a_screen_that_is_too_small_for_the_rest() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80, height=12, highlight=False)
    with LiveDisplay(console) as display:
        display.keyboard = Keyboard(panel=Panel.NODES)
        display.show(states.halted(), 0.0)
    assert "q leave" in out.getvalue()


@settings(deadline=None)
@given(
    width=st.integers(20, 120),
    height=st.integers(5, 40),
    keyboard=st.sampled_from(KEYBOARDS),
    state=st.sampled_from(STATES),
)
def test_what_a_key_does_is_on_a_screen_of_any_size(
    width: int, height: int, keyboard: Keyboard, state: RunState
) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=width, height=height, highlight=False, no_color=True)
    display = LiveDisplay(console)
    display.keyboard = keyboard
    with console.capture() as captured:
        console.print(display.region(state, 0.0))
    lines = re.sub(r"\x1b\[[0-9;]*m", "", captured.get()).splitlines()
    assert len(lines) < height
    assert all(cell_len(line) <= width for line in lines)
    words = " ".join(" ".join(lines).split())
    asking = keyboard.asking
    assert ("q leave" if asking is None else f"{asking.value} run r1 on test? y: yes, any other key: no") in words


def test_a_narrow_screen_shows_everything_without_longer_lines() -> None:
    lines = frame(states.halted(), width=60).splitlines()
    assert all(len(line) <= 60 for line in lines)
    assert any("■ rest" in line for line in lines)


@pytest.mark.parametrize(
    ("numbers", "shown"),
    [
        (((S.PENDING, 10),), "··········"),
        (((S.PENDING, 990), (S.CONFIRMED, 1), (S.FAILED, 1)), "█✗········"),
        (((S.PENDING, 5), (S.CONFIRMED, 5)), "█████·····"),
        ((), ""),
    ],
)
def test_a_bar_shows_every_state_with_at_least_one_node(numbers: tuple[tuple[NodeState, int], ...], shown: str) -> None:
    assert bar(numbers, 10).plain == shown


def test_every_state_has_its_own_sign_and_colour() -> None:
    assert counts(tuple((kind, 1) for kind in S)).plain.count("1 ") == len(S)
    assert len({bar(((kind, 1),), 1).plain for kind in S}) >= len(S) - 1


def test_watching_ends_with_the_summary() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=110, highlight=False)
    played = [states.applying(), states.soaking(), states.ended()]
    last = watch(((state, state.now) for state in played), console)
    assert last is played[-1]
    tail = out.getvalue().rsplit("\x1b", 1)[-1]
    assert "run r1 on test: done, exit code 0" in out.getvalue()
    assert "all: 40 confirmed" in tail


def test_the_display_costs_the_driver_almost_nothing_and_ends_when_the_run_breaks() -> None:
    out = io.StringIO()
    progress = LiveProgress(out)
    state = states.applying()

    def hear() -> None:
        for _ in range(1000):
            progress.on_event(Ticked(state.now), state, state)

    assert calls(hear) < 10 * calls(lambda: frame(state)), "a thousand events cost less than ten frames"
    progress.close()
    progress.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "live display"]


def test_a_terminal_that_cannot_be_redrawn_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    person, terminal = pty.openpty()
    try:
        with os.fdopen(terminal, "w") as out:
            monkeypatch.setenv("TERM", "xterm-256color")
            assert shows_live(out)
            monkeypatch.setenv("TERM", "dumb")
            assert not shows_live(out)
        assert not shows_live(io.StringIO())
    finally:
        os.close(person)


@pytest.fixture
def few(tmp_path: Path) -> Iterator[Site]:
    with served(tmp_path, "small-[001-004]") as made:
        yield made


def on_terminal(site: Site, *words: str) -> tuple[int, str]:
    """The exit code and everything that was written to a terminal of 110 columns."""
    person, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "110", "LINES": "40"}
    process = subprocess.Popen(
        site.command(*words), cwd=site.folder, stdin=terminal, stdout=terminal, stderr=terminal, env=environment
    )
    os.close(terminal)
    said = b""
    with suppress(OSError):  # the terminal has ended: no process has it open
        while chunk := os.read(person, 65536):
            said += chunk
    os.close(person)
    return process.wait(300), said.decode()


@pytest.mark.process
def test_apply_on_a_terminal_is_shown_live_and_leaves_the_summary_and_a_pipe_gets_lines(few: Site) -> None:
    code, said = on_terminal(few, "apply", "--cluster", "small", "--limit", "small-[001-004]", "--yes")
    assert code == 0, said
    assert "waits for" in said
    assert re.search(r"▶.*canary", said)
    assert "\x1b[?25l" not in said, "a process that is stopped or killed could not show the cursor again"
    summary = said.rsplit("\x1b[2K", 1)[1]
    assert "done, exit code 0" in summary
    assert "all: 4 confirmed" in summary
    assert "waits for" not in summary

    watched, seen = on_terminal(few, "watch")
    assert watched == 0, seen
    assert "all: 4 confirmed" in seen.rsplit("\x1b[2K", 1)[1]

    run = few.rollout("status", "-o", "json").json()["run"]
    piped = few.rollout("rollback", run, "--yes")
    assert piped.code == 0, piped.err
    assert "\x1b" not in piped.out
    assert "cleaning up on every node\n" in piped.out
