"""The texts for new nodes in a plan: demanded by a playbook, under the digest, and exported as they were approved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from rollout.adapters.journal import SqlJournal
from rollout.app.ports import RunHeader
from rollout.cli.main import run
from rollout.composition.kinds import completed
from rollout.core.model.conditions import of_kind
from rollout.core.model.plan import Plan
from rollout.core.plans import plan_codec
from rollout.core.plans.plan_json import PlanDocument
from rollout.core.plans.plan_markdown import plan_markdown
from rollout.core.plans.plan_text import plan_text
from rollout.core.run.journal_codec import encode_order
from rollout.core.run.order import apply_order
from rollout.core.run.state import Ending, Goal
from rollout.errors import InputError, Place, UsageError
from rollout.features.export.asking import in_force_of
from rollout.features.export.rules.plan_texts import FORMAT_NAMES, MOST_TEXTS, NewNodesRule
from rollout.features.export.words import FORMATS
from tests.app.agents import SILENT
from tests.app.site import NAMES as SITE
from tests.app.site import SMALL, Site
from tests.core.reading.test_playbook_file import BARE, load
from tests.documents import as_printed
from tests.features.export.test_kubeadm_patches import NAMES, plan

PLACE = Place("playbooks/p.yaml", 3, 1)


def with_texts(made: Plan, *formats: str, path: str = "") -> Plan:
    return completed(replace(made, conditions=(NewNodesRule(PLACE, formats, path),)))


def rule(made: Plan) -> NewNodesRule:
    (found,) = of_kind(made.conditions, NewNodesRule)
    return found


def test_the_texts_are_in_the_plan_and_under_its_digest() -> None:
    made = plan(serializeImagePulls=False)
    found = with_texts(made, "kubespray", "cloud-init")
    assert [each.format for each in rule(found).planned] == ["kubespray", "cloud-init"]
    (text,) = rule(found).planned[0].texts
    assert yaml.safe_load(text.text) == {"kubelet_config_extra_args": {"serializeImagePulls": False}}
    assert text.nodes == NAMES
    assert plan_codec.decode(plan_codec.encode(found), "p.json") == found
    other = replace(
        rule(found), planned=(replace(rule(found).planned[0], texts=(replace(text, text="maxPods: 1\n"),)),)
    )
    assert plan_codec.digest(found) != plan_codec.digest(replace(found, conditions=(other,)))
    document = as_printed(PlanDocument("p.json", found))["newNodes"]
    assert document[0]["planned"][0]["texts"][0]["text"] == text.text


def test_a_plan_shows_them_folded_and_how_each_is_printed() -> None:
    found = with_texts(plan(serializeImagePulls=False), "kubespray", "ignition")
    for shown in (plan_text(found), plan_markdown(found, "d")):
        assert "new nodes by kubespray: 2 lines of text, as tess-node-[0001-0003]" in shown
        assert "rollout export new-nodes ignition PLAN" in shown


def test_what_a_format_has_no_place_for_is_shown() -> None:
    found = with_texts(plan(clusterDomain="example"), "kubespray")
    assert "no place for clusterDomain" in plan_text(found)


def test_a_plan_that_changes_no_node_has_no_text_and_says_so() -> None:
    nothing = replace(plan(maxPods=60), nodes={}, groups=())
    found = with_texts(nothing, "talos")
    assert rule(found).planned == ()
    assert "new nodes by talos: no text, because no node is changed" in "\n".join(rule(found).lines())


def test_settings_of_single_nodes_have_a_bounded_number_of_texts() -> None:
    many = replace(rule(with_texts(plan(maxPods=60), "mco")), more=3)
    assert "3 more sets of settings without a text here" in "\n".join(many.lines())
    assert MOST_TEXTS < 100


def test_a_plan_without_such_a_demand_stays_as_it_is() -> None:
    made = plan(maxPods=60)
    assert completed(made) is made


def written(text: str) -> NewNodesRule:
    (found,) = of_kind(load(BARE + text).conditions, NewNodesRule)
    return found


def test_a_playbook_names_formats_and_the_path_of_a_drop_in() -> None:
    found = written("newNodes: {formats: [cloud-init, kops, kops], path: /etc/kubelet.d/50-site.conf}\n")
    assert (found.formats, found.path, found.place.line) == (("cloud-init", "kops"), "/etc/kubelet.d/50-site.conf", 3)
    made = completed(replace(plan(maxPods=60), conditions=(found,)))
    assert "path: /etc/kubelet.d/50-site.conf" in rule(made).planned[0].texts[0].text


@pytest.mark.parametrize(
    "wrong", ["{formats: [cloud-int]}", "{formats: []}", "{formats: [kops], path: etc/x}", "[kops]"]
)
def test_a_mistake_there_is_named(wrong: str) -> None:
    with pytest.raises(InputError):
        written(f"newNodes: {wrong}\n")


def test_the_names_of_formats_are_those_that_can_be_written() -> None:
    assert tuple(FORMATS) == FORMAT_NAMES


# The export of a plan file.


def saved(folder: Path, made: Plan) -> str:
    path = folder / "p.plan.json"
    path.write_bytes(plan_codec.encode(made))
    return str(path)


def exported(folder: Path, file: str, *words: str) -> int:
    return run(["export", *words, file, "--state", str(folder)])


def test_an_export_prints_the_text_of_the_plan_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where another version of rollout would write another: people have approved this one."""
    found = with_texts(plan(maxPods=60), "talos")
    (text,) = rule(found).planned[0].texts
    approved = replace(
        rule(found), planned=(replace(rule(found).planned[0], texts=(replace(text, text="approved: 1\n"),)),)
    )
    file = saved(tmp_path, replace(found, conditions=(approved,)))
    assert exported(tmp_path, file, "new-nodes", "talos") == 0
    assert "approved: 1" in capsys.readouterr().out
    assert exported(tmp_path, file, "new-nodes", "kops") == 0
    assert "maxPods: 60" in capsys.readouterr().out


def test_a_plan_that_was_rolled_back_is_not_exported(tmp_path: Path) -> None:
    """Of one that was rolled back on some nodes, the others are."""
    journal = SqlJournal(tmp_path)
    site = Site(journal)
    assert in_force_of(journal, SMALL) == SITE, "no run has begun it yet"
    site.apply()
    assert in_force_of(journal, SMALL) == SITE
    site.roll_back("r1", SITE[:1])
    assert in_force_of(journal, SMALL) == SITE[1:]
    site.roll_back("r1", SITE[1:])
    with pytest.raises(UsageError, match="run r1 has begun this plan, and its change is in force on no node"):
        in_force_of(journal, SMALL)
    journal.close()


@pytest.mark.parametrize("words", [("new-nodes", "talos"), ("kubeadm",)])
def test_an_export_asks_the_journal_whether_its_plan_is_in_force(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = with_texts(plan(maxPods=60), "talos")
    file = saved(tmp_path, made)
    assert exported(tmp_path, file, *words) == 0
    journal = SqlJournal(tmp_path)
    order = encode_order(apply_order("r1", made))
    journal.begin(RunHeader("r1", made.cluster, Goal.APPLY, order, 1, plan_codec.encode(made), 0.0, "ann", ""))
    journal.close()
    capsys.readouterr()
    assert exported(tmp_path, file, *words) == 2
    assert "its change is in force on no node" in capsys.readouterr().err


def test_a_run_that_ended_before_it_touched_a_node_has_not_begun_the_plan(tmp_path: Path) -> None:
    journal = SqlJournal(tmp_path)
    site = Site(journal)
    for name in SITE:
        site.nodes.says[name, "status"] = SILENT
    assert site.apply().ending == Ending.PREFLIGHT
    assert in_force_of(journal, SMALL) == SITE
    journal.close()
