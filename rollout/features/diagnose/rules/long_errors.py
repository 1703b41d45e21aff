"""Errors of several lines in klog: ``err=<``, the lines of the error behind a tab, and `` > pod="…"``. Source: klog internal/serialize.

A reader of lines finds the error where one of a single line stands, with its first line, and the keys behind it. That of a container is left as it is: its
first line may be a text of the pod's author, with the end of the kubelet's words behind it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from rollout.features.diagnose.rules.wrapped_documents import Wrapped

MOST = 100
"""Lines of one error that are waited for."""
_OPENS = re.compile(rb"^(?!\{)(?P<before>.*?)[IWEF]\d{4} .*\] \".* err=<\r?\n\Z", re.DOTALL)
_TEXT = re.compile(rb"(?P<before>(?:[^\t\[{]{0,200}?\[\d{1,10}\]: ?)?)(?:\t| {2,})(?P<text>\S.*?)\r?\n?\Z", re.DOTALL)
_CLOSES = re.compile(rb"(?:[^\t\[{]{0,200}?\[\d{1,10}\]: ?)? >(?P<rest>| [\w.-]+=.*?)\r?\n?\Z", re.DOTALL)


def with_long_errors(lines: Iterable[Wrapped]) -> Iterator[Wrapped]:
    """The lines, where the first one of such an error has its first line as well. The others follow as they are."""
    held: list[Wrapped] = []
    for number, line, of_container in lines:
        if held:
            closes = _CLOSES.match(line)
            if closes is None and len(held) < MOST and _TEXT.match(line):
                held.append((number, line, of_container))
                continue
            yield from _joined(held, closes["rest"] if closes else b"")
            held = []
        if line.endswith((b" err=<\n", b" err=<\r\n")) and _OPENS.match(line):
            held = [(number, line, of_container)]
        else:
            yield number, line, of_container
    yield from _joined(held, b"")


def _joined(held: list[Wrapped], keys: bytes) -> Iterator[Wrapped]:
    if len(held) > 1 and (first := _TEXT.match(held[1][1])) and b"&Container{" not in first["text"]:
        number, line, of_container = held[0]
        error = json.dumps(first["text"].decode(errors="replace"), ensure_ascii=False).encode()
        yield number, line.rstrip(b"<\r\n") + error + keys + b"\n", of_container
        yield from held[1:]
    else:
        yield from held
