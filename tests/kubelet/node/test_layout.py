"""Layouts are found, never assumed: text of others survives, and no text can crash a plan."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.core.model.plan import ExcludedNode
from rollout.core.model.playbook import Templates
from rollout.core.model.snapshot import Snapshot
from rollout.kubelet.changes.changes import Proposal, change_for
from rollout.kubelet.node import arguments, layout
from tests.kubelet import nodes
from tests.kubelet.nodes import (
    CONFIG,
    DEB,
    FRAGMENT,
    IMAGE_PULLS,
    POLICY,
    applied,
    kubeadm,
    plain,
    regular,
    settings,
    with_command,
    with_file,
)
from tests.places import ROOT

FOLDER = ROOT / "templates"

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=6)
WORDS = st.lists(
    st.one_of(
        st.builds("--{}={}".format, st.sampled_from(["node-ip", "hostname-override", "cert-dir"]), TEXT),
        st.builds("--v={}".format, st.integers(0, 9)),
        st.builds("--image-pull-progress-deadline={}".format, st.sampled_from(["1m", "300s", "0"])),
        st.sampled_from(["--node-labels=a=b,c=d", '--node-labels=x="', "--fail-swap-on"]),
    ),
    max_size=4,
)


def shipped() -> Templates:
    names = ("kubelet-config.yaml.j2", "kubelet-flags.env.j2", "kubelet-drop-in.conf.j2")
    config, flags, drop_in = ((FOLDER / name).read_text(encoding="utf-8") for name in names)
    return Templates(config, names[0], flags, names[1], drop_in, names[2])


def env_node(words: list[str]) -> Snapshot:
    value = " ".join(arguments.quote(word) for word in words)
    text = (
        "# ours\nKUBELET_EXTRA_ARGS=" + "".join("\\" + mark if mark in "\\\"'" else mark for mark in value) + "\nB=1\n"
    )
    found = kubeadm(extra="")
    command = found.measurement.process.command_line  # type: ignore[union-attr]
    return with_command(with_file(found, regular(DEB, text)), *command, *words)


def plain_node(words: list[str]) -> Snapshot:
    quoted = " ".join(arguments.quote(word).replace("$", "$$").replace("%", "%%") for word in words)
    found = plain()
    text = nodes.PLAIN_TEXT.format(more=f" --network-plugin=cni {quoted}")
    return with_command(with_file(found, regular(FRAGMENT, text)), *found.measurement.process.command_line, *words)  # type: ignore[union-attr]


@pytest.mark.parametrize("made", [env_node, plain_node])
@given(words=WORDS)
def test_arguments_of_others_survive_and_a_second_plan_is_empty(made: object, words: list[str]) -> None:
    assert callable(made)
    found = made(words)
    policy = replace(POLICY, templates=shipped())
    got = change_for(found, IMAGE_PULLS, policy, nodes.node())
    assert isinstance(got, Proposal), got
    after = applied(found, got.change)
    again = change_for(after, IMAGE_PULLS, policy, nodes.node())
    assert isinstance(again, ExcludedNode), again
    assert again.reference == "as-wanted"
    ours = "--image-pull-progress-deadline"
    asked = layout.find(after).asked
    others = [word for word in asked if not word.startswith(ours)]
    before = layout.find(found).asked
    assert others == [word for word in before if not word.startswith(ours)]
    last = arguments.last(asked, ours)
    assert last is not None
    assert last.value in {"5m", "300s"}


@given(st.text(max_size=80), st.sampled_from([FRAGMENT, DEB, CONFIG, nodes.KUBEADM]))
def test_any_file_is_understood_or_refused(text: str, path: str) -> None:
    for prefix in (
        "",
        "[Service]\nExecStart=\nExecStart=/usr/bin/kubelet ",
        "KUBELET_EXTRA_ARGS=",
        "kind: KubeletConfiguration\n",
    ):
        content = (prefix + text).encode("utf-8", "replace")
        found = with_file(kubeadm(), replace(regular(path, ""), content=content))
        assert isinstance(change_for(found, IMAGE_PULLS, POLICY, nodes.node()), ExcludedNode | Proposal)


def test_the_shipped_templates_give_the_same_result_as_the_test_templates() -> None:
    wanted = settings(
        imagePullProgressDeadline="5m", serializeImagePulls=False, evictionHard={"memory.available": "5%"}
    )
    for found in (
        kubeadm(),
        plain(),
        kubeadm(extra="KUBELET_EXTRA_ARGS='--node-ip=1' \"--v=2\"\n", words="--node-ip=1--v=2"),
    ):
        mine = change_for(found, wanted, POLICY, nodes.node())
        theirs = change_for(found, wanted, replace(POLICY, templates=shipped()), nodes.node())
        assert isinstance(mine, Proposal)
        assert isinstance(theirs, Proposal)
        assert mine.change.arguments == theirs.change.arguments
        assert [file.reasons for file in mine.change.files] == [file.reasons for file in theirs.change.files]


def test_a_kubelet_run_by_an_interpreter_is_found() -> None:
    found = kubeadm()
    command = found.measurement.process.command_line  # type: ignore[union-attr]
    assert isinstance(
        change_for(with_command(found, "/usr/bin/perl", *command), IMAGE_PULLS, POLICY, nodes.node()), Proposal
    )


def test_a_broken_or_missing_file_is_named() -> None:
    half = layout_error(kubeadm(extra='KUBELET_EXTRA_ARGS="--v=2\n'))
    assert half == f"{DEB}: a double quote is never closed (line 1)"
    gone = change_for(
        with_file(kubeadm(), nodes.absent(CONFIG)), settings(serializeImagePulls=False), POLICY, nodes.node()
    )
    assert isinstance(gone, ExcludedNode)
    assert gone.reason == f"{CONFIG} does not exist"


def layout_error(snapshot: Snapshot) -> str:
    with pytest.raises(layout.LayoutError) as caught:
        layout.find(snapshot)
    return str(caught.value)
