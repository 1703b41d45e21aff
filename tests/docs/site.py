"""The pages of the site, as Sphinx reads them: ``python -m tests.docs.site FOLDER`` writes them.

A page keeps its name. A link to a file that is no page leads to a copy of the file. ``docs/index.md`` is the order.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.docs.pages import FRONT, PAGES, RECORDS
from tests.docs.reference_pages import pages as made_pages
from tests.places import ROOT

INDEX = ROOT / "docs/index.md"
MEASURED = [*sorted((ROOT / "benchmarks").glob("*.md")), *RECORDS]

_LINK = re.compile(r"(!?\[(?:[^\]`]|`[^`]*`)*\])\(([^)\s]+)\)")
_HIDDEN = re.compile(r"^<!--.*?-->\n?|<!--.*?-->", re.DOTALL | re.MULTILINE)
_FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_ENTRY = re.compile(r"^\* \[([^\]]+)\]\(([^)]+)\)", re.MULTILINE)


def names() -> dict[Path, str]:
    """Page → its name on the site."""
    return {page: page.stem.lower() for page in (*PAGES, *FRONT)} | {page: f"measured-{page.stem}" for page in MEASURED}


def written(page: Path) -> Iterator[tuple[Path | None, str]]:
    """A page's text for the site, and each file that it leads to, as (file, its name)."""
    linked: dict[Path, str] = {}

    def moved(found: re.Match[str]) -> str:
        target, anchor = (*found[2].split("#", 1), "")[:2]
        if not target or ":" in target:
            return found[0]
        path = Path(posixpath.normpath(page.parent / target))
        name = f"{names()[path]}.md" if path in names() else linked.setdefault(path, f"files/{path.relative_to(ROOT)}")
        return f"{found[1]}({name}{'#' + anchor if anchor else ''})"

    parts = _FENCED.split(page.read_text())
    text = "".join(part if part.startswith("```") else _LINK.sub(moved, _HIDDEN.sub("", part)) for part in parts)
    yield None, text
    yield from linked.items()


def index(text: str) -> str:
    """The index with a table of contents for each of its headings."""
    made = [f"{name}.md" for name, _ in made_pages()]
    parts = re.split(r"(?=^## )", text, flags=re.MULTILINE)
    return "\n".join(part if not part.startswith("## ") else f"{part}\n{_toctree(part, made)}" for part in parts)


def _toctree(part: str, made: list[str]) -> str:
    heading = part.partition("\n")[0].removeprefix("## ")
    entries = [f"{title} <{page}>" for title, page in _ENTRY.findall(part)]
    entries += made if heading == "Reference" else []
    return "\n".join(["```{toctree}", ":hidden:", f":caption: {heading}", "", *entries, "```", ""])


def write(folder: Path) -> None:
    """Everything that Sphinx reads, into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "files").mkdir(parents=True)
    shutil.copytree(ROOT / "docs/site", folder, dirs_exist_ok=True)
    for page, name in names().items():
        for file, text in written(page):
            if file is None:
                alone = "---\norphan: true\n---\n\n" if page in MEASURED else ""
                (folder / f"{name}.md").write_text(alone + (index(text) if page == INDEX else text))
            else:
                _copy(file, folder / text)
    for name, text in made_pages():
        (folder / f"{name}.md").write_text(text)


def _copy(file: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    if file.is_dir():
        shutil.copytree(file, to, dirs_exist_ok=True)
    else:
        shutil.copyfile(file, to)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
