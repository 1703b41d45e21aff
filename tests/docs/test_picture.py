"""The README's picture of a run: made by the program, self-contained, and shown in the README."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from tests.places import ROOT

PICTURE = ROOT / "docs" / "pictures" / "run.svg"


def test_the_picture_shows_a_run_and_needs_nothing_from_elsewhere() -> None:
    text = PICTURE.read_text()
    words = " ".join("".join(ET.fromstring(text).itertext()).replace("\xa0", " ").split())  # noqa: S314 - ours
    for word in ("run r2", "waits for", "budgets", "halts at", "rehearsal", "racks", "problems"):
        assert word in words, word
    assert [part for part in text.split('"') if part.startswith("http")] == ["http://www.w3.org/2000/svg"]
    assert "url(http" not in text


def test_the_readme_shows_it() -> None:
    assert "(docs/pictures/run.svg)" in (ROOT / "README.md").read_text()
