"""Precedence: cluster < group, in file order < node < --set; the playbook sets the cluster level, over the inventory."""

from __future__ import annotations

import pytest

from rollout.core.model.inventory import Inventory, Level, Node
from rollout.core.model.playbook import DEFAULT_BUDGETS, Limits, Policy, RevertScope, Templates
from rollout.core.model.settings import Setting, Value
from rollout.core.reading.precedence import parse_override, settings_of
from rollout.errors import UsageError
from rollout.gates.table import DEFAULT_GATES


def said(source: str, **values: Value) -> dict[str, Setting]:
    return {name: Setting(name, value, source=source) for name, value in values.items()}


def inventory(*levels: Level) -> Inventory:
    nodes = {name: Node(name, name, "r", "z") for name in ("n1", "n2", "n3", "n4")}
    return Inventory("c", "v1.23.17", nodes, {}, levels, "")


def policy(settings: dict[str, Setting]) -> Policy:
    texts = Templates("", "", "", "", "", "")
    return Policy(
        "p", settings, texts, (), Limits(), DEFAULT_BUDGETS, DEFAULT_GATES, RevertScope.WAVE, 60, 3, 120, 3, ""
    )


def test_each_level_wins_over_those_before_it() -> None:
    levels = (
        Level("cluster", None, said("cluster", a=1, b=1, c=1, d=1, e=1, f=1)),
        Level("first", frozenset({"n1", "n2"}), said("first", c=3, d=3, e=3, f=3)),
        Level("second", frozenset({"n1"}), said("second", d=4, e=4, f=4)),
        Level("node", frozenset({"n1"}), said("node", e=5, f=5)),
    )
    settings = settings_of(inventory(*levels), policy(said("playbook", b=2, c=2)), said("--set", f=6))
    sources = {name: {key: setting.source for key, setting in of.items()} for name, of in settings.items()}
    assert sources == {
        "n1": {"a": "cluster", "b": "playbook", "c": "first", "d": "second", "e": "node", "f": "--set"},
        "n2": {"a": "cluster", "b": "playbook", "c": "first", "d": "first", "e": "first", "f": "--set"},
        "n3": {"a": "cluster", "b": "playbook", "c": "playbook", "d": "cluster", "e": "cluster", "f": "--set"},
        "n4": {"a": "cluster", "b": "playbook", "c": "playbook", "d": "cluster", "e": "cluster", "f": "--set"},
    }


def test_the_whole_value_of_one_level_wins() -> None:
    level = Level("g", frozenset({"n1"}), said("g", evictionHard={"a": "1%"}))
    settings = settings_of(inventory(level), policy(said("playbook", evictionHard={"a": "5%", "b": "5%"})), {})
    assert settings["n1"]["evictionHard"].value == {"a": "1%"}


def test_nodes_with_the_same_levels_share_their_settings() -> None:
    settings = settings_of(inventory(Level("g", frozenset({"n1"}), said("g", a=1))), policy({}), {})
    assert settings["n2"] is settings["n3"] is settings["n4"]
    assert settings["n1"] is not settings["n2"]


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("serializeImagePulls=false", "serializeImagePulls", False),
        ("imagePullProgressDeadline=5m", "imagePullProgressDeadline", "5m"),
        ("maxPods=30", "maxPods", 30),
        ("node-ip=10.0.0.1", "node-ip", "10.0.0.1"),
        ("evictionHard={memory.available: 5%}", "evictionHard", {"memory.available": "5%"}),
        ("a=b=c", "a", "b=c"),
        ("a='yes'", "a", "yes"),
    ],
)
def test_override(text: str, name: str, value: Value) -> None:
    assert parse_override(text) == Setting(name, value, source="--set")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("maxPods", "--set `maxPods`: write name=value, for example serializeImagePulls=false [bad-override]"),
        ("=3", "--set `=3`: write name=value, for example serializeImagePulls=false [bad-override]"),
        ("a b=3", "--set `a b=3`: write name=value, for example serializeImagePulls=false [bad-override]"),
        ("a=", "--set `a=`: there is no value [bad-override]"),
        ("a=~", "--set `a=~`: there is no value [bad-override]"),
        ("a=[", "--set `a=[`: did not find expected node content [bad-override]"),
        (
            "a=yes",
            '--set `a=yes`: `yes` is a boolean to some readers and text to others; write true or "yes" [bad-override]',
        ),
    ],
)
def test_bad_override(text: str, complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_override(text)
    assert str(caught.value) == complaint
