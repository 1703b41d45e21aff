"""Screenshots of the pages of ``rollout serve`` on live runs of an embedded fleet: a hold, an abort, a halt, a rollback.

python docs/pictures/pages.py WORK-FOLDER FOLDER-FOR-PICTURES
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

HERE = Path(__file__).resolve().parents[2]
LIMIT = "tess-node-[0001-0240]"
SICK = "tess-node-[0195-0240]"
SIZE = (1280, 1500)
PATIENCE = 600.0
ROLLOUT = (sys.executable, "-m", "rollout.cli")


def rollout(work: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*ROLLOUT, *words], cwd=work, capture_output=True, text=True, check=False)


def status(work: Path) -> dict[str, object]:
    """Of the newest run; empty before there is one."""
    found = rollout(work, "status", "-o", "json")
    return json.loads(found.stdout) if found.returncode == 0 else {}


def until(what: str, holds: Callable[[], object]) -> None:
    ends, between = time.monotonic() + PATIENCE, threading.Event()
    while not holds():
        if time.monotonic() > ends:
            raise SystemExit(f"not within {PATIENCE:.0f} s: {what}")
        between.wait(0.5)


def project(work: Path) -> None:
    """The example project with short soaks and a hold after the canary."""
    shutil.rmtree(work, ignore_errors=True)
    (work / "playbooks").mkdir(parents=True)
    for name in ("inventories", "templates"):
        (work / name).symlink_to(HERE / name)
    text = (HERE / "playbooks/image-pulls.yaml").read_text()
    for old, new in (
        ("soak: 60s", "soak: 6s"), ("  perRack: 5%", "  perRack: 20%"), ("  wave: 2%", "  wave: 3"), ("  fleet: 1%", "  fleet: 2%"),
    ):  # fmt: skip
        text = text.replace(old, new)
    (work / "playbooks/image-pulls.yaml").write_text(text)
    held = re.sub(r"(?m)^(\s*- )canary\b.*$", r"\1{canary: true, hold: true}", text).replace(
        "name: image-pulls", "name: held"
    )
    (work / "playbooks/held.yaml").write_text(held)


class Photographer:
    """Opens the pages as an operator does, and keeps what it sees."""

    def __init__(self, browser: Browser, address: str, folder: Path) -> None:
        self._browser, self._folder = browser, folder
        first = browser.new_page()
        first.goto(address)  # it works once: the answer leads to the path of the pages
        self._pages = first.url
        first.close()

    def take(self, run: str, name: str, standing: str, scheme: str = "light") -> None:
        page = self._browser.new_page(
            viewport={"width": SIZE[0], "height": SIZE[1]}, color_scheme="dark" if scheme == "dark" else "light"
        )
        page.set_default_timeout(PATIENCE * 1000)
        page.goto(f"{self._pages}runs/{run}")
        until(f"{name} shows {standing}", lambda: page.inner_text("#standing") == standing)
        until(f"{name} shows nodes", lambda: page.locator("#rows a").count() > 5)
        page.screenshot(path=self._folder / f"{name}.png", full_page=name == "halt")
        page.close()


def apply(work: Path, playbook: str, reason: str) -> subprocess.Popen[bytes]:
    words = ("apply", "--cluster", "rno", "--limit", LIMIT, "--playbook", playbook, "--yes", "--reason", reason)
    ssh = ("--ssh-config", ".rollout/lab/ssh_config")
    return subprocess.Popen([*ROLLOUT, *words, *ssh], cwd=work, stdout=sys.stderr)


def runs(work: Path, camera: Photographer) -> None:
    """The four runs, one after another on the same fleet."""
    held = apply(work, "held", "OPS-1881: pulls time out")
    until("the canary holds", lambda: (status(work).get("paused") or {}).get("held"))  # type: ignore[attr-defined]
    run = str(status(work)["run"])
    camera.take(run, "hold", "on hold")
    rollout(work, "abort", "--revert", "run", "--reason", "the network team asks")
    held.wait(PATIENCE)
    camera.take(run, "abort", "ended: halted")
    rollout(work, "lab", "fault", SICK, "never-healthy")
    apply(work, "image-pulls", "OPS-1881: pulls time out").wait(PATIENCE)
    run = str(status(work)["run"])
    camera.take(run, "halt", "ended: halted")
    rollout(
        work, "rollback", run, "--yes", "--ssh-config", ".rollout/lab/ssh_config", "--reason", "back to the old pulls"
    )
    camera.take(str(status(work)["run"]), "rollback", "ended: done", "dark")


def main(work: Path, folder: Path) -> None:
    project(work)
    folder.mkdir(exist_ok=True)
    up = rollout(work, "lab", "up", "--cluster", "rno", "--limit", LIMIT, "--restart-sec", "2")
    if up.returncode:
        raise SystemExit(up.stderr)
    served = subprocess.Popen([*ROLLOUT, "serve", "--port", "0"], cwd=work, stdout=subprocess.PIPE, text=True)
    try:
        address = next(found[0] for line in served.stdout or () if (found := re.search(r"http://127\S+", line)))
        with sync_playwright() as player:
            browser = player.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            runs(work, Photographer(browser, address, folder))
            browser.close()
    finally:
        served.terminate()
        rollout(work, "lab", "down")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
