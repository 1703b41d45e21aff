"""Splicing: our values change, everything else keeps its bytes, and every doubt is a refusal."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.core.model.settings import Value
from rollout.kubelet.changes import splice
from rollout.kubelet.changes.splice import SpliceError, merged, read
from rollout.kubelet.configuration import yaml_document

OLD = b"""\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
# how we pull
serializeImagePulls: yes   # since 2019
clusterDNS:
- 10.96.0.10
# after the list
evictionHard:
  memory.available: 100Mi # more
authentication: {x509: {}, webhook: {enabled: true}}
empty:
runtimeRequestTimeout: "2m"
last: 'x'"""


def spliced(old: bytes, overlay: str) -> bytes:
    return splice.splice(old, overlay.encode()).content


def test_only_our_bytes_change() -> None:
    overlay = """
serializeImagePulls: false
clusterDNS: [1.1.1.1, 2.2.2.2]
evictionHard: {nodefs.available: 10%}
authentication: {anonymous: {enabled: false}}
empty: 5
maxParallelImagePulls: 5
featureGates: {Graceful: true}
staticPodURLHeader: {a: [b]}
allowedUnsafeSysctls: [net.*, kernel.msg]
"""
    assert (
        spliced(OLD, overlay).decode()
        == """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
# how we pull
serializeImagePulls: false   # since 2019
clusterDNS: [1.1.1.1, 2.2.2.2]
# after the list
evictionHard:
  memory.available: 100Mi # more
  nodefs.available: 10%
authentication: {x509: {}, webhook: {enabled: true}, anonymous: {enabled: false}}
empty: 5
runtimeRequestTimeout: "2m"
last: 'x'
maxParallelImagePulls: 5
featureGates:
  Graceful: true
staticPodURLHeader:
  a:
  - b
allowedUnsafeSysctls:
- "net.*"
- kernel.msg"""
    )


def test_inner_and_outer_maps_may_end_at_the_same_place() -> None:
    assert spliced(b"a:\n  b: 1", "a: {c: 2}\nd: 3\n") == b"a:\n  b: 1\n  c: 2\nd: 3"


def test_changes_have_old_and_new_values() -> None:
    found = splice.splice(OLD, b"serializeImagePulls: false\nevictionHard: {memory.available: 100Mi}\nnew: 1\n")
    assert found.changed == ((("serializeImagePulls",), True, False), (("new",), None, 1))
    assert found.document["new"] == 1
    assert found.document["evictionHard"] == {"memory.available": "100Mi"}


def test_equal_values_in_another_notation_need_no_change() -> None:
    for written in ("no", "off", "False", "n", "false"):
        old = f"a: {written}\n".encode()
        assert spliced(old, "a: false\n") == old


def test_the_caller_decides_which_values_are_equal() -> None:
    def same(_path: tuple[str, ...], old: Value, new: Value) -> bool:
        return {old, new} <= {"5m", "5m0s", "300s"} or old == new

    assert splice.splice(b"a: 300s\nb: 1\n", b"a: 5m\nb: 2\n", same).content == b"a: 300s\nb: 2\n"


def test_a_pair_is_merged_once_however_many_nodes_have_it() -> None:
    splice.splice.cache_clear()
    for _ in range(2000):
        splice.splice(OLD, b"serializeImagePulls: false\n")
    info = splice.splice.cache_info()
    assert (info.misses, info.hits) == (1, 1999)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"--- {}\n", b"--- {a: 5, c: {d: 1}}\n"),
        (b"--- {a: 1,}\n", b"--- {a: 5, c: {d: 1}}\n"),
        (b"--- {\n  a: 1\n}\n", b"--- {\n  a: 5,\n  c: {d: 1}\n}\n"),
        (b"{}\n", b'{"a": 5, "c": {"d": 1}}\n'),
        (b'{"z":0}', b'{"z":0, "a": 5, "c": {"d": 1}}'),
        (b'\n {\r\n\t"a": 1,\r\n\t"z": 0\r\n}', b'\n {\r\n\t"a": 5,\r\n\t"z": 0,\r\n\t"c": {"d": 1}\r\n}'),
        (b"a:\t1\t# x\t\nz:\t'y'\t\n", b"a:\t5\t# x\t\nz:\t'y'\t\nc:\n  d: 1\n"),
        (b"---\na: 0\n", b"---\na: 5\nc:\n  d: 1\n"),
        (b"a: 1\n...\n", b"a: 5\nc:\n  d: 1\n...\n"),
        (b"a: '1'\r\nb: 2\r\n", b"a: 5\r\nb: 2\r\nc:\r\n  d: 1\r\n"),
        (b"a: {b: 3}\n", b"a: 5\nc:\n  d: 1\n"),
        (b'{"a": 1,\n "c": {"d": 2}\n}\n', b'{"a": 5,\n "c": {"d": 1}\n}\n'),
        (b"a:\n- x\n\n\nc:\n  d: 2\n\n# end\n", b"a: 5\n\n\nc:\n  d: 1\n\n# end\n"),
        (b"a:   # why\nc: ~\n", b"a: 5   # why\nc: {d: 1}\n"),
        (b"b:\n  deep: 1\n  # inside\n# outside\na: 1", b"b:\n  deep: 1\n  # inside\n# outside\na: 5\nc:\n  d: 1"),
        ("ä: ü\na: 1\n".encode(), "ä: ü\na: 5\nc:\n  d: 1\n".encode()),
        (b"  a: 1\n  z: 2\n", b"  a: 5\n  z: 2\n  c:\n    d: 1\n"),
        (b"c: {}\na: 5\n", b"c: {d: 1}\na: 5\n"),
        (b"dns: [fd00::, fd01::]\na: 1\nc: {d: 1}\n", b"dns: [fd00::, fd01::]\na: 5\nc: {d: 1}\n"),
    ],
)
def test_layouts(old: bytes, new: bytes) -> None:
    assert spliced(old, "a: 5\nc: {d: 1}\n") == new


@pytest.mark.parametrize(
    ("old", "reference"),
    [
        (b"", "yaml-empty"),
        (b"# only this\n", "yaml-empty"),
        (b"a: 1\na: 2\n", "yaml-duplicate-key"),
        (b"b: {x: 1, x: 2}\n", "yaml-duplicate-key"),
        (b"a: 1\n---\nb: 2\n", "yaml-documents"),
        (b"- 1\n", "yaml-not-a-map"),
        (b"\ta: 1\n", "yaml-unreadable"),
        (b"a: [1\n", "yaml-unreadable"),
        (b"a: 1\n b: 2\n", "yaml-unreadable"),
        (b"a: &x 1\nb: *x\n", "yaml-anchor"),
        (b"b: &x 1\na: *x\n", "yaml-anchor"),
        (b"c: &x {d: 2}\n", "yaml-anchor"),
        (b"b: &x [*x]\n", "yaml-too-complex"),
        (b"b: !mine 1\n", "yaml-tag"),
        (b"b: !!set {x}\n", "yaml-tag"),
        (b"b: !!str 1\n", "yaml-tag"),
        (b"b: !x [1]\n", "yaml-tag"),
        (b'b: !!binary "aGk="\n', "yaml-tag"),
        (b"b: &x {y: 1}\nz:\n  <<: *x\n", "yaml-key"),
        (b"? [a]\n: 1\n", "yaml-key"),
        (b"a: |\n  text\n", "yaml-block-scalar"),
        (b"z: |\n  text\n", "yaml-block-scalar"),
        (b"a:\n- x # one\n- y\n", "yaml-comment"),
        (b"c: {x: 1 # one\n }\n", "yaml-comment"),
        (b"\xff\xfe", "yaml-not-utf8"),
        (b"\xef\xbb\xbfa: 1\n", "yaml-bom"),
        (b"%YAML 1.1\n---\na: 1\n", "yaml-directive"),
        (b"{a, b: 1}\n", "yaml-unprovable"),
        (b"b: " + b"[" * 60 + b"]" * 60 + b"\n", "yaml-too-complex"),
        (b"b: " + b"[a, {c: " * 4000, "yaml-too-complex"),
        (b"a: ']" + b"]" * 4000 + b"'\nb: " + b"[" * 4000, "yaml-too-complex"),
    ],
)
def test_refused(old: bytes, reference: str) -> None:
    with pytest.raises(SpliceError) as caught:
        spliced(old, "a: 5\nc: {d: 1}\n")
    assert caught.value.reference == reference
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "message", "line"),
    [
        (b"b: &x {y: 1}\nz:\n  <<: *x\n", "a merge key (`<<`), which rollout does not follow: write the values that it merges in its place (line 3, column 3)", 3),
        (b"b: 1\n&x z: 1\n", "a key with an anchor (line 2, column 1)", 2),
        (b"b: 1\n? [a]\n: 1\n", "a key that is not plain text (line 2, column 3)", 2),
        (b"b: !mine 1\n", "the tag !mine (line 1, column 4)", 1),
        (b"z: 1\nb: !x [1]\n", "the tag !x (line 2, column 4)", 2),
        (b"# one\n%YAML 1.1\n---\na: 1\n", "the file contains a YAML directive (line 2)", 2),
    ],
)  # fmt: skip
def test_a_refusal_has_its_place(old: bytes, message: str, line: int) -> None:
    with pytest.raises(SpliceError) as caught:
        spliced(old, "a: 5\n")
    assert (str(caught.value), caught.value.line) == (message, line)


@pytest.mark.parametrize(
    "word",
    [
        "y", "NO", "~", "null", "12", "-1_000", "0x1F", "0b11", "017", "0o17", "1.5", ".5e3", "5m", "10%", "1.2.3.4", "yES", "0", "0x_",
        "1_000.5", "0_8", "08", "4e999", "1e3", "1:30", "2001-01-01", "+1", "18446744073709551615", "18446744073709551616", "._1", "0o", "1__2",
    ],
)  # fmt: skip
def test_a_word_has_the_value_that_a_kubelet_reads(word: str) -> None:
    document = yaml_document.read(f"b: {word}\n".encode()).value
    assert isinstance(document, dict)
    assert splice.exactly((), dict(read(f"b: {word}\n".encode())), document)
    assert splice.exactly((), dict(read(spliced(f"b: {word}\n".encode(), "a: 1\n"))), {**document, "a": 1})


@pytest.mark.parametrize("word", [".inf", "-.INF", ".nan"])
def test_a_number_that_json_lacks_stops_a_kubelet_and_is_refused(word: str) -> None:
    with pytest.raises(SpliceError, match="json: unsupported value"):
        read(f"b: {word}\n".encode())


@pytest.mark.parametrize("text", ["b: [a?b]\n", "b: 1 # here\u2028c: 2\n", 'b: "\\ud83d\\ude00"\n'])
def test_ambiguous_yaml_is_refused(text: str) -> None:
    with pytest.raises(SpliceError) as caught:
        spliced(text.encode(), "a: 1\n")
    assert caught.value.reference in {"yaml-two-readings", "yaml-unreadable"}


def test_characters_beyond_the_first_plane_are_written_unescaped() -> None:
    assert yaml_document.read(spliced(b"b: 1\n", json.dumps({"a": "\U0001f600"}, ensure_ascii=False))).value == {
        "b": 1,
        "a": "\U0001f600",
    }


def test_texts_that_would_read_as_something_else_are_quoted() -> None:
    overlay = json.dumps({"a": ["no", "12", "1e3", "2001-01-01", "1:30", ".inf", "", " x", "x # y", "5m", "ü"]})
    made = spliced(b"b: 1\n", overlay)
    assert read(made)["a"] == ["no", "12", "1e3", "2001-01-01", "1:30", ".inf", "", " x", "x # y", "5m", "ü"]
    assert b"- 5m\n" in made
    assert b'- "no"\n' in made


KEYS = st.sampled_from(["a", "b", "c", "maxPods", "no", "memory.available"])
SCALARS = st.one_of(
    st.booleans(), st.integers(-(2**40), 2**40), st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=8),
    st.sampled_from(["5m", "yes", "null", "0x1", "a: b", "- a", "#", "'", '"']),
)  # fmt: skip
VALUES: st.SearchStrategy[Value] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=6,
)
MAPS = st.dictionaries(KEYS, VALUES, min_size=1, max_size=4)


def block(value: dict[str, Value], indent: str = "") -> str:
    """A typical hand-written document: block maps, a comment after each scalar."""
    lines = []
    for key, inner in value.items():
        if isinstance(inner, dict) and inner:
            lines.append(f"{indent}{json.dumps(key)}:\n{block(inner, indent + '  ')}")
        else:
            lines.append(
                f"{indent}{json.dumps(key)}: {splice.written({'': inner}).decode()[5:-1]}   # about {len(lines)}\n"
            )
    return "".join(lines)


def may_lose_comments(old: dict[str, Value], overlay: dict[str, Value]) -> bool:
    """A block map with comments inside is replaced by another value: its comments are kept, or it is refused."""
    for key, new in overlay.items():
        was = old.get(key)
        if not isinstance(was, dict) or not was:
            continue
        if not isinstance(new, dict) or may_lose_comments(was, new):
            return True
    return False


@given(MAPS, MAPS, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_the_result_is_the_merge_and_comments_survive(
    old: dict[str, Value],
    overlay: dict[str, Value],
    end: str,
    final: bool,
) -> None:
    text = block(old).replace("\n", end)
    before = (text if final else text.removesuffix(end)).encode()
    try:
        after = splice.splice(before, splice.written(overlay))
    except SpliceError:
        assert may_lose_comments(old, overlay)
        return
    wanted = merged(old, overlay, splice.exactly)
    assert splice.exactly((), dict(after.document), wanted)
    assert splice.exactly((), dict(read(after.content)), wanted)
    untouched = [
        line for line in before.splitlines() if line.split(b":")[0] not in {json.dumps(key).encode() for key in overlay}
    ]
    assert all(line in after.content.splitlines() for line in untouched if not line.startswith(b" "))
    assert splice.splice(after.content, splice.written(overlay)).content == after.content


@given(MAPS)
def test_merging_existing_values_changes_no_byte(old: dict[str, Value]) -> None:
    before = block(old).encode()
    assert splice.splice(before, splice.written(old)).content == before


@given(st.text(max_size=60))
def test_any_text_is_spliced_or_refused(text: str) -> None:
    try:
        found = splice.splice(text.encode("utf-8", "replace"), b"a: 5\n")
    except SpliceError:
        return
    assert found.document["a"] == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\n---\nb: 2\n", "the file contains several documents (line 3, column 1)"),
        ("a: 1\nset: &x\n  b: 1\n", "an anchor or alias on the way to set (line 2, column 6)"),
        ("a: 1\nset:\n  c: &x 1\n", "an anchor or alias on the way to set.c (line 3, column 3)"),
        ("set:\n  c: |\n    text\n", "set.c is written as a block of text (line 2, column 3)"),
        (
            "set:\n  c:\n  - 1 # one\n  - 2\n",
            "a comment inside the old value of set.c would be lost (line 2, column 3)",
        ),
        ("a: 1\nset: {b: 1 # one\n  }\n", "a comment inside a map in braces (line 2, column 6)"),
        ("set:\n  b: |\n    text\n", "the last value before the new key is a block of text (line 2, column 3)"),
    ],
)
def test_what_cannot_be_edited_has_its_line_and_column(text: str, message: str) -> None:
    with pytest.raises(SpliceError) as caught:
        splice.splice(text.encode(), b"set: {c: 2}\n")
    assert str(caught.value) == message
