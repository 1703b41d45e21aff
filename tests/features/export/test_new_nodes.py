"""The settings of new nodes in each format, read again by the format's own reader."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from rollout.adapters.journal import SqlJournal
from rollout.app.node_histories import plans_in_force
from rollout.cli.main import run
from rollout.core.model.settings import Value
from rollout.features.export.rules.settings import NewNodeSettings, settings_in_force
from rollout.features.export.words import FORMATS, NewNodesDocument, comments, exported, exported_lines
from rollout.kubelet import fields
from tests.app.site import NAMES, SMALL, Site
from tests.documents import as_printed
from tests.features.export.test_kubeadm_patches import plan

PULLS: dict[str, Value] = {"serializeImagePulls": False, "registryPullQPS": 20}
FLAG = "--registry-burst=40"


def wanted(*flags: str, **fields_: Value) -> NewNodeSettings:
    return NewNodeSettings(fields_, flags, nodes=("n1",))


def printed(form: str, *settings: NewNodeSettings) -> Any:
    """What the whole text contains for the reader of the format."""
    text = "\n".join(exported_lines(form, exported(form, settings)))
    return yaml.safe_load(text) if FORMATS[form].comments else json.loads(text)


def no_place(form: str, settings: NewNodeSettings) -> dict[str, str]:
    (text,) = exported(form, [settings])
    return {each.setting: each.why for each in text.no_place}


@pytest.mark.parametrize(
    ("form", "path", "expected"),
    [
        ("nodeadm", ("spec", "kubelet"), {"config": PULLS, "flags": [FLAG]}),
        ("kops", ("spec", "kubelet"), PULLS),
        ("kubespray", (), {"kubelet_config_extra_args": PULLS, "kubelet_custom_flags": [FLAG]}),
        ("rke2", (), {"kubelet-arg+": ["serialize-image-pulls=false", "registry-qps=20", "registry-burst=40"]}),
        ("k3s", (), {"kubelet-arg+": ["serialize-image-pulls=false", "registry-qps=20", "registry-burst=40"]}),
        ("mco", ("spec", "kubeletConfig"), PULLS),
        ("talos", ("machine", "kubelet"), {"extraConfig": PULLS, "extraArgs": {"registry-burst": "40"}}),
    ],
)
def test_a_format_has_exactly_the_wanted_values(form: str, path: tuple[str, ...], expected: object) -> None:
    found = printed(form, wanted(FLAG, **PULLS))
    for key in path:
        found = found[key]
    assert found == expected


DROP_IN = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", **PULLS}


def test_cloud_init_butane_and_ignition_write_the_same_drop_in() -> None:
    settings = wanted(**PULLS)
    (cloud_init,) = printed("cloud-init", settings)["write_files"]
    (butane,) = printed("butane", settings)["storage"]["files"]
    (ignition,) = printed("ignition", settings)["storage"]["files"]
    source = ignition["contents"]["source"].removeprefix("data:;base64,")
    texts = (cloud_init["content"], butane["contents"]["inline"], base64.b64decode(source).decode())
    assert [yaml.safe_load(text) for text in texts] == [DROP_IN] * 3
    assert next(exported_lines("cloud-init", exported("cloud-init", [settings]))) == "#cloud-config"
    assert (cloud_init["permissions"], butane["mode"], ignition["mode"]) == ("0644", 420, 420)
    assert printed("rke2-drop-in", settings) == DROP_IN


def test_a_setting_without_a_place_is_named_with_its_reason() -> None:
    assert "one address" in no_place("kops", wanted(clusterDNS=["10.0.0.1", "10.0.0.2"]))["clusterDNS"]
    assert "no field" in no_place("kops", wanted(oomScoreAdj=-900))["oomScoreAdj"]
    assert "refuses" in no_place("mco", wanted(featureGates={"NodeSwap": True}))["featureGates"]
    assert "zero" in no_place("mco", wanted(maxPods=0))["maxPods"]
    assert no_place("mco", wanted(registryPullQPS=0)) == {}
    assert "Protected" in no_place("talos", wanted(seccompDefault=True))["seccompDefault"]
    assert "twice" in no_place("kubespray", wanted(kubeReserved={"cpu": "1"}))["kubeReserved"]
    assert "1.32" in no_place("k3s", wanted(maxParallelImagePulls=5))["maxParallelImagePulls"]
    assert FLAG in no_place("ignition", wanted(FLAG))


@pytest.mark.parametrize("form", FORMATS)
def test_each_field_is_in_the_text_or_named(form: str) -> None:
    """No field of any minor gets lost, and no comment breaks the text."""
    for name in sorted(fields.known_fields(fields.known_minors()[-1])):
        (text,) = exported(form, [wanted(**{name: "x"})])
        assert name in {each.setting for each in text.no_place} or "x" in text.text, name
        assert not any("\n" in line for line in comments(text))


def test_a_variable_of_kubespray_is_never_a_second_key_of_the_kubelets_file() -> None:
    found = printed("kubespray", wanted(maxParallelImagePulls=5, featureGates={"NodeSwap": True}, registryBurst=40))
    assert found == {
        "kubelet_max_parallel_image_pulls": 5,
        "kubelet_feature_gates": ["NodeSwap=true"],
        "kubelet_config_extra_args": {"registryBurst": 40},
    }


def test_kops_has_thresholds_as_text_and_objects_as_fields() -> None:
    settings = wanted(
        evictionHard={"memory.available": "5%", "nodefs.available": "10%"},
        authentication={"anonymous": {"enabled": False}},
        featureGates={"NodeSwap": True},
    )
    assert printed("kops", settings)["spec"]["kubelet"] == {
        "evictionHard": "memory.available<5%,nodefs.available<10%",
        "anonymousAuth": False,
        "featureGates": {"NodeSwap": "true"},
    }


def test_a_flag_that_may_be_a_secret_is_not_exported() -> None:
    (text,) = exported("nodeadm", [wanted("--token=abc", maxPods=60)])
    assert "abc" not in text.text
    assert [each.setting for each in text.no_place] == ["--token"]


def test_a_plan_has_the_settings_and_names_what_is_in_force_by_default() -> None:
    (found,) = settings_in_force(
        [(made := plan(serializeImagePulls=False, registryPullQPS=20, readOnlyPort=0), tuple(made.nodes))]
    )
    assert (found.fields, found.flags, found.by_default) == (PULLS, (), ("readOnlyPort",))
    assert no_place("talos", found)["readOnlyPort"] == "in force by default on these nodes; nothing is written"
    document = as_printed(NewNodesDocument("talos", exported("talos", [found])))
    assert document["texts"][0]["count"] == len(found.nodes)


def test_sets_that_differ_are_documents_of_their_own() -> None:
    texts = exported("mco", [wanted(maxPods=60), wanted(maxPods=70)])
    found = list(yaml.safe_load_all("\n".join(exported_lines("mco", texts))))
    assert [each["metadata"]["name"] for each in found] == ["rollout", "rollout-2"]


def test_what_was_rolled_back_is_not_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = SqlJournal(tmp_path)
    site = Site(journal)
    site.apply()
    ((_, names),) = plans_in_force(journal, SMALL.cluster, path="")
    assert set(names) == set(NAMES)
    site.roll_back("r1")
    assert plans_in_force(journal, SMALL.cluster, path="") == ()
    journal.close()
    assert run(["export", "new-nodes", "talos", "--cluster", SMALL.cluster, "--state", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "# no change of a kubelet is in force\n"
