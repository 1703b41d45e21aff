"""A kubelet without --config: our file changes four defaults, which the playbook must accept one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.snapshot import FileState
from rollout.kubelet.changes.templated_config import DEFAULTS
from tests.kubelet.deciding import applied_twice_is_once, proposed, refused
from tests.kubelet.nodes import CONFIG, CONFIG_TEXT, DROP_IN, POLICY, absent, flags_only, regular, settings, with_file

SERIAL = settings(serializeImagePulls=False)
KEPT = (
    "--anonymous-auth=false --authentication-token-webhook=true --authorization-mode=Webhook --read-only-port=0"
    " --kubeconfig=/etc/kubernetes/kubelet.conf"
)
ACCEPTS_ALL = replace(POLICY, accepted=dict.fromkeys(DEFAULTS, ""))


def test_each_of_the_four_is_named() -> None:
    reference, reason = refused(flags_only(), SERIAL)
    assert reference == "no-config-file"
    for said in (
        "authentication.anonymous.enabled true → false",
        "authentication.webhook.enabled false → true",
        'authorization.mode "AlwaysAllow" → "Webhook"',
        "readOnlyPort 10255 → 0",
    ):
        assert said in reason


@pytest.mark.parametrize("missing", DEFAULTS)
def test_three_accepted_of_four_are_not_enough(missing: str) -> None:
    policy = replace(POLICY, accepted=dict.fromkeys(set(DEFAULTS) - {missing}, ""))
    reference, reason = refused(flags_only(), SERIAL, policy)
    assert reference == "no-config-file"
    assert missing in reason
    assert not any(other in reason for other in DEFAULTS if other != missing)


def test_with_all_accepted_a_file_is_created_and_the_kubelet_reads_it() -> None:
    found = flags_only()
    change, texts = proposed(found, SERIAL, ACCEPTS_ALL)
    assert texts[CONFIG].endswith(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nserializeImagePulls: false\n"
    )
    assert texts[DROP_IN].endswith(f"ExecStart=/usr/local/bin/kubelet --network-plugin=cni --v=2 --config={CONFIG}\n")
    assert [file.before for file in change.files] == [None, None]
    assert change.files[1].reasons == (f"--config: not set → {CONFIG} (so that the kubelet reads it)",)
    assert change.config_path == CONFIG
    assert change.arguments == (f"--config={CONFIG}",)
    assert "readOnlyPort 10255 → 0: side effect of a new --config file, accepted in the playbook" in change.notes
    applied_twice_is_once(found, SERIAL, ACCEPTS_ALL)


def test_values_set_by_flags_do_not_change_and_need_no_acceptance() -> None:
    change, texts = proposed(flags_only(words=KEPT), SERIAL)
    assert CONFIG in texts
    assert not any("accepted" in note for note in change.notes)


def test_a_setting_for_one_of_them_accepts_it() -> None:
    policy = replace(POLICY, accepted=dict.fromkeys(set(DEFAULTS) - {"readOnlyPort"}, ""))
    _, texts = proposed(flags_only(), {**SERIAL, **settings(readOnlyPort=10255)}, policy)
    assert "readOnlyPort: 10255" in texts[CONFIG]


def test_a_setting_for_a_neighbour_does_not_accept_it() -> None:
    policy = replace(POLICY, accepted=dict.fromkeys(set(DEFAULTS) - {"authentication.anonymous.enabled"}, ""))
    wanted = settings(authentication={"webhook": {"cacheTTL": "1m"}})
    reference, reason = refused(flags_only(), wanted, policy)
    assert reference == "no-config-file"
    assert "authentication.anonymous.enabled true → false" in reason
    _, texts = proposed(
        flags_only(), settings(authentication={"anonymous": {"enabled": True}, "webhook": {"cacheTTL": "1m"}}), policy
    )
    assert "enabled: true" in texts[CONFIG]


def test_a_flag_that_is_set_with_it_accepts_it() -> None:
    policy = replace(POLICY, accepted=dict.fromkeys(set(DEFAULTS) - {"authentication.anonymous.enabled"}, ""))
    wanted = {**SERIAL, **settings(__anonymous_auth=False)}
    _, texts = proposed(flags_only(), wanted, policy)
    assert "--anonymous-auth=false" in texts[DROP_IN]


def test_an_existing_unused_file_is_not_overwritten() -> None:
    for state in (regular(CONFIG, CONFIG_TEXT), FileState(CONFIG, "symlink")):
        reference, _ = refused(with_file(flags_only(), state), SERIAL, ACCEPTS_ALL)
        assert reference in {"no-config-file", "not-a-regular-file"}


def test_an_equivalent_flag_needs_no_file() -> None:
    _, texts = proposed(flags_only(), settings(__serialize_image_pulls=False))
    assert list(texts) == [DROP_IN]


def test_a_wanted_default_needs_no_file() -> None:
    found = with_file(flags_only(), absent(CONFIG))
    _, texts = proposed(found, settings(registryPullQPS=5, imagePullProgressDeadline="5m"))
    assert list(texts) == [DROP_IN]
