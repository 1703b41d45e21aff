"""What planning reads from the API server, and what it reports if there is no answer."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.adapters.no_journal import NoJournal
from rollout.app.cluster_context import look_around, with_running
from rollout.app.ports import RunHeader
from rollout.app.runs import start_apply
from rollout.core.model.inventory import Endpoints, Inventory
from rollout.core.model.live import LiveNode
from rollout.core.model.pods import PlacedPod
from rollout.core.model.snapshot import Receipt, ReceiptState, Snapshot, Stale, Unread
from rollout.core.plans import plan_codec
from rollout.errors import InputError, RemoteError
from rollout.features.explain.asking import explain_on_node, shown_by
from rollout.features.explain.words.explanation import ConfigzAnswer
from rollout.kubelet.explained.explanation import explain
from tests.app.agents import MACHINE, answer
from tests.app.site import ACCESS, SMALL, Site
from tests.app.test_impact import FOUND, NAMES, node, pods
from tests.kubelet.nodes import CONFIG, CONFIG_TEXT, fleet, kubeadm
from tests.kubelet.nodes import inventory as some_nodes

FORBIDDEN = RemoteError("forbidden", "pods is forbidden")
WITH_KUBECONFIG = replace(FOUND, endpoints=Endpoints(kubeconfig="k", context="c"))


@dataclass
class Api:
    """An API server with one extra node. ``trouble`` is raised for what it names."""

    trouble: Mapping[str, RemoteError] = field(default_factory=dict)
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def _ask(self, what: str, *said: str) -> None:
        self.asked.append((what, *said))
        if what in self.trouble:
            raise self.trouble[what]

    def ansible_values(self, path: str, templates: Mapping[str, Collection[str]]) -> Mapping[str, Mapping[str, object]]:
        raise NotImplementedError

    def ansible(self, path: str) -> str:
        raise NotImplementedError

    def live(self, kubeconfig: str, context: str) -> tuple[LiveNode, ...]:
        self._ask("live", kubeconfig, context)
        return tuple(node(name) for name in (*NAMES, "stranger"))

    def pods(self, kubeconfig: str, context: str, nodes: Collection[str]) -> tuple[PlacedPod, ...]:
        self._ask("pods", kubeconfig, context, *sorted(nodes))
        return tuple(pod for name in nodes for pod in pods(name, 1))

    def configz(self, kubeconfig: str, context: str, node: str) -> Mapping[str, Any]:
        self._ask("configz", kubeconfig, context, node)
        return {"maxPods": 110}


def test_nodes_and_the_pods_on_those_that_are_planned() -> None:
    api = Api()
    found = look_around(WITH_KUBECONFIG, NoJournal(), api, "", NAMES[:2])
    assert api.asked == [("live", "k", "c"), ("pods", "k", "c", *NAMES[:2])]
    assert {pod.node for pod in found.pods or ()} == set(NAMES[:2])
    assert (found.not_asked, found.pods_not_asked) == ("", "")


def test_the_kubeconfig_of_the_call_takes_precedence() -> None:
    api = Api()
    look_around(WITH_KUBECONFIG, NoJournal(), api, "mine")
    assert [asked[1:3] for asked in api.asked] == [("mine", ""), ("mine", "")]


def test_without_a_kubeconfig_nothing_is_asked() -> None:
    api = Api()
    found = look_around(FOUND, NoJournal(), api, "", NAMES)
    assert (api.asked, found.pods, found.pods_not_asked) == ([], None, "no kubeconfig is named")


@pytest.mark.parametrize(("trouble", "nodes_known"), [("live", False), ("pods", True)])
def test_the_right_to_list_nodes_does_not_include_pods(trouble: str, *, nodes_known: bool) -> None:
    found = look_around(WITH_KUBECONFIG, NoJournal(), Api({trouble: FORBIDDEN}), "", NAMES)
    assert (found.live is not None, found.pods) == (nodes_known, None)
    assert found.pods_not_asked == "pods is forbidden [forbidden]"


def test_configz_is_read_if_the_kubeconfig_allows_it() -> None:
    snapshot = kubeadm(NAMES[0], "1.33.4", "containerd")
    here = explain_on_node(FOUND.nodes[NAMES[0]], fleet(FOUND, {NAMES[0]: snapshot}), explain("maxPods"))
    assert shown_by(here, FOUND, Api()) == ConfigzAnswer(not_asked="no kubeconfig is named")
    assert shown_by(here, WITH_KUBECONFIG, Api()) == ConfigzAnswer(110, agrees=True)
    assert shown_by(here, WITH_KUBECONFIG, Api({"configz": FORBIDDEN})) == ConfigzAnswer(
        not_asked="pods is forbidden [forbidden]"
    )


@pytest.mark.parametrize(
    ("found", "reference"),
    [
        (None, "not-in-snapshot"),
        (Unread(NAMES[0], "ssh-timeout", "no banner"), "ssh-timeout"),
        (replace(kubeadm(NAMES[0]), kubelet_version="1.99.1"), "kubelet-version-unknown"),
        (replace(kubeadm(NAMES[0]), files={}), "layout-not-understood"),
    ],
)
def test_a_node_that_cannot_be_explained_has_a_reason(found: Snapshot | Unread | None, reference: str) -> None:
    with pytest.raises(InputError) as error:
        explain_on_node(FOUND.nodes[NAMES[0]], fleet(FOUND, {NAMES[0]: found} if found else {}), explain("maxPods"))
    assert error.value.reference == reference


# What running kubelets loaded of files that changed since: from /configz, our last transaction, or unknown.


OLDER = CONFIG_TEXT + "maxPods: 50\n"
LOADED, EDITED = CONFIG_TEXT, CONFIG_TEXT + "maxPods: 1\n"
STALE = (Stale(CONFIG, "kubelet.service", edited=True, seconds=60),)
WITH_API = replace(some_nodes(1), endpoints=Endpoints(kubeconfig="admin.conf", context="blue"))
(NAME,) = WITH_API.nodes


class ConfigzApi:
    """Answers of ``/configz``; records the kubeconfig of each request."""

    def __init__(self, answer: Mapping[str, Any] | Exception) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str, str]] = []

    def configz(self, kubeconfig: str, context: str, node: str) -> Mapping[str, Any]:
        self.asked.append((kubeconfig, context, node))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} is not asked for")


@pytest.fixture
def journal(tmp_path: Path) -> SqlJournal:
    """A journal with one run that wrote ``LOADED`` to the node."""
    (group,) = SMALL.groups
    file = replace(group.change.files[0], path=CONFIG, after=LOADED.encode())
    change = replace(group.change, files=(file,))
    node = replace(SMALL.nodes["n1"], name=NAME)
    plan = replace(
        SMALL,
        groups=(replace(group, change=change),),
        nodes={NAME: node},
        waves=(replace(SMALL.waves[0], nodes=(NAME,)),),
        racks={"r": 1},
    )
    kept = SqlJournal(tmp_path)
    kept.begin(RunHeader("r1", "rno", "apply", "{}", 1, plan_codec.encode(plan), 0.0, "me", ""))
    return kept


def edited(**facts: str) -> Snapshot:
    receipts = (Receipt("r1-1", "r1", 1, ReceiptState.CONFIRMED, finished=True),)
    return replace(kubeadm(NAME, config=EDITED), stale=STALE, facts=facts, receipts=receipts)


OURS = {"loaded.kubelet.service": "r1-1"}


def known(node: Snapshot, journal: SqlJournal, api: ConfigzApi, inventory: Inventory, kubeconfig: str = "") -> Snapshot:
    found = with_running(fleet(inventory, {NAME: node}), inventory, journal, api, kubeconfig).nodes[NAME]
    assert isinstance(found, Snapshot)
    return found


def max_pods(found: Snapshot) -> object:
    return json.loads(found.running)["maxPods"]


def test_the_kubelet_itself_is_asked_first(journal: SqlJournal) -> None:
    api = ConfigzApi({"maxPods": 77})
    found = known(edited(**OURS), journal, api, WITH_API)
    assert (max_pods(found), api.asked) == (77, [("admin.conf", "blue", NAME)])


def test_the_kubeconfig_of_the_command_line_replaces_the_inventorys(journal: SqlJournal) -> None:
    api = ConfigzApi({"maxPods": 77})
    known(edited(), journal, api, WITH_API, "mine.conf")
    assert api.asked == [("mine.conf", "", NAME)]


@pytest.mark.parametrize(
    "api", [ConfigzApi(RemoteError("forbidden", "no")), ConfigzApi({})], ids=["not allowed", "no kubeconfig"]
)
def test_otherwise_the_last_transaction_counts(journal: SqlJournal, api: ConfigzApi) -> None:
    endpoints = Endpoints() if api.answer == {} else WITH_API.endpoints
    found = known(edited(**OURS), journal, api, replace(WITH_API, endpoints=endpoints))
    assert (max_pods(found), found.stale) == (110, STALE)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(SqlJournal(tmp_path))


def of_site() -> Inventory:
    node = replace(WITH_API.nodes[NAME], name="n1")
    return replace(WITH_API, cluster=SMALL.cluster, endpoints=Endpoints(), nodes={"n1": node})


def held(found: Snapshot) -> tuple[object, str]:
    return json.loads(found.facts["last known"])["maxPods"], found.facts["compared with"]


def test_what_values_are_compared_with_is_named(journal: SqlJournal) -> None:
    without = replace(WITH_API, endpoints=Endpoints())
    assert (
        known(edited(**OURS), journal, ConfigzApi({"maxPods": 77}), WITH_API)
        .facts["compared with"]
        .startswith("/configz")
    )
    assert (
        known(edited(**OURS), journal, ConfigzApi({}), without)
        .facts["compared with"]
        .startswith("the bytes of the run")
    )


def test_without_both_the_bytes_that_the_journals_runs_left_are_the_last_known_ones(site: Site) -> None:
    """Written by a run, then restored by its rollback."""
    here = of_site()
    (group,) = SMALL.groups
    file = replace(group.change.files[0], path=CONFIG, before=OLDER.encode(), after=LOADED.encode())
    plan = replace(
        SMALL,
        groups=(replace(group, change=replace(group.change, files=(file,))),),
        gates=(),
    )

    def last(machine: str = MACHINE) -> Snapshot:
        node = replace(edited(), node="n1", machine_id=machine)
        found = with_running(fleet(here, {"n1": node}), here, site.journal, ConfigzApi({})).nodes["n1"]
        assert isinstance(found, Snapshot)
        assert found.running == ""
        return found

    assert "last known" not in last().facts
    start_apply(plan, ACCESS, site.tools())
    assert held(last()) == (110, f"{CONFIG}: run r1 wrote them")
    assert "last known" not in last("another").facts, "of another machine"
    site.roll_back("r1")
    assert held(last()) == (50, f"{CONFIG}: the rollback of run r1 restored them")


def test_else_what_the_newest_plan_has_read_there_is_known(site: Site) -> None:
    here = of_site()
    (group,) = SMALL.groups
    file = replace(group.change.files[0], path=CONFIG, before=OLDER.encode())
    change = replace(group.change, files=(file,))
    plan = replace(SMALL, groups=(replace(group, change=change),))
    site.nodes.says |= {(name, "apply"): answer("apply", "refused drifted /etc/a") for name in SMALL.nodes}
    start_apply(plan, ACCESS, site.tools())
    node = replace(edited(), node="n1", machine_id=MACHINE)
    found = with_running(fleet(here, {"n1": node}), here, site.journal, ConfigzApi({})).nodes["n1"]
    assert isinstance(found, Snapshot)
    assert held(found) == (50, f"{CONFIG}: the plan of run r1 read them")


def test_otherwise_it_is_unknown(journal: SqlJournal) -> None:
    """The kubelet was started by no transaction, by a run of another journal, or by a run that is gone."""
    here = replace(WITH_API, endpoints=Endpoints())
    for unloaded in (edited(), edited(**{"loaded.kubelet.service": "r9-1"})):
        assert known(unloaded, journal, ConfigzApi({}), here).running == ""
    foreign = replace(edited(**OURS), receipts=(Receipt("r1-1", "r7", 1, ReceiptState.CONFIRMED, finished=True),))
    assert known(foreign, journal, ConfigzApi({}), here).running == ""


def test_a_file_with_the_loaded_content_is_not_stale(journal: SqlJournal) -> None:
    """The file was saved again, or an edit was undone."""
    same = replace(kubeadm(NAME, config=LOADED), stale=STALE, facts=OURS, receipts=edited().receipts)
    assert known(same, journal, ConfigzApi({"maxPods": 110}), WITH_API).stale == ()


def test_nodes_without_edits_are_not_asked(journal: SqlJournal) -> None:
    api = ConfigzApi(RemoteError("forbidden", "no"))
    quiet = fleet(WITH_API, {NAME: kubeadm(NAME)})
    assert with_running(quiet, WITH_API, journal, api) is quiet
    other = replace(
        edited(), stale=(Stale("/etc/containerd/config.toml", "containerd.service", edited=True, seconds=1),)
    )
    assert known(other, journal, api, WITH_API).running == ""
    assert api.asked == []


def test_one_failing_node_does_not_affect_others(journal: SqlJournal) -> None:
    """An answer that rollout fails on leaves its node unread."""
    inventory = replace(some_nodes(2), endpoints=WITH_API.endpoints)
    first, second = inventory.nodes
    api = ConfigzApi(ValueError("s3cret"))
    nodes = {first: edited(), second: kubeadm(second)}
    found = with_running(fleet(inventory, nodes), inventory, journal, api).nodes
    left = found[first]
    assert isinstance(left, Unread)
    assert "s3cret" not in left.message
    assert found[second] == nodes[second]
