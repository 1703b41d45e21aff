"""How a kubelet shows the quantities of its configuration: what one of 1.36.3 showed for each of these texts."""

from __future__ import annotations

import pytest

from rollout.kubelet.configuration.quantities import shown

from .starts import in_force, started

SHOWN = {
    "1500m": "1500m",
    "1000m": "1",
    "1000": "1k",
    "1k": "1k",
    "0.5": "500m",
    "2104.100": "2104.100",
    "1751.25k": "1751250",
    "0.5Mi": "512Ki",
    "1024Ki": "1Mi",
    "2048Mi": "2Gi",
    "1023Ki": "1023Ki",
    "0.1Ki": "102400m",
    "00012Ti": "00012Ti",
    "+3": "+3",
    "+3E2": "300",
    ".5e0": "500e-3",
    "0.1e1": "1",
    "1000000e3": "1e9",
    "327366033160e0": "327366033160e0",
    "0e-9": "0",
    "539.1234567891u": "539124n",
    "2828.0000000001P": "2828000000000100k",
    "1000P": "1E",
    "1000E": "1",
    "9223372036854775807e5": "922337203685477580700e3",
    "999Ei": "9223372036854775807",
}


@pytest.mark.parametrize(("text", "as_shown"), SHOWN.items())
def test_a_quantity_is_shown_as_the_kubelet_shows_it(text: str, as_shown: str) -> None:
    assert shown(text) == as_shown


@pytest.mark.parametrize(("written", "shown"), [("1n", "1m"), ("1500u", "2m"), ("1500m", "1500m"), ("1Gi", "1Gi")])
def test_a_file_reserves_memory_in_thousandths(written: str, shown: str) -> None:
    found = started("1.36.1", f"reservedMemory: [{{numaNode: 0, limits: {{memory: {written}}}}}]\n")
    assert in_force(found, "reservedMemory", 0, "limits") == {"memory": shown}
