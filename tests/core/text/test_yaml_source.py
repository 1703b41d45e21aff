"""What a YAML file may contain, the place of each value, and what is refused with its place."""

from __future__ import annotations

import pytest

from rollout.core.model.settings import Value
from rollout.core.text import yaml_source
from rollout.core.text.yaml_source import Item, read_yaml


def plain(text: str) -> Value:
    document = read_yaml(text, "f.yaml")
    assert document.problems == ()
    assert document.root is not None
    return document.root.plain()


def complaints(text: str) -> list[str]:
    return [str(problem) for problem in read_yaml(text, "f.yaml").problems]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("text", "text"),
        ("5m", "5m"),
        ("5%", "5%"),
        ("rack[01-12]", "rack[01-12]"),
        ("v1.20.15", "v1.20.15"),
        ("1.2.3.4", "1.2.3.4"),
        ("2001-01-01", "2001-01-01"),
        ("-", None),
        ("+", "+"),
        (".", "."),
        ("-.", "-."),
        ("e5", "e5"),
        ("5e", "5e"),
        ("~", None),
        ("null", None),
        ("", None),
        ("true", True),
        ("False", False),
        ("0", 0),
        ("-17", -17),
        ("1.50", 1.5),
        (".5", 0.5),
        ("1.", 1.0),
        ("1e3", 1000.0),
        ("-0.5e-1", -0.05),
        ("'yes'", "yes"),
        ('"0012"', "0012"),
        ("1" + "_" * 100_000 + "x", "1" + "_" * 100_000 + "x"),
        ("[1, a]", [1, "a"]),
        ("{b: [], c: {}}", {"b": [], "c": {}}),
    ],
)
def test_words_have_the_value_that_every_reader_gives_them(written: str, meant: Value) -> None:
    if written == "-":
        assert plain("a:\n  -") == {"a": [None]}
    else:
        assert plain(f"a: {written}") == {"a": meant}


@pytest.mark.parametrize("word", ["yes", "No", "ON", "off", "y", "N"])
def test_old_booleans_are_refused_with_both_ways_to_write_them(word: str) -> None:
    boolean = "true" if word.lower() in ("yes", "on", "y") else "false"
    assert complaints(f"a: {word}") == [
        f'f.yaml:1:4: `{word}` is a boolean to some readers and text to others; write {boolean} or "{word}" [yaml-ambiguous]'
    ]


@pytest.mark.parametrize("word", ["010", "0x1f", "0o17", "0b1", "1_000", "1:30", "00.5", ".inf", "-.INF", ".nan"])
def test_numbers_that_readers_read_differently_are_refused(word: str) -> None:
    assert complaints(f"a: {word}") == [
        f"f.yaml:1:4: YAML readers take `{word}` for different numbers; write it in decimal, or in quotes if it is text [yaml-ambiguous]"
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: 1\na: 2", "f.yaml:2:1: `a` is written twice, first in line 1 [duplicate-key]"),
        ("a:\n\t- b", "f.yaml:2:1: a tab is used as indentation; YAML takes spaces only [yaml-syntax]"),
        ("a: 1\n\tb: 2", "f.yaml:2:1: a tab is used as indentation; YAML takes spaces only [yaml-syntax]"),
        ("a: b: c", "f.yaml:1:5: a second `: ` in one line, or a line that is indented too far [yaml-syntax]"),
        ("x: 'abc\nb: c", "f.yaml:1:4: a quote is opened here and never closed [yaml-syntax]"),
        (
            "x: 'abc\nb: c\n# it's\n",
            "f.yaml:1:4: a quote is opened here and not closed in its line; the next one, in line 3, closes it [yaml-syntax]",
        ),
        (
            "- 'abc\n- c\n# it's\n",
            "f.yaml:1:3: a quote is opened here and not closed in its line; the next one, in line 3, closes it [yaml-syntax]",
        ),
        (
            'a: 1\n"b: 2\nc: "3"\n',
            "f.yaml:2:1: a quote is opened here and not closed in its line; the next one, in line 3, closes it [yaml-syntax]",
        ),
        (
            'a: "b\nc: ""\n',
            "f.yaml:1:4: a quote is opened here and not closed in its line; the next one, in line 2, closes it [yaml-syntax]",
        ),
        (
            "a: 'two\n  lines'\nb: c: d",
            "f.yaml:3:5: a second `: ` in one line, or a line that is indented too far [yaml-syntax]",
        ),
        ("a: 1\nnodes\n  n1: {}", "f.yaml:2:1: the `:` after a key is missing [yaml-syntax]"),
        ("a: 1\nnodes\nb: 2", "f.yaml:2:1: the `:` after a key is missing [yaml-syntax]"),
        ("a: @rack01", "f.yaml:1:4: a value that begins with `@` needs quotes [yaml-syntax]"),
        ("a: [1, 2", "f.yaml:2:1: did not find expected ',' or ']' [yaml-syntax]"),
        ("a\n---\nb", "f.yaml:2:1: a second document begins here; one file holds one document [yaml-documents]"),
        ("on: 1", "f.yaml:1:1: `on` as a key is not text; write it in quotes [yaml-key]"),
        ("12: 1", "f.yaml:1:1: `12` as a key is not text; write it in quotes [yaml-key]"),
        ("? [a]\n: b", "f.yaml:1:3: a key must be text, not a list, a map or an alias [yaml-key]"),
        ("a: &x b\n*x : c", "f.yaml:2:1: a key must be text, not a list, a map or an alias [yaml-key]"),
        (
            "a: &x {b: 1}\nc: {<<: *x}",
            "f.yaml:2:5: merge keys (`<<`) are not accepted; use groups and levels [yaml-merge]",
        ),
        (
            "a: *x",
            "f.yaml:1:4: an alias (`*…`) refers to nothing above it, or to itself; a value that begins with `*` needs quotes [yaml-alias]",
        ),
        (
            "a: &x [*x]",
            "f.yaml:1:8: an alias (`*…`) refers to nothing above it, or to itself; a value that begins with `*` needs quotes [yaml-alias]",
        ),
        (
            "a: !!int '3'",
            "f.yaml:1:4: tags (`!…` before a value) are not accepted; write only the value [yaml-tag]",
        ),
        ("a: !x {}", "f.yaml:1:4: tags (`!…` before a value) are not accepted; write only the value [yaml-tag]"),
        ("a: 1\nb: \x1b[2J", "f.yaml:2:4: control or invisible character U+001B [control-character]"),
        ("a: b\u202ec", "f.yaml:1:5: control or invisible character U+202E [control-character]"),
        ('a: "\\e[2J"', "f.yaml:1:4: control or invisible character U+001B in quotes [control-character]"),
        (
            "a: " + "9" * 30,
            "f.yaml:1:4: a number with more than 18 digits; if it is text, write it in quotes [yaml-ambiguous]",
        ),
        ("a: 1e999", "f.yaml:1:4: `1e999` is too large for a number [yaml-ambiguous]"),
        ("[" * 100_000, "f.yaml:1:41: nested more than 40 levels deep [yaml-too-deep]"),
        ("- " * 100_000, "f.yaml:1:81: nested more than 40 levels deep [yaml-too-deep]"),
    ],
)
def test_refused(text: str, complaint: str) -> None:
    assert complaints(text) == [complaint]


def test_all_mistakes_that_do_not_stop_the_parser_come_at_once() -> None:
    places = [":".join(line.split(":")[1:3]) for line in complaints("a: yes\na: 010\noff: ~\nb: !x c")]
    assert places == ["1:4", "2:4", "2:1", "3:1", "4:4"]


def test_a_mistake_that_stops_the_parser_comes_with_those_before_it() -> None:
    assert [line.split(":")[1] for line in complaints("a: yes\nb: [")] == ["1", "3"]


def test_every_key_and_value_knows_its_place() -> None:
    root = read_yaml("a:\n  - b\n  - {c: d}\n", "f").root
    assert root is not None
    entry = root.entries()["a"]
    assert (entry.line, entry.column) == (1, 1)
    items = entry.item.value
    assert isinstance(items, list)
    assert [(item.line, item.column) for item in items] == [(2, 5), (3, 5)]
    inner = items[1].entries()["c"]
    assert (inner.line, inner.column, inner.item.line, inner.item.column) == (3, 6, 3, 9)


def test_an_alias_is_the_value_it_names() -> None:
    assert plain("a: &x [1]\nb: *x\nc: &y d\ne: *y") == {"a": [1], "b": [1], "c": "d", "e": "d"}


def test_aliases_cannot_multiply_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_source, "MAX_ITEMS", 1_000_000)
    laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 20)
    )
    (complaint,) = complaints(laughs)
    assert complaint.endswith("more than 1000000 values [yaml-too-large]")


def test_the_number_of_aliases_is_bounded() -> None:
    (complaint,) = complaints("a: &x 1\nb: [" + "*x, " * 1001 + "]")
    assert complaint.endswith("more than 1000 aliases [yaml-too-large]")


def test_the_size_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_source, "MAX_CHARACTERS", 3)
    assert complaints("a: b") == ["f.yaml:1:1: the file has more than 32 Mi characters [yaml-too-large]"]


@pytest.mark.parametrize("text", ["", "# only a comment\n"])
def test_an_empty_file_is_not_a_yaml_mistake(text: str) -> None:
    assert read_yaml(text, "f") == yaml_source.Document("f", None, ())


def test_windows_line_ends_and_a_byte_order_mark_do_not_matter() -> None:
    assert plain("\ufeffa: b\r\nc: d\r\n") == {"a": "b", "c": "d"}
    assert complaints("\ufeffa: `b") == complaints("a: `b")


def test_a_scalar_has_no_entries() -> None:
    assert Item("text", 1, 1).entries() == {}


def test_the_pure_parser_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yaml.__with_libyaml__", 0)
    assert plain("a: [1, {b: c}]") == {"a": [1, {"b": "c"}]}
    assert complaints("a: b: c") == [
        "f.yaml:1:5: a second `: ` in one line, or a line that is indented too far [yaml-syntax]"
    ]
