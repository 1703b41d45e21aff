"""A real run, paused, continued and aborted by an operator in Chromium."""

from __future__ import annotations

import shutil

import pytest
from playwright.sync_api import Page, sync_playwright

from tests.controllers import PATIENCE, until
from tests.features.serve.serving import serving
from tests.story.conftest import Site
from tests.story.test_control import APPLY, new
from tests.story.test_faults import begun, few, policy, said, where

pytestmark = pytest.mark.process
__all__ = ["few"]


def press(page: Page, button: str, **fields: str) -> str:
    """Fill in the form of a button and send it; the answer."""
    form = page.locator("form", has=page.get_by_role("button", name=button))
    for name, value in fields.items():
        place = form.locator(f"[name={name}]")
        place.select_option(value) if name == "revert" else place.fill(value)
    form.get_by_role("button").click()
    page.get_by_text("Back to the run").wait_for()
    answer = page.inner_text("main")
    page.get_by_text("Back to the run").click()
    return answer


def test_an_operator_continues_pauses_and_aborts_a_run_in_a_browser(few: Site) -> None:
    """The first wave holds, and then a node begins every 50 seconds: the run waits for the operator."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("Chromium is not installed: the page is not looked at")
    policy(few, "pace: 20", "pace: 0.02")
    policy(few, "waves: [canary, rest]", "waves: [{canary: true, hold: true}, rest]")
    with begun(few, *APPLY) as process, serving(few.folder, "--control", state=few.state) as served:
        until(lambda: where(few).get("paused"), PATIENCE, "the run holds")
        run = where(few)["run"]
        with sync_playwright() as player:
            browser = player.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_page()
            page.set_default_timeout(60_000)
            page.goto(f"http://127.0.0.1:{served.port}/?token={served.token}")
            page.get_by_role("link", name=run).click()
            assert "handled the request: continue" in press(page, "Continue the run")
            assert "handled the request: pause" in press(page, "Pause the run", reason="the network team asks")
            assert "the network team asks" in few.rollout("status").out
            assert "nothing was done" in press(page, "Abort the run", cluster="smal")
            abort = {"cluster": "small", "reason": "enough", "revert": "node"}
            assert "handled the request: abort" in press(page, "Abort the run", **abort)
            until(lambda: page.inner_text("#standing") == "ended: halted", PATIENCE, "the page shows the end")
            assert "enough" in page.inner_text("main")
            browser.close()
        assert process.wait(PATIENCE) == 3, said(few)
    assert 1 <= new(few) < 6
