"""Documents as Go's scanner and parser read them, where libyaml differs, and the limit of depth."""

import pytest

from rollout.kubelet.configuration.yaml_document import DocumentError, read


@pytest.mark.parametrize(
    "text", ["[" * 5_000, "{a: " * 5_000, "{ " * 5_000, "? " * 5_000, "[? {" * 5_000, "- " * 5_000]
)
def test_a_document_that_is_too_deep_is_an_error(text: str) -> None:
    with pytest.raises(DocumentError, match=r"too large or too deep|yaml"):
        read(text.encode())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: [fd00::]", {"a": ["fd00::"]}),
        ("a: [fd00::, fd00::1]", {"a": ["fd00::", "fd00::1"]}),
        ("a: {b:}", {"a": {"b:": None}}),
        ("a: {b:[c]}", None),
        ("a: {b: c:}", {"a": {"b": "c:"}}),
        ('a: {"b":[c]}', {"a": {"b": ["c"]}}),
        ('a: ["b:,c"] # d:,e', {"a": ["b:,c"]}),
        ("a: b:,c", {"a": "b:,c"}),
        ("a: |\n  b:,c\n", {"a": "b:,c\n"}),
        ("a: b?c", {"a": "b?c"}),
        ("a: ['b?c']", {"a": ["b?c"]}),
    ],
)
def test_plain_words_in_brackets_as_gos_scanner_reads_them(text: str, value: object) -> None:
    if value is None:
        with pytest.raises(DocumentError):
            read(text.encode())
    else:
        assert read(text.encode()).value == value


@pytest.mark.parametrize(("text", "closing"), [("a: [b?c]", "]"), ("a:\n- {b?c: 1}", "}")])
def test_a_question_mark_ends_a_plain_word_in_brackets(text: str, closing: str) -> None:
    with pytest.raises(DocumentError, match=f"did not find expected ',' or '{closing}'"):
        read(text.encode())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("\ufeffa: 1\nb: 2\n", {"a": 1, "b": 2}),
        ("a: 1\n\ufeffb: 2\n", {"a": 1, "\ufeffb": 2}),
        ("\ufeffa: 1\n\ufeffb: 2\n", {"a": 1, "\ufeffb": 2}),
        ("a:\n- 1\n\ufeff# c\n", None),
        ("a: b\ufeffc\n", {"a": "b\ufeffc"}),
        ("a: [\n\ufeffb]\n", {"a": ["\ufeffb"]}),
    ],
)
def test_a_byte_order_mark_inside_is_a_letter(text: str, value: object) -> None:
    if value is None:
        with pytest.raises(DocumentError):
            read(text.encode())
    else:
        assert read(text.encode()).value == value


@pytest.mark.parametrize("text", ["\ufeff\ufeffa: 1\nb: 2\n", "a: \ue000", "a: \ue001"])
def test_what_cannot_be_judged_is_an_error(text: str) -> None:
    with pytest.raises(DocumentError, match="cannot judge"):
        read(text.encode())
