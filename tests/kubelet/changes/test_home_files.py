"""Which files a change may write: all that the planner writes on any node, and none without settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.core.model.plan import Change, FileChange
from rollout.core.model.playbook import Shadowed
from rollout.core.model.settings import Setting
from rollout.core.model.snapshot import Snapshot
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_call import Measure
from rollout.kubelet.changes.changes import Proposal
from rollout.kubelet.changes.home_files import foreign_files, foreign_units
from rollout.kubelet.changes.templated_config import DEFAULTS
from rollout.kubelet.node import layout
from rollout.kubelet.runtimes.description import Runtime
from tests.kubelet import nodes
from tests.kubelet.deciding import decide, proposed, refused
from tests.kubelet.nodes import CONFIG, CONFIG_TEXT, POLICY, kubeadm, regular, settings
from tests.kubelet.runtimes import nodes as runtimes

LENIENT = replace(POLICY, shadowed=Shadowed.MOVE, accepted=dict.fromkeys(DEFAULTS, ""))
SERIAL = settings(serializeImagePulls=False)
FLAGS = settings(__registry_qps=3)
MIRRORS = settings(registryMirrors={"docker.io": ["https://mirror.example"]}, imagePullProgressDeadline="6m")
DOWNLOADS = settings(maxConcurrentDownloads=5)
SHADOWED = "--serialize-image-pulls=true"


def over(runtime: Runtime, version: str, *files: str, kubelet: str = "1.26.15") -> Snapshot:
    return runtimes.node(runtime, version, *(regular(runtimes.CONTAINERD, text) for text in files), kubelet=kubelet)


LAYOUTS: Mapping[str, tuple[Snapshot, Mapping[str, Setting]]] = {
    "kubeadm, deb": (kubeadm(), nodes.IMAGE_PULLS),
    "kubeadm, rpm": (kubeadm(flags=nodes.RPM, extra="# ours\nKUBELET_EXTRA_ARGS=--v=2\n", words="--v=2"), FLAGS),
    "a plain unit": (nodes.plain(), nodes.IMAGE_PULLS),
    "a shadowing flag that moves": (kubeadm(extra=f"KUBELET_EXTRA_ARGS={SHADOWED}\n", words=SHADOWED), SERIAL),
    "a shadowing flag in the unit": (nodes.plain(more=SHADOWED), SERIAL),
    "flags only": (nodes.flags_only(), SERIAL),
    "drop-ins": (
        nodes.with_config_dir(kubeadm(version="1.30.1", runtime="containerd"), {"10-site.conf": CONFIG_TEXT}),
        SERIAL,
    ),
    "dockershim": (over(Runtime.DOCKERSHIM, "19.3.15", kubelet="1.20.15"), DOWNLOADS),
    "cri-dockerd": (kubeadm(version="1.23.17", runtime="cri-dockerd"), nodes.IMAGE_PULLS),
    "containerd 1.7": (over(Runtime.CONTAINERD, "1.7.24", runtimes.V2), MIRRORS),
    "containerd 2.1": (over(Runtime.CONTAINERD, "2.1.0", runtimes.V3), MIRRORS),
    "containerd without a file": (over(Runtime.CONTAINERD, "1.7.24"), MIRRORS),
    "CRI-O": (over(Runtime.CRIO, "1.34.0"), settings(imagePullProgressDeadline="6m")),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_planned_file_may_be_written(name: str) -> None:
    found, wanted = LAYOUTS[name]
    got = decide(found, wanted, LENIENT)
    assert isinstance(got, Proposal), got
    assert got.change.files
    assert foreign_files(got.change) == ()
    assert foreign_units(got.change) == ()


def written(path: str, after: str, before: str = "", mode: str = "644") -> tuple[str, ...]:
    """The message about one more file in a change of the planner."""
    change, _ = proposed(kubeadm(), SERIAL)
    entry = FileChange(path, before.encode() if before else None, after.encode(), mode=mode)
    return foreign_files(replace(change, files=(entry,)))


CRON = "* * * * * root touch /tmp/owned\n"
FOREIGN = {
    "a crontab": ("/etc/cron.d/zz", CRON),
    "a crontab that sets a variable": ("/etc/cron.d/zz", f'{CRON}KUBELET_EXTRA_ARGS="--v=2"\n'),
    "a crontab among assignments": ("/etc/default/kubelet", f'KUBELET_EXTRA_ARGS="--v=2"\n{CRON}'),
    "an environment file without flags": ("/etc/environment", 'LD_PRELOAD="/tmp/evil.so"\n'),
    "another unit's drop-in": ("/etc/systemd/system/sshd.service.d/90-rollout.conf", "[Service]\nExecStart=/tmp/x\n"),
    "another drop-in of the kubelet's": ("/etc/systemd/system/kubelet.service.d/91-x.conf", "[Service]\nUser=x\n"),
    "a static pod": ("/etc/kubernetes/manifests/x.yaml", "apiVersion: v1\nkind: Pod\n"),
    "a configuration that the kubelet does not read": ("/etc/cron.d/zz", CONFIG_TEXT),
    "a crontab in place of the kubelet's configuration": (CONFIG, CRON),
    "a crontab as a drop-in": ("/etc/cron.d/99-rollout.conf", CRON),
    "keys of root": ("/root/.ssh/authorized_keys", "ssh-ed25519 AAAA me\n"),
    "a hosts.toml without hosts": ("/etc/cron.d/hosts.toml", "# nothing\n"),
    "an environment file with very many variables": (
        "/etc/default/kubelet",
        "".join(f'A{at}="--v=2"\n' for at in range(99)),
    ),
    "TOML of another program": ("/etc/foo.toml", "[service]\nrun = 'x'\n"),
    "JSON of another program": ("/etc/foo.json", '{"exec": "x"}\n'),
    "an empty file": ("/etc/nologin", ""),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_files_without_settings_are_foreign_and_named(name: str) -> None:
    path, text = FOREIGN[name]
    (said,) = written(path, text)
    assert said.startswith(f"{path}: it is not a home of a setting")


@pytest.mark.parametrize(
    "path",
    [
        "/etc/kubernetes/../cron.d/zz",
        "/var/lib/kubelet/./config.yaml",
        "/var//lib/kubelet/config.yaml",
        "/var/lib/kubelet/config.yaml/",
        "var/lib/kubelet/config.yaml",
        "/config.yaml",
        "/etc/with blank/config.yaml",
        "/etc/default/kubelet\n",
        "",
    ],
)
def test_only_plain_absolute_paths(path: str) -> None:
    change, _ = proposed(kubeadm(), SERIAL)
    entry = replace(change.files[0], path=path)
    change = replace(change, files=(entry,), config_path=path)
    (said,) = foreign_files(change)
    assert said.endswith("it is not an absolute path of plain letters")


@given(st.text(st.sampled_from("/./ab-_:@%+=,~ \n\\'é"), max_size=12))
def test_a_path_is_plain_if_the_agent_accepts_it(path: str) -> None:
    change, _ = proposed(kubeadm(), SERIAL)
    entry = replace(change.files[0], path=path)
    said = foreign_files(replace(change, files=(entry,), config_path=path))
    try:
        agent_call.status("", measure=Measure(paths=(path,)), sudo=False, deadline=1.0)
    except ValueError:
        assert said
    else:
        assert said == ()


def test_no_file_is_created_with_another_mode() -> None:
    (said,) = written(layout.DROP_IN, "[Service]\n", mode="4755")
    assert said == f"{layout.DROP_IN}: it would be created with mode 4755; rollout creates files with 644"


def test_bytes_that_are_no_text_contain_no_settings() -> None:
    entry = FileChange("/etc/x/y", None, b"\xff")
    change, _ = proposed(kubeadm(), SERIAL)
    assert len(foreign_files(replace(change, files=(entry,)))) == 1


def test_only_the_kubelet_and_runtimes_are_restarted_and_only_dockerd_is_sent_a_signal() -> None:
    change, _ = proposed(kubeadm(), SERIAL)

    def units(*units: str, hangups: tuple[str, ...] = ()) -> Change:
        return replace(change, units=units, hangups=hangups)

    known = ("containerd.service", "crio.service", "cri-docker.service", "kubelet.service")
    assert foreign_units(units(*known, hangups=("docker.service",))) == ()
    assert foreign_units(units("kubelet.service", "sshd.service")) == ("sshd.service",)
    assert foreign_units(units("docker.service")) == ("docker.service",), "its restart would end containers"
    assert foreign_units(units(hangups=("kubelet.service",))) == ("kubelet.service",)


def test_a_kubelet_with_a_path_that_the_agent_does_not_accept_is_refused_at_planning() -> None:
    path = "/etc/kubernetes//config.yaml"
    usual = kubeadm()
    files = {
        **usual.files,
        nodes.KUBEADM: regular(
            nodes.KUBEADM, nodes.KUBEADM_TEXT.format(flags=nodes.DEB).replace(f"--config={CONFIG}", f"--config={path}")
        ),
        path: regular(path, CONFIG_TEXT),
    }
    words = usual.measurement.process.command_line if usual.measurement.process else ()
    found = nodes.with_command(replace(usual, files=files), *(word.replace(CONFIG, path) for word in words))
    assert refused(found, SERIAL) == ("foreign-path", f"{path}: it is not an absolute path of plain letters")
