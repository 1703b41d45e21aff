"""Four runs of ``make chaos``, each aimed: no finding, the fault really happened, and the nodes are as before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.bed.bed import Bed
from tests.chaos.draws import GUARD, KINDS, NODES, Draw, Kind, draw
from tests.chaos.machine import FAKETIME
from tests.chaos.site import Site, site_on
from tests.chaos.trial import Result, trial

pytestmark = [pytest.mark.root, pytest.mark.drawn(1)]


@pytest.fixture(scope="module")
def site(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The guard's time is as short as this machine's load allows."""
    if not FAKETIME.exists():
        pytest.skip("NOT TESTED: libfaketime is missing")
    made = site_on(bed, tmp_path_factory.mktemp("chaos") / "site")
    made.learn()
    return made


def aimed(kind: Kind, moment: str, node: int) -> Draw:
    """The run is reverted by what the nodes report, which is the harder way."""
    drawn = draw(0, KINDS.index(kind))
    return replace(
        drawn,
        moment=moment,
        struck=(node,),
        variant="",
        nodes=NODES,
        guard=GUARD,
        alone=True,
        emergency=True,
        late=50,
        seconds=0.0,
    )


def test_the_controller_is_killed_between_two_renames_of_a_node(site: Site) -> None:
    result = well(trial(site, aimed(Kind.CONTROLLER, "between two renames", 0)))
    assert result.saved_themselves >= 1, "it was left alone until its guard had fired"
    assert (result.resumed, result.confirmed) == (1, 3), "not its fault: it is tried again"


def test_a_node_loses_its_power_while_it_is_armed(site: Site) -> None:
    result = well(trial(site, aimed(Kind.POWER, "armed, nothing renamed", 1)))
    assert result.saved_themselves >= 1, "at boot"
    assert result.confirmed == 2


def test_a_confirm_that_comes_after_the_deadline_is_no_success(site: Site) -> None:
    result = well(trial(site, aimed(Kind.LATE, "", 2)))
    assert result.saved_themselves >= 1
    assert result.confirmed == 2, "the run reports the node as reverted, which is true"


def test_pid_1_is_frozen_in_the_middle_of_an_apply_until_its_guard_has_fired(site: Site) -> None:
    """Processes with the new files are restarted as soon as systemd continues, and the node is not reported as reverted
    before.
    """
    drawn = replace(aimed(Kind.SYSTEMD, "between two renames", 0), seconds=site.brief + 2.0)
    assert well(trial(site, drawn)).confirmed < 3


def well(result: Result) -> Result:
    assert result.reached, "it was over before the fault struck"
    assert [str(finding) for finding in result.findings] == []
    return result
