"""Merge settings into another owner's YAML file without touching a byte that is not ours.

A ruamel round trip changes spacing, flow maps and list indents. So ruamel only *locates*: its composer gives the
position of every key and value. A kubelet reads a file that begins with a brace as JSON, so new text there is JSON. The document means what a kubelet reads (``configuration.yaml_document``); a file in
which the two differ is refused. The new text is spliced in and proven: read again, it must be the old document with the
overlay merged.

Maps are merged key by key; scalars and lists are replaced. What cannot be spliced safely is refused with a reason:
duplicate keys, anchors and tags on the way, several documents, a root that is not a map.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import lru_cache

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from rollout.core.model.frozen import dataclass
from rollout.core.model.settings import Value
from rollout.kubelet.configuration import yaml_document, yaml_words
from rollout.kubelet.configuration.config_file import is_json
from rollout.kubelet.configuration.yaml_document import DocumentError
from rollout.kubelet.configuration.yaml_words import resolve

_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}(?:[Tt ].*)?|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./%+-]*")
_LAST_OF_ONE = 0xFFFF


def written(document: Mapping[str, Value]) -> bytes:
    """``document`` as YAML text: overlays are made of it."""
    return flow(dict(document)).encode()


def flow(value: Value) -> str:
    """A value on one line: bare if every YAML reader reads the bare text as this exact text, else as JSON."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{flow(name)}: {flow(entry)}" for name, entry in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(entry) for entry in value) + "]"
    if isinstance(value, str):
        return value if _bare(value) else f'"{"".join(map(_escaped, value))}"'
    return json.dumps(value)


def as_json(value: Value) -> str:
    """As one line of JSON, which is what a kubelet reads where a file begins with a brace."""
    return json.dumps(value, ensure_ascii=False)


def block(values: Mapping[str, Value], indent: str) -> list[str]:
    """In lines of their own, without ends of lines. Maps and lists inside of a list are on one line."""
    lines: list[str] = []
    for name, value in values.items():
        if isinstance(value, dict) and value:
            lines += [f"{indent}{flow(name)}:", *block(value, indent + "  ")]
        elif isinstance(value, list) and value:
            lines += [f"{indent}{flow(name)}:", *(f"{indent}- {flow(entry)}" for entry in value)]
        else:
            lines.append(f"{indent}{flow(name)}: {flow(value)}")
    return lines


def _escaped(letter: str) -> str:
    """As in JSON, except for characters that JSON writes as two: YAML has no surrogates."""
    return letter if ord(letter) > _LAST_OF_ONE else json.dumps(letter)[1:-1]


def _bare(text: str) -> bool:
    return bool(_PLAIN.fullmatch(text)) and resolve("", text) == text and not _DATE.fullmatch(text)


Same = Callable[[tuple[str, ...], Value, Value], bool]
"""Do two values at this path mean the same?"""

MOST_NODES = 20_000
MOST_DEPTH = 40
MOST_OPEN = 200
"""Flow lists and maps that are open at one place. ruamel's time for a token grows with their number."""

_STR, _MAP, _SEQ = "tag:yaml.org,2002:str", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"


class SpliceError(ValueError):
    """This file cannot be edited safely; the message gives the reason. ``reference`` is stable. ``line`` 0: the whole
    file.
    """

    def __init__(self, reference: str, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.reference = reference
        self.line = line


@dataclass(frozen=True, slots=True)
class Spliced:
    """The new bytes, the whole new document as a kubelet reads it, and the changes: (path, old or ``None``, new)."""

    content: bytes
    document: Mapping[str, Value]
    changed: tuple[tuple[tuple[str, ...], Value, Value], ...]


@dataclass(slots=True)
class _Work:
    """Edits found so far: (start, end, new text) in characters of ``text``."""

    text: str
    end_of_line: str
    same: Same
    flow: Callable[[Value], str]  # a value on one line
    edits: list[tuple[int, int, str]] = field(default_factory=list)
    changed: list[tuple[tuple[str, ...], Value, Value]] = field(default_factory=list)


def exactly(_path: tuple[str, ...], old: Value, new: Value) -> bool:
    """Equal as values; ``1`` is not ``true``."""
    return json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True)


@lru_cache(maxsize=4096)
def read(content: bytes) -> Mapping[str, Value]:
    """A document's root map as a kubelet reads it. An empty document is an empty map."""
    _, root = _compose(content)
    return {} if root is None else _document(content, root)


@lru_cache(maxsize=4096)
def splice(old: bytes, overlay: bytes, same: Same = exactly) -> Spliced:
    """``old`` with ``overlay`` (a YAML map) merged in. Cached: a fleet has few distinct pairs."""
    wanted = read(overlay)
    text, root = _compose(old)
    before = {} if root is None else _document(old, root)
    as_text = as_json if is_json(old) else flow
    work = _Work(text, "\r\n" if "\r\n" in text else "\n", same, as_text)
    if root is None:
        raise SpliceError("yaml-empty", "the file is empty")
    _merge_map(work, root, wanted, ())
    # From the end to the start. Of two insertions at one place (the end of an inner and an outer map) the first one
    # found comes first.
    for _, (start, end, new) in sorted(enumerate(work.edits), key=lambda entry: (entry[1][:2], entry[0]), reverse=True):
        text = text[:start] + new + text[end:]
    content = text.encode()
    expected = merged(before, wanted, same)
    try:
        proven = exactly((), dict(read(content)), expected)
    except SpliceError:
        proven = False
    if not proven:
        raise SpliceError(
            "yaml-unprovable", "the edited file would not read back as the old one with the settings merged"
        )
    return Spliced(content, expected, tuple(work.changed))


def merged(
    old: Mapping[str, Value], overlay: Mapping[str, Value], same: Same, path: tuple[str, ...] = ()
) -> dict[str, Value]:
    """The expected result: maps merged key by key, everything else replaced unless it means the same."""
    result = dict(old)
    for key, new in overlay.items():
        here = (*path, key)
        was = old.get(key)
        if isinstance(was, dict) and isinstance(new, dict):
            result[key] = merged(was, new, same, here)
        elif key not in old or not same(here, was, new):
            result[key] = new
    return result


def _compose(content: bytes) -> tuple[str, MappingNode | None]:
    text = _text(content)
    if _opens_too_much(text):
        raise SpliceError(
            "yaml-too-complex", f"the file opens more than {MOST_OPEN} lists or maps inside of each other"
        )
    try:
        roots = [root for root in _located(yaml_words.prepared(content).decode("utf-8")) if root is not None]
    except (YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else 0
        raise SpliceError("yaml-unreadable", f"not readable YAML: {_first_line(error)}", line) from None
    if len(roots) > 1:
        raise SpliceError("yaml-documents", f"the file contains several documents{_where(roots[1])}")
    if not roots:
        return text, None
    if not isinstance(roots[0], MappingNode):
        raise SpliceError("yaml-not-a-map", "the file's root is not a map")
    return text, roots[0]


def _opens_too_much(text: str) -> bool:
    """By its brackets alone, quoted ones too: no file that a kubelet reads has so many."""
    depth = 0
    for sign in re.findall(r"[][{}]", text):
        depth = depth + 1 if sign in "[{" else max(0, depth - 1)
        if depth > MOST_OPEN:
            return True
    return False


def _text(content: bytes) -> str:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise SpliceError("yaml-not-utf8", "the file is not UTF-8") from None
    if text.startswith("\ufeff"):
        raise SpliceError("yaml-bom", "the file begins with a byte order mark")
    for letter in yaml_words.STAND_INS:
        if letter in text:
            raise SpliceError("yaml-unreadable", f"the file contains the character U+{ord(letter):04X}")
    if "%" in text and (found := re.search(r"^%", text, re.MULTILINE)):
        line = text.count("\n", 0, found.start()) + 1
        raise SpliceError("yaml-directive", f"the file contains a YAML directive (line {line})", line)
    return text


def _located(text: str) -> list[Node | None]:
    """ruamel refuses tabs between tokens. A kubelet takes them, so blanks stand in for them: positions stay."""
    try:
        return _documents(text)
    except YAMLError:
        if "\t" not in text:
            raise
        return _documents(text.replace("\t", " "))


def _documents(text: str) -> list[Node | None]:
    yaml = YAML(typ="rt", pure=True)
    _, parser = yaml.get_constructor_parser(text)
    try:
        found = []
        while yaml.composer.check_node():
            found.append(yaml.composer.get_node())
        return found
    finally:
        parser.dispose()


def _first_line(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    what = str(getattr(error, "problem", None) or error).splitlines()
    where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark is not None else ""
    return f"{what[0] if what else 'unknown'}{where}".replace("\t", "\\t")


def _document(content: bytes, root: MappingNode) -> dict[str, Value]:
    """What a kubelet reads there, if it matches the text at the places that are edited."""
    _expect_tag(root, _MAP)
    located = _pairs(root, [MOST_NODES], 0)
    try:
        parsed = yaml_document.read(content).value
    except DocumentError as error:
        raise SpliceError("yaml-unreadable", f"a kubelet cannot read it: {error.text}", error.line) from None
    if not isinstance(parsed, dict) or not exactly((), located, parsed):
        raise SpliceError("yaml-two-readings", "a kubelet may read it differently from other YAML readers")
    return parsed


def _value(node: Node, left: list[int], depth: int) -> Value:
    left[0] -= 1
    if left[0] < 0 or depth > MOST_DEPTH:
        raise SpliceError("yaml-too-complex", "the file is nested too deeply or refers to itself too often")
    if isinstance(node, MappingNode):
        _expect_tag(node, _MAP)
        return _pairs(node, left, depth)
    if isinstance(node, SequenceNode):
        _expect_tag(node, _SEQ)
        return [_value(child, left, depth + 1) for child in node.value]
    text = yaml_words.restored(str(node.value))
    if _is_quoted(node):
        _expect_tag(node, _STR)
        return text
    mark = node.start_mark
    if str(mark.buffer[mark.pointer :][:1]).startswith("!"):
        raise SpliceError("yaml-tag", f"the tag {node.tag}{_where(node)}", node.start_mark.line + 1)
    try:
        return yaml_document.as_json(resolve("", text))
    except DocumentError as error:
        raise SpliceError("yaml-unreadable", f"a kubelet cannot read it: {error.text}") from None


def _pairs(node: MappingNode, left: list[int], depth: int) -> dict[str, Value]:
    result: dict[str, Value] = {}
    for key, child in node.value:
        name = _key(key)
        if name in result:
            line = key.start_mark.line + 1
            raise SpliceError("yaml-duplicate-key", f"the key {name} is given twice (line {line})", line)
        result[name] = _value(child, left, depth + 1)
    return result


def _key(node: Node) -> str:
    what = (
        "a key with an anchor"
        if node.anchor
        else ""
        if isinstance(node, ScalarNode)
        else "a key that is not plain text"
    )
    if isinstance(node, ScalarNode) and node.value == "<<":
        what = "a merge key (`<<`), which rollout does not follow: write the values that it merges in its place"
    if what:
        raise SpliceError("yaml-key", f"{what}{_where(node)}", node.start_mark.line + 1)
    text = yaml_words.restored(str(node.value))
    return text if _is_quoted(node) else yaml_document.key_text(resolve("", text))


def _where(node: Node) -> str:
    return f" (line {node.start_mark.line + 1}, column {node.start_mark.column + 1})"


def _is_quoted(node: Node) -> bool:
    return getattr(node, "style", None) in {"'", '"', "|", ">"}


def _expect_tag(node: Node, tag: str) -> None:
    if str(node.tag) != tag:
        raise SpliceError("yaml-tag", f"the tag {node.tag}{_where(node)}", node.start_mark.line + 1)


def _merge_map(work: _Work, node: MappingNode, wanted: Mapping[str, Value], path: tuple[str, ...]) -> None:
    if node.anchor:
        message = f"an anchor or alias on the way to {'.'.join(path) or 'the root'}{_where(node)}"
        raise SpliceError("yaml-anchor", message)
    present = {_key(key): (key, value) for key, value in node.value}
    added: dict[str, Value] = {}
    for name, new in wanted.items():
        here = (*path, name)
        if name not in present:
            added[name] = new
            work.changed.append((here, None, new))
            continue
        key, value = present[name]
        if isinstance(new, dict) and isinstance(value, MappingNode):
            _merge_map(work, value, new, here)
            continue
        old = _value(value, [MOST_NODES], 0)
        if not work.same(here, old, new):
            _replace(work, key, value, new, here)
            work.changed.append((here, old, new))
    if added:
        _insert(work, node, added)


def _replace(work: _Work, key: Node, value: Node, new: Value, path: tuple[str, ...]) -> None:
    if value.anchor or value.start_mark.index < key.end_mark.index:
        raise SpliceError("yaml-anchor", f"an anchor or alias on the way to {'.'.join(path)}{_where(key)}")
    if getattr(value, "style", None) in {"|", ">"}:
        raise SpliceError("yaml-block-scalar", f"{'.'.join(path)} is written as a block of text{_where(key)}")
    start, end = value.start_mark.index, _end(work.text, value)
    if _is_block(value):
        start = _after_colon(work.text, key)
        if "#" in work.text[start:end]:
            message = f"a comment inside the old value of {'.'.join(path)} would be lost{_where(key)}"
            raise SpliceError("yaml-comment", message)
    elif value.start_mark.index == value.end_mark.index:
        start = end = _after_colon(work.text, key)
    gap = "" if start > 0 and work.text[start - 1] in " \t" else " "
    work.edits.append((start, end, gap + work.flow(new)))


def _is_block(node: Node) -> bool:
    return isinstance(node, MappingNode | SequenceNode) and not node.flow_style


def _after_colon(text: str, key: Node) -> int:
    return text.index(":", key.end_mark.index) + 1


def _end(text: str, node: Node) -> int:
    """Where the node's own text ends: the mark of a block collection or of an empty node extends to the next token."""
    leaf = _last_leaf(node) if _is_block(node) else node
    end = int(leaf.end_mark.index)
    return end if leaf.start_mark.index < end else len(text[:end].rstrip())


def _insert(work: _Work, node: MappingNode, added: Mapping[str, Value]) -> None:
    if node.flow_style:
        at = node.end_mark.index - 1
        tail = work.text[node.start_mark.index + 1 : at].rstrip()
        if "#" in tail:
            raise SpliceError("yaml-comment", f"a comment inside a map in braces{_where(node)}")
        at = node.start_mark.index + 1 + len(tail)
        gap = _gap(work, node)
        inner = f",{gap}".join(f"{work.flow(name)}: {work.flow(value)}" for name, value in added.items())
        work.edits.append((at, at, inner if not tail else f"{'' if tail.endswith(',') else ','}{gap}{inner}"))
        return
    last_value = node.value[-1][1]
    if getattr(_last_leaf(last_value), "style", None) in {"|", ">"}:
        message = f"the last value before the new key is a block of text{_where(node.value[-1][0])}"
        raise SpliceError("yaml-block-scalar", message)
    indent = " " * node.value[0][0].start_mark.column
    at = _line_end(work.text, _end(work.text, last_value))
    lines = "".join(work.end_of_line + line for line in block(added, indent))
    work.edits.append((at, at, lines))


def _gap(work: _Work, node: MappingNode) -> str:
    """What separates two pairs of a map in braces: the new line before its last key, if that begins a line, else a blank."""
    if not node.value:
        return " "
    start = node.value[-1][0].start_mark.index
    line = work.text.rfind("\n", 0, start) + 1
    indent = work.text[line:start]
    return work.end_of_line + indent if line and not indent.strip() else " "


def _last_leaf(node: Node) -> Node:
    while _is_block(node) and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return node


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    if end < 0:
        return len(text)
    return end - 1 if end > 0 and text[end - 1] == "\r" else end
