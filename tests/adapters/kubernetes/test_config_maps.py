"""ConfigMaps on a real API server (1.20.2), or its recorded answers: written with optimistic locking, and restored."""

from __future__ import annotations

import pytest

from rollout.adapters.clock import SystemClock
from rollout.app.config_maps import put
from rollout.core.model.config_map import ConfigMapChange, ConfigMapOutcome
from rollout.core.run.events import ConfigMapRead
from rollout.errors import RemoteError
from rollout.kubelet.kubeadm import with_fields
from tests.adapters.kubernetes.apiserver import NOBODY
from tests.adapters.kubernetes.bed import Bed

pytestmark = pytest.mark.process

NAME = "kubelet-config"
OLD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 110   # one /24\nserializeImagePulls: true\n"
NEW = with_fields(OLD, {"serializeImagePulls": False})


def change(api: Bed) -> ConfigMapChange:
    return ConfigMapChange(api.namespace, NAME, "kubelet", OLD, NEW, api.uid_of_config_map(NAME))


def done(api: Bed, wanted: ConfigMapChange, *, void: bool = False) -> ConfigMapRead:
    return put(wanted, api.config_maps(), SystemClock(), lambda _: None, lambda: True, void=void)


def text(api: Bed) -> str:
    found = api.config_maps().read(api.namespace, NAME, 30.0)
    assert found is not None
    return found.data["kubelet"]


def test_a_config_map_is_written_and_restored(api: Bed) -> None:
    """All other keys stay."""
    api.has_config_map(NAME, kubelet=OLD, other="kept")
    assert done(api, change(api)).outcome is ConfigMapOutcome.WRITTEN
    assert text(api) == NEW
    assert done(api, change(api).undone, void=True).outcome is ConfigMapOutcome.WRITTEN
    found = api.config_maps().read(api.namespace, NAME, 30.0)
    assert found is not None
    assert found.data == {"kubelet": OLD, "other": "kept"}


def test_a_config_map_that_others_wrote_since_is_left_alone(api: Bed) -> None:
    api.has_config_map(NAME, kubelet=OLD)
    assert done(api, change(api)).outcome is ConfigMapOutcome.WRITTEN
    theirs = NEW.replace("110", "90")
    api.edits_config_map(NAME, kubelet=theirs)
    answer = done(api, change(api).undone, void=True)
    assert (answer.outcome, "maxPods: 110 → 90" in answer.message) == (ConfigMapOutcome.CHANGED, True)
    assert text(api) == theirs


def test_a_config_map_written_meanwhile_is_a_conflict(api: Bed) -> None:
    """Optimistic locking: the API server compares the resourceVersion."""
    api.has_config_map(NAME, kubelet=OLD)
    there = api.config_maps()
    found = there.read(api.namespace, NAME, 30.0)
    assert found is not None
    api.edits_config_map(NAME, kubelet=NEW)
    with pytest.raises(RemoteError) as caught:
        there.write(found, "kubelet", OLD, 30.0)
    assert caught.value.reference == "conflict"


def test_a_late_write_to_a_config_map_fails_after_a_touch(api: Bed) -> None:
    """The object is as before; a write without a difference would have kept the resourceVersion."""
    api.has_config_map(NAME, kubelet=OLD)
    there = api.config_maps()
    found = there.read(api.namespace, NAME, 30.0)
    assert found is not None
    assert done(api, change(api).undone, void=True).outcome is ConfigMapOutcome.WRITTEN
    with pytest.raises(RemoteError) as caught:
        there.write(found, "kubelet", NEW, 30.0)
    assert caught.value.reference == "conflict"
    assert text(api) == OLD


def test_rights_to_a_config_map_are_asked_for_by_its_name(api: Bed) -> None:
    """With the rules of docs/gates.md, which name the ConfigMaps."""
    assert api.config_maps().missing_to_write(api.namespace, NAME) == ()
    missing = api.config_maps(NOBODY).missing_to_write(api.namespace, NAME)
    assert missing == tuple(f"{verb} configmaps in {api.namespace}" for verb in ("get", "patch"))


def test_no_config_map_is_no_error(api: Bed) -> None:
    assert api.config_maps().read(api.namespace, NAME, 30.0) is None
