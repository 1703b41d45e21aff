"""No state of a module or closure is filled at its first use, except the places here, each with its reason."""

from __future__ import annotations

from pathlib import Path

import pytest

import rollout
from tests.house.lazy_state import filled_later

PACKAGE = Path(rollout.__file__).parent

SAFE = {
    ("adapters/http.py", "_DEADLINE"): "a threading.local",
    ("adapters/ssh/watchdog.py", "box"): "one thread writes, and its caller reads after its end",
    ("features/doctor/asking.py", "ways"): "each thread writes the key of its own node",
    ("features/diagnose/asking/prepulls.py", "so_far"): "results are heard in one thread",
    (
        "cli/registry.py",
        "REGISTERED",
    ): "filled by a module of commands while it is imported, under Python's lock of imports",
    ("app/operator_commands.py", "told"): "only for a message, asked by one thread",
    ("features/sequence/asking.py", "refused"): "each thread writes the key of its own cluster",
    ("features/sequence/asking.py", "broken"): "append is atomic, and read after the threads' end",
    ("app/emergency_rounds.py", "ended"): "the latest of some times",
    ("core/model/gate_kinds.py", "_known"): "an entry point fills it before it starts a thread",
    ("core/model/conditions.py", "_known"): "an entry point fills it before it starts a thread",
    ("core/model/frozen.py", "made"): "its `__init__`: threads that make it at the same time make the same one",
    ("core/plans/snapshot_codec.py", "contents"): "made by the call that fills it",
    ("core/text/json_text.py", "_OWN"): "filled while a module is imported",
    ("kubelet/configuration/config_file.py", "duplicates"): "made by the call that fills it",
}


def test_every_place_that_is_filled_later_has_a_reason() -> None:
    found = {
        (str(path.relative_to(PACKAGE)), name)
        for path in sorted(PACKAGE.rglob("*.py"))
        for name, _ in filled_later(path.read_text(encoding="utf-8"))
    }
    assert found == SAFE.keys()


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("known = {}\ndef f(key):\n    known[key] = 1\n", "known"),
        ("def f():\n    parts = []\n    def g():\n        parts.append(1)\n    return g\n", "parts"),
        ("def f():\n    parts = []\n    return lambda: parts.extend([1])\n", "parts"),
        ("found = None\ndef f():\n    global found\n    found = 1\n", "found"),
        ("class A: ...\nthe = A()\ndef f():\n    the.made = 1\n", "the"),
    ],
)
def test_state_that_is_filled_later_is_found(source: str, name: str) -> None:
    assert [found for found, _ in filled_later(source)] == [name]


def test_what_a_call_makes_for_itself_is_not_meant() -> None:
    source = (
        "known = {1: 2}\ndef f(given):\n    made = []\n    made.append(known[1])\n    given[1] = 2\n    return made\n"
    )
    assert not list(filled_later(source))
