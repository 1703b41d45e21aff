"""The names that leave the program: what is on disk, what nodes and programs are told. ``wire_names.json`` freezes them.

``python -m tests.wire_names`` adds what is new to the table. A name that is gone, or a format that changed under an old
number, it refuses: journals, nodes and people still have it.
"""

from __future__ import annotations

import ast
import dataclasses
import itertools
import json
import re
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

from rollout.adapters.agent_program import agent_program
from rollout.cli.schema import documents_schema
from rollout.core.model import conditions
from rollout.core.model.conditions import Condition
from rollout.core.model.gate_kinds import known
from rollout.core.model.gates import Gate
from rollout.core.model.plan import Plan
from rollout.core.model.snapshot import ReceiptState, Snapshot, Unread
from rollout.core.plans import plan_codec, snapshot_codec
from rollout.core.run.events import RequestWord
from rollout.core.run.journal_codec import EVENTS
from rollout.core.run.state import RULES, Order
from rollout.core.text.json_text import name_on_disk
from rollout.kubelet.agent.protocol import TRIGGERS, VERBS
from rollout.kubelet.explained.references import references
from tests.agent import protocol
from tests.places import ROOT

FILE = Path(__file__).with_suffix(".json")

FORMATS = {
    "journal": RULES,
    "plan": plan_codec.VERSION,
    "gates of a plan": plan_codec.VERSION,
    "snapshot": snapshot_codec.VERSION,
}
"""Section → the number that must rise when a line of it changes, in whichever way: these are read strictly."""

OPEN = "gates of a plan"
"""A new kind is no other format: a plan without such a gate has the bytes that it had, and an older rollout refuses the kind by its name."""

Table = dict[str, list[str]]

_REFERENCE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_RAISED = re.compile(r"(Usage|State|Input|Remote|Away)Error|Problem|Flaw|Halt|Drift|Remark")
_MESSAGES = frozenset({"message", "said", "text", "reason", "words", "why"})
_PASSED_ON = re.compile(r"_\w+|\w+Error")


@cache
def names() -> Table:
    """Section → its lines, as the code has them now."""
    return {
        "journal": sorted({*_journal()}),
        "plan": sorted({*_plan()}),
        "gates of a plan": sorted(_kinds()),
        "snapshot": sorted({*shape("read.*", Snapshot), *shape("unread.*", Unread)}),
        "documents": sorted({*_documents()}),
        "requests": sorted(word.value for word in RequestWord),
        "receipt keys": sorted(_of_agent(r"^      (\w+)=\*\) r_\w+=\$value ;;$")),
        "receipt states": sorted(state.value for state in ReceiptState),
        "agent verbs": sorted({*VERBS, *TRIGGERS}),
        "agent answers": sorted(_of_agent(r'\bsay "([a-z-]+) ')),
        "references": sorted(
            {*_references(), *_of_agent(r"\brefuse ([a-z-]+) "), *_of_agent(r'say "refused ([a-z-]+) ')}
        ),
    }


def _plan() -> Iterator[str]:
    """Files name their contents by digest: see ``rollout.core.plans.plan_codec``."""
    yield from (re.sub(r"\bbytes\b\??", "str", line) for line in shape("", Plan))
    yield from shape("blobs", Mapping[str, bytes])


def _journal() -> Iterator[str]:
    for name, kind in EVENTS.items():
        yield from shape(name, kind)
    yield from shape("order", Order)


def shape(where: str, kind: Any) -> Iterator[str]:
    """A line for each key of a type as it is written: where it is, and what."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Gate:
        yield from _gate(where)
    elif kind == tuple[Condition, ...]:
        for each in conditions.known().kinds:
            yield from shape(where.replace("conditions", each.key), tuple[each, ...])  # type: ignore[valid-type]
    elif dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        for field in dataclasses.fields(kind):
            yield from shape(f"{where}.{name_on_disk(field)}".lstrip("."), hints[field.name])
    elif origin in (types.UnionType, typing.Union):
        yield from (f"{line}?" for line in shape(where, arguments[0]))
    elif origin in (tuple, frozenset):
        yield from shape(f"{where}[]", arguments[0])
    elif origin is not None and issubclass(origin, Mapping):
        yield from shape(f"{where}.*", arguments[1])
    elif isinstance(kind, type) and issubclass(kind, Enum):
        yield f"{where}: {' | '.join(sorted(str(member.value) for member in kind))}"
    else:
        yield f"{where}: {kind.__name__}"


_FIELDS_OF_GATES = typing.get_type_hints(Gate)


def _gate(where: str) -> Iterator[str]:
    """What all gates have; ``_kinds`` has the rest."""
    for name in ("scope", "name", "timeout"):
        yield from shape(f"{where}.{name}", _FIELDS_OF_GATES[name])


def _kinds() -> Iterator[str]:
    """A line for each kind of gate, with the fields of its query: see ``rollout.core.plans.gate_codec``."""
    for kind, query in known().queries.items():
        hints: dict[str, Any] = {
            name: each for name, each in typing.get_type_hints(query).items() if name in _own(query)
        }
        lines = (line for name, each in hints.items() for line in shape(name if len(hints) > 1 else "", each))
        yield f"{kind} {{{'; '.join(sorted(lines))}}}"


def _own(query: Any) -> set[str]:
    return {field.name for field in dataclasses.fields(query)} - {"kind"}


def _documents() -> Iterator[str]:
    for kind, schema in documents_schema()["$defs"].items():
        yield from _keys(kind, schema)


def _keys(where: str, schema: Mapping[str, Any]) -> Iterator[str]:
    """A line for each value of a document: where it is, and what."""
    if "properties" in schema:
        yield from (line for key, each in schema["properties"].items() for line in _keys(f"{where}.{key}", each))
    elif "items" in schema:
        yield from _keys(f"{where}[]", schema["items"])
    elif "additionalProperties" in schema:
        yield from _keys(f"{where}.*", schema["additionalProperties"])
    else:
        yield from (f"{where}: {each}" for each in _choices(schema))


def _choices(schema: Mapping[str, Any]) -> list[str]:
    """The words of an enum, each on a line of its own because more may come; else a type. A value of others has none."""
    if "enum" in schema or "const" in schema:
        return [json.dumps(each) for each in schema.get("enum", [schema.get("const")])]
    named = schema.get("format", schema.get("type", "any"))
    return [named if isinstance(named, str) else " | ".join(named)]


def _of_agent(pattern: str) -> set[str]:
    return set(re.findall(pattern, agent_program(), re.MULTILINE))


def _references() -> Iterator[str]:
    """What errors and refusals are called: words that code raises, words with a hyphen that stand before a message,
    and words with a hyphen that the documentation or `rollout explain` names.
    """
    pages = [protocol.reference(), *(page.read_text() for page in (ROOT / "docs").rglob("*.md"))]
    documented = {word for page in pages for word in re.findall(r"`([a-z0-9-]+)`", page)} | set(references())
    for tree in _code():
        for node in ast.walk(tree):
            for word in (*_said(node), *(word for word in _word(node) if "-" in word and word in documented)):
                if _REFERENCE.fullmatch(word):
                    yield word


@cache
def _code() -> tuple[ast.Module, ...]:
    return tuple(ast.parse(text) for text in sources())


_SILENT = {"lab", "simulator", "known_faults.py", "migrations", "parameter_table.py", "protocol.py"}


def sources() -> Iterator[str]:
    """The modules that could print a reference to people."""
    for file in sorted((ROOT / "rollout").rglob("*.py")):
        if file.name == "command.py" or not _SILENT & set(file.parts):
            yield file.read_text()


def _said(node: ast.AST) -> Iterator[str]:
    inside = node.args if isinstance(node, ast.Call) else node.elts if isinstance(node, ast.Tuple) else []
    for word, message in itertools.pairwise(inside):
        if _is_message(message):
            yield from (each for each in _word(word) if "-" in each)
    if isinstance(node, ast.keyword) and node.arg == "reference":
        yield from _word(node.value)
    if isinstance(node, ast.Call) and node.args:
        called = ast.unparse(node.func).rpartition(".")[2]
        if _RAISED.fullmatch(called):
            yield from _word(node.args[0])
        elif _PASSED_ON.fullmatch(called):
            yield from (word for word in _word(node.args[0]) if "-" in word)


def _is_message(node: ast.AST) -> bool:
    """A text with a space, or one that is put together; a variable only if its name says so."""
    if isinstance(node, ast.BinOp):
        return _is_message(node.left) or _is_message(node.right)
    if isinstance(node, ast.Name):
        return node.id in _MESSAGES
    return isinstance(node, ast.JoinedStr) or any(" " in text for text in _word(node))


def _word(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


@cache
def words() -> set[str]:
    """Every text that the code holds: a reference that moved within it is not gone."""
    return {word for tree in _code() for node in ast.walk(tree) for word in _word(node)} | _of_agent(r"([a-z0-9-]+)")


# ------------------------------------------------------------------------------------------------- against the table


def read() -> tuple[Mapping[str, int], Table]:
    """The numbers of the formats, and the lines, as they are frozen."""
    document = json.loads(FILE.read_text())
    return document["numbers"], document["names"]


def breaks(numbers: Mapping[str, int], frozen: Table, now: Table) -> Iterator[str]:
    """What would no longer be understood, and what to do."""
    for section, lines in frozen.items():
        gone = sorted(set(lines) - set(now.get(section, ())) - (words() if section == "references" else set()))
        more = sorted(set(now.get(section, ())) - set(lines))
        if section not in FORMATS:
            if gone:
                yield f"{section}: {', '.join(gone)} is gone. Such a name never changes: keep it, whatever code calls the thing"
        elif (gone or (more and section != OPEN)) and FORMATS[section] == numbers[section]:
            yield (
                f"{section}: no longer {gone}, but {more}. A field that was renamed keeps its name: "
                'field(metadata=on_disk("old name")), see core.text.dataclass_json; an event keeps its key in '
                f"journal_codec.EVENTS. If what is written has changed, raise the number of this format ({numbers[section]})"
            )


def main() -> None:
    now = names()
    found = list(breaks(*read(), now)) if FILE.exists() else []
    if found:
        sys.exit("\n".join(found))
    FILE.write_text(json.dumps({"numbers": FORMATS, "names": now}, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
