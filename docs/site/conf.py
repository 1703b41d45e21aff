"""Sphinx: how the site is built from the pages that ``python -m tests.docs.site`` writes."""

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

project = "rollout"
copyright = "The rollout authors"  # noqa: A001 - Sphinx's name
html_title = "rollout"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
nitpicky = True
myst_heading_anchors = 6
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
smartquotes = False  # --options stay as they are typed
pygments_style = "friendly"
pygments_dark_style = "github-dark"


def setup(app: Sphinx) -> None:
    app.add_lexer("mermaid", TextLexer)  # a forge draws these diagrams; the site shows their text
