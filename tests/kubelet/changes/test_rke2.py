"""RKE2: its unit starts the kubelet, from ``kubelet-arg`` and from 1.32 on from a folder of drop-ins."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.plan import ExcludedNode
from rollout.core.model.playbook import Shadowed
from rollout.core.model.settings import Value
from rollout.core.model.snapshot import Snapshot, Stale
from rollout.kubelet.changes.changes import Proposal, change_for
from rollout.kubelet.changes.home_files import foreign_files, foreign_units
from rollout.kubelet.node import layout, rancher
from tests.kubelet import nodes
from tests.kubelet.nodes import POLICY, applied, regular, settings, with_file
from tests.kubelet.rancher_nodes import DEFAULTS_TEXT, DROP_IN, FOLDER, FRAGMENT, MAIN, OURS, SITE, UNIT, k3s, rke2


def proposed(found: Snapshot, **values: Value) -> Proposal:
    made = change_for(found, settings((), **values), POLICY, nodes.node())
    assert isinstance(made, Proposal), made
    assert (foreign_files(made.change), foreign_units(made.change)) == ((), ())
    return made


def refused(found: Snapshot, **values: Value) -> ExcludedNode:
    made = change_for(found, settings((), **values), POLICY, nodes.node())
    assert isinstance(made, ExcludedNode), made
    return made


def test_from_1_32_on_fields_go_into_a_drop_in_behind_its_defaults_and_its_unit_restarts() -> None:
    change = proposed(rke2(), serializeImagePulls=False, maxParallelImagePulls=5).change
    (file,) = change.files
    assert (file.path, file.before, change.units) == (DROP_IN, None, (UNIT,))
    assert b"maxParallelImagePulls: 5\n" in file.after
    assert change.reload is False
    assert (
        f"side effect: a restart of {UNIT} restarts RKE2 with its container runtime, too; containers keep running, but RKE2"
        " removes the manifest of kube-proxy at a start and writes it again (rke2#5619): this static pod may restart"
    ) in change.notes


def test_on_a_server_the_api_server_is_a_static_pod_too() -> None:
    found = rke2()
    unit = found.measurement.unit
    assert unit is not None
    server = replace(unit, name="rke2-server.service")
    files = {path.replace("rke2-agent", "rke2-server"): each for path, each in found.files.items()}
    files[FRAGMENT] = found.files[FRAGMENT]
    found = replace(found, measurement=replace(found.measurement, unit=server), files=files)
    notes = proposed(found, maxParallelImagePulls=5).change.notes
    assert any(
        note.endswith(
            "containers keep running, but RKE2 removes the manifests of kube-proxy and kube-apiserver at a start and writes"
            " them again (rke2#5619): these static pods may restart"
        )
        for note in notes
    )


def test_k3s_has_no_static_pods_of_its_own() -> None:
    notes = proposed(k3s(), maxParallelImagePulls=5).change.notes
    assert (
        "side effect: a restart of k3s-agent.service restarts k3s with its container runtime, too; containers keep running"
        in notes
    )


def test_a_changed_node_is_as_wanted() -> None:
    found = rke2()
    after = applied(found, proposed(found, maxParallelImagePulls=5).change)
    assert refused(after, maxParallelImagePulls=5).reference == "as-wanted"


def test_before_1_32_a_field_with_a_flag_is_an_argument_in_a_file_of_ours() -> None:
    found = rke2("1.28.15+rke2r1")
    change = proposed(found, serializeImagePulls=True).change
    (file,) = change.files
    assert file.path == OURS
    assert file.after.decode().splitlines()[1:] == ["kubelet-arg+:", '- "serialize-image-pulls=true"']
    assert file.reasons == ("--serialize-image-pulls: false → true (playbook image-pulls)",)
    assert "--serialize-image-pulls=true" in change.arguments
    assert change.units == (UNIT,)


def test_before_1_32_a_default_of_rke2_that_is_wanted_changes_nothing() -> None:
    assert refused(rke2("1.28.15+rke2r1"), serializeImagePulls=False).reference == "as-wanted"


def test_before_1_32_a_list_that_would_need_a_file_is_named_with_its_flag() -> None:
    made = refused(rke2("1.28.15+rke2r1"), serializeImagePulls=True, clusterDNS=["192.0.2.10"])
    assert made.reference == "no-config-file"
    assert made.reason.startswith(
        "the kubelet has no --config file, and clusterDNS would need one; adding it would also "
    )
    assert made.reason.endswith("; a flag needs no file: set --cluster-dns instead of clusterDNS")


def test_a_flag_replaces_rke2s_own_and_one_of_a_site_stays_before_ours() -> None:
    found = rke2(
        "1.28.15+rke2r1",
        {SITE: "kubelet-arg: registry-qps=3 # as a text\n"},
        ("--registry-qps=3",),
    )
    change = proposed(found, registryPullQPS=9).change
    assert "registry-qps=9" in change.files[0].after.decode()
    assert "registry-qps=3" not in change.files[0].after.decode()
    after = applied(found, change)
    assert after.files[SITE] == found.files[SITE]


@pytest.mark.parametrize("name", ["config", "config-dir"])
def test_from_1_32_on_a_file_named_in_its_arguments_is_copied_into_the_folder_and_no_argument(name: str) -> None:
    args = {SITE: f"kubelet-arg: [{name}=/etc/site/kubelet, registry-qps=3]\n"}
    found = with_file(rke2("1.33.4+rke2r1", args, ("--registry-qps=3",)), regular("/etc/site/kubelet", DEFAULTS_TEXT))
    proposed(found, maxParallelImagePulls=5)
    now = layout.find(found)
    assert (now.flag("--config"), now.flag("--config-dir"), now.flag("--registry-qps")) == (None, FOLDER, "3")


def test_before_1_32_a_file_named_in_its_arguments_is_an_argument() -> None:
    found = rke2("1.28.15+rke2r1", {SITE: "kubelet-arg: config=/etc/site/kubelet\n"}, ("--config=/etc/site/kubelet",))
    found = with_file(found, regular("/etc/site/kubelet", "kind: KubeletConfiguration\n"))
    assert layout.find(found).flag("--config") == "/etc/site/kubelet"


def test_a_later_file_that_replaces_the_key_is_named() -> None:
    later = "/etc/rancher/rke2/config.yaml.d/zz.yaml"
    found = rke2("1.28.15+rke2r1", {later: "kubelet-arg:\n- max-pods=150\n"}, ("--max-pods=150",))
    made = refused(found, serializeImagePulls=True)
    assert made.reference == "flag-shadowed"


@pytest.mark.parametrize(
    ("more", "env", "text"),
    [
        (" --kubelet-arg=max-pods=150", None, "--kubelet-arg is on its command line"),
        (" --config /etc/other.yaml", None, "--config on its command line names another configuration file"),
        ("", "RKE2_CONFIG_FILE=/etc/other.yaml\n", "RKE2_CONFIG_FILE names another configuration file"),
    ],
)
def test_where_the_files_do_not_decide_flags_are_refused_and_drop_ins_are_not(
    more: str, env: str | None, text: str
) -> None:
    found = rke2(more=more, env=env)
    made = refused(found, __registry_qps=9)
    assert made.reference == "flag-shadowed"
    assert text in made.reason
    assert proposed(found, maxParallelImagePulls=5).change.files[0].path == DROP_IN


def test_an_argument_that_the_running_kubelet_does_not_have_is_an_edit_that_was_not_loaded() -> None:
    made = refused(rke2(configs={SITE: "kubelet-arg: [max-pods=150]\n"}), maxParallelImagePulls=5)
    assert made.reference == "layout-drifted"
    assert "--max-pods=150 is in the files but not in the running process" in made.reason


def test_an_argument_that_no_file_sets_any_more_is_an_edit_that_was_not_loaded() -> None:
    made = refused(rke2(words=("--max-pods=150",)), maxParallelImagePulls=5)
    assert made.reference == "layout-drifted"
    assert "--max-pods=150 is in the running process, but no file sets it" in made.reason


def test_an_edit_after_the_start_is_refused_whatever_was_removed_by_it() -> None:
    found = replace(rke2(), stale=(Stale(MAIN, UNIT, edited=True, seconds=60),))
    made = refused(found, maxParallelImagePulls=5)
    assert made.reference == "edited-not-loaded"
    assert f"{MAIN} (edited after {UNIT} started)" in made.reason


def test_flags_of_the_log_are_not_given_to_the_kubelet_and_are_no_drift() -> None:
    found = rke2(configs={SITE: "kubelet-arg: [alsologtostderr=true, log-file-max-size=9, v=4]\n"})
    made = refused(found, maxParallelImagePulls=5)
    assert "--v=4" in made.reason
    assert "alsologtostderr" not in made.reason


def test_a_flag_that_overrides_a_field_is_not_moved_from_a_file_of_others() -> None:
    found = rke2(configs={SITE: "kubelet-arg: [serialize-image-pulls=true]\n"}, words=("--serialize-image-pulls=true",))
    policy = replace(POLICY, shadowed=Shadowed.MOVE)
    made = change_for(found, settings(serializeImagePulls=False), policy, nodes.node())
    assert isinstance(made, ExcludedNode)
    assert made.reference == "flag-shadows-field"
    assert f"--serialize-image-pulls: kubelet-arg in {SITE}" in made.reason


@pytest.mark.parametrize(
    "text",
    ["kubelet-arg: {a: b}\n", "kubelet-arg: [1]\n", "kubelet-arg:\n", "- a\n", "a: [\n", "kubelet-arg: ['=x']\n"],
)
def test_what_rke2_reads_otherwise_is_not_understood(text: str) -> None:
    assert refused(rke2(configs={SITE: text}), maxParallelImagePulls=5).reference == "layout-not-understood"


def test_a_hand_edited_file_of_ours_is_refused() -> None:
    found = rke2("1.28.15+rke2r1", {OURS: "kubelet-arg+: [max-pods=150]\ndebug: true\n"}, ("--max-pods=150",))
    made = refused(found, serializeImagePulls=True)
    assert (made.reference, "99-rollout.yaml was changed by hand" in made.reason) == ("layout-not-understood", True)


def test_settings_of_its_runtime_are_refused_with_the_template_that_decides() -> None:
    made = refused(rke2(), imagePullProgressDeadline="5m")
    assert made.reference == "runtime-rendered"
    assert "config-v3.toml.tmpl" in made.reason


def test_a_unit_that_starts_something_else_or_a_folder_that_was_cut_is_not_understood() -> None:
    found = rke2()
    other = with_file(found, regular(FRAGMENT, "[Service]\nExecStart=/opt/bin/other agent\n"))
    assert refused(other, maxParallelImagePulls=5).reference == "layout-not-understood"
    cut = replace(found, facts={**found.facts, f"{layout.CONFIG_FACT}-truncated": "only 64 are told"})
    assert refused(cut, maxParallelImagePulls=5).reference == "layout-not-understood"


def test_k3s_is_changed_in_its_own_folders() -> None:
    change = proposed(k3s(), maxParallelImagePulls=5, __registry_qps=9).change
    assert {file.path for file in change.files} == {
        "/var/lib/rancher/k3s/agent/etc/kubelet.conf.d/99-rollout.conf",
        "/etc/rancher/k3s/config.yaml.d/99-rollout.yaml",
    }
    assert change.units == ("k3s-agent.service",)


def test_without_its_logged_arguments_k3s_is_refused() -> None:
    made = refused(k3s(program="/usr/local/bin/k3s"), maxParallelImagePulls=5)
    assert made.reference == "kubelet-arguments-unknown"


def test_arguments_of_another_form_are_not_understood() -> None:
    made = refused(k3s("--node-labels=a", "b c"), maxParallelImagePulls=5)
    assert made.reference == "layout-not-understood"


def test_kubelets_before_1_21_have_no_folder_of_configurations() -> None:
    made = refused(rke2("1.20.15+rke2r1"), serializeImagePulls=True)
    assert (made.reference, "from 1.21 on" in made.reason) == ("setting-unsupported", True)


OWN_GATES = "--feature-gates=CloudDualStackNodeIPs=true"


@pytest.mark.parametrize(
    ("site", "started_with"),
    [
        ("feature-gates+=A=true", [OWN_GATES, "--feature-gates=A=true"]),
        ("feature-gates-=A=true", ["--feature-gates=A=true", OWN_GATES]),
        ("feature-gates=A=true", ["--feature-gates=A=true"]),
    ],
)
def test_arguments_are_those_that_get_args_makes_of_its_own_of_a_sites_and_of_ours(
    site: str, started_with: list[str]
) -> None:
    """k3s pkg/util/args.go: its own value is kept by the first entry of a flag or by none."""
    one = rancher.kubelet_args({SITE: f"kubelet-arg: [{site}]\n"})
    old = rancher.kubelet_args({SITE: f"kubelet-arg: [{site}]\n", OURS: "kubelet-arg+: [feature-gates=B=true]\n"})
    new = rancher.kubelet_args({SITE: f"kubelet-arg: [{site}]\n", OURS: "kubelet-arg+: [feature-gates=B=false]\n"})
    embedding = rancher.EMBEDDINGS[UNIT]

    def words(*of: tuple[str, str]) -> list[str]:
        return [word for word, _ in of]

    with_old, with_new = [*started_with, "--feature-gates=B=true"], [*started_with, "--feature-gates=B=false"]
    assert words(*rancher.expected(started_with, one, embedding)) == started_with
    assert words(*rancher.expected(started_with, old, embedding, before=one)) == with_old
    assert words(*rancher.expected(with_old, old, embedding)) == with_old
    assert words(*rancher.expected(with_old, new, embedding, before=old)) == with_new


def test_an_own_value_that_a_site_no_longer_replaces_is_not_known() -> None:
    """The next start adds to RKE2's own value, and the running kubelet does not show that."""
    before = rancher.kubelet_args({SITE: "kubelet-arg: [feature-gates=A=true]\n"})
    after = rancher.kubelet_args({SITE: "kubelet-arg: [feature-gates+=B=true]\n"})
    with pytest.raises(ValueError, match="feature-gates is added to a value that the running kubelet does not show"):
        rancher.expected(["--feature-gates=A=true"], after, rancher.EMBEDDINGS[UNIT], before=before)


def test_a_flag_of_ours_stands_beside_one_that_a_site_appends_and_changes_alone() -> None:
    site = {SITE: "kubelet-arg: ['node-labels+=a=b']\n"}
    found = rke2("1.28.15+rke2r1", site, ("--node-labels=own=1", "--node-labels=a=b"))
    then = layout.rewritten(layout.find(found), {OURS: 'kubelet-arg+:\n- "node-labels=c=d"\n'})
    labels = [piece.text for piece in then.pieces if piece.text.startswith("--node-labels")]
    assert labels == ["--node-labels=own=1", "--node-labels=a=b", "--node-labels=c=d"]


@pytest.mark.parametrize(
    ("arg", "source", "copy"),
    [
        ("config=/etc/site/kubelet", "/etc/site/kubelet", "10-cli-config.conf"),
        ("config-dir=/etc/site/d/", "/etc/site/d/50-a.conf", "20-cli-config-dir/50-a.conf"),
    ],
)
def test_the_source_of_a_copied_drop_in_is_what_the_next_start_reads(arg: str, source: str, copy: str) -> None:
    def kubelet(pods: int) -> str:
        return f"apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: {pods}\n"

    found = rke2(configs={SITE: f"kubelet-arg: [{arg}]\n"}, drop_ins={copy: kubelet(110)})
    if arg.startswith("config="):
        assert refused(found, maxParallelImagePulls=5).reason == f"the snapshot does not contain {source}"
    found = with_file(found, regular(source, kubelet(150)))
    assert proposed(found, maxParallelImagePulls=5, maxPods=180).before["maxPods"] == 150
    edited = replace(found, stale=(Stale(source, UNIT, edited=True, seconds=60),))
    made = refused(edited, maxParallelImagePulls=5)
    assert (made.reference, f"{source} (edited after {UNIT} started)" in made.reason) == ("edited-not-loaded", True)
