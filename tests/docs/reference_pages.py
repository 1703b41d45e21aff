"""Pages of the site that are made when it is built: commands, keys of files, homes of intents, the agent's protocol, errors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import groupby
from typing import Any

import click

from rollout.kubelet.explained.references import references
from rollout.kubelet.runtimes.known import ROWS, covered
from tests.agent import protocol
from tests.command_counts import every_command
from tests.places import ROOT

Schema = Mapping[str, Any]

_SIMPLE = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}


def pages() -> Iterator[tuple[str, str]]:
    """Name and text of each page."""
    yield "commands", _page(commands())
    for name, what in (("inventory", "inventory"), ("playbook", "playbook")):
        yield f"{name}-keys", _page(keys(what, json.loads((ROOT / f"docs/schemas/{name}.json").read_text())))
    yield "homes", _page(homes())
    yield "agent-protocol", protocol.reference()
    yield "errors", _page(errors())


def _page(lines: Iterator[str]) -> str:
    return "\n".join(lines) + "\n"


# ------------------------------------------------------------------------------------------------- commands


def commands() -> Iterator[str]:
    yield from ("# Commands", "", "Every command has `-h` and `--help`, which print what is here.", "")
    for names, command in all_commands():
        yield from _command(names, command)


def all_commands() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """The words of each command, in the order of ``--help``."""
    yield from ((tuple(name.split()), command) for name, command in every_command())


def _command(names: tuple[str, ...], command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=f"rollout {' '.join(names)}", help_option_names=["-h", "--help"])
    yield from (f"## rollout {' '.join(names)}", "")
    usage = " ".join(command.collect_usage_pieces(context))
    yield from ("```text", f"rollout {' '.join(names)} {usage}", "```", "")
    yield from (*_help(command), "")
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    if options:
        yield from ("| option | |", "| --- | --- |")
        for option in options:
            written, text = option.get_help_record(context) or ("", "")
            yield f"| `{cell(written)}` | {cell(prose(text))} |"
        yield ""


def _help(command: click.Command) -> Iterator[str]:
    """The paragraphs of the help; one that click does not wrap stays as it is."""
    for paragraph in (command.help or "").split("\n\n"):
        if paragraph.startswith("\b"):
            yield from ("```text", paragraph.removeprefix("\b").strip("\n"), "```", "")
        else:
            yield from (prose(" ".join(paragraph.split())), "")


def prose(text: str) -> str:
    """A text without markup, for Markdown."""
    return "".join(f"\\{letter}" if letter in "\\*_[]<>#" else letter for letter in text)


def cell(text: str) -> str:
    """A text in a table."""
    return text.replace("|", "\\|").replace("\n", " ")


# ------------------------------------------------------------------------------------------------- keys


def keys(what: str, schema: Schema) -> Iterator[str]:
    """Each key of a file, from its JSON Schema."""
    yield from (f"# Keys of {'an' if what[0] in 'aeiou' else 'a'} {what}", "")
    yield from (f"Made from the schema that `rollout show schema {what}` prints. [The page on the {what}]({what}.md) explains them.", "")  # fmt: skip
    yield from _table(schema)
    for name, inner in sorted(schema["$defs"].items()):
        if "properties" in inner:
            yield from (f"## {_title(name)}", "")
            yield from _table(inner)


def _table(schema: Schema) -> Iterator[str]:
    yield from ("| key | value | default | |", "| --- | --- | --- | --- |")
    needed = schema.get("required", ())
    for key, value in schema["properties"].items():
        default = "**required**" if key in needed else _code(value["default"]) if "default" in value else ""
        yield f"| `{key}` | {cell(kind(value))} | {default} | {cell(_said(value))} |"
    yield ""


def kind(value: Schema) -> str:
    """What may stand there, in words."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return f"[{_title(name)}](#{_title(name).lower()})" if name not in _words() else _words()[name]
    if "enum" in value or "const" in value:
        return " or ".join(_code(each) for each in value.get("enum", [value.get("const")]))
    if "anyOf" in value or "oneOf" in value:
        return " or ".join(dict.fromkeys(kind(each) for each in value.get("anyOf", value.get("oneOf"))))
    if value.get("type") == "array":
        return f"list of {kind(value['items'])}" if "items" in value else "list"
    if value.get("type") == "object":
        inner = [*value.get("patternProperties", {}).values(), value.get("additionalProperties")]
        held = next((each for each in inner if isinstance(each, dict)), None)
        return f"map of names to {kind(held)}" if held else "map"
    named = value.get("type", "any value")
    return _SIMPLE.get(named, named) if isinstance(named, str) else "any value"


def _title(name: str) -> str:
    return name.removeprefix("Written")


@cache
def _words() -> Mapping[str, str]:
    """Definitions without keys of their own: a list of words."""
    files = (json.loads((ROOT / f"docs/schemas/{name}.json").read_text()) for name in ("inventory", "playbook"))
    found = {name: inner for file in files for name, inner in file["$defs"].items()}
    return {name: kind(inner) for name, inner in found.items() if "properties" not in inner}


def _code(value: object) -> str:
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


def _said(value: Schema) -> str:
    """Description, range and example."""
    parts = [value["description"]] if "description" in value else []
    low, high = value.get("minimum"), value.get("maximum")
    if low is not None or high is not None:
        parts.append(f"{low if low is not None else '…'} to {high if high is not None else '…'}")
    parts += [f"for example {_code(each)}" for each in value.get("examples", ())[:1]]
    return "; ".join(part.rstrip(".") for part in parts)


# ------------------------------------------------------------------------------------------------- homes


def homes() -> Iterator[str]:
    """The home of each intent on each runtime, or the reason why there is none."""
    yield from (
        "# Homes of intents",
        "",
        "Where rollout writes a setting with a home that depends on the node's runtime.",
        "",
    )
    for intent, rows in groupby(ROWS, key=lambda row: row.intent):
        yield from (f"## {intent}", "", "| runtime | home | default | a change |", "| --- | --- | --- | --- |")
        for row in rows:
            default = f"`{row.default}`" if row.default else "not set"
            home = (f"`{row.key}` in {row.place}", default, row.disruption.value)
            yield f"| {' | '.join((covered(row), *(home if not row.refusal else (f'refused: {row.refusal}', '', ''))))} |"
        yield ""


# ------------------------------------------------------------------------------------------------- errors


def errors() -> Iterator[str]:
    yield from ("# Errors by reference", "")
    yield (
        "A message ends with its reference in brackets. `rollout explain REFERENCE` prints its entry."
        " NAME stands for the rest of a reference."
    )
    yield ""
    for subject, entries in groupby(references().values(), key=lambda entry: entry.subject):
        yield from (f"## {subject}", "")
        for entry in entries:
            yield from (f"({entry.reference})=", f"### `{entry.reference}`", "", entry.cause, "")
            yield from (f"**Remedy:** {entry.remedy}", "")
