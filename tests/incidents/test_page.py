"""``results/incidents.md`` and ``results/healthy.md`` are written from the committed results, and these show what the pages claim."""

from __future__ import annotations

import pytest

from tests.incidents import healthy
from tests.incidents.page import PAGE, page, results

RUNS = ("3-stalling-runtime", "3-containerd")


def test_the_page_is_that_of_the_results() -> None:
    assert PAGE.read_text() == page(results())


@pytest.mark.parametrize("run", RUNS)
def test_incident_3_has_a_queue_and_no_more_after_the_remedy(run: str) -> None:
    found = results()[run]
    before, after = found["before"], found["after"]
    assert before["ended while it hung"] == 0
    assert min(before["waited"]) > 10
    assert before["ended after the blocker"] < 5
    assert "serial-pull-queue" in found["finding"]["ids"]
    assert "--set serializeImagePulls=false" in found["finding"]["proposal"]
    assert after["waited before"]
    assert after["the other one still hung"], "the proof: a pull ended while the other one was stalled"
    assert after["new pull"] < 5
    assert "serial-pull-queue" not in after["finding"]["ids"]


def test_incident_1_is_cut_by_the_old_deadline_only() -> None:
    found = results()["1"]
    assert (found["deadline before"], found["deadline after"]) == ("1m0s", "5m")
    assert not found["before"]["ended"]
    assert 60 < found["before"]["seconds"] < found["silence"] + 20
    assert found["after"]["ended"]
    assert found["after"]["seconds"] > found["silence"]
    assert found["finding"]["confidence"] == "certain"
    assert found["finding"]["proposal"].partition("  #")[0].endswith("--set imagePullProgressDeadline=5m0s")
    assert "pull-progress-deadline" in found["events"]


def test_incident_1_is_cut_by_dockershim_too() -> None:
    found = results()["1-docker"]
    assert 60 < found["before"] < 95
    assert "because of no progress for 1m0s" in found["line"]
    assert found["finding"]["confidence"] == "certain"
    assert found["after"] > 74
    assert found["cancelled after the remedy"] == 0


def test_incident_2_is_judged_from_its_log_and_its_arithmetic_holds() -> None:
    found = results()["2"]
    assert {"negative-grace-period", "prestop-twice", "slow-termination"} <= found["log"].keys()
    assert all(each["withinLimit"] for each in found["budget"]["budgets"])
    oldest = found["budget"]["budgets"][0]
    assert found["measured"]["seconds"] <= oldest["seconds"] + 1, "a real kubelet 1.20.2, and a second for its calls"
    assert found["measured"]["granted"] == [2]


def test_an_hour_of_a_kubelet_with_nothing_wrong_has_no_finding() -> None:
    found = healthy.results()
    assert healthy.PAGE.read_text() == healthy.page(found)
    assert max(run["minutes"] for run in found.values()) >= 60
    for run in found.values():
        assert run["findings"] == []
        assert run["hooks that ran twice"] == 0
        assert run["pods"] > 5 * run["minutes"]
