"""JSON from outside is a value or a ``ValueError``, however it is nested."""

import ast
from itertools import chain

import pytest

from rollout.core.text import json_text
from tests.places import ROOT

DEEP = "[" * 100_000

# Readers that need a hook of json.loads and bound the nesting themselves, and the lab's own files and lines.
OTHERS = {
    "core/text/json_text.py",
    "core/reading/ansible_inventory.py",
    "kubelet/configuration/config_file.py",
    "adapters/progress.py",  # it reads what the line before encoded
    "simulator/journal.py",
    "kubelet/runtimes/dockerd/stand_in.py",  # a file of the lab
}
OURS = ("kubelet/fields.py", "kubelet/explained/", "kubelet/configuration/", "lab/")  # shipped data, the lab


def test_a_value() -> None:
    assert json_text.parse('{"a": [1, null]}') == {"a": [1, None]}
    assert json_text.parse(b"3") == 3


@pytest.mark.parametrize("text", ["", "{", DEEP, DEEP.encode(), '{"a":' * 100_000, b"\xff"])
def test_anything_else_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        json_text.parse(text)


def test_nothing_else_reads_json_from_outside() -> None:
    package = ROOT / "rollout"
    calls = chain.from_iterable(
        [str(path.relative_to(package))] * ("json.loads" in {ast.unparse(node.func) for node in nodes})
        for path in package.rglob("*.py")
        if (nodes := [node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.Call)])
    )
    assert {name for name in calls if not name.startswith(OURS)} <= OTHERS
