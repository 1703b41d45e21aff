"""What all pages of ``rollout serve`` share: the head, the way to the list of runs, and what may be loaded."""

from __future__ import annotations

from rollout.core.presentation.pages.markup import Html, tag

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""The Content-Security-Policy: nothing inline, nothing from elsewhere."""


def html_page(title: str, *children: Html, up: str, **data: str) -> str:
    """The document up to ``</main>``: more may follow. ``data`` are attributes of its body.

    ``up``: the way from this page to the first one, as ``../``. All links are relative: the path holds a secret.
    """
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("link", rel="stylesheet", href=f"{up}static/page.css"),
        tag("link", rel="icon", href=f"{up}static/icon.svg", type="image/svg+xml"),
        tag("script", src=f"{up}static/page.js", defer="defer"),
    )
    skip = tag("a", "Skip to the content", href="#main", class_="skip")
    links = tag("nav", tag("a", "All runs", href=up or "./"), aria_label="Pages")
    inside = "".join((skip, links, '<main id="main" tabindex="-1">', *children))
    body = tag("body", Html(inside), **data).removesuffix("</body>")
    return f'<!doctype html>\n<html lang="en">{head}{body}'


END = "</main></body></html>\n"


def whole_page(title: str, *children: Html, up: str) -> str:
    """A complete document. ``up``: see ``html_page``."""
    return f"{html_page(title, *children, up=up)}{END}"
