"""The regions on the page of a run, from the heartbeats of its controller in a real journal."""

from __future__ import annotations

import re
from pathlib import Path

from rollout.core.model.regions import RegionStanding
from rollout.core.presentation.pages.markup import Html
from rollout.features.serve.client.pages import Site
from rollout.features.serve.words.live_page import live_body
from tests.core.presentation import journals
from tests.features.serve.serving import keep

RUN = "r20261120-160000-ab12"
REGIONS = (RegionStanding("eu", ("eu-1", "eu-2"), 3, 1240, 0.0204), RegionStanding("<us>", (), 0, 0))


def test_a_run_through_workers_shows_each_region_and_others_show_no_section(tmp_path: Path) -> None:
    plan, play = journals.stopped(lambda state: state.wave == 2)
    journal = keep(tmp_path, RUN, plan, play, len(play.journal))

    def parts() -> dict[str, Html]:
        site = Site(lambda: journal, "here", stopping=lambda: False)
        live = site.runs.get(RUN)
        return site.parts_of(live).of(live.look())

    assert parts()["regions"] == ""
    journal.renew(plan.cluster, RUN, REGIONS)
    found = parts()
    rows = [re.findall(r"<td.*?>(.*?)</td>", row) for row in re.findall(r"<tr.*?</tr>", found["regions"])]
    assert rows[1:] == [["eu", "eu-1, eu-2", "3", "1,240", "20 ms"], ["&lt;us&gt;", "none", "0", "0", ""]]
    page = live_body(found)
    assert page.count("eu-1, eu-2") == 1
    assert page.index('id="regions"') < page.index('id="map"')
    journal.release(plan.cluster, RUN)
    journal.close()
