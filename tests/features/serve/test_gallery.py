"""The page of a run in each state, at the width of a telephone and of a desk, in light and dark: looked at, and measured."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from tests.controllers import PATIENCE, until
from tests.features.serve import gallery
from tests.features.serve.gallery import BACK, RUN, STATES, kept
from tests.features.serve.serving import Serving, serving

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("page")]
CHROMIUM = shutil.which("chromium")
WIDTHS = (390, 1440)
SCHEMES = ("light", "dark")
HIGHEST = 4000
"""Pixels of a page of 2,000 nodes before anything is unfolded, on a telephone."""

FIRST = 900
"""Pixels of a first screen at a desk."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: the pages are not looked at")
    with sync_playwright() as player:
        found = player.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


def opened(browser: Browser, served: Serving, path: str, width: int, scheme: str) -> Page:
    page = browser.new_page(
        viewport={"width": width, "height": FIRST},
        color_scheme="dark" if scheme == "dark" else "light",
        timezone_id="Europe/Berlin",
        bypass_csp=True,  # axe runs its script in it
    )
    page.set_default_timeout(PATIENCE * 1000)
    page.goto(f"http://127.0.0.1:{served.port}{served.page}{path}")
    if path != "/":
        until(lambda: page.evaluate("document.querySelectorAll('#rows a').length > 2"), PATIENCE, "the table of nodes")
    return page


def checked(page: Page, folder: Path, name: str) -> None:
    """Its picture, and what must hold of every page."""
    picture = folder / f"{name}.png"
    page.screenshot(path=picture, full_page=True)
    assert picture.stat().st_size > 10_000
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) <= 0, f"{name} scrolls sideways"
    found = Axe().run(page)
    assert found.violations_count == 0, f"{name}: {found.generate_report()}"


@pytest.mark.drawn(3)
@pytest.mark.parametrize("name", STATES)
def test_a_run_in_this_state(browser: Browser, tmp_path: Path, name: str) -> None:
    """``PICTURES`` of docs/serve.md are made the same way: `make pages`."""
    journal = kept(tmp_path, name)
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    paths = {"run": f"/runs/{RUN}", "list": "/", **({"rollback": f"/runs/{BACK}"} if name == "rolled-back" else {})}
    with serving(tmp_path) as served:
        for width in WIDTHS:
            for scheme in SCHEMES:
                for what, path in paths.items():
                    page = opened(browser, served, path, width, scheme)
                    checked(page, pictures, f"{name}-{what}-{width}-{scheme}")
                    page.close()
    if journal is not None:
        journal.close()


def test_the_first_screen_of_a_halted_run_of_2000_nodes(browser: Browser, tmp_path: Path) -> None:
    """At a desk all of it is on the first screen; on a telephone the page is short; both work with the keyboard."""
    gallery.halted(tmp_path)
    with serving(tmp_path) as served:
        page = opened(browser, served, f"/runs/{RUN}", 390, "light")
        assert page.evaluate("document.documentElement.scrollHeight") <= HIGHEST
        page.click("#map summary")
        until(lambda: page.is_visible(".cell >> nth=0"), PATIENCE, "the racks are unfolded")
        page.close()
        page = opened(browser, served, f"/runs/{RUN}", 1440, "light")
        until(lambda: page.title().startswith("HALTED – rno: 2 of 60 nodes of rack04"), PATIENCE, "the title")
        for needed in ("#now", "#waits .run-this", "#failed li", "#nearest li", "#waves table"):
            box = page.locator(needed).first.bounding_box()
            assert box is not None, needed
            assert box["y"] + box["height"] <= FIRST, f"{needed} is on the first screen"
        assert "serializeImagePulls: true → false" in page.inner_text("#now")
        assert page.locator("time").first.inner_text().startswith("20 Nov 2026, 17:00:00 ("), "in the time of Berlin"
        assert page.locator("time").first.get_attribute("title") == "2026-11-20 16:00:00 UTC"
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.id") == "search"
        page.keyboard.press("/")
        assert page.input_value("#search") == "/", "in a field it is a letter"
        table, racks = page.locator("#table").bounding_box(), page.locator("#map").bounding_box()
        assert table is not None
        assert racks is not None
        assert table["y"] < racks["y"], "the map of racks is behind the table"
        page.close()


def test_a_command_is_copied_by_its_button(browser: Browser, tmp_path: Path) -> None:
    gallery.halted(tmp_path, 120)
    with serving(tmp_path) as served:
        page = opened(browser, served, f"/runs/{RUN}", 1440, "light")
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.click("#waits .copy >> nth=0")
        until(lambda: page.inner_text("#waits .copy >> nth=0") == "Copied", PATIENCE, "the button")
        command = page.inner_text("#waits code >> nth=0")
        assert page.evaluate("navigator.clipboard.readText()") == command
        assert command.startswith("rollout ")
        page.close()


def test_the_filter_of_the_list_is_in_its_address(browser: Browser, tmp_path: Path) -> None:
    gallery.rolled_back(tmp_path, 60)
    with serving(tmp_path) as served:
        page = opened(browser, served, "/", 390, "light")
        cells = page.evaluate(
            "[...document.querySelectorAll('.runs td')].map(cell => cell.getBoundingClientRect().width)"
        )
        assert min(cells) > 300, "on a telephone each cell has the width of the page"
        change = page.locator(".runs td:nth-child(2) >> nth=1")
        assert "serializeImagePulls: true → false" in change.inner_text()
        assert "--image-pull-progress-deadline" not in change.inner_text()
        change.locator("summary", has_text="1 more setting").click()
        until(lambda: "--image-pull-progress-deadline: not set → 5m" in change.inner_text(), PATIENCE, "the other one")
        page.close()
        page = opened(browser, served, "/", 1440, "light")
        assert page.locator(".runs tbody tr").count() == 2
        page.keyboard.press("/")
        page.keyboard.type("slower")
        page.keyboard.press("Enter")
        page.wait_for_url("**text=slower**")
        assert page.locator(".runs tbody tr").count() == 1
        assert "bob@ops" in page.inner_text(".runs")
        page.click(".runs .run")
        page.wait_for_url(f"**/runs/{BACK}")
        page.click(f"a >> text={RUN}")
        page.wait_for_url(f"**/runs/{RUN}")
        page.close()
