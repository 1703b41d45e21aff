"""Round trips of TOML and JSON files: other bytes are kept, a second edit changes nothing, odd files are refused."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.kubelet.node.layout import LayoutError
from rollout.kubelet.runtimes import toml_edit
from rollout.kubelet.runtimes.dockerd import daemon as dockerd
from tests.kubelet.runtimes.nodes import V2, V3

CRI = ("plugins", "io.containerd.grpc.v1.cri")
KEY = (*CRI, "image_pull_progress_timeout")

LINES = st.sampled_from([
    "version = 2",
    "",
    "# about the next line",
    "[plugins]",
    '[plugins."io.containerd.grpc.v1.cri"]',
    '  image_pull_progress_timeout = "1m0s"  # seed 1',
    "  max_concurrent_downloads = 3",
    "  sandbox_image = '''",
    "[not.a.table]",
    "'''",
    "  list = [",
    '    "a", # one',
    "  ]",
    '[plugins."io.containerd.grpc.v1.cri".registry]',
    '  config_path = ""',
    "[[stream]]",
    "x = {a = 1}",
    'plugins."io.containerd.grpc.v1.cri".dotted = true',
    "[ttrpc]",
    "  uid = 0",
    "\t[debug]",
])  # fmt: skip


def without(text: str, part: str) -> bool:
    """Is ``text`` equal to ``part`` with one run of characters removed?"""
    most = min(len(text), len(part))
    head = next((at for at in range(most) if text[at] != part[at]), most)
    return part.endswith(text[head:])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("plugins.'io.containerd.grpc.v1.cri'.image_pull_progress_timeout = '1m' # ours\n", "plugins.'io.containerd.grpc.v1.cri'.image_pull_progress_timeout = \"5m\" # ours"),
        ("[plugins]\n  'io.containerd.grpc.v1.cri'.image_pull_progress_timeout = '1m'\n", "  'io.containerd.grpc.v1.cri'.image_pull_progress_timeout = \"5m\""),
        ("[plugins]\n'io.containerd.grpc.v1.cri'.sandbox_image = 'p' # pause\n[grpc]\n", "'io.containerd.grpc.v1.cri'.image_pull_progress_timeout = \"5m\""),
    ],
)  # fmt: skip
def test_a_table_of_dotted_keys_gets_one_more_of_them(text: str, line: str) -> None:
    """It has no header, and must not get one: that would declare the table twice."""
    after = toml_edit.assign(text, KEY, "5m", "config.toml")
    assert [each for each in after.splitlines() if each not in text.splitlines()] == [line]
    assert [each for each in text.splitlines() if each not in after.splitlines() and "progress" not in each] == []


@given(st.lists(LINES, max_size=14), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_any_toml_file_is_edited_once_and_nothing_but_ours_changes_or_it_is_refused(
    lines: list[str], end: str, closed: bool
) -> None:
    text = end.join(lines) + (end if closed else "")
    try:
        before = tomllib.loads(text)
        after = toml_edit.assign(text, KEY, "5m", "config.toml")
    except (tomllib.TOMLDecodeError, LayoutError):
        return
    said: dict[str, Any] = tomllib.loads(after)
    assert said["plugins"][CRI[1]].pop(KEY[-1]) == "5m"
    had = toml_edit.value_at(before, KEY) is not None
    _drop_made(said, before)
    before.get("plugins", {}).get(CRI[1], {}).pop(KEY[-1], None)
    assert said == before
    assert toml_edit.assign(after, KEY, "5m", "config.toml") == after
    assert had or without(text, after)


def _drop_made(said: dict[str, Any], before: dict[str, Any]) -> None:
    """Tables that were added for the key alone."""
    if CRI[1] not in before.get("plugins", {}):
        assert said["plugins"].pop(CRI[1]) == {}
    if "plugins" not in before:
        assert said.pop("plugins") == {}


@given(st.sampled_from(["1m", "5m0s", "90s"]), st.sampled_from(["1m", "5m0s", "90s"]))
def test_the_last_of_two_edits_counts_and_the_first_leaves_no_trace(first: str, second: str) -> None:
    for text in (V2, V3, ""):
        once = toml_edit.assign(text, KEY, second, "f")
        assert toml_edit.assign(toml_edit.assign(text, KEY, first, "f"), KEY, second, "f") == once


@pytest.mark.parametrize(
    "text",
    [
        'plugins = {"io.containerd.grpc.v1.cri" = {a = 1}}\n',
        "plugins = 3\n",
        '[plugins]\n"io.containerd.grpc.v1.cri" = 5\n',
        '[plugins."io.containerd.grpc.v1.cri"]\nimage_pull_progress_timeout = """\n1m"""\n',
        "[[plugins]]\na = 1\n",
        "a = 1\na = 2\n",
        "a = 1\r b = 2",
    ],
)
def test_toml_that_is_refused(text: str) -> None:
    with pytest.raises(LayoutError) as error:
        toml_edit.assign(text, KEY, "5m", "config.toml")
    assert error.value.reference in {"toml-unreadable", "toml-unprovable"}


@given(
    st.dictionaries(
        st.text(max_size=8),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
            max_leaves=8,
        ),
        max_size=5,
    ),
    st.sampled_from([None, 0, 2, "\t"]),
    st.integers(min_value=1, max_value=99),
)
def test_any_daemon_json_keeps_its_order_and_bytes(
    document: dict[str, Any], indent: str | int | None, value: int
) -> None:
    key = "max-concurrent-downloads"
    text = json.dumps(document, indent=indent) + "\n"
    after = dockerd.with_member(text, key, value, "daemon.json")
    assert list(json.loads(after).items()) == list({**document, key: value}.items())
    assert dockerd.with_member(after, key, value, "daemon.json") == after
    assert key in document or without(text, after)


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("", '{\n  "k": 5\n}\n'),
        (" \n", '{\n  "k": 5\n}\n'),
        ("{}", '{\n  "k": 5\n}'),
        ("{\n}\n", '{\n  "k": 5\n}\n'),
        ('{"a": 1}', '{"a": 1,"k": 5}'),
        ('{\r\n  "a": 1\r\n}', '{\r\n  "a": 1,\r\n  "k": 5\r\n}'),
        ('{ "k" :  3 , "a": {"k": 3}}', '{ "k" :  5 , "a": {"k": 3}}'),
        ('{"k": true}', '{"k": 5}'),
    ],
)
def test_daemon_json_to_the_byte(text: str, after: str) -> None:
    assert dockerd.with_member(text, "k", 5, "daemon.json") == after


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "5",
        '{"a": 1',
        '{"a": 1,}',
        '{"a": 1} x',
        '{"a":1,"a":2}',
        '{"b":{"a":1,"a":2}}',
        "{a: 1}",
        '{"a" 1}',
        "{,}",
    ],
)
def test_json_that_is_refused(text: str) -> None:
    with pytest.raises(LayoutError) as error:
        dockerd.with_member(text, "k", 5, "daemon.json")
    assert error.value.reference == "json-unreadable"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{\n  "debug": true,\n}\n', "a key was expected: line 3 column 1"),
        ('{\n  // why\n  "debug": true\n}\n', "a key was expected: line 2 column 3"),
        ('{\n  "debug" true\n}\n', ": was expected: line 2 column 11"),
        ('{"debug": true}\n\n{"live-restore": true}\n', "something follows the object: line 3 column 1"),
        ('{\n  "debug": true,\n  "live-restore": true,\n  "debug": false\n}\n', 'contains "debug" twice, in lines 2 and 4'),
        ('{\n  "log-opts": {"max-size": "1m", "max-size": "2m"}\n}\n', "`max-size` is a duplicate key"),
    ],
)  # fmt: skip
def test_json_that_is_refused_is_told_with_its_line_or_key(text: str, said: str) -> None:
    with pytest.raises(LayoutError, match=re.escape(said)):
        dockerd.object_of(text, "/etc/docker/daemon.json")
