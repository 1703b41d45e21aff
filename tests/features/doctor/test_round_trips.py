"""What the doctor says of round trips: whether a worker would help, from the measured crossing, and nothing where that does not decide."""

from __future__ import annotations

from itertools import count

import pytest

from rollout.features.doctor.rules.round_trips import (
    COSTS_UP_TO,
    FEWEST,
    MOST,
    PAYS_FROM,
    WithWorker,
    ZoneTrips,
    to_measure,
    trip_texts,
    with_worker,
    zone_trips,
)
from rollout.features.doctor.words import DoctorDocument, doctor_lines

BETWEEN = (COSTS_UP_TO + PAYS_FROM) / 2


@pytest.mark.parametrize(
    ("median", "nodes", "expected"),
    [
        (0.0002, FEWEST, WithWorker.LONGER),
        (COSTS_UP_TO, FEWEST, WithWorker.LONGER),
        (BETWEEN, 1000, WithWorker.NOT_KNOWN),
        (PAYS_FROM, FEWEST, WithWorker.SHORTER),
        (0.6, 1000, WithWorker.SHORTER),
        (0.6, FEWEST - 1, WithWorker.NOT_KNOWN),
        (0.0002, FEWEST - 1, WithWorker.NOT_KNOWN),
    ],
)
def test_only_a_round_trip_on_one_side_of_the_crossing_says_what_a_worker_does(
    median: float, nodes: int, expected: WithWorker
) -> None:
    assert with_worker(median, nodes) is expected


def found(**trips: tuple[float, ...]) -> tuple[ZoneTrips, ...]:
    """Zones and the round trips of their nodes, which are numbered; the zone ``none`` stands for no zone."""
    number = count(1)
    nodes = [(f"n{next(number)}", zone.replace("none", ""), trip) for zone, those in trips.items() for trip in those]
    return zone_trips({name: zone for name, zone, _ in nodes}, {name: trip for name, _, trip in nodes})


def test_a_zone_counts_by_its_median() -> None:
    (east,) = found(east=(0.001, 0.002, 0.9))
    assert (east.median_seconds, east.most_seconds) == (0.002, 0.9)
    assert east.with_worker is WithWorker.LONGER
    assert east.nodes == ("n1", "n2", "n3")


def test_some_nodes_of_each_zone_are_measured() -> None:
    zones = {f"n{at}": "east" if at % 2 else "west" for at in range(200)}
    chosen = to_measure(zones)
    assert len(chosen) == 2 * MOST
    assert sorted(zones[name] for name in chosen) == ["east"] * MOST + ["west"] * MOST


@pytest.mark.parametrize(
    ("trips", "lines"),
    [
        ({}, []),
        (
            {"east": (0.0004,) * 3, "west": (0.0012,) * 3, "asia": (0.24,) * 4},
            [
                "zone asia (4 nodes, median 240 ms): a worker there would shorten an apply",
                "zones east, west (6 nodes, medians 0.4 to 1.2 ms): a worker there would make an apply longer",
            ],
        ),
        (
            {"east": (0.24, 0.24)},
            [
                f"zone east (2 nodes, median 240 ms): it is not known whether a worker there would shorten an apply, because fewer than {FEWEST} nodes were measured"
            ],
        ),
        (
            {"none": (0.0004,) * 3 + (0.24,) * 3},
            [
                "n[1-3] (3 nodes, median 0.4 ms): a worker there would make an apply longer",
                "n[4-6] (3 nodes, median 240 ms): a worker there would shorten an apply; the inventory gives them no zone, and a worker serves a zone",
            ],
        ),
    ],
)
def test_zones_of_which_the_same_can_be_said_share_a_line(
    trips: dict[str, tuple[float, ...]], lines: list[str]
) -> None:
    assert list(trip_texts(found(**trips))) == lines


def test_between_the_measured_points_it_is_not_known() -> None:
    (line,) = trip_texts(found(east=(BETWEEN,) * 3))
    assert "it is not known whether a worker there would shorten an apply" in line
    span = f"{1000 * COSTS_UP_TO:.0f} ms and {1000 * PAYS_FROM:.0f} ms"
    assert line.endswith(f"because measurements do not decide between {span}")


def test_it_is_information_and_no_check() -> None:
    document = DoctorDocument(
        "rno", ok=True, selected=3, read=("n1", "n2", "n3"), parts=(), round_trips=found(asia=(0.24,) * 3)
    )
    lines = doctor_lines(document)
    assert (
        "measured round trip       zone asia (3 nodes, median 240 ms): a worker there would shorten an apply" in lines
    )
