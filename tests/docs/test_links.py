"""Links have targets; files, tests and references that a page names exist; the README links to every page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rollout import errors
from tests.docs.pages import FRONT, PAGES, README, RECORDS, anchors, inline_code, links
from tests.places import ROOT

OURS = re.compile(r"^(?:tests|docs|rollout|inventories|playbooks|templates)/[\w./-]+$")
ROOMS = re.compile(r"^(?:core|kubelet|app|adapters|agent|cli)/[\w./-]*$")
every_page = pytest.mark.parametrize("page", [*PAGES, *FRONT, *RECORDS], ids=lambda page: page.name)


@every_page
def test_links_and_their_anchors_exist(page: Path) -> None:
    for link in links(page.read_text()):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target.read_text()), link


def place(code: str) -> Path | None:
    """The path of the file or folder that a page names; none if it names none."""
    if "NAME" in code:
        return None
    if OURS.match(code):
        return ROOT / code
    return ROOT / "rollout" / code if ROOMS.match(code) else None


@every_page
def test_files_that_a_page_names_exist(page: Path) -> None:
    wanted = {path for code in inline_code(page.read_text()) if (path := place(code))}
    assert {path for path in wanted if not path.exists()} == set()


@every_page
def test_references_that_a_page_names_are_in_the_program(page: Path) -> None:
    """Literally in its code, or composed there: ``f"gate-{name}"``."""
    files = [*(ROOT / "rollout").rglob("*.py"), *(ROOT / "rollout").rglob("*.sh")]
    program = "\n".join(path.read_text() for path in files)
    begun = tuple(set(re.findall(r'f"([a-z]+(?:-[a-z]+)*-)\{', program)))
    said = {
        code.strip("[]") for code in inline_code(page.read_text()) if re.fullmatch(r"\[[a-z]+(-[a-zA-Z]+)+\]", code)
    }
    assert {code for code in said if code not in program and not code.startswith(begun)} == set()


def test_the_readme_leads_to_the_index_and_is_short() -> None:
    """The index has every page: ``tests/docs/test_site.py``."""
    text = README.read_text()
    assert {"docs/index.md", *(page.name for page in FRONT)} <= set(links(text))
    assert len(text.splitlines()) <= 150
    assert [line for line in text.splitlines() if len(line) > 220] == []
    assert re.search(r"^<!-- bench -->\n(?:.*\n)+?\| wall \|.*\n(?:.*\n)+?<!-- /bench -->$", text, re.MULTILINE), (
        "the place for measurements"
    )


def test_the_readme_has_every_exit_code() -> None:
    families = [
        found for found in vars(errors).values() if isinstance(found, type) and issubclass(found, errors.RolloutError)
    ]
    table = set(map(int, re.findall(r"^\| (\d+) \|", README.read_text(), re.MULTILINE)))
    assert {found.exit_code for found in families} | {0, 3, 4, 10, 130} == table


def test_a_wrong_link_is_found() -> None:
    text = "## What it *is*: a `b-c`\n\n[x](#what-it-is-a-b-c) `[no](link)` ![p](docs/p.svg)\n\n```\n[n](o)\n```\n"
    assert links(text) == ["#what-it-is-a-b-c", "docs/p.svg"]
    assert anchors(text) == {"what-it-is-a-b-c"}
