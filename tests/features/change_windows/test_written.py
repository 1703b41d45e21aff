"""``changeWindows`` in playbooks and inventories: what it means, and every mistake with its place."""

from __future__ import annotations

import pytest

from rollout.core.reading.inventory_file import load_inventory
from rollout.errors import InputError, Place
from rollout.features.change_windows.rules import ChangeCalendar, Freeze, Weekday, Window
from tests.core.reading.test_playbook_file import BARE, load

WRITTEN = """\
changeWindows:
  zone: Europe/Zurich
  windows:
    - {days: [mon, tue], from: "22:00", to: "04:00"}
    - {from: "00:00", to: "24:00"}
  freezes:
    - {first: 2026-12-20, last: 2027-01-04, reason: year end}
    - {first: 2026-08-01, last: 2026-08-01}
"""
WINDOWS = (
    Window(frozenset({Weekday.MONDAY, Weekday.TUESDAY}), 1320, 240),
    Window(frozenset(Weekday), 0, 1440),
)
FREEZES = (Freeze("2026-12-20", "2027-01-04", "year end"), Freeze("2026-08-01", "2026-08-01", ""))
INVENTORY = "cluster: c\napiServer: v1.30.1\nnodes: {n1: }\n"


def test_a_playbook_and_an_inventory_write_calendars_alike() -> None:
    assert load(BARE + WRITTEN).conditions == (
        ChangeCalendar(Place("p.yaml", 4, 9), "Europe/Zurich", WINDOWS, FREEZES),
    )
    found = load_inventory(INVENTORY + WRITTEN, "inventories/c.yaml").conditions
    assert found == (ChangeCalendar(Place("inventories/c.yaml", 5, 9), "Europe/Zurich", WINDOWS, FREEZES),)


def test_without_one_changes_may_always_start() -> None:
    assert load(BARE).conditions == ()
    assert load_inventory(INVENTORY, "c.yaml").conditions == ()


def calendar(text: str) -> str:
    return f"changeWindows: {{zone: UTC, {text}}}\n"


MISTAKES = [
    ("changeWindows: {windows: []}\n", "p.yaml:3:16: `zone` is missing [missing-key]"),
    (
        "changeWindows: {zone: UTC}\n",
        "p.yaml:3:16: `changeWindows` limits nothing (set windows, freezes or both) [bad-calendar]",
    ),
    (
        "changeWindows: {zone: CET, freezes: []}\n",
        "p.yaml:3:23: `zone`: `CET` is not the name of an IANA time zone (write for example Europe/Zurich) [bad-zone]",
    ),
    (
        calendar("windows: [{from: 22:00, to: '04:00'}]"),
        "p.yaml:3:45: YAML readers take `22:00` for different numbers; write it in decimal, or in quotes if it is text [yaml-ambiguous]",
    ),
    (
        calendar("windows: [{from: '22:00', to: '25:00'}]"),
        'p.yaml:3:58: `to`: `25:00` is not a time of day (write it in quotes, for example "22:00") [bad-time]',
    ),
    (
        calendar("windows: [{from: '22:00', to: '22:00'}]"),
        'p.yaml:3:38: `windows[0]` does not last (a whole day is from "00:00" to "24:00") [bad-window]',
    ),
    (
        calendar("windows: [{days: [mo], from: '22:00', to: '23:00'}]"),
        "p.yaml:3:46: `days[0]` must be mon, tue, wed, thu, fri, sat or sun, not `mo` (did you mean `mon`?) [bad-choice]",
    ),
    (
        calendar("freezes: [{first: 2026-02-30, last: 2026-03-01}]"),
        "p.yaml:3:46: `first`: `2026-02-30` is not a date (write for example 2026-12-20) [bad-date]",
    ),
    (
        calendar("freezes: [{first: 2026-03-01, last: 9998-12-31}]"),
        "p.yaml:3:64: `last`: 9998-12-31 is not in the years 1970 to 2999 (write for example 2026-12-20) [bad-date]",
    ),
    (
        calendar("freezes: [{first: 2026-03-02, last: 2026-03-01}]"),
        "p.yaml:3:38: `freezes[0]` ends on 2026-03-01, before it begins on 2026-03-02 [bad-freeze]",
    ),
    (
        calendar("frezes: []"),
        "p.yaml:3:28: unknown key `frezes` (did you mean `freezes`?) [unknown-key]",
    ),
]


@pytest.mark.parametrize(("text", "said"), MISTAKES, ids=[said.rpartition("[")[2][:-1] for _, said in MISTAKES])
def test_mistakes_are_reported_with_their_place(text: str, said: str) -> None:
    with pytest.raises(InputError) as raised:
        load(BARE + text)
    assert said in [str(problem) for problem in raised.value.problems]
