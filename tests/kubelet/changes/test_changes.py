"""From a node's snapshot and its settings to exact bytes, or to a refusal with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from rollout.core.model.plan import Change, ExcludedNode, Standing
from rollout.core.model.playbook import Disruption
from rollout.core.model.settings import Setting
from rollout.core.model.snapshot import FileState, Measurement, Process, Receipt, ReceiptState, Snapshot
from rollout.kubelet.changes.changes import Proposal, change_for
from tests.kubelet import nodes
from tests.kubelet.deciding import refused
from tests.kubelet.nodes import (
    CONFIG,
    CONFIG_TEXT,
    DEB,
    DROP_IN,
    FRAGMENT,
    IMAGE_PULLS,
    KUBEADM,
    POLICY,
    RPM,
    absent,
    applied,
    kubeadm,
    plain,
    regular,
    settings,
    with_command,
    with_file,
    with_unit,
)

DEADLINE = settings(imagePullProgressDeadline="5m")
KIND = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
SERIAL = settings(serializeImagePulls=False)


def decide(found: Snapshot, wanted: Mapping[str, Setting] = IMAGE_PULLS) -> Proposal | ExcludedNode:
    return change_for(found, wanted, POLICY, nodes.node(found.node))


def proposed(found: Snapshot, wanted: Mapping[str, Setting] = IMAGE_PULLS) -> tuple[Change, dict[str, str]]:
    """The change, and the text of each file afterwards."""
    got = decide(found, wanted)
    assert isinstance(got, Proposal), got
    return got.change, {file.path: file.after.decode() for file in got.change.files}


def pinned(wanted: Mapping[str, Setting]) -> dict[str, Setting]:
    return {name: replace(setting, pin=True) for name, setting in wanted.items()}


def left(found: Snapshot, wanted: Mapping[str, Setting] = IMAGE_PULLS) -> ExcludedNode:
    got = decide(found, wanted)
    assert isinstance(got, ExcludedNode), got
    return got


def test_a_kubeadm_node_with_dockershim() -> None:
    change, texts = proposed(kubeadm())
    assert texts == {
        CONFIG: CONFIG_TEXT.replace("serializeImagePulls: true", "serializeImagePulls: false"),
        DEB: 'KUBELET_EXTRA_ARGS="--image-pull-progress-deadline=5m"\n',
    }
    assert [file.reasons for file in change.files] == [
        ("serializeImagePulls: true → false (playbook image-pulls)",),
        ("--image-pull-progress-deadline: not set → 5m (playbook image-pulls)",),
    ]
    assert change.files[0].before == CONFIG_TEXT.encode()
    assert change.files[1].before is None
    assert change.units == ("kubelet.service",)
    assert not change.reload
    assert change.disruption is Disruption.RESTART_KUBELET
    assert change.arguments == (f"--config={CONFIG}", "--image-pull-progress-deadline=5m")
    assert (change.config_path, change.healthz_port, change.settle) == (CONFIG, 10248, 20.0)
    assert change.notes[0].startswith("maxParallelImagePulls skipped: maxParallelImagePulls exists from 1.27")


def test_the_label_contains_version_runtime_and_layout() -> None:
    got = [decide(found) for found in (kubeadm(), kubeadm(flags=RPM, version="1.23.17", runtime="crio"), plain())]
    assert [entry.label for entry in got if isinstance(entry, Proposal)] == [
        "kubelet 1.20.15, dockershim, kubeadm layout (deb)",
        "kubelet 1.23.17, CRI-O 1.23, kubeadm layout (rpm)",
        "kubelet 1.20.15, dockershim, plain unit",
    ]


def test_only_the_variables_line_of_an_environment_file_changes() -> None:
    extra = "# ours\nOTHER='x'\nKUBELET_EXTRA_ARGS=--node-ip=10.0.0.7 --v=2\n# end"
    _, texts = proposed(kubeadm(flags=RPM, extra=extra, words="--node-ip=10.0.0.7 --v=2"), DEADLINE)
    assert texts == {
        RPM: "# ours\nOTHER='x'\nKUBELET_EXTRA_ARGS=\"--node-ip=10.0.0.7 --v=2 --image-pull-progress-deadline=5m\"\n# end"
    }


def test_a_value_with_quotes_keeps_them() -> None:
    extra = """KUBELET_EXTRA_ARGS=--node-labels="a=b" '--image-pull-progress-deadline' 1m --v=2\n"""
    found = kubeadm(extra=extra, words="--node-labels=a=b --image-pull-progress-deadline 1m --v=2")
    change, texts = proposed(found, DEADLINE)
    assert texts[DEB] == 'KUBELET_EXTRA_ARGS="--node-labels=\\"a=b\\" --image-pull-progress-deadline=5m --v=2"\n'
    assert change.files[0].reasons == ("--image-pull-progress-deadline: 1m → 5m (playbook image-pulls)",)


def test_a_plain_unit_gets_a_drop_in() -> None:
    change, texts = proposed(plain(), DEADLINE)
    assert texts == {
        DROP_IN: "# Written by rollout for kubelet.service.\n[Service]\nExecStart=\n"
        f"ExecStart=/usr/local/bin/kubelet --config={CONFIG} --kubeconfig=/etc/kubernetes/kubelet.conf"
        " --network-plugin=cni --image-pull-progress-deadline=5m\n"
    }
    assert change.reload


def test_a_flag_in_a_plain_unit_is_replaced_in_our_drop_in() -> None:
    _, texts = proposed(plain(more="--image-pull-progress-deadline=1m --v=2"), DEADLINE)
    assert texts[DROP_IN].endswith("--network-plugin=cni --image-pull-progress-deadline=5m --v=2\n")


@pytest.mark.parametrize(
    "found",
    [kubeadm(), kubeadm(flags=RPM, extra="# nothing\n"), plain(), kubeadm(version="1.31.0", runtime="containerd")],
)
def test_a_second_plan_is_empty_and_a_third_contains_only_new_changes(found: Snapshot) -> None:
    wanted = dict(IMAGE_PULLS)
    got = decide(found, wanted)
    assert isinstance(got, Proposal)
    after = applied(found, got.change)
    again = left(after, wanted)
    assert (again.standing, again.reference) == (Standing.AS_WANTED, "as-wanted")
    change, _ = proposed(after, {**wanted, **settings(registryPullQPS=10)})
    assert [file.reasons for file in change.files] == [("registryPullQPS: not set → 10 (playbook image-pulls)",)]


def test_applying_the_drop_in_twice_replaces_it() -> None:
    got = decide(plain(), DEADLINE)
    assert isinstance(got, Proposal)
    after = applied(plain(), got.change)
    _, texts = proposed(after, settings(imagePullProgressDeadline="10m"))
    assert texts[DROP_IN].count("--image-pull-progress-deadline") == 1


def test_a_duration_in_another_notation_needs_no_change() -> None:
    config = CONFIG_TEXT.replace("serializeImagePulls: true", "serializeImagePulls: no\nruntimeRequestTimeout: 120s")
    found = kubeadm(
        extra="KUBELET_EXTRA_ARGS=--image-pull-progress-deadline=300s\n",
        words="--image-pull-progress-deadline=300s",
        config=config,
    )
    assert left(found, {**IMAGE_PULLS, **settings(runtimeRequestTimeout="2m")}).standing is Standing.AS_WANTED


def test_a_process_older_than_its_correct_file_needs_only_a_restart() -> None:
    found = kubeadm(extra="KUBELET_EXTRA_ARGS=--image-pull-progress-deadline=5m\n")
    change, texts = proposed(found, DEADLINE)
    assert [(file.path, file.before == file.after) for file in change.files] == [(CONFIG, True)]
    assert texts == {CONFIG: CONFIG_TEXT}
    assert change.units == ("kubelet.service",)
    assert change.notes[0] == (
        "restart only: the files already match, but this is not in force yet: --image-pull-progress-deadline=5m"
    )
    assert change.arguments == (f"--config={CONFIG}", "--image-pull-progress-deadline=5m")


def test_a_restart_alone_does_not_need_the_mode_of_new_files() -> None:
    """CIS benchmarks ask for mode 600. The file exists, so it keeps its own mode."""
    found = kubeadm(extra="KUBELET_EXTRA_ARGS=--image-pull-progress-deadline=5m\n")
    change, _ = proposed(with_file(found, regular(CONFIG, CONFIG_TEXT, "600")), DEADLINE)
    assert [(file.path, file.before == file.after) for file in change.files] == [(CONFIG, True)]


def test_newer_kubelets() -> None:
    found = kubeadm(version="1.31.4", runtime="containerd")
    change, texts = proposed(found)
    assert texts[CONFIG].endswith("staticPodPath: /etc/kubernetes/manifests\nmaxParallelImagePulls: 5\n")
    assert change.settle == 10.0
    assert "containerd 1.7.0" in change.notes[0]
    assert proposed(kubeadm(version="1.35.1", runtime="containerd"))[0].settle == 0.0


def test_settings_that_may_reject_pods_are_reported() -> None:
    change, texts = proposed(kubeadm(), settings(evictionHard={"memory.available": "1Gi"}))
    assert "  memory.available: 1Gi   # more than the default\n" in texts[CONFIG]
    assert change.notes[0].startswith("evictionHard: a stricter value can make running pods fail")


def test_healthz_port_of_file_and_flag() -> None:
    change, _ = proposed(kubeadm(), settings(healthzPort=0))
    assert change.healthz_port == 0
    change, _ = proposed(
        kubeadm(extra="KUBELET_EXTRA_ARGS=--healthz-port=10300\n", words="--healthz-port=10300"), SERIAL
    )
    assert change.healthz_port == 10300
    assert proposed(kubeadm(config=CONFIG_TEXT.replace("healthzPort: 10248\n", "")), SERIAL)[0].healthz_port == 10248
    assert left(kubeadm(config=CONFIG_TEXT.replace("10248", "many")), SERIAL).reference == "config-not-understood"


def test_config_given_as_two_words() -> None:
    found = plain()
    state = found.files[FRAGMENT]
    assert state.content is not None
    text = state.content.decode().replace("--config=", "--config ")
    command = found.measurement.process.command_line  # type: ignore[union-attr]
    found = with_command(with_file(found, regular(FRAGMENT, text)), command[0], "--config", CONFIG, *command[2:])
    assert proposed(found, SERIAL)[0].arguments == ("--config", CONFIG)


# Refusals


def broken(found: Snapshot, **measured: object) -> Snapshot:
    return replace(found, measurement=replace(found.measurement, **measured))  # type: ignore[arg-type]


LENIENTLY = "using lenient decoding as strict decoding failed: strict decoder error"


@pytest.mark.parametrize(
    ("config", "more"),
    [
        (f"{CONFIG_TEXT}maxPod: 5\n", f": maxPod ({CONFIG}:25:1)"),
        (
            CONFIG_TEXT,
            "; as far as rollout knows, its files as they are now contain nothing that it would ignore",
        ),
        (
            f"{CONFIG_TEXT}maxPods: 5\nmaxPods: 5\n",
            f': {LENIENTLY}: yaml: unmarshal errors: line 26: key "maxPods" already set in map ({CONFIG}:26:1)',
        ),
        ("[", ""),
    ],
)
def test_a_kubelet_that_ignores_a_field_is_refused_with_its_name_and_place(config: str, more: str) -> None:
    found = broken(kubeadm(config=config), lenient=1)
    assert refused(found, IMAGE_PULLS) == (
        "config-lenient",
        f"the kubelet already ignores part of its configuration (lenient decoding, see its journal){more}",
    )


@pytest.mark.parametrize(
    ("found", "reference"),
    [
        (replace(kubeadm(), machine_id=""), "machine-id-unknown"),
        (replace(kubeadm(), kubelet_version=""), "kubelet-version-unknown"),
        (replace(with_unit(kubeadm(), LoadState="not-found"), kubelet_version=""), "no-kubelet-unit"),
        (replace(kubeadm(), kubelet_version="1.19.3"), "kubelet-version-unknown"),
        (replace(kubeadm(), measurement=Measurement()), "systemd-not-answering"),
        (with_unit(kubeadm(), LoadState="masked"), "unit-masked"),
        (with_unit(kubeadm(), UnitFileState="masked-runtime", LoadState="masked"), "unit-masked"),
        (with_unit(kubeadm(), LoadState="not-found"), "no-kubelet-unit"),
        (with_unit(kubeadm(), FragmentPath=""), "no-kubelet-unit"),
        (with_unit(kubeadm(), NeedDaemonReload="yes"), "need-daemon-reload"),
        (replace(kubeadm(), facts={"state-dir-fs": "tmpfs"}), "state-not-persistent"),
        (replace(kubeadm(), facts={"room-kib": "10"}), "no-room"),
        (replace(kubeadm(), receipts=(Receipt("t", "r", 1, ReceiptState.ARMED),)), "armed-by-another"),
        (with_unit(kubeadm(), ActiveState="activating"), "kubelet-not-running"),
        (broken(kubeadm(), process=None), "kubelet-not-running"),
        (broken(kubeadm(), healthz="refused"), "kubelet-unhealthy"),
        (broken(kubeadm(), healthz="status 500"), "kubelet-unhealthy"),
        (broken(kubeadm(), healthz="not-its-own"), "healthz-not-its-own"),
        (broken(kubeadm(), healthz="not-observed"), "healthz-not-its-own"),
        (broken(kubeadm(), lenient=2), "config-lenient"),
        (broken(kubeadm(), lenient=None), "log-unreadable"),
        (broken(kubeadm(), lenient=None, process=Process(7, ("/bin/sh", "/opt/kubelet-wrapper"))), "kubelet-wrapped"),
        (replace(kubeadm(), facts={"systemd": "systemd 219"}), "systemd-too-old"),
        (replace(kubeadm(), facts={"odd-names": "1 /etc/d/10?odd.conf"}), "odd-names"),
        (with_unit(kubeadm(), TimeoutStopUSec="5min"), "guard-eviction"),
        (with_unit(kubeadm(), TimeoutStopUSec="infinity"), "guard-eviction"),
        (with_file(kubeadm(), FileState(CONFIG, "symlink")), "not-a-regular-file"),
        (with_file(kubeadm(), absent(CONFIG)), "not-a-regular-file"),
        (with_file(kubeadm(), FileState(CONFIG, "regular", size=10**6, digest="f" * 64)), "file-too-large"),
        (with_file(kubeadm(), FileState(CONFIG, "regular")), "layout-not-understood"),
        (with_file(kubeadm(), replace(regular(CONFIG, ""), content=b"\xff")), "layout-not-understood"),
        (with_file(kubeadm(), regular(CONFIG, "kind: Other\n")), "config-not-understood"),
        (with_file(kubeadm(), regular(CONFIG, f"{KIND}serializeImagePulls: tr")), "config-not-understood"),
        (with_file(kubeadm(), regular(CONFIG, "")), "config-not-understood"),
        (with_file(kubeadm(), regular(CONFIG, KIND.replace("v1beta1", "v1"))), "config-not-understood"),
        (with_file(kubeadm(), regular(CONFIG, f"{KIND}serializeImagePulls: [\n")), "config-not-understood"),
        (with_file(kubeadm(), regular(CONFIG, f"{KIND}serializeImagePulls: true\nserializeImagePulls: true\n")), "yaml-duplicate-key"),
        (with_file(kubeadm(), regular(CONFIG, f"{KIND}serializeImagePulls: &x true\n")), "yaml-anchor"),
        (with_file(kubeadm(), FileState(DEB, "symlink")), "not-a-regular-file"),
        (with_file(kubeadm(), regular(DEB, "KUBELET_EXTRA_ARGS='open\n")), "layout-not-understood"),
        (with_file(kubeadm(), regular(KUBEADM, "[Service]\n")), "layout-drifted"),
        (with_file(plain(), regular(FRAGMENT, "[Service]\nExecStart=/opt/start-kubelet.sh\n")), "layout-not-understood"),
        (with_file(plain(), regular(FRAGMENT, "[Service]\nExecStart=/k/kubelet --hostname-override=%H\n")), "layout-not-understood"),
        (with_file(plain(), FileState(DROP_IN, "directory")), "not-a-regular-file"),
        (replace(plain(), files={}), "layout-not-understood"),
        (with_command(kubeadm(), "/usr/bin/kubelet", "--v=9"), "layout-drifted"),
        (kubeadm(config=CONFIG_TEXT + "imageGCLowThresholdPercent: 99\n"), "config-not-understood"),
        (kubeadm(extra="KUBELET_EXTRA_ARGS=--serialize-image-pulls=true\n", words="--serialize-image-pulls=true"), "flag-shadows-field"),
        (plain(more="--dynamic-config-dir=/d"), "config-dir-in-use"),
    ],
)  # fmt: skip
def test_refused(found: Snapshot, reference: str) -> None:
    got = left(found)
    assert (got.standing, got.reference) == (Standing.REFUSED, reference)
    assert got.reason


def test_a_playbook_may_accept_a_log_that_cannot_be_read() -> None:
    unread = broken(kubeadm(), lenient=None)
    policy = replace(POLICY, accepted={"log-unreadable": ""})
    made = change_for(unread, IMAGE_PULLS, policy, nodes.node(unread.node))
    assert isinstance(made, Proposal)
    assert made.change.log_unread


@pytest.mark.parametrize("span", ["", "1min 30s", "2min 500ms", "never heard of"])
def test_stop_times_that_leave_enough_time(span: str) -> None:
    assert isinstance(decide(with_unit(kubeadm(), TimeoutStopUSec=span)), Proposal)


def test_the_shadowing_flag_is_named_with_its_file() -> None:
    found = kubeadm(extra="KUBELET_EXTRA_ARGS=--serialize-image-pulls=true\n", words="--serialize-image-pulls=true")
    assert left(found).reason == (
        f"--serialize-image-pulls=true (KUBELET_EXTRA_ARGS in {DEB}) overrides serializeImagePulls in {CONFIG}"
    )


def test_a_value_in_force_by_a_flag_is_not_written_unless_pinned() -> None:
    found = kubeadm(extra="KUBELET_EXTRA_ARGS=--serialize-image-pulls=false\n", words="--serialize-image-pulls=false")
    got = left(found, SERIAL)
    assert got.standing is Standing.AS_WANTED
    assert "serializeImagePulls already has this value from --serialize-image-pulls=false" in got.reason
    assert list(proposed(found, pinned(SERIAL))[1]) == [CONFIG]


def test_a_relative_config_is_refused() -> None:
    text = "[Service]\nExecStart=/usr/local/bin/kubelet --config=k.yaml\n"
    found = with_command(with_file(plain(), regular(FRAGMENT, text)), "/usr/local/bin/kubelet", "--config=k.yaml")
    assert left(found, SERIAL).reference == "layout-not-understood"


def test_a_flag_after_our_variable_overrides_it() -> None:
    text = nodes.KUBEADM_TEXT.format(flags=DEB).rstrip() + " --image-pull-progress-deadline=1m\n"
    command = kubeadm().measurement.process.command_line  # type: ignore[union-attr]
    found = with_command(with_file(kubeadm(), regular(KUBEADM, text)), *command, "--image-pull-progress-deadline=1m")
    got = left(found, DEADLINE)
    assert got.reference == "flag-shadowed"
    assert f"ExecStart in {KUBEADM}" in got.reason


def test_a_later_drop_in_with_its_own_command_overrides_ours() -> None:
    late = "/etc/systemd/system/kubelet.service.d/99-late.conf"
    text = "[Service]\nExecStart=\nExecStart=/usr/local/bin/kubelet --v=2\n"
    found = with_unit(with_file(plain(), regular(late, text)), DropInPaths=late)
    got = left(with_command(found, "/usr/local/bin/kubelet", "--v=2"), DEADLINE)
    assert got.reference == "flag-shadowed"


def test_settings_without_a_home_refuse_the_node_with_every_reason() -> None:
    got = left(kubeadm(runtime="crio"), settings(imagePullProgressDeadline="5m", maxParallelImagePulls=5))
    assert got.reference == "setting-unsupported"
    assert "pull_progress_timeout" in got.reason
    assert "exists from 1.27" in got.reason


def test_an_environment_file_that_the_unit_needs_but_is_absent() -> None:
    text = nodes.KUBEADM_TEXT.format(flags=DEB).replace(f"EnvironmentFile=-{DEB}", f"EnvironmentFile={DEB}")
    assert left(with_file(kubeadm(), regular(KUBEADM, text))).reference == "layout-not-understood"


def test_a_variable_that_no_file_can_set_stays_in_our_drop_in() -> None:
    text = "[Service]\nExecStart=/usr/bin/kubelet $KUBELET_EXTRA_ARGS\n"
    found = with_command(with_file(plain(), regular(FRAGMENT, text)), "/usr/bin/kubelet")
    assert "kubelet $KUBELET_EXTRA_ARGS --image-pull-progress-deadline=5m\n" in proposed(found, DEADLINE)[1][DROP_IN]


def test_an_environment_file_layout_and_a_value_from_the_unit() -> None:
    text = f'[Service]\nEnvironment="KUBELET_EXTRA_ARGS=--v=3"\nEnvironmentFile=-{DEB}\nExecStart=/usr/bin/kubelet $KUBELET_EXTRA_ARGS\n'
    found = with_command(with_file(plain(), regular(FRAGMENT, text)), "/usr/bin/kubelet", "--v=3")
    got = decide(found, DEADLINE)
    assert isinstance(got, Proposal)
    assert got.label.endswith("environment file layout (deb)")
    assert got.change.files[0].after == b'KUBELET_EXTRA_ARGS="--v=3 --image-pull-progress-deadline=5m"\n'


@pytest.mark.parametrize(
    ("templates", "wanted"),
    [
        ({"flags_env": "OTHER=1\n"}, DEADLINE),
        ({"flags_env": "{{ variable }}=--a\nOTHER=1\n"}, DEADLINE),
        ({"flags_env": "{{ variable }}='open\n"}, DEADLINE),
        ({"flags_env": "{{ variable }}={{ arguments | join(' ') }} --config=/x\n"}, DEADLINE),
        ({"flags_env": "{{ variable }}={{ arguments | join(' ') }} --nonsense=1\n"}, DEADLINE),
        ({"flags_env": "{{ variable }}={{ arguments | join(' ') }} stray\n"}, DEADLINE),
        ({"kubelet_config": "- 1\n"}, SERIAL),
        ({"kubelet_config": "serializeImagePulls: true\n"}, SERIAL),
        ({"kubelet_config": "serializeImagePulls: false\nnonsense: 1\n"}, SERIAL),
        ({"kubelet_config": "serializeImagePulls: false\nmaxPods: many\n"}, SERIAL),
    ],
)
def test_templates_that_drop_or_change_a_setting(templates: dict[str, str], wanted: Mapping[str, Setting]) -> None:
    policy = replace(POLICY, templates=replace(POLICY.templates, **templates))
    got = change_for(kubeadm(), wanted, policy, nodes.node())
    assert isinstance(got, ExcludedNode)
    assert got.reference == "template-not-understood"


@pytest.mark.parametrize(
    "text",
    [
        "[Service]\n",
        "[Service]\nExecStart=/a\n",
        "[Service]\nExecStart=\nExecStart={{ exec_start }} --v=9\n",
        "[Service]\nExecStart=\n",
    ],
)
def test_drop_in_templates_that_change_the_command(text: str) -> None:
    policy = replace(POLICY, templates=replace(POLICY.templates, drop_in=text))
    got = change_for(plain(), DEADLINE, policy, nodes.node())
    assert isinstance(got, ExcludedNode)
    assert got.reference in {"template-not-understood", "flag-shadowed"}


def test_additions_of_a_template_are_part_of_the_change() -> None:
    templates = replace(
        POLICY.templates,
        flags_env='{{ variable }}={{ arguments | join(" ") }} --v=4\n',
        kubelet_config="serializeImagePulls: false\n{% if node.rack == 'rack01' %}maxPods: 40\n{% endif %}",
    )
    got = change_for(kubeadm(), {**DEADLINE, **SERIAL}, replace(POLICY, templates=templates), nodes.node())
    assert isinstance(got, Proposal)
    reasons = [reason for file in got.change.files for reason in file.reasons]
    assert "--v: not set → 4 (template templates/kubelet-flags.env.j2)" in reasons
    assert "maxPods: not set → 40 (template templates/kubelet-config.yaml.j2)" in reasons
    assert "--v=4" in got.change.arguments
    after = applied(kubeadm(), got.change)
    again = change_for(after, {**DEADLINE, **SERIAL}, replace(POLICY, templates=templates), nodes.node())
    assert isinstance(again, ExcludedNode)


def test_runtimes_by_their_sockets() -> None:
    def label(found: Snapshot) -> str:
        got = decide(found, SERIAL)
        assert isinstance(got, Proposal), got
        return got.label.split(", ")[1]

    def kubelet(version: str, *words: str, config: str = CONFIG_TEXT) -> Snapshot:
        """A kubelet with these words as the only hint at its runtime."""
        command = f"/usr/local/bin/kubelet --config={CONFIG} {' '.join(words)}"
        unit = regular(FRAGMENT, f"[Service]\nExecStart={command}\n")
        return with_command(with_file(plain(version=version, config=config), unit), *command.split())

    unknown = ("--container-runtime=remote", "--container-runtime-endpoint=unix:///x.sock")
    assert label(kubeadm(runtime="cri-dockerd")) == "cri-dockerd 0.3"
    assert label(kubelet("1.23.17", *unknown)) == "unknown runtime"
    assert (
        label(kubelet("1.30.0", config=CONFIG_TEXT + "containerRuntimeEndpoint: unix:///run/crio/crio.sock\n"))
        == "CRI-O"
    )
    assert label(kubelet("1.30.0")) == "containerd"
    assert label(kubelet("1.25.0", *unknown)) == "unknown runtime"
