"""The lab's nodes keep the contract. (Real nodes: ``tests/real``.)"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.lab.contract import CASES, Subject
from tests.lab.labs import Lab, LabSubject


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_contract(lab: Lab, case: Callable[[Subject], None]) -> None:
    case(LabSubject(lab, "lab-01", "1.20.15"))
