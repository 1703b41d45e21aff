"""ConfigMaps on a real API server (1.20.2), or its recorded answers: written with optimistic locking, and restored."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from rollout.adapters.clock import SystemClock
from rollout.adapters.journal import SqlJournal
from rollout.app.backends import Backends, NoConfigMaps
from rollout.app.config_map_restores import to_restore
from rollout.app.config_maps import put
from rollout.app.following import replay
from rollout.app.ports import ConfigMap, ConfigMaps
from rollout.app.rollbacks import NOTHING_SINCE, rollback_order
from rollout.app.runs import Tools, start_apply, start_revert
from rollout.core.model.config_map import ConfigMapChange, ConfigMapOutcome
from rollout.core.presentation.summary import exit_code
from rollout.core.run.events import ConfigMapRead
from rollout.errors import RemoteError
from rollout.kubelet.kubeadm import with_fields
from tests.adapters.kubernetes.apiserver import LOOKER, NOBODY, ApiServer
from tests.adapters.kubernetes.bed import Bed
from tests.app.site import ACCESS, SMALL, Site, fleet

pytestmark = pytest.mark.process

NAME = "kubelet-config"
OLD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 110   # one /24\nserializeImagePulls: true\n"
NEW = with_fields(OLD, {"serializeImagePulls": False})


CLUSTER = "apiVersion: kubeadm.k8s.io/v1beta2\nkind: ClusterConfiguration\nkubernetesVersion: v1.33.4\n"


def made_by_kubeadm(api: Bed, **data: str) -> None:
    """What kubeadm knows of the cluster, and the ConfigMap of its kubelets."""
    api.has_config_map("kubeadm-config", ClusterConfiguration=CLUSTER)
    api.has_config_map(NAME, **data)


def change(api: Bed) -> ConfigMapChange:
    return ConfigMapChange(api.namespace, NAME, "kubelet", OLD, NEW, api.uid_of_config_map(NAME))


def done(api: Bed, wanted: ConfigMapChange, *, void: bool = False, there: ConfigMaps | None = None) -> ConfigMapRead:
    return put(wanted, there or api.config_maps(), SystemClock(), lambda _: None, lambda: True, void=void)


@dataclass
class OnServer(Site):
    """Agents in memory beside a real API server."""

    there: ConfigMaps = field(default_factory=NoConfigMaps)

    def tools(self) -> Tools:
        return replace(super().tools(), backends=Backends(config_maps=self.there, wait=lambda _: None))


def text(api: Bed) -> str:
    found = api.config_maps().read(api.namespace, NAME, 30.0)
    assert found is not None
    return found.data["kubelet"]


def test_a_config_map_is_written_and_restored(api: Bed) -> None:
    """All other keys stay."""
    made_by_kubeadm(api, kubelet=OLD, other="kept")
    assert done(api, change(api)).outcome is ConfigMapOutcome.WRITTEN
    assert text(api) == NEW
    assert done(api, change(api).undone, void=True).outcome is ConfigMapOutcome.WRITTEN
    found = api.config_maps().read(api.namespace, NAME, 30.0)
    assert found is not None
    assert found.data == {"kubelet": OLD, "other": "kept"}


def test_a_config_map_that_others_wrote_since_is_left_alone(api: Bed) -> None:
    made_by_kubeadm(api, kubelet=OLD)
    assert done(api, change(api)).outcome is ConfigMapOutcome.WRITTEN
    theirs = NEW.replace("110", "90")
    api.edits_config_map(NAME, kubelet=theirs)
    answer = done(api, change(api).undone, void=True)
    assert (answer.outcome, "maxPods: 110 → 90" in answer.message) == (ConfigMapOutcome.CHANGED, True)
    assert text(api) == theirs


class Beset:
    """The API server, where something happens before the first write reaches it."""

    def __init__(self, real: ConfigMaps, befalls: Callable[[], None]) -> None:
        self.real, self.befalls = real, [befalls]

    def read(self, namespace: str, name: str, timeout: float) -> ConfigMap | None:
        return self.real.read(namespace, name, timeout)

    def write(self, found: ConfigMap, key: str, text: str, timeout: float) -> None:
        if self.befalls:
            self.befalls.pop()()
        self.real.write(found, key, text, timeout)

    def touch(self, found: ConfigMap, timeout: float) -> None:
        self.real.touch(found, timeout)

    def missing_to_write(self, namespace: str, name: str) -> tuple[str, ...]:
        return self.real.missing_to_write(namespace, name)


def test_a_config_map_that_others_write_between_read_and_write_is_theirs(api: Bed) -> None:
    made_by_kubeadm(api, kubelet=OLD)
    theirs = OLD.replace("110", "90")
    there = Beset(api.config_maps(), lambda: api.edits_config_map(NAME, kubelet=theirs))
    answer = done(api, change(api), there=there)
    assert (answer.outcome, answer.reference, there.befalls) == (ConfigMapOutcome.CHANGED, "config-map-changed", [])
    assert text(api) == theirs


def test_another_key_of_a_config_map_that_others_write_meanwhile_is_kept(api: Bed) -> None:
    made_by_kubeadm(api, kubelet=OLD)
    there = Beset(api.config_maps(), lambda: api.edits_config_map(NAME, other="theirs"))
    assert done(api, change(api), there=there).outcome is ConfigMapOutcome.WRITTEN
    found = api.config_maps().read(api.namespace, NAME, 30.0)
    assert found is not None
    assert found.data == {"kubelet": NEW, "other": "theirs"}


def test_a_config_map_that_may_be_read_only_is_refused(api: Bed) -> None:
    """A role without the verb patch."""
    made_by_kubeadm(api, kubelet=OLD)
    answer = done(api, change(api), there=api.config_maps(LOOKER))
    assert (answer.outcome, answer.reference) == (ConfigMapOutcome.REFUSED, "config-map-refused")
    assert "[forbidden]" in answer.message
    assert answer.digest == change(api).digest_before
    missing = api.config_maps(LOOKER).missing_to_write(api.namespace, NAME)
    assert missing == (f"patch configmaps in {api.namespace}",)
    restored = done(api, change(api).undone, void=True, there=api.config_maps(LOOKER))
    assert restored.outcome is ConfigMapOutcome.WRITTEN, "it has the old text, and nobody else may have begun a write"


def test_a_config_map_that_may_not_be_read_is_not_known(api: Bed) -> None:
    made_by_kubeadm(api, kubelet=OLD)
    wanted = ConfigMapChange(api.namespace, NAME, "kubelet", OLD, NEW, "a uid")
    answer = done(api, wanted, there=api.config_maps(NOBODY))
    assert (answer.outcome, answer.reference) == (ConfigMapOutcome.UNANSWERED, "forbidden")


def test_an_immutable_config_map_is_refused(api: Bed) -> None:
    made_by_kubeadm(api, kubelet=OLD)
    api.seals_config_map(NAME)
    answer = done(api, change(api))
    assert (answer.outcome, answer.reference) == (ConfigMapOutcome.REFUSED, "config-map-refused")
    assert "[http-422]" in answer.message


def test_a_config_map_after_an_upgrade_that_renames_it_is_left_alone(api: Bed) -> None:
    api.has_config_map("kubeadm-config", ClusterConfiguration=CLUSTER.replace("1.33.4", "1.22.17"))
    api.has_config_map(NAME, kubelet=OLD)
    answer = done(api, change(api))
    assert (answer.outcome, answer.reference) == (ConfigMapOutcome.CHANGED, "config-map-renamed")
    assert "kubeadm reads kubelet-config-1.22 now" in answer.message
    assert text(api) == OLD


def test_a_config_map_of_a_run_is_written_and_its_rollback_restores_it(api: Bed, tmp_path: Path) -> None:
    """Whole runs with a real journal, over agents in memory."""
    made_by_kubeadm(api, kubelet=OLD)
    wanted = change(api)
    with closing(SqlJournal(tmp_path / "state")) as journal:
        site = OnServer(journal, there=api.config_maps())
        state = start_apply(replace(SMALL, config_map=wanted), ACCESS, site.tools())
        assert (exit_code(state), text(api)) == (0, NEW)
        since = replace(NOTHING_SINCE, config_map=to_restore(journal, replay(journal, "r1")))
        order = rollback_order(state, "r2", None, fleet(), SMALL.limits, since, force=False)
        back = start_revert(order, state.counter + 1, ACCESS, site.tools())
        assert (exit_code(back), text(api)) == (0, OLD)


def test_an_api_server_that_stands_still_in_the_middle_leaves_no_doubt(api: Bed, apiserver: ApiServer | None) -> None:
    """Its answer to the write is lost, and it does the write when it goes on. What is read then counts. Not with recorded answers."""
    if apiserver is None:
        pytest.skip("it needs a real API server: make test-apiserver")
    made_by_kubeadm(api, kubelet=OLD)
    there = Beset(api.config_maps(), apiserver.freezes)
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        apiserver.thaws()

    answer = put(change(api), there, SystemClock(), wait, lambda: True)
    assert (answer.outcome, len(waited)) == (ConfigMapOutcome.WRITTEN, 1)
    assert text(api) == NEW


def test_a_config_map_written_meanwhile_is_a_conflict(api: Bed) -> None:
    """Optimistic locking: the API server compares the resourceVersion."""
    made_by_kubeadm(api, kubelet=OLD)
    there = api.config_maps()
    found = there.read(api.namespace, NAME, 30.0)
    assert found is not None
    api.edits_config_map(NAME, kubelet=NEW)
    with pytest.raises(RemoteError) as caught:
        there.write(found, "kubelet", OLD, 30.0)
    assert caught.value.reference == "conflict"


def test_a_late_write_to_a_config_map_fails_after_a_touch(api: Bed) -> None:
    """The object is as before; a write without a difference would have kept the resourceVersion."""
    made_by_kubeadm(api, kubelet=OLD)
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
    rights = tuple(f"{verb} configmaps in {api.namespace}" for verb in ("get", "patch"))
    assert missing == (*rights, f"get configmaps in {api.namespace} (kubeadm-config)")


def test_no_config_map_is_no_error(api: Bed) -> None:
    assert api.config_maps().read(api.namespace, NAME, 30.0) is None
