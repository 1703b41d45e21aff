"""Mistakes of public files, drawn for any field of any minor, in any form of a file: each is told with its setting and place.

The forms are those of public configurations: names as flags or Go have them, fields of an object written beside it,
values without or with quotes, variables that a template left, YAML and JSON of several styles.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from rollout.kubelet import fields, versions
from rollout.kubelet.configuration import feature_gates, schema
from rollout.kubelet.configuration.outcome import File, KubeletOutcome, Message, MessageLevel, Sources
from rollout.kubelet.configuration.schema import FieldType, Form
from rollout.kubelet.configuration.startup import outcome

HEAD = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
PATH = "/var/lib/kubelet/config.yaml"
MINORS = st.sampled_from(fields.known_minors())

STYLES: Mapping[str, Callable[[dict[str, Any]], bytes]] = {
    "block": lambda value: yaml.safe_dump(value, sort_keys=False).encode(),
    "flow": lambda value: (
        b"# flow\n" + yaml.safe_dump(value, default_flow_style=True, width=40, sort_keys=False).encode()
    ),
    "a document's start": lambda value: b"---\n" + yaml.safe_dump(value, sort_keys=False).encode() + b"...\n",
    "CRLF": lambda value: yaml.safe_dump(value, sort_keys=False).replace("\n", "\r\n").encode(),
    "byte order mark": lambda value: b"\xef\xbb\xbf" + yaml.safe_dump(value, sort_keys=False).encode(),
    "JSON": lambda value: json.dumps(value).encode(),
    "JSON with tabs": lambda value: json.dumps(value, indent="\t").encode(),
}
STYLE = st.sampled_from(sorted(STYLES))


@cache
def scalars(minor: int) -> Mapping[tuple[str, ...], FieldType]:
    """Every field but kind and version, and the fields inside of objects, by path."""
    return dict(sorted(_scalars(minor, schema.ROOT, ())))


def _scalars(minor: int, type_name: str, ahead: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], FieldType]]:
    for name, kind in schema.fields_of(type_name, minor).items():
        if kind.form is Form.OBJECT:
            yield from _scalars(minor, kind.type_name, (*ahead, name))
        elif name not in HEAD:
            yield (*ahead, name), kind


@cache
def names(minor: int) -> frozenset[str]:
    return frozenset(part for path in scalars(minor) for part in path)


def nested(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    for part in reversed(path):
        value = {part: value}
    return dict(value)


def answer(minor: int, style: str, written: dict[str, Any]) -> tuple[KubeletOutcome, list[str]]:
    """The outcome, and the lines of the file."""
    content = STYLES[style]({**HEAD, **written})
    found = outcome(versions.known(f"1.{minor}.0"), Sources(config=File(PATH, content)))
    return found, content.decode("utf-8-sig").splitlines()


def at(message: Message, lines: list[str]) -> str:
    """The text of the file from the place on."""
    assert message.place is not None, message
    return lines[message.place.line - 1][message.place.column - 1 :].lstrip("\"'")


WRONG: Mapping[Form, tuple[Any, ...]] = {
    Form.BOOL: ("true", 1, [True]),
    Form.STRING: (1, 0.5, True, ["a"], {"a": "b"}),
    Form.DURATION: (20, True, "20", "1d", "5 m", "10sec", "${WAIT}", ""),
    Form.QUANTITY: ("5MB", "a lot", True, ["1Gi"]),
    Form.LIST: ("a", 1, {"a": 1}),
    Form.MAP: ("a=b", 1, ["a=b"]),
    **dict.fromkeys((Form.INT32, Form.INT64, Form.UINT32), ("5", "{{ n }}", True, 0.5, [1])),
}
IN_MAP = {Form.STRING: (1, 0.5, True), Form.BOOL: ("true", 1)}


@given(minor=MINORS, style=STYLE, data=st.data())
def test_a_value_of_the_wrong_kind(minor: int, style: str, data: st.DataObject) -> None:
    path, kind = data.draw(st.sampled_from(list(scalars(minor).items())))
    assume(kind.form in WRONG)
    value = data.draw(st.sampled_from(WRONG[kind.form]))
    found, lines = answer(minor, style, nested(path, value))
    told = [message for message in found.messages if message.reference == "bad-value"]
    assert not found.starts
    assert told, (path, value, found.messages)
    for message in told:
        assert at(message, lines).startswith(path[-1])
        assert path[-1] in f"{message.text} {message.hint}"
        assert message.about == path[0]


@given(minor=MINORS, style=STYLE, data=st.data())
def test_a_value_of_the_wrong_kind_inside_a_map(minor: int, style: str, data: st.DataObject) -> None:
    maps = [
        (path, kind)
        for path, kind in scalars(minor).items()
        if kind.form is Form.MAP and kind.element and kind.element.form in IN_MAP
    ]
    path, kind = data.draw(st.sampled_from(maps))
    assert kind.element is not None
    key, value = (
        data.draw(st.sampled_from(("memory", "memory.available"))),
        data.draw(st.sampled_from(IN_MAP[kind.element.form])),
    )
    found, lines = answer(minor, style, nested((*path, key), value))
    assert not found.starts
    (message,) = (message for message in found.messages if message.level is MessageLevel.FATAL)
    assert at(message, lines).startswith(key)
    assert path[-1] in f"{message.text} {message.hint}"


RENAMED: Mapping[str, Callable[[str], str]] = {
    "as Go has it": lambda name: name[0].upper() + name[1:],
    "as a flag": lambda name: re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower(),
    "with underscores": lambda name: re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower(),
    "with a blank of another kind": lambda name: f"\u00a0{name}",
    "one letter less": lambda name: name[:-2] + name[-1],
}


@given(minor=MINORS, style=STYLE, form=st.sampled_from(sorted(RENAMED)), data=st.data())
def test_a_name_in_another_form(minor: int, style: str, form: str, data: st.DataObject) -> None:
    path, _ = data.draw(st.sampled_from(list(scalars(minor).items())))
    written = RENAMED[form](path[-1])
    assume(written not in names(minor))
    assume(len(path[-1]) > 5)
    found, lines = answer(minor, style, nested((*path[:-1], written), None))
    (message,) = (
        message
        for message in found.messages
        if message.reference == "unknown-field" and message.level is MessageLevel.POLICY
    )
    assert message.place is not None
    assert written.strip() in lines[message.place.line - 1]
    assert form == "one letter less" or f"`{path[-1]}`" in message.text, message
    assert "did you mean" in message.text, message


@given(minor=MINORS, style=STYLE, data=st.data())
def test_a_field_of_an_object_written_beside_it(minor: int, style: str, data: st.DataObject) -> None:
    inside = [path for path in scalars(minor) if len(path) > 1 and path[-1] not in schema.fields_of(schema.ROOT, minor)]
    path = data.draw(st.sampled_from(sorted(inside)))
    assume(fields.field(path[-1]) is None and path[-1] not in {"text", "json"})
    found, lines = answer(minor, style, {path[-1]: None})
    (message,) = (message for message in found.messages if message.level is MessageLevel.POLICY)
    assert at(message, lines).startswith(path[-1])
    assert f"`{'.'.join(path)}`" in message.text


@given(minor=MINORS, style=STYLE, other=MINORS, data=st.data())
def test_a_gate_of_another_minor(minor: int, style: str, other: int, data: st.DataObject) -> None:
    strange = sorted(set(feature_gates.known_gates(other)) - set(feature_gates.known_gates(minor)))
    assume(strange)
    gate = data.draw(st.sampled_from(strange))
    found, lines = answer(minor, style, {"featureGates": {gate: True}})
    (message,) = (message for message in found.messages if message.reference == "unknown-gate")
    assert at(message, lines).startswith(gate)
    assert re.search(r"1\.\d\d is the (first|last) minor with this gate", message.hint)


@given(
    minor=MINORS, style=STYLE, left=st.sampled_from(("${NAME}", "{{ name }}", "<no value>", "%%NAME%%")), data=st.data()
)
def test_a_variable_that_a_template_left(minor: int, style: str, left: str, data: st.DataObject) -> None:
    texts = [path for path, kind in scalars(minor).items() if kind.form is Form.STRING]
    path = data.draw(st.sampled_from(sorted(texts)))
    found, lines = answer(minor, style, nested(path, f"a{left}"))
    (message,) = (message for message in found.messages if message.reference == "unfilled-variable")
    assert at(message, lines).startswith(path[-1])
    assert left in message.text
    assert ".".join(path) in message.text


@given(minor=MINORS, data=st.data())
def test_a_flag_of_another_form(minor: int, data: st.DataObject) -> None:
    """Removed, not yet there, or named as the field."""
    names = sorted(
        name for name in fields.every_name() if name.startswith("--") and name not in fields.known_flags(minor)
    )
    named = sorted(f"--{name}" for name in fields.known_fields(minor) if name.lower() != name)
    flag = data.draw(st.sampled_from(names + named))
    found = outcome(
        versions.known(f"1.{minor}.0"), Sources(config=File(PATH, json.dumps(HEAD).encode()), flags=(f"{flag}=x",))
    )
    (message,) = (message for message in found.messages if message.level is MessageLevel.FATAL)
    assert message.reference in {"unknown-flag", "removed-flag"}
    assert re.search(
        r"it was (removed|added) in 1\.\d\d|did you mean `--|it is no flag: the file has `", message.hint
    ), message
