"""Draws a run's live display, at the moment with the most nodes in flight after a failure, as an SVG.

python docs/pictures/draw.py STATE-FOLDER FILE
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from rollout.adapters.journal import SqlJournal
from rollout.adapters.live import screen
from rollout.app.following import Follower
from rollout.core.presentation.view import view
from rollout.core.run.facts import IN_MOTION, wrong
from rollout.core.run.state import Phase, RunState

THEME = TerminalTheme(
    (20, 24, 29),
    (214, 220, 226),
    [
        (20, 24, 29),
        (234, 91, 91),
        (63, 185, 112),
        (226, 180, 41),
        (91, 159, 223),
        (190, 130, 215),
        (80, 180, 200),
        (214, 220, 226),
    ],
    [
        (120, 130, 140),
        (250, 120, 120),
        (90, 215, 140),
        (245, 205, 80),
        (125, 185, 240),
        (210, 160, 230),
        (110, 205, 225),
        (250, 250, 250),
    ],
)
FORMAT = """\
<svg viewBox="-10 -8 WIDTH HEIGHT" xmlns="http://www.w3.org/2000/svg" role="img" aria-label="A run as rollout shows it">
<title>A run as rollout shows it</title>
<style>.{unique_id}-matrix {{ font: {char_height}px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }}
{styles}</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath>{lines}</defs>
<rect x="-10" y="-8" width="100%" height="100%" rx="8" fill="#14181d"/>
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g>
</svg>
"""
"""Rich's own, without its window and without a font from elsewhere."""


def telling(state: RunState) -> tuple[bool, bool, int]:
    """How much there is to see: released, something wrong, and how many in motion."""
    records = state.nodes.values()
    bad = any(wrong(record) for record in records)
    return state.phase is Phase.RUNNING and state.wave > 1, bad, sum(record.state in IN_MOTION for record in records)


def main(folder: str, file: str) -> None:
    journal = SqlJournal(Path(folder))
    header = journal.runs()[0]
    follower = Follower(journal, header.run)
    best = max((after for _, _, after in follower.catch_up()), key=telling)
    console = Console(
        record=True, width=112, file=io.StringIO(), force_terminal=True, color_system="truecolor", highlight=False
    )
    console.print(screen(view(best, best.now), best.now - header.at))
    drawn = console.export_svg(theme=THEME, code_format=FORMAT, unique_id="run")
    found = re.search(r'clip-terminal"><rect width="([0-9.]+)" height="([0-9.]+)"', drawn)
    if found is None:
        raise SystemExit("rich draws in another way: FORMAT wants a look")
    width, height = (f"{float(size) + space:.1f}" for size, space in zip(found.groups(), (20, 16), strict=True))
    Path(file).write_text(drawn.replace("WIDTH HEIGHT", f"{width} {height}"), encoding="utf-8")


main(*sys.argv[1:])
