"""What rollout keeps of the files of k3s and RKE2: enough for the kubelet's arguments, and none of their secrets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.plan import ExcludedNode
from rollout.core.model.snapshot import Process, Snapshot, Stale, digest
from rollout.kubelet.changes.changes import Proposal, change_for
from rollout.kubelet.node import layout, rancher
from rollout.kubelet.node.rancher_secrets import process_of, without_secrets
from tests.kubelet import nodes
from tests.kubelet.nodes import POLICY, regular, settings, with_file, with_unit
from tests.kubelet.rancher_nodes import FOLDER, FRAGMENT, MAIN, OURS, SITE, UNIT, UNIT_TEXT, k3s, rke2

SECRET = "K10" + "SECRET"
FULL = f"""\
# token: {SECRET}
server: https://192.0.2.1:9345
token: {SECRET}
agent-token: [{SECRET}]
datastore-endpoint: |
  postgres://k3s:{SECRET}@192.0.2.5/k3s
write-kubeconfig-mode: 0644
kubelet-arg:
- max-pods=150 # {SECRET}
- 'node-labels=a=b'
"""
UNREAD = "/etc/rancher/rke2/config.yaml.d/old.yaml.bak"
ENV = "/etc/default/rke2-agent"


def kept_text(found: Snapshot, path: str) -> str:
    """What is kept of one file; the digest stays that of the file."""
    state = without_secrets(found).files[path]
    assert state.digest == found.files[path].digest
    assert state.content is not None
    return state.content.decode()


def test_of_its_configuration_the_arguments_of_the_kubelet_and_the_names_of_keys_are_kept() -> None:
    found = rke2(configs={MAIN: FULL})
    assert SECRET not in kept_text(found, MAIN)
    assert kept_text(found, MAIN) == (
        '"server": "<redacted>"\n"token": "<redacted>"\n"agent-token": "<redacted>"\n"datastore-endpoint": "<redacted>"\n'
        '"write-kubeconfig-mode": "<redacted>"\nkubelet-arg:\n- "max-pods=150"\n- "node-labels=a=b"\n'
    )
    assert not without_secrets(found).files[MAIN].whole


@pytest.mark.parametrize(
    "text",
    [
        "kubelet-arg: max-pods=1\n",
        "kubelet-arg+: [a=b, 'c+=\"d\"']\n",
        "kubelet-arg: []\ndebug: true\n",
        "{}\n",
        "",
        FULL,
    ],
)
def test_what_is_kept_means_the_same_arguments(text: str) -> None:
    assert rancher.kubelet_args({SITE: rancher.arguments_alone(SITE, text)}) == rancher.kubelet_args({SITE: text})


def test_our_own_file_stays_as_it_is_and_one_that_was_changed_by_hand_does_not() -> None:
    ours = 'kubelet-arg+:\n- "max-pods=150"\n'
    assert kept_text(rke2(configs={OURS: ours}), OURS) == ours
    changed = kept_text(rke2(configs={OURS: f"{ours}token: {SECRET}\n"}), OURS)
    assert (SECRET in changed, rancher.is_ours(changed)) == (False, False)


def test_a_file_in_the_folder_that_nothing_reads_is_not_kept() -> None:
    found = with_file(rke2(), regular(UNREAD, f"token: {SECRET}\n"))
    assert without_secrets(found).files[UNREAD].content is None


@pytest.mark.parametrize("words", ["[config={}]", "[config-dir=/etc/site]", "config={} # old", "[x-config={}]"])
def test_of_what_they_name_a_kubelets_configuration_alone_is_kept(words: str) -> None:
    """A file of the kubelet is checked by its kind: an agent may have read that of another program."""
    path = "/etc/site/a.conf"
    found = rke2(configs={SITE: f"kubelet-arg: {words.format(path)}\n"})
    for text in (
        f"kind: EncryptionConfiguration\nsecret: {SECRET}\n",
        f'{{"a": "{SECRET}"}}',
        f"[{SECRET}]",
        f"a: b: {SECRET}",
    ):
        assert without_secrets(with_file(found, regular(path, text))).files[path].content is None
    text = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 5\n"
    assert kept_text(with_file(found, regular(path, text)), path) == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"token: {SECRET}\n  agent-token: {SECRET}: x\n", "yaml-syntax"),
        (f"{SECRET}: a\n{SECRET}: b\n", "duplicate-key"),
        (f"kubelet-arg: [0{1234}]\ntoken: {SECRET}\n", "yaml-ambiguous"),
        (f"- {SECRET}\n", "is not a map"),
        (f"kubelet-arg: {{token: {SECRET}}}\n", "not NAME=VALUE"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_by_place_and_reason_and_not_kept(text: str, why: str) -> None:
    found = rke2(configs={SITE: text})
    assert SECRET not in kept_text(found, SITE)
    made = change_for(without_secrets(found), settings((), maxParallelImagePulls=5), POLICY, nodes.node())
    assert isinstance(made, ExcludedNode)
    assert made.reference == "layout-not-understood"
    assert made.reason.startswith(SITE)
    assert (why in made.reason, SECRET in made.reason) == (True, False)
    unkept = change_for(found, settings((), maxParallelImagePulls=5), POLICY, nodes.node())
    assert isinstance(unkept, ExcludedNode)
    assert (unkept.reference, SECRET in unkept.reason) == ("layout-not-understood", False)


def test_of_environment_files_the_names_and_the_options_that_decide_are_kept() -> None:
    text = (
        f"# RKE2_TOKEN={SECRET}\nRKE2_TOKEN={SECRET}\nRKE2_DATASTORE_ENDPOINT='mysql://a:{SECRET}@b'\nEMPTY=\n"
        f'RKE2_ARGS="--token={SECRET} --config /{SECRET} --kubelet-arg=max-pods=5"\nRKE2_CONFIG_FILE=/{SECRET}\n'
        "KUBELET_CONFIG_DROPIN_DIR_ALPHA=1\n"
    )
    assert kept_text(rke2(env=text), ENV) == (
        'RKE2_TOKEN="<redacted>"\nRKE2_DATASTORE_ENDPOINT="<redacted>"\nEMPTY=""\n'
        'RKE2_ARGS="<redacted> --config <redacted> --kubelet-arg=<redacted>"\nRKE2_CONFIG_FILE="<redacted>"\n'
        'KUBELET_CONFIG_DROPIN_DIR_ALPHA="1"\n'
    )


def test_of_its_unit_the_program_and_the_options_that_decide_are_kept() -> None:
    text = UNIT_TEXT.format(more=f" --token '{SECRET}' $RKE2_ARGS ${{MORE}} --config=/{SECRET}") + (
        f"ExecStartPre=/bin/sh -c 'echo {SECRET}'\nEnvironment=RKE2_TOKEN={SECRET} \"A=b c\"\n# {SECRET}\n"
    )
    found = with_file(rke2(), regular(FRAGMENT, text))
    assert kept_text(found, FRAGMENT) == (
        "[Service]\nEnvironmentFile=-/etc/default/%N\nEnvironmentFile=-/etc/sysconfig/%N\n"
        "EnvironmentFile=-/usr/local/lib/systemd/system/%N.env\n"
        "ExecStart=/usr/local/bin/rke2 <redacted> <redacted> <redacted> $RKE2_ARGS ${MORE} --config=<redacted>\n"
        'Environment=RKE2_TOKEN=<redacted> "A=<redacted> <redacted>"\n'
    )


@pytest.mark.parametrize(
    "line", [f"Environment=RKE2_TOKEN={SECRET}%x", f"Environment=A=\\x{SECRET}", f"UnsetEnvironment=A={SECRET}"]
)
def test_of_a_unit_that_cannot_be_read_nothing_leaves_the_snapshot(line: str) -> None:
    found = with_file(rke2(env=f"RKE2_TOKEN={SECRET}\n"), regular(FRAGMENT, UNIT_TEXT.format(more="") + f"{line}\n"))
    kept = without_secrets(found)
    assert SECRET not in repr(kept)
    made = change_for(kept, settings((), maxParallelImagePulls=5), POLICY, nodes.node())
    assert (isinstance(made, ExcludedNode), SECRET in repr(made)) == (True, False)


def test_a_change_of_what_is_kept_is_the_change_of_the_whole_node() -> None:
    found = rke2("1.28.15+rke2r1", {MAIN: FULL}, ("--max-pods=150", "--node-labels=a=b"), env=f"A={SECRET}\n")
    wanted = settings((), serializeImagePulls=True, __max_pods=180)
    made = change_for(without_secrets(found), wanted, POLICY, nodes.node())
    assert isinstance(made, Proposal), made
    assert made == change_for(found, wanted, POLICY, nodes.node())


def test_files_of_other_nodes_and_drop_ins_stay_whole() -> None:
    kubeadm = nodes.kubeadm()
    assert without_secrets(kubeadm) == kubeadm
    kept = without_secrets(rke2())
    assert kept.files[f"{FOLDER}/00-rke2-defaults.conf"].whole


def test_the_command_line_of_k3s_itself_is_its_program_alone() -> None:
    process = Process(7, ("/usr/local/bin/k3s", "agent", "--token", SECRET))
    assert process_of("k3s-agent.service", process).command_line == ("/usr/local/bin/k3s",)
    kubelet = Process(7, ("kubelet", "--v=4"))
    assert process_of("k3s-agent.service", kubelet) == kubelet
    assert process_of("kubelet.service", process) == process
    assert without_secrets(k3s()).measurement.process == k3s().measurement.process


def restart_only(found: Snapshot) -> Proposal | ExcludedNode:
    """The files already have the flag, and the kubelet was not started anew."""
    accepting = replace(POLICY, accepted={SITE: "ours", **POLICY.accepted})
    return change_for(without_secrets(found), settings((), __max_pods=180), accepting, nodes.node())


def test_a_change_that_only_restarts_is_recorded_by_our_own_file_and_never_by_one_with_secrets() -> None:
    ours = rancher.with_flags(None, ("--registry-qps=3",))
    found = rke2(configs={SITE: "kubelet-arg: [max-pods=180]\n", OURS: ours}, words=("--registry-qps=3",))
    found = replace(found, stale=(Stale(SITE, UNIT, edited=True, seconds=60),))
    made = restart_only(found)
    assert isinstance(made, Proposal), made
    (file,) = made.change.files
    assert (file.path, file.digest_before, file.digest_after) == (OURS, digest(ours.encode()), digest(ours.encode()))


def test_without_a_file_of_ours_a_restart_is_the_operators() -> None:
    made = restart_only(rke2(configs={SITE: "kubelet-arg: [max-pods=180]\n"}))
    assert isinstance(made, ExcludedNode)
    assert made.reference == "restart-without-file"
    assert made.reason == (
        "the files are as wanted and only a restart is missing; rollout records it by a file that it may write, and knows none"
        f" on this node: restart {UNIT} by hand"
    )


def test_a_unit_that_cannot_be_found_changes_nothing() -> None:
    found = with_unit(rke2(), FragmentPath="")
    assert SECRET not in repr(without_secrets(with_file(found, regular(MAIN, FULL))))
    assert layout.UNREADABLE.startswith("#")
