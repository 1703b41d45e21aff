"""A plan file that another program sealed can do no more than a plan that rollout made."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from rollout.app.plan import build_plan
from rollout.app.plan_file import MOST_PROBLEMS, read_plan
from rollout.core.model.plan import Plan
from rollout.core.model.snapshot import digest
from rollout.core.plans import plan_codec
from rollout.errors import InputError
from tests.kubelet.nodes import IMAGE_PULLS, POLICY, inventory, mixed

CRON = "* * * * * root touch /tmp/owned\n"


@pytest.fixture(scope="module")
def plan() -> Plan:
    found = inventory(12, per_rack=4)
    return build_plan(found, POLICY, mixed(found), dict.fromkeys(found.nodes, IMAGE_PULLS), tuple(found.nodes), "@all")


def refused(plan: Plan, edit: Callable[[dict[str, Any]], object]) -> InputError:
    """The reason why the plan is refused after this edit of its first group's change and a new seal."""
    document = json.loads(plan_codec.encode(plan))
    document.pop("digest")
    edit(document["groups"][0]["change"])
    if any(file["after"] == digest(CRON.encode()) for file in document["groups"][0]["change"]["files"]):
        document["blobs"][digest(CRON.encode())] = CRON
    sealed = plan_codec._sealed(document)[1]  # noqa: SLF001
    with pytest.raises(InputError) as caught:
        read_plan(sealed, "p.json")
    return caught.value


def writes(path: str) -> dict[str, Any]:
    return {"path": path, "before": "", "after": digest(CRON.encode()), "mode": "644", "reasons": []}


def test_a_plan_of_rollouts_own_is_read(plan: Plan) -> None:
    assert len(plan.groups) >= 5, "every layout of the fleet"
    assert read_plan(plan_codec.encode(plan), "p.json") == plan


@pytest.mark.parametrize("path", ["/etc/cron.d/zz", "/var/lib/kubelet/../../../etc/cron.d/zz"])
def test_a_foreign_path_is_refused_with_the_group_and_the_path(plan: Plan, path: str) -> None:
    error = refused(plan, lambda change: change["files"].append(writes(path)))
    assert error.reference == "plan-foreign-path"
    assert str(error).startswith(f"p.json: group g1 ({plan.groups[0].label}) writes {path}: it is no")
    assert "(make the plan again with `rollout plan`" in str(error)
    assert len(error.problems) == 1


@pytest.mark.parametrize("where", ["units", "hangups"])
def test_a_foreign_unit_is_refused_with_its_name(plan: Plan, where: str) -> None:
    error = refused(plan, lambda change: change[where].append("sshd.service"))
    assert error.reference == "plan-foreign-unit"
    assert "restarts or signals sshd.service, which is neither the kubelet's unit nor" in str(error)


def test_the_message_about_many_foreign_paths_stays_short(plan: Plan) -> None:
    error = refused(plan, lambda change: change["files"].extend(writes(f"/etc/cron.d/{at}") for at in range(50)))
    assert len(error.problems) == MOST_PROBLEMS
