"""Changes on nodes as distributions and installers make them: flags where they can be set, and nothing of others lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.playbook import Shadowed
from rollout.core.model.settings import Setting
from rollout.kubelet.changes.changes import Proposal, ProposalCache
from rollout.kubelet.node import layout
from rollout.kubelet.node.layout import DROP_IN
from tests.kubelet import layouts, nodes
from tests.kubelet.deciding import applied_twice_is_once, proposed, refused
from tests.kubelet.layouts import LAYOUTS, texts_of
from tests.kubelet.nodes import POLICY, settings

MOVE = replace(POLICY, shadowed=Shadowed.MOVE)
EXTRA = "/etc/systemd/system/kubelet.service.d/30-kubelet-extra-args.conf"
UNIT = "/etc/systemd/system/kubelet.service"
CONFIG_JSON = "/etc/kubernetes/kubelet/kubelet-config.json"
FACTS = {"hostname": "tess-node-0001"}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("wanted", [settings(serializeImagePulls=False), settings(__v=4)], ids=["field", "flag"])
def test_every_layout_takes_a_field_and_a_flag(name: str, wanted: dict[str, Setting]) -> None:
    found = layouts.node(texts_of(name), **FACTS)
    assert proposed(found, wanted, MOVE)[0].files
    applied_twice_is_once(found, wanted, MOVE)


def test_a_field_on_stock_eks_needs_no_flag() -> None:
    _, texts = proposed(layouts.node(texts_of("eks-al2")), settings(serializeImagePulls=False))
    assert list(texts) == [CONFIG_JSON]


def test_a_flag_that_environment_does_not_set_keeps_the_variable() -> None:
    change, texts = proposed(layouts.node(texts_of("eks-al2")), settings(__registry_qps=3))
    assert list(texts) == [DROP_IN]
    assert texts[DROP_IN].endswith(" $KUBELET_ARGS $KUBELET_EXTRA_ARGS --registry-qps=3\n")
    assert not any("no effect" in note for note in change.notes)


def test_a_flag_that_environment_sets_is_replaced_in_our_drop_in_and_the_plan_says_what_that_shadows() -> None:
    change, texts = proposed(layouts.node(texts_of("eks-al2")), settings(__max_pods=58))
    assert list(texts) == [DROP_IN]
    assert texts[DROP_IN].endswith(" $KUBELET_ARGS --node-labels=eks.amazonaws.com/nodegroup=a,pool=b --max-pods=58\n")
    assert (
        f"{DROP_IN} repeats the words of $KUBELET_EXTRA_ARGS: later edits of it in {EXTRA} have no effect"
        in change.notes
    )


def test_a_flag_in_environment_is_moved_to_its_field() -> None:
    found = layouts.node(texts_of("eks-al2"))
    _, texts = proposed(found, settings(maxPods=58), MOVE)
    assert sorted(texts) == sorted([DROP_IN, CONFIG_JSON])
    assert "--max-pods" not in texts[DROP_IN]
    assert "--node-labels=eks.amazonaws.com/nodegroup=a,pool=b" in texts[DROP_IN]
    applied_twice_is_once(found, settings(maxPods=58), MOVE)


def test_a_variable_that_nothing_sets_is_no_reason_to_refuse() -> None:
    texts = texts_of("eks-al2")
    del texts[EXTRA]
    assert proposed(layouts.node(texts), settings(__max_pods=58))[1][DROP_IN].endswith(
        "$KUBELET_EXTRA_ARGS --max-pods=58\n"
    )


def test_an_origin_is_the_file_that_sets_the_variable() -> None:
    """10-kubeadm.conf starts the kubelet, and the later drop-in sets the variable."""
    texts = {**texts_of("kubeadm-docker"), EXTRA: LAYOUTS["eks-al2"][EXTRA]}
    del texts[nodes.DEB]
    assert layout.find(layouts.node(texts)).origin("--max-pods") == f"KUBELET_EXTRA_ARGS in {EXTRA}"


def test_the_nodes_name_in_its_unit() -> None:
    """The drop-in has the specifier, as the unit has it. A node of a name that is not known is refused, and says why."""
    found = layouts.node(texts_of("flatcar"), **FACTS)
    assert "--hostname-override=%H --v=4" in proposed(found, settings(__v=4))[1][DROP_IN]
    unknown = replace(found, facts={name: text for name, text in found.facts.items() if name != "hostname"})
    assert refused(unknown, settings(__v=4)) == (
        "layout-not-understood",
        f"{UNIT}: --hostname-override contains systemd's specifier %H, and its value on this node is unknown (line 7)",
    )


def test_a_name_that_changed_since_the_kubelet_started_is_drift() -> None:
    found = layouts.node(texts_of("flatcar"), **FACTS)
    assert refused(replace(found, facts={**found.facts, "hostname": "renamed"}), settings(__v=4))[0] == "layout-drifted"


def test_nodes_that_are_alike_except_for_their_names_each_get_a_change() -> None:
    cache = ProposalCache(POLICY)
    for name in ("tess-node-0001", "tess-node-0002"):
        made = cache.made_for(layouts.node(texts_of("flatcar"), hostname=name), settings(__v=4), nodes.node(name))
        assert isinstance(made, Proposal), made


LATER = "/etc/systemd/system/kubelet.service.d/exec-start.conf"
COMMAND = "/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml --kubeconfig=/etc/kubernetes/kubelet.conf {more}"


def later(more: str) -> dict[str, str]:
    """A command line in a drop-in that systemd reads after ours, as `systemctl edit` and Bottlerocket write it."""
    return {
        nodes.FRAGMENT: "[Service]\nExecStart=/usr/bin/kubelet\nRestart=always\n",
        LATER: f"[Service]\nExecStart=\nExecStart={COMMAND.format(more=more)}\n",
        nodes.CONFIG: nodes.CONFIG_TEXT,
    }


@pytest.mark.parametrize("more", ["", "--v=2"])
def test_a_command_line_that_systemd_reads_after_our_drop_in_is_named(more: str) -> None:
    reference, reason = refused(layouts.node(later(more)), settings(__v=4))
    assert reference == "flag-shadowed"
    assert reason == f"--v=4 would not be in force: {LATER} sets ExecStart=, and systemd reads it after {DROP_IN}"


def test_a_flag_that_only_a_later_command_line_gives_is_not_moved() -> None:
    reference, reason = refused(layouts.node(later("--max-pods=20")), settings(maxPods=58), MOVE)
    assert reference == "flag-shadows-field"
    assert reason == f"--max-pods would still be set: {LATER} sets ExecStart=, and systemd reads it after {DROP_IN}"


def test_the_plan_says_that_an_environment_file_takes_over_a_variable_of_a_unit() -> None:
    """KubeKey gives the variable in its drop-in, and has no environment file yet."""
    texts = {**texts_of("kubeadm-docker"), EXTRA: LAYOUTS["eks-al2"][EXTRA]}
    del texts[nodes.DEB]
    found = layouts.node(texts)
    change, written = proposed(found, settings(__v=4))
    assert list(written) == [nodes.DEB]
    taken_over = f"{nodes.DEB} repeats the words of $KUBELET_EXTRA_ARGS: later edits of it in {EXTRA} have no effect"
    assert taken_over in change.notes
    again = nodes.applied(found, change)
    assert taken_over not in proposed(again, settings(__v=5))[0].notes


def test_a_side_effect_names_the_part_that_changes() -> None:
    change, _ = proposed(layouts.node(texts_of("kubespray"), "1.31.4"), settings(__v=4))
    assert [note for note in change.notes if "logging" in note] == ["side effect: logging.verbosity: 2 → 4"]


ENVIRONMENT = "/etc/kubernetes/kubelet.env"


def braced(value: str, words: str) -> dict[str, str]:
    command = (
        f"/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml --kubeconfig=/etc/kubernetes/kubelet.conf {words}"
    )
    return {
        nodes.FRAGMENT: f"[Service]\nEnvironmentFile={ENVIRONMENT}\nExecStart={command}\nRestart=always\n",
        ENVIRONMENT: f"MAX_PODS={value}\n",
        nodes.CONFIG: nodes.CONFIG_TEXT,
    }


def test_a_flag_in_a_variable_with_braces_is_told_with_its_file() -> None:
    """systemd does not split such a variable, so that no flag can be taken out of it."""
    where = f"ExecStart in {nodes.FRAGMENT}, ${{MAX_PODS}} in {ENVIRONMENT}"
    whole, value = (
        layouts.node(braced("--max-pods=20", "${MAX_PODS}")),
        layouts.node(braced("20", "--max-pods=${MAX_PODS}")),
    )
    for found in (whole, value):
        reference, reason = refused(found, settings(maxPods=58))
        assert (reference, reason) == (
            "flag-shadows-field",
            f"--max-pods=20 ({where}) overrides maxPods in {nodes.CONFIG}",
        )
    assert refused(whole, settings(maxPods=58), MOVE) == (
        "flag-shadows-field",
        f"--max-pods would still be set by {where}",
    )
    assert "--max-pods" not in proposed(value, settings(maxPods=58), MOVE)[1][DROP_IN]


def test_the_default_of_a_shell_is_text_for_systemd() -> None:
    """The kubelet has it as it is written: no drift, and our drop-in keeps it."""
    found = layouts.node(braced("20", "--hostname-override=${NAME:-node} --max-pods=${MAX_PODS}"))
    assert found.measurement.process is not None
    assert "--hostname-override=${NAME:-node}" in found.measurement.process.command_line
    assert (
        "--hostname-override=${NAME:-node} --max-pods=${MAX_PODS} --v=4" in proposed(found, settings(__v=4))[1][DROP_IN]
    )


def test_drift_names_a_variable_that_nothing_sets() -> None:
    found = layouts.node(braced("20", "--hostname-override=${NAME} --max-pods=${MAX_PODS}"))
    process = found.measurement.process
    assert process is not None
    words = [word + "node4" if word == "--hostname-override=" else word for word in process.command_line]
    reference, reason = refused(nodes.with_command(found, *words), settings(__v=4))
    assert reference == "layout-drifted"
    assert reason.endswith(f"; ${{NAME}} in {nodes.FRAGMENT} is empty, since no file of the unit sets it")


def volatile(variable: str, config: str = nodes.CONFIG, words: str = "--v=2") -> dict[str, str]:
    """A unit with a program in ExecStartPre= that makes its files in /run at each start."""
    command = f"/usr/bin/kubelet --config={config} --kubeconfig=/etc/kubernetes/kubelet.conf ${variable}"
    return {
        nodes.FRAGMENT: f"[Service]\nExecStartPre=/opt/make\nEnvironmentFile=/run/kubelet/env\nExecStart={command}\n",
        "/run/kubelet/env": f"{variable}={words}\n",
        config: nodes.CONFIG_TEXT,
    }


@pytest.mark.parametrize("variable", ["KUBELET_EXTRA_ARGS", "KUBELET_OPTS"])
def test_an_environment_file_that_a_reboot_removes_is_no_home_of_flags(variable: str) -> None:
    found = layouts.node(volatile(variable))
    _, texts = proposed(found, settings(__v=4))
    assert list(texts) == [DROP_IN]
    assert texts[DROP_IN].endswith(f" ${variable} --v=4\n")
    applied_twice_is_once(found, settings(__v=4))


@pytest.mark.parametrize(
    ("wanted", "path"),
    [
        (settings(serializeImagePulls=False), "/run/kubelet/config.yaml"),
        (settings(maxPods=58), "/run/kubelet/env"),
    ],
)
def test_a_file_that_a_reboot_removes_is_not_changed(wanted: dict[str, Setting], path: str) -> None:
    """The agent would refuse it, too, and only then."""
    config = nodes.CONFIG if path.endswith("env") else path
    reference, reason = refused(layouts.node(volatile("KUBELET_OPTS", config, "--max-pods=20")), wanted, MOVE)
    assert reference == "not-as-persistent"
    assert reason == (
        f"{path} is gone after a reboot, and what writes it again would not have this change: set it where that file is"
        " made, or give the kubelet a file outside of /run"
    )


def test_a_pattern_of_environment_files_is_told_where_its_text_is_taken_for_an_odd_name() -> None:
    texts = {**texts_of("kubeadm-docker"), EXTRA: "[Service]\nEnvironmentFile=-/etc/k/*.env\n"}
    plain = layouts.node({**texts, EXTRA: "[Service]\n"})
    odd = replace(
        nodes.with_file(plain, nodes.regular(EXTRA, texts[EXTRA])), facts={**plain.facts, "odd-names": "1 /etc/k/?.env"}
    )
    reference, reason = refused(odd, settings(__v=4))
    assert reference == "odd-names"
    assert reason == (
        "the names of 1 files of the kubelet, its unit or its runtime contain blanks or other odd characters, first"
        f" /etc/k/?.env; EnvironmentFile=-/etc/k/*.env in {EXTRA} (line 2) is a pattern: name each file in a line of its own"
    )
