"""The lab's nodes keep the contract. (Real nodes: ``test_contract_real``.)"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.lab.contract import CASES, Subject
from tests.lab.labs import Lab, LabSubject, connect

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def subject(lab: Lab) -> Iterator[Subject]:
    with connect(lab, "lab-01") as client:
        yield LabSubject(lab, client, "lab-01", "1.20.15")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_contract(subject: Subject, case: Callable[[Subject], None]) -> None:
    case(subject)
