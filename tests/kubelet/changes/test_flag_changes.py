"""A flag overrides a field and the playbook has ``shadowedByFlag: move``: the flag is removed, the field is written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.playbook import Shadowed
from rollout.core.model.snapshot import Snapshot
from rollout.kubelet.changes import flag_changes
from rollout.kubelet.homes import InFlag
from rollout.kubelet.node import layout
from tests.kubelet import nodes
from tests.kubelet.deciding import applied_twice_is_once, proposed, refused
from tests.kubelet.nodes import (
    CONFIG,
    CONFIG_TEXT,
    DEB,
    DROP_IN,
    FRAGMENT,
    KUBEADM,
    KUBEADM_FLAGS,
    POLICY,
    kubeadm,
    plain,
    regular,
    settings,
    with_command,
    with_file,
)

MOVE = replace(POLICY, shadowed=Shadowed.MOVE)
SERIAL = settings(serializeImagePulls=False)


def extra(words: str, version: str = "1.23.17") -> Snapshot:
    return kubeadm(version=version, extra=f"# ours\nKUBELET_EXTRA_ARGS={words}\nB=1\n", words=words.replace('"', ""))


def test_from_the_environment_file_into_the_field() -> None:
    found = extra("--node-ip=10.0.0.7 --serialize-image-pulls=true --v=2")
    change, texts = proposed(found, SERIAL, MOVE)
    assert texts == {
        CONFIG: CONFIG_TEXT.replace("serializeImagePulls: true", "serializeImagePulls: false"),
        DEB: '# ours\nKUBELET_EXTRA_ARGS="--node-ip=10.0.0.7 --v=2"\nB=1\n',
    }
    assert change.files[1].reasons == (
        "--serialize-image-pulls: true → removed, serializeImagePulls is written instead (playbook image-pulls)",
    )
    applied_twice_is_once(found, SERIAL, MOVE)


def test_the_default_is_to_refuse() -> None:
    found = extra("--serialize-image-pulls=true")
    assert refused(found, SERIAL) == (
        "flag-shadows-field",
        f"--serialize-image-pulls=true (KUBELET_EXTRA_ARGS in {DEB}) overrides serializeImagePulls in {CONFIG}",
    )


def test_every_occurrence_is_removed() -> None:
    words = "--registry-qps 3 --serialize-image-pulls=true --registry-qps=4 --v=2 --serialize-image-pulls"
    _, texts = proposed(extra(words), {**SERIAL, **settings(registryPullQPS=20)}, MOVE)
    assert 'KUBELET_EXTRA_ARGS="--v=2"\n' in texts[DEB]
    assert "registryPullQPS: 20" in texts[CONFIG]


def test_from_kubeadm_flags_env() -> None:
    found = kubeadm(version="1.23.17")
    state = found.files[KUBEADM_FLAGS]
    assert state.content is not None
    text = state.content.decode().replace("--network-plugin=cni", "--network-plugin=cni --serialize-image-pulls=true")
    command = found.measurement.process.command_line if found.measurement.process else ()
    words = [*command[: command.index("--network-plugin=cni") + 1], "--serialize-image-pulls=true"]
    words += command[len(words) - 1 :]
    found = with_command(with_file(found, regular(KUBEADM_FLAGS, text)), *words)
    _, texts = proposed(found, SERIAL, MOVE)
    assert texts[KUBEADM_FLAGS] == state.content.decode()
    assert set(texts) == {CONFIG, KUBEADM_FLAGS}
    applied_twice_is_once(found, SERIAL, MOVE)


def test_the_variable_of_kubeadm_is_never_left_empty() -> None:
    """kubeadm 1.35.0 fails with ``no flags found in file`` then (kubeadm #3279): it keeps a flag that changes nothing."""
    found = only_in_kubeadms_variable("--serialize-image-pulls=true")
    change, texts = proposed(found, SERIAL, MOVE)
    assert texts[KUBEADM_FLAGS] == f'KUBELET_KUBEADM_ARGS="--config={CONFIG}"\n'
    (flags,) = (file for file in change.files if file.path == KUBEADM_FLAGS)
    assert flags.reasons[0].startswith("--serialize-image-pulls: true → removed")
    assert f"KUBELET_KUBEADM_ARGS repeats --config={CONFIG}, which changes nothing" in flags.reasons[1]
    applied_twice_is_once(found, SERIAL, MOVE)


def test_the_flag_that_keeps_it_filled_is_not_added_where_it_has_others() -> None:
    found = only_in_kubeadms_variable("--serialize-image-pulls=true --v=2")
    assert proposed(found, SERIAL, MOVE)[1][KUBEADM_FLAGS] == 'KUBELET_KUBEADM_ARGS="--v=2"\n'


def only_in_kubeadms_variable(words: str) -> Snapshot:
    found = with_file(kubeadm(version="1.23.17"), regular(KUBEADM_FLAGS, f'KUBELET_KUBEADM_ARGS="{words}"\n'))
    asked = layout.find(found)
    return with_command(found, asked.pieces[0].text, *asked.asked)


def test_from_a_plain_unit_by_our_drop_in() -> None:
    found = plain(version="1.23.17", more="--serialize-image-pulls=true --v=2")
    change, texts = proposed(found, SERIAL, MOVE)
    assert set(texts) == {CONFIG, DROP_IN}
    assert texts[DROP_IN].endswith("--kubeconfig=/etc/kubernetes/kubelet.conf --network-plugin=cni --v=2\n")
    assert change.reload
    applied_twice_is_once(found, SERIAL, MOVE)


def test_from_the_command_of_a_kubeadm_unit() -> None:
    text = nodes.KUBEADM_TEXT.format(flags=DEB).rstrip() + " --serialize-image-pulls=true\n"
    command = kubeadm().measurement.process.command_line  # type: ignore[union-attr]
    found = with_command(with_file(kubeadm(), regular(KUBEADM, text)), *command, "--serialize-image-pulls=true")
    _, texts = proposed(found, SERIAL, MOVE)
    assert set(texts) == {CONFIG, DROP_IN}
    restated = "ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS"
    assert texts[DROP_IN].endswith(f"{restated} $KUBELET_EXTRA_ARGS\n")
    applied_twice_is_once(found, SERIAL, MOVE)


def test_other_values_of_the_flag_are_moved_into_the_field_too() -> None:
    found = extra("--feature-gates=CSIMigration=false,GracefulNodeShutdown=true --v=2")
    _, texts = proposed(found, settings(featureGates={"GracefulNodeShutdown": False}), MOVE)
    assert 'KUBELET_EXTRA_ARGS="--v=2"\n' in texts[DEB]
    assert texts[CONFIG].endswith("featureGates:\n  CSIMigration: false\n  GracefulNodeShutdown: false\n")
    found = extra('"--eviction-hard=memory.available<1Gi,nodefs.available<5%"')
    _, texts = proposed(found, settings(evictionHard={"memory.available": "2Gi"}), MOVE)
    assert "  memory.available: 2Gi   # more than the default\n  nodefs.available: 5%\n" in texts[CONFIG]


def test_a_flag_for_one_value_inside_a_field() -> None:
    found = extra("--authentication-token-webhook-cache-ttl=1m --v=2")
    wanted = settings(authentication={"webhook": {"cacheTTL": "3m"}})
    _, texts = proposed(found, wanted, MOVE)
    assert "    cacheTTL: 3m\n    enabled: true\n" in texts[CONFIG]
    applied_twice_is_once(found, wanted, MOVE)


def test_from_environment_of_a_unit_of_others_by_our_drop_in() -> None:
    text = nodes.KUBEADM_TEXT.format(flags=DEB).replace(
        "--config=/var/lib/kubelet/config.yaml", "--config=/var/lib/kubelet/config.yaml --serialize-image-pulls=true"
    )
    command = kubeadm().measurement.process.command_line  # type: ignore[union-attr]
    at = command.index(f"--config={CONFIG}") + 1
    words = (*command[:at], "--serialize-image-pulls=true", *command[at:])
    found = with_command(with_file(kubeadm(), regular(KUBEADM, text)), *words)
    _, texts = proposed(found, SERIAL, MOVE)
    assert (
        f"kubelet $KUBELET_KUBECONFIG_ARGS --config={CONFIG} $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS\n"
        in texts[DROP_IN]
    )
    applied_twice_is_once(found, SERIAL, MOVE)


@pytest.mark.parametrize("quoted", ["'--serialize-image-pulls=true'", "--serialize-image-pulls\\=true"])
def test_with_any_quotes(quoted: str) -> None:
    unit = f"[Service]\nExecStart=/usr/local/bin/kubelet --config={CONFIG} '--node-labels=a=b'   {quoted}  --v=2\n"
    if "\\" in quoted:
        found = kubeadm(extra=f"KUBELET_EXTRA_ARGS='{quoted} --v=2'\n", words="--serialize-image-pulls=true --v=2")
        assert 'KUBELET_EXTRA_ARGS="--v=2"\n' in proposed(found, SERIAL, MOVE)[1][DEB]
        return
    command = (
        "/usr/local/bin/kubelet",
        f"--config={CONFIG}",
        "--node-labels=a=b",
        "--serialize-image-pulls=true",
        "--v=2",
    )
    found = with_command(with_file(plain(), regular(FRAGMENT, unit)), *command)
    text = proposed(found, SERIAL, MOVE)[1][DROP_IN]
    assert text.endswith(f"ExecStart=/usr/local/bin/kubelet --config={CONFIG} '--node-labels=a=b'  --v=2\n")


@pytest.mark.parametrize(
    ("words", "held"),
    [
        (("--node-labels=a=b,c=d",), True),
        (("--node-labels=a=b", "--node-labels=c=d"), True),
        (("--node-labels=c=x,a=b", "--node-labels=c=d"), True),
        (("--node-labels=e=f", "--node-labels=a=b,c=d"), False),  # e=f stays: the last flag is not all of it
        (("--node-labels=c=d", "--node-labels=a=x"), False),
        (("--v=2",), False),
    ],
)
def test_flags_that_are_maps_add_up(words: tuple[str, ...], held: bool) -> None:
    assert flag_changes.holds(words, InFlag("--node-labels", "a=b,c=d", "labels")) is held


def test_thresholds_add_up_too_and_other_flags_do_not() -> None:
    words = ("--eviction-hard=memory.available<5%", "--eviction-hard=nodefs.available<10%", "--v=2", "--v=4")
    wanted = "nodefs.available<10%,memory.available<5%"
    assert flag_changes.holds(words, InFlag("--eviction-hard", wanted, "thresholds"))
    assert flag_changes.holds(words, InFlag("--v", "4", "level"))
    assert not flag_changes.holds(words, InFlag("--v", "2", "level"))
