"""The page: complete, self-contained, harmless, small enough; and checked in Chromium."""

from __future__ import annotations

import html
import json
import re
import shutil
import struct
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rollout.core.model.playbook import Cause, Limits, Share
from rollout.core.model.verdict import Reading, Verdict
from rollout.core.presentation.left_silences import LeftSilence
from rollout.core.presentation.pages.markup import Html, tag
from rollout.core.presentation.pages.page import page
from rollout.core.presentation.pages.story import OutsideWord, Story
from rollout.core.presentation.summary_text import Afterwards, Attendance
from rollout.core.run.events import Resumed
from rollout.core.run.state import Goal, NodeState
from tests.controllers import PATIENCE
from tests.core.presentation import journals
from tests.core.presentation.journals import done_story, story_of, story_under_way
from tests.orders import in_state, make_order
from tests.plays import confirmed_before

CHROMIUM = shutil.which("chromium")
WINDOW = (1200, 5200)


@cache
def halted() -> Story:
    plan, play = journals.halted()
    return story_of(play, plan)


@cache
def gate_failed() -> Story:
    plan, play = journals.gate_failed()
    return story_of(play, plan)


@cache
def gate_unknown() -> Story:
    plan = journals.plan_of(60)
    play = journals.play_of(plan)
    play.bad_round, play.bad = 2, Reading("pull errors", Verdict.UNKNOWN, "Prometheus did not answer in 10 s")
    play.run()
    return story_of(play, plan)


@cache
def an_hour_later() -> Story:
    """Its first controller died: its part of the time line is too narrow for text."""
    plan, play = journals.stopped(lambda state: state.wave == 1)
    play.crash(away=3600.0)
    play.feed(Resumed(play.now, 2))
    play.go_on()
    return story_of(play, plan)


def not_begun() -> Story:
    plan = journals.plan_of(60)
    return story_of(journals.play_of(plan), plan)


@cache
def rollback() -> Story:
    game = confirmed_before(make_order({"a": 20}, goal=Goal.REVERT, limits=Limits(per_rack=Share(percent=50.0))))
    game.run()
    return story_of(game)


ALL: list[Callable[[], Story]] = [
    halted,
    gate_failed,
    gate_unknown,
    done_story,
    story_under_way,
    an_hour_later,
    not_begun,
    rollback,
]


class Outline(HTMLParser):
    """Collects tags opened and closed in order, ids, and everything that could fetch something."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.fetches: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in ("meta", "br", "hr", "wbr"):
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("src", "href", "xlink:href", "srcset", "data", "action", "style") or name.startswith("on"):
                self.fetches.append(f"{tag} {name}={value}")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("story", ALL, ids=[story.__name__ for story in ALL])
def test_the_page_is_well_formed_and_fetches_and_runs_nothing(story: Callable[[], Story]) -> None:
    text = page(story())
    outline = Outline()
    outline.feed(text)
    outline.close()
    assert outline.open == []
    assert outline.fetches == []
    assert not {"script", "link", "img", "iframe", "object", "embed"} & set(outline.tags)
    assert len(outline.ids) == len(set(outline.ids))
    assert {"next", "story", "time", "racks", "failures", "gates"} <= set(outline.ids)
    assert "default-src &#x27;none&#x27;" in text
    assert "url(" not in text
    assert "@import" not in text


def test_text_from_a_node_or_a_person_stays_text() -> None:
    evil = "<script>alert(1)</script>\x1b[2J\x00\u202e\"'><img src=x onerror=alert(2)>"
    base = halted()
    name = next(iter(base.state.nodes))
    record = in_state(NodeState.FAILED, cause=Cause.FAILED, message=evil, reference=evil)
    wrong = replace(base.wrongs[0], message=evil, reference=evil)
    story = replace(
        base,
        past=replace(base.past, who=evil, reason=evil),
        state=replace(base.state, nodes={**base.state.nodes, name: record}),
        wrongs=(wrong, *base.wrongs),
        judged=tuple(replace(judged, reading=Reading(evil, Verdict.FAIL, evil)) for judged in base.judged),
    )
    text = page(story)
    outline = Outline()
    outline.feed(text)
    assert "script" not in outline.tags
    assert "img" not in outline.tags
    assert outline.fetches == []
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
    assert html.escape("<script>alert(1)</script>") in text


def test_events_after_the_run_are_shown_with_its_end() -> None:
    dead = Afterwards(
        2_000_000_000.0,
        Attendance(alive=False, host="desk<b>", silent=41.2),
        (LeftSilence("s1", "", "canary", 2_000_000_060.0),),
    )
    text = page(story_under_way(), dead)
    assert "<p>no controller is at work on this run: the last heartbeat came 41 s ago from desk&lt;b&gt;</p>" in text
    assert "<p>alerts of wave canary stay silenced until 2033-05-18" in text
    ended = page(done_story(), replace(dead, silences=(), rolled_back={"r9": ("a-1", "a-2")}))
    assert "<p>since then run r9 rolled it back on 2 nodes (a-[1-2])</p>" in ended
    assert "no controller" not in ended, "a run that has ended needs no controller"
    assert "no controller" not in page(story_under_way()), "a controller works on it"


def test_markup_escapes_everything_that_is_not_markup() -> None:
    assert tag("p", "a < b & c", class_='x"y') == '<p class="x&quot;y">a &lt; b &amp; c</p>'
    assert tag("p", tag("b", "x"), " y ", None, ["1", "2"]) == "<p><b>x</b> y 12</p>"
    assert (
        tag("rect", x=1.0, y=2.25, view_box=Html("0 0 1 1"), fill=None)
        == '<rect x="1" y="2.2" viewBox="0 0 1 1"></rect>'
    )


@pytest.mark.process
def test_two_thousand_nodes_are_a_page_of_less_than_five_megabytes_and_cost_no_more_than_a_few_readings() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.core.presentation.large"], capture_output=True, text=True, check=True
    )
    cost = json.loads(done.stdout)
    assert cost["nodes"] > 2000
    assert cost["events"] > 15_000
    assert cost["bytes"] < 5_000_000
    assert cost["calls"] < 22 * cost["reading"], "as often could the journal's events just be read; it is 19 times"


# In Chromium.


def look(tmp_path: Path, text: str, *flags: str) -> str:
    """Chromium's output for this page; an error on its console fails the test."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: the page is not looked at")
    file = tmp_path / "report.html"
    file.write_text(text)
    quiet = ["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
    apart = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile"]
    shown = [f"--window-size={WINDOW[0]},{WINDOW[1]}", "--hide-scrollbars", "--enable-logging=stderr", "--v=0"]
    words = [CHROMIUM, *quiet, *apart, *shown, *flags, file.as_uri()]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    return done.stdout


def seen(document: str) -> str:
    """The text of a document as a person reads it, without style sheet and tooltips."""
    body = re.sub(r"<(style|title)\b.*?</\1>", "", document, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


STORIES = [
    (halted, ["Halted (exit code 3)", "2 of 60 nodes of rack04 failed", "kubelet.service failed: exit code 1",
              "<failed to parse kubelet flag> & gone", "Reverted: ", "Pending recovery, the change is still to be applied or reverted there: ", "rollout resume r2026",
              "halted at 2:", "pulls time out", "image-pull-progress-deadline", "5 of 5 nodes reverted once", "used up"]),
    (gate_failed, ["gate 'pull errors': touched 0.31", "0.31 vs 0.0092", "FAIL", "revert: run"]),
    (gate_unknown, ["UNKNOWN", "Prometheus did not answer in 10 s"]),
    (done_story, ["Done, incomplete (exit code 4)", "No node failed.", "rollout verify --cluster rno"]),
    (rollback, ["Rollback of 20 nodes on test", "Done (exit code 0)", "20 reverted"]),
]  # fmt: skip


@pytest.mark.process
@pytest.mark.parametrize(("story", "words"), STORIES, ids=[story.__name__ for story, _ in STORIES])
def test_chromium_shows_the_story_without_an_error(
    tmp_path: Path, story: Callable[[], Story], words: list[str]
) -> None:
    told = seen(look(tmp_path, page(story()), "--dump-dom"))
    assert [word for word in words if word not in told] == []


@pytest.mark.process
def test_an_error_on_the_console_would_be_seen(tmp_path: Path) -> None:
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: the page is not looked at")
    with pytest.raises(AssertionError, match="CONSOLE"):
        look(tmp_path, page(done_story()).replace("</body>", "<script>1</script></body>"), "--dump-dom")


@pytest.mark.process
def test_chromium_paints_every_picture(tmp_path: Path) -> None:
    shot = tmp_path / "shot.png"
    look(tmp_path, page(halted()), f"--screenshot={shot}", "--force-device-scale-factor=0.5")
    colours = pixels(shot)
    for name, colour in (("confirmed", 0x2E9E5B), ("reverted", 0x8E5BA8), ("wrong", 0xD13C3C)):
        assert colours[colour] > 50, f"{name} is to be seen"


@pytest.mark.process
def test_every_picture_has_a_size_and_a_label(tmp_path: Path) -> None:
    """Measured by Chromium itself: a copy of the page that may run a script, which writes the sizes into the title."""
    measure = (
        "<script>document.title=[...document.querySelectorAll('svg')].map(s=>{const b=s.getBoundingClientRect();"
        "return Math.round(b.width)+'x'+Math.round(b.height)}).join(' ')</script>"
    )
    text = page(halted())
    free = text.replace("default-src &#x27;none&#x27;;", "").replace("</body>", f"{measure}</body>")
    found = re.search(r"<title>([0-9x ]+)</title>", look(tmp_path, free, "--dump-dom"))
    assert found, "the script ran"
    sizes = [tuple(map(int, size.split("x"))) for size in found[1].split()]
    assert len(sizes) > 10
    assert all(width > 0 and height > 0 for width, height in sizes)
    assert sum(width > 900 for width, _ in sizes) == 2, "the two wide pictures are as wide as the page"
    assert text.count('role="img"') + text.count('role="region"') == text.count("aria-label=")


@pytest.mark.process
def test_no_label_overprints_another(tmp_path: Path) -> None:
    """A run with holds of an hour and many requests within seconds; measured by Chromium."""
    base = an_hour_later()
    at = base.said[0].at
    said = tuple(OutsideWord(at + number * 2.0, "continued", "continued by ann@ops") for number in range(40))
    readings = tuple(replace(base.judged[0], at=at + number) for number in range(200))
    measure = (
        "<script>document.title=[...document.querySelectorAll('svg.wide')].map(s=>{const b=[...s.querySelectorAll('text')]"
        ".map(e=>[e.textContent,e.getBoundingClientRect()]);return b.flatMap(([t,a],i)=>b.slice(0,i).filter(([u,c])=>"
        "a.left<c.right-1&&c.left<a.right-1&&a.top<c.bottom-3&&c.top<a.bottom-3).map(([u])=>t+'/'+u)).concat(b.length)})"
        ".join(' ')</script>"
    )
    text = page(replace(base, said=said, judged=readings))
    free = text.replace("default-src &#x27;none&#x27;;", "").replace("</body>", f"{measure}</body>")
    found = re.search(r"<title>([^<]*)</title>", look(tmp_path, free, "--dump-dom"))
    assert found, "the script ran"
    assert re.fullmatch(r"\d\d+ \d\d+", found[1]), found[1]


def test_the_culprits_and_their_diff_come_before_the_pictures() -> None:
    story = halted()
    text = page(story)
    places = [
        text.index(f'id="{name}"') for name in ("next", "failures", "changes", "distance", "time", "racks", "gates")
    ]
    assert places == sorted(places)
    culprits = {wrong.node for wrong in story.wrongs if wrong.cause is not None}
    opened = text.partition('<details open="open">')[2].partition("</details>")[0]
    plan = story.past.plan
    assert plan is not None
    groups = {plan.nodes[name].group for name in culprits}
    assert any(each.label in opened for each in plan.groups if each.name in groups)
    assert '<span class="add">+' in opened


def test_every_colour_of_the_lanes_is_in_the_legend() -> None:
    text = page(halted())
    time = text.partition('id="time"')[2].partition('id="racks"')[0]
    lanes, _, legend = time.partition('class="legend"')
    drawn = set(re.findall(r'class="((?:s|span)-[a-z]+|folded)"', lanes))
    assert len(drawn) > 4
    assert drawn <= set(re.findall(r'class="([a-z-]+)"', legend))


def test_what_is_left_behind_has_its_command() -> None:
    base = done_story()
    name = next(iter(base.state.nodes))
    record = replace(base.state.nodes[name], leftovers=("/run/systemd/x.timer",))
    text = page(replace(base, state=replace(base.state, nodes={**base.state.nodes, name: record})))
    assert (
        f"<code>rollout cluster unlock --cluster rno --limit {name} --reason …</code> remove what is left behind on 1 node"
        in text
    )


def pixels(png: Path) -> Counter[int]:
    """The count of each colour (0xRRGGBB) in an 8-bit RGB or RGBA picture."""
    data = png.read_bytes()
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    assert depth == 8
    step = {2: 3, 6: 4}[kind]
    packed, at = b"", 8
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        if data[at + 4 : at + 8] == b"IDAT":
            packed += data[at + 8 : at + 8 + size]
        at += size + 12
    rows = zlib.decompress(packed)
    line, before = width * step + 1, bytearray(width * step)
    found: Counter[int] = Counter()
    for y in range(height):
        row = bytearray(rows[y * line + 1 : (y + 1) * line])
        unfilter(rows[y * line], row, before, step)
        colours = zip(row[0::step], row[1::step], row[2::step], strict=True)
        found.update(red << 16 | green << 8 | blue for red, green, blue in colours)
        before = row
    return found


def unfilter(kind: int, row: bytearray, before: bytearray, step: int) -> None:
    """Undoes PNG's five row filters in place."""
    if kind == 0:
        return
    for at in range(len(row)):
        left = row[at - step] if at >= step else 0
        up, corner = before[at], before[at - step] if at >= step else 0
        if kind == 1:
            row[at] = (row[at] + left) & 255
        elif kind == 2:
            row[at] = (row[at] + up) & 255
        elif kind == 3:
            row[at] = (row[at] + (left + up) // 2) & 255
        else:
            guess = min((left, up, corner), key=lambda value: abs(left + up - corner - value))
            row[at] = (row[at] + guess) & 255
