"""The site is built without a warning, has every page, and no link on it leads nowhere."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click
import pytest

from rollout.cli.main import cli
from rollout.kubelet.explained.references import references
from tests.docs import reference_pages, site
from tests.places import ROOT


class Anchors(HTMLParser):
    """The targets of a page's links and pictures, and the ids that links may lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            elif name in ("href", "src") and value:
                self.targets.append(value)


def dead(folder: Path) -> Iterator[str]:
    """Links of a built site that lead to no file or to no anchor, and those that are not https."""
    read = {path: Anchors(path.read_text()) for path in folder.rglob("*.html")}
    for page, anchors in read.items():
        for target in dict.fromkeys(anchors.targets):
            parts = urlsplit(target)
            path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if parts.scheme or parts.netloc:
                found = parts.scheme in ("https", "data", "mailto")
            else:
                found = path.exists() and (not parts.fragment or path not in read or parts.fragment in read[path].ids)
            if not found:
                yield f"{page.name}: {target}"


@pytest.mark.process
def test_the_site_is_built_without_a_warning_and_without_a_dead_link(tmp_path: Path) -> None:
    site.write(tmp_path / "pages")
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-n", tmp_path / "pages", tmp_path / "html"],
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert (built.returncode, built.stderr) == (0, "")
    assert list(dead(tmp_path / "html")) == []
    errors = Anchors((tmp_path / "html/errors.html").read_text()).ids
    assert {key.lower() for key in references()} <= errors


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<p id="x"><a href="#x"></a><a href="b.html#y"></a><a href="https://x.example"></a>'
    )
    (tmp_path / "b.html").write_text(
        '<p id="z"><a href="a.html#x"></a><img src="no.svg"><a href="http://x.example"></a>'
    )
    assert sorted(dead(tmp_path)) == ["a.html: b.html#y", "b.html: http://x.example", "b.html: no.svg"]


def test_each_page_has_one_place_in_the_index() -> None:
    listed = re.findall(r"^\* \[[^\]]+\]\(([^)]+)\)", site.INDEX.read_text(), re.MULTILINE)
    pages = {(ROOT / "docs" / name).resolve() for name in listed}
    assert len(pages) == len(listed)
    assert pages == set(site.names()) - {site.INDEX, *site.MEASURED}


def test_a_link_to_a_file_leads_to_a_copy_and_code_stays_as_it_is(tmp_path: Path) -> None:
    page = ROOT / "docs/playbook.md"
    (_, text), *files = site.written(page)
    assert (ROOT / "playbooks/image-pulls.yaml", "files/playbooks/image-pulls.yaml") in files
    assert "](files/playbooks/image-pulls.yaml)" in text
    assert "<!-- $" not in text
    assert "$ rollout check" in text


def test_every_command_and_option_is_on_the_page_of_commands() -> None:
    text = "\n".join(reference_pages.commands())
    for names, command in reference_pages.all_commands():
        part = text.partition(f"## rollout {' '.join(names)}\n")[2].partition("\n## ")[0]
        shown = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
        assert part, names
        assert [each.opts[-1] for each in shown if each.opts[-1] not in part] == []
    assert {"plan", "lab"} <= {names[0] for names, _ in reference_pages.all_commands()} <= set(cli.list_commands(click.Context(cli)))  # fmt: skip


@pytest.mark.parametrize("name", ["inventory", "playbook"])
def test_every_key_of_a_file_is_on_its_page(name: str) -> None:
    text = dict(reference_pages.pages())[f"{name}-keys"]
    schema = (ROOT / f"docs/schemas/{name}.json").read_text()
    for links in re.findall(r"\]\(#([a-z]+)\)", text):
        assert f"\n## {links}\n" in text.lower()
    assert re.findall(r"\| `(cluster|name)` \| text \| \*\*required\*\*", text)
    assert text.count("\n| `") == sum(map(len, _keys(schema)))


def _keys(schema: str) -> Iterator[dict[str, object]]:
    whole = json.loads(schema)
    yield whole["properties"]
    yield from (inner["properties"] for inner in whole["$defs"].values() if "properties" in inner)
