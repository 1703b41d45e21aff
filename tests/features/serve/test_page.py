"""The page in Chromium: what a person sees of 2,000 nodes, with the keyboard, in dark and light, while a run goes on."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from rollout.core.run.events import PauseAsked
from rollout.core.run.journal_codec import encode_event
from tests.controllers import PATIENCE, until
from tests.core.presentation import journals
from tests.features.serve.serving import Serving, keep, serving

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("page")]  # a fleet of 2,000 nodes and a browser for all
CHROMIUM = shutil.which("chromium")
RUN = "r20261120-160000-ab12"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: the page is not looked at")
    with sync_playwright() as player:
        found = player.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A halted run of some 2,000 nodes."""
    folder = tmp_path_factory.mktemp("fleet")
    keep(folder, RUN, *journals.halted(2000)).close()
    with serving(folder) as found:
        yield found


@contextmanager
def opened(
    browser: Browser, served: Serving, *, scheme: str = "light", width: int = 1280, checked: bool = False
) -> Iterator[Page]:
    """The page of the run, complete; an error on its console fails the test. ``checked``: axe may run its script in it."""
    page = browser.new_page(
        color_scheme="dark" if scheme == "dark" else "light",
        viewport={"width": width, "height": 900},
        bypass_csp=checked,
    )
    said: list[str] = []
    page.set_default_timeout(PATIENCE * 1000)
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    try:
        page.goto(f"http://127.0.0.1:{served.port}{served.page}/runs/{RUN}")
        becomes(page, "document.querySelectorAll('#rows a').length > 5")
        becomes(page, "[...document.querySelectorAll('.cell > span')].every(counts => counts.textContent)")
        yield page
        assert said == []
    finally:
        page.close()


def becomes(page: Page, holds: str) -> None:
    """Wait for it. The page's policy forbids playwright's own way, which evaluates text inside the page."""
    until(lambda: page.evaluate(holds), PATIENCE, holds)


def text(page: Page, selector: str) -> str:
    return page.inner_text(selector)


def shows(page: Page, words: str) -> None:
    """Wait until the count of nodes says this."""
    becomes(page, f"document.getElementById('found').textContent === {words!r}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser: Browser, fleet: Serving, scheme: str) -> None:
    with opened(browser, fleet, scheme=scheme, checked=True) as page:
        node = page.evaluate("document.querySelector('#rows a').href")
        base = f"http://127.0.0.1:{fleet.port}{fleet.page}"
        for address in (f"{base}/runs/{RUN}", f"{base}/runs/{RUN}/plan", node, f"{base}/"):
            page.goto(address)
            found = Axe().run(page)
            assert found.violations_count == 0, found.generate_report()


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_window_and_no_label_covers_another(
    browser: Browser, fleet: Serving, width: int
) -> None:
    with opened(browser, fleet, width=width) as page:
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0
        page.evaluate("document.getElementById('map').open = true")
        cells = page.evaluate(
            "[...document.querySelectorAll('.cell')].map(e => {const b = e.getBoundingClientRect(); return [b.x, b.y, b.right, b.bottom]})"
        )
        assert len(cells) == 34, "a cell for each rack"
        apart = all(
            a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1] for i, a in enumerate(cells) for b in cells[:i]
        )
        assert apart
        page.evaluate(
            "document.querySelectorAll('main *:not(option)').forEach(e => { if (!e.children.length && e.textContent.trim()) e.textContent = 'n'.repeat(250) })"
        )
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, "names and messages of any length"


def test_the_sections_are_in_the_order_in_which_an_operator_needs_them(browser: Browser, fleet: Serving) -> None:
    with opened(browser, fleet) as page:
        titles = page.evaluate("[...document.querySelectorAll('h2')].map(e => e.textContent)")
        assert titles == [
            "What you can do now", "Distance to halt", "What changes", "Failed nodes", "Waves", "Nodes", "Racks and zones",
            "Failed and reverted nodes, the culprit first", "What the gates measured", "Waves over time",
            "Predicted and actual times", "Facts of the run",
        ]  # fmt: skip


def test_the_search_finds_a_node_that_is_not_on_the_screen_by_name_and_by_message(
    browser: Browser, fleet: Serving
) -> None:
    with opened(browser, fleet) as page:
        total = text(page, "#found").partition(" of ")[2]
        drawn = page.locator("#rows a").count()
        assert drawn < 60, "only those in the window are drawn"
        assert "tess-node-1987" not in text(page, "#rows")
        page.fill("#search", "NODE-1987")
        shows(page, f"1 of {total}")
        becomes(page, "document.getElementById('rows').textContent.includes('tess-node-1987')")
        page.fill("#search", "failed to parse kubelet flag")
        becomes(page, "document.getElementById('found').textContent.startsWith('2 of')")
        becomes(page, "document.getElementById('rows').textContent.includes('<failed to parse kubelet flag>')")
        page.click("#all")
        shows(page, f"{total.partition(' ')[0]} of {total}")
        becomes(page, "document.querySelectorAll('#rows a').length > 5")  # drawn: only then it can be scrolled
        page.evaluate("document.getElementById('window').scrollTop = 1e9")
        becomes(page, "document.getElementById('rows').textContent.includes('tess-node-2000')")


def test_a_cell_of_the_map_filters_the_table_with_the_keyboard_alone(browser: Browser, fleet: Serving) -> None:
    with opened(browser, fleet) as page:
        cell = page.locator(".cell", has_text="rack04")
        assert "reverted" in cell.inner_text()
        assert cell.get_attribute("aria-pressed") == "false"
        cell.focus()
        page.keyboard.press("Enter")
        becomes(page, "document.getElementById('found').textContent.endsWith('in rack04')")
        assert cell.get_attribute("aria-pressed") == "true"
        page.keyboard.press("Enter")
        becomes(page, "!document.getElementById('found').textContent.includes('in rack04')")
        page.locator("#window").focus()
        page.keyboard.press("End")
        becomes(page, "document.getElementById('window').scrollTop > 1000")
        page.select_option("#state", "unreachable")
        becomes(page, "document.getElementById('found').textContent.startsWith('1 of')")
        page.locator("#rows a").first.focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/nodes/*")
        assert "no answer on port 22 within 10 s" in text(page, "main")


def test_a_state_is_a_word_and_a_sign_not_only_a_colour(browser: Browser, fleet: Serving) -> None:
    with opened(browser, fleet) as page:
        page.select_option("#state", "reverted")
        becomes(page, "!document.getElementById('rows').textContent.includes('confirmed')")
        becomes(page, "document.getElementById('rows').textContent.includes('↩ reverted')")
        assert text(page, ".legend >> nth=0").split() == [
            "confirmed", "↩", "reverted", "✗", "failed", "!", "refused", "?", "unreachable", "?", "unknown", "▸", "applying",
            "or", "applied", "–", "skipped", "×", "gone", "·", "pending",
        ]  # fmt: skip


def test_a_page_on_paper_has_every_section_and_no_buttons(browser: Browser, fleet: Serving) -> None:
    with opened(browser, fleet) as page:
        page.emulate_media(media="print")
        assert not page.is_visible("nav")
        assert not page.is_visible("#search")
        assert page.is_visible("#waits")


def test_a_run_is_followed_and_the_main_thread_is_not_blocked(browser: Browser, tmp_path: Path) -> None:
    """What blocks it is measured by Chromium: tasks of more than 50 ms after the page was complete."""
    plan, play = journals.halted(2000)
    half = len(play.journal) // 2
    journal = keep(tmp_path, RUN, plan, play, half)
    with serving(tmp_path) as served, opened(browser, served) as page:
        page.evaluate(
            "window.long = []; new PerformanceObserver(l => window.long.push(...l.getEntries().map(e => e.duration)))"
            ".observe({type: 'longtask'})"
        )
        events = [encode_event(event) for event in play.journal[half:]]
        for begin in range(0, len(events), 500):
            journal.append(RUN, events[begin : begin + 500])
        journal.release(plan.cluster, RUN)
        becomes(page, "document.getElementById('standing').textContent === 'ended: halted'")
        assert "halted" in text(page, "#now").lower()
        assert "rollout resume" in text(page, "#waits")
        print("tasks over 50 ms, in ms:", page.evaluate("window.long"))  # noqa: T201 - a figure for people
    journal.close()


def test_a_page_says_that_the_server_is_gone_and_connects_again(browser: Browser, tmp_path: Path) -> None:
    keep(tmp_path, RUN, *journals.done(60)).close()
    with serving(tmp_path) as served:
        page = browser.new_page()
        page.set_default_timeout(PATIENCE * 1000)
        page.goto(f"http://127.0.0.1:{served.port}{served.page}/runs/{RUN}")
        becomes(page, "document.getElementById('standing').textContent === 'ended: done'")
        served.process.kill()
        becomes(page, "document.getElementById('standing').textContent.startsWith('connection lost')")
        page.close()


def test_what_is_typed_into_a_form_stays_while_the_run_goes_on_and_while_its_controller_is_away(
    browser: Browser, tmp_path: Path
) -> None:
    """The words, the focus and the cursor: a pause by somebody else, and a lease that lapses, come in between."""
    plan, play = journals.stopped(lambda state: state.wave == 2)
    journal = keep(tmp_path, RUN, plan, play, len(play.journal))
    with serving(tmp_path, "--control") as served, opened(browser, served) as page:
        typed = page.locator("form[action$='/abort'] [name=cluster]")
        typed.fill("rn")
        typed.evaluate("field => field.setSelectionRange(1, 1)")
        page.locator("form[action$='/abort'] [name=revert]").select_option("node")
        journal.append(RUN, [encode_event(PauseAsked(journals.BEGAN + 3600, "ann@ops", "lunch", 1))])
        becomes(page, "document.querySelector('#control').textContent.includes('Continue the run')")
        assert page.evaluate("[document.activeElement.name, document.activeElement.selectionStart]") == ["cluster", 1]
        journal.release(plan.cluster, RUN)
        becomes(page, "!document.querySelector('#control form')")
        journal.acquire(plan.cluster, RUN)
        becomes(page, "!!document.querySelector('#control form')")
        assert typed.input_value() == "rn"
        assert page.locator("form[action$='/abort'] [name=revert]").input_value() == "node"
    journal.close()


def test_what_an_operator_holds_stays_while_the_page_changes(browser: Browser, tmp_path: Path) -> None:
    """The focus, a selection and a click that has begun: the run goes on, and somebody else pauses it, in between."""
    plan, play = journals.stopped(lambda state: state.wave == 3)
    half = len(play.journal) // 2
    journal = keep(tmp_path, RUN, plan, play, half)
    with serving(tmp_path, "--control") as served, opened(browser, served) as page:
        page.focus("#change a")
        page.evaluate("getSelection().selectAllChildren(document.querySelector('#control code'))")
        page.evaluate("window.held = document.querySelectorAll('#rows a')[5]")
        shown, now = text(page, "#rows"), text(page, "#now")
        events = [encode_event(event) for event in play.journal[half:]]
        journal.append(RUN, [*events, encode_event(PauseAsked(journals.BEGAN + 3600, "ann@ops", "lunch", 1))])
        becomes(page, "document.querySelector('#control').textContent.includes('Continue the run')")
        until(lambda: text(page, "#rows") != shown and text(page, "#now") != now, PATIENCE, "all has changed")
        assert page.evaluate("document.activeElement.textContent") == "The whole plan"
        undo = f"rollout rollback --state {tmp_path}/state --cluster rno --emergency"
        assert page.evaluate("getSelection().toString()") == undo
        assert page.evaluate("window.held.isConnected"), "a click on it would still be one"
        page.evaluate("window.held.focus()")
        page.evaluate("document.getElementById('search').value = 'no node'")
        page.evaluate("document.getElementById('search').dispatchEvent(new Event('input'))")
        becomes(page, "!window.held.isConnected")
        assert page.evaluate("document.activeElement.id") == "window", "the keyboard goes on from the table"
    journal.close()


def test_a_page_that_lost_its_server_keeps_what_was_typed_and_names_the_way_back(
    browser: Browser, tmp_path: Path
) -> None:
    """The page is left, and the browser's back button shows it as it was. Then the server starts again, with another secret."""
    plan, play = journals.stopped(lambda state: state.wave == 2)
    journal = keep(tmp_path, RUN, plan, play, len(play.journal))
    page = browser.new_page()
    page.set_default_timeout(PATIENCE * 1000)
    with serving(tmp_path, "--control") as served:
        page.goto(f"http://127.0.0.1:{served.port}{served.page}/runs/{RUN}")
        becomes(page, "document.getElementById('standing').textContent !== 'reading the journal'")
        page.fill("form[action$='/abort'] [name=cluster]", "rn")
        page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))")
        journal.append(RUN, [encode_event(PauseAsked(journals.BEGAN + 3600, "ann@ops", "lunch", 1))])
        page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
        becomes(page, "document.querySelector('#control').textContent.includes('Continue the run')")
    becomes(page, "document.getElementById('standing').textContent.startsWith('connection lost')")
    with serving(tmp_path, "--control", "--port", str(served.port)):
        becomes(page, "document.getElementById('standing').textContent.includes('open the address that it printed')")
        assert page.input_value("form[action$='/abort'] [name=cluster]") == "rn"
    page.close()
    journal.close()


def test_without_scripts_a_page_says_that_it_must_be_loaded_again(browser: Browser, fleet: Serving) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto(f"http://127.0.0.1:{fleet.port}{fleet.page}/runs/{RUN}")
    assert "reading the journal" not in text(page, "main")
    assert "load it again" in text(page, "main")
    assert "Halted" in text(page, "#now")
    page.close()
