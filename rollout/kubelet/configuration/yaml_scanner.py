"""Where Go's YAML scanner reads a plain word in braces or brackets otherwise than libyaml, of which it is an older copy.

* A colon ends a word only where a blank follows: ``[fd00::]`` holds the text ``fd00::``. libyaml stops there.
* A question mark ends a word everywhere: ``[a?b]`` is an error. libyaml takes it for a part of the word.

So each such colon is replaced before libyaml reads, by a letter of the private use area, and put back afterwards. All
positions stay. In block style, in quotes and in comments the replacement changes nothing, so it needs no context. Source:
``yaml_parser_scan_plain_scalar`` in ``vendor/gopkg.in/yaml.v2/scannerc.go`` of 1.20.2.
"""

from __future__ import annotations

import re

STAND_IN = "\ue000"
"""A document that holds this letter itself cannot be prepared."""
_COLON = re.compile(rb"""(?<=[^\s,\[\]{}"'?]):(?=[,\[\]{}])""")


def prepared(content: bytes) -> bytes:
    """What libyaml is to read in place of ``content``."""
    return _COLON.sub(STAND_IN.encode(), content)


def restored(text: str) -> str:
    """A word of a prepared document as it stands in the document."""
    return text.replace(STAND_IN, ":")


def stops_at(text: str) -> bool:
    """Whether Go's scanner ends this plain word of a flow collection early, which its parser does not take."""
    return "?" in text
