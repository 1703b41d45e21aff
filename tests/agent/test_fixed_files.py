"""A file that cannot be renamed (``chattr +i``, a full quota) stops neither the other files nor the restart."""

from __future__ import annotations

import pytest

from rollout.core.model.report import Outcome
from rollout.core.run.events import Trigger, reference_of, trigger_of
from tests.agent.node import CONFIG, DROPIN, FLAGS, NEW, OLD, Node
from tests.agent.test_second_chances import wrap

pytestmark = pytest.mark.process

RESTART = "restart kubelet.service"


def fixed(node: Node, path: str) -> None:
    """As long as `run/standin/fixed` exists."""
    mark = node.at("/run/standin/fixed")
    mark.touch()
    for tool in ("mv", "rm"):
        wrap(node, tool, f'[ ! -e {mark} ] || case "$*" in *" {node.at(path)}") exit 1 ;; esac')


@pytest.mark.parametrize("path", [CONFIG, FLAGS, DROPIN])
@pytest.mark.parametrize("way", ["revert", "guard"])
def test_all_other_files_are_restored_and_units_restarted(node: Node, way: str, path: str) -> None:
    assert node.apply().healthy
    fixed(node, path)
    before = node.calls().count(RESTART)
    if way == "guard":
        assert node.trigger("guard") == 1
        report = node.status("t1")
    else:
        report = node.revert()
    assert node.files() == {**OLD, path: NEW[path]}
    assert node.calls().count(RESTART) == before + 1
    assert trigger_of(report) is Trigger.STUCK
    assert reference_of(report, trigger_of(report)) == "not-given-back"
    assert path in report.message
    assert node.receipt()["state"] == "reverting"
    assert node.trigger("guard") == 1
    assert node.calls().count(RESTART) == before + 1, "finished steps are not repeated"
    node.at("/run/standin/fixed").unlink()
    assert node.trigger("guard") == 0
    assert node.calls().count(RESTART) == before + 2, "it has not run with this file before"
    assert (node.files(), node.receipt()["state"], node.strays()) == (OLD, "reverted", [])
    assert node.status("t1").reference == ""


def test_the_node_itself_retries_an_incomplete_revert_of_a_confirmed_change(node: Node) -> None:
    """Its guard was disarmed long ago."""
    assert node.apply().healthy
    node.confirm()
    fixed(node, FLAGS)
    assert node.revert().reference == "not-given-back"
    assert node.at("/run/standin/rollout-guard-t1.timer").exists()
    node.at("/run/standin/fixed").unlink()
    assert node.trigger("guard") == 0
    assert (node.files(), node.receipt()["state"], node.strays()) == (OLD, "reverted", [])


def test_a_forbidden_hard_link_is_refused_before_arming(node: Node) -> None:
    wrap(
        node,
        "ln",
        f'case "$*" in "{node.at(CONFIG)} "*) echo "ln: failed: Operation not permitted" >&2; exit 1 ;; esac',
    )
    wrap(node, "lsattr", f'case $3 in {node.at(CONFIG)}) echo "----i---------e------- $3" ;; esac; exit')
    report = node.apply()
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "not-renameable")
    assert CONFIG in report.message
    assert "chattr -i" in report.message
    assert (node.files(), node.strays()) == (OLD, [])
