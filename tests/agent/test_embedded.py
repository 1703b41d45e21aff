"""k3s and RKE2: their unit has the kubelet, as a child or in its own process. What the node shows decides, never a name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from rollout.core.model.snapshot import Snapshot
from tests.agent.node import Node

pytestmark = pytest.mark.process

RKE2, K3S = "rke2-agent.service", "k3s-agent.service"
MAIN, CHILD = 100, 201


def without_kubelet_unit(node: Node) -> None:
    node.at("/etc/systemd/system/kubelet.service").unlink()
    node.at("/run/standin/pid.100.running").unlink()


def enabled(node: Node, unit: str, *, running: bool = True) -> None:
    wants = node.at("/etc/systemd/system/multi-user.target.wants")
    wants.mkdir(exist_ok=True)
    (wants / unit).symlink_to(f"/usr/local/lib/systemd/system/{unit}")
    if running:
        node.standin(f"{unit}.{MAIN}.running")
        units = node.at("/run/systemd/units")
        units.mkdir(parents=True, exist_ok=True)
        (units / f"invocation:{unit}").symlink_to("0" * 32)


def process(node: Node, pid: int, name: str, parent: int, *words: str) -> None:
    node.write(f"/proc/{pid}/stat", f"{pid} ({name}) S {parent} {pid} {pid} 0 -1 0 {'0 ' * 12}1000 0 0\n".encode())
    node.write(f"/proc/{pid}/cmdline", "".join(f"{word}\0" for word in words).encode())


def kubelet_words(name: str) -> tuple[str, ...]:
    home = f"/var/lib/rancher/{name}"
    config = f"--config-dir={home}/agent/etc/kubelet.conf.d"
    return f"{home}/data/v1/bin/kubelet", config, f"--kubeconfig={home}/agent/kubelet.kubeconfig", "--node-labels="


@pytest.fixture
def rke2(node: Node) -> Node:
    without_kubelet_unit(node)
    enabled(node, RKE2)
    process(node, MAIN, "rke2", 1, "/usr/local/bin/rke2", "agent")
    process(node, CHILD, "kubelet", MAIN, *kubelet_words("rke2"))
    process(node, 202, "containerd", MAIN, "containerd")
    process(node, 203, "kubelet", 77, "kubelet")  # of others
    node.write("/etc/rancher/rke2/config.yaml", b"server: https://192.0.2.1\n")
    node.write("/etc/rancher/rke2/config.yaml.d/50-site.yaml", b"debug: true\n")
    node.write("/var/lib/rancher/rke2/agent/etc/kubelet.conf.d/00-rke2-defaults.conf", b"kind: KubeletConfiguration\n")
    return node


def read(node: Node) -> Snapshot:
    found = node.snapshot()
    assert isinstance(found, Snapshot), found
    return found


def test_the_child_of_rke2s_process_is_the_kubelet(rke2: Node) -> None:
    measured = read(rke2).measurement
    assert measured.unit is not None
    assert measured.process is not None
    assert (measured.unit.name, measured.unit.properties["MainPID"]) == (RKE2, str(MAIN))
    assert (measured.process.pid, measured.unit.kubelet_pid) == (CHILD, str(CHILD))
    assert measured.process.command_line == kubelet_words("rke2")


def test_its_configuration_files_are_shown_and_a_change_may_write_ours(rke2: Node) -> None:
    files = read(rke2).files
    assert files["/etc/rancher/rke2/config.yaml.d/50-site.yaml"].content == b'"debug": "<redacted>"\n'
    assert files["/etc/rancher/rke2/config.yaml.d/99-rollout.yaml"].kind == "absent"
    assert "/var/lib/rancher/rke2/agent/etc/kubelet.conf.d/00-rke2-defaults.conf" in files


def test_a_drop_in_that_it_copies_at_its_start_is_not_edited_since(rke2: Node) -> None:
    folder = "/var/lib/rancher/rke2/agent/etc/kubelet.conf.d"
    copies = {
        f"{folder}/00-rke2-defaults.conf",
        f"{folder}/10-cli-config.conf",
        f"{folder}/20-cli-config-dir/50-a.conf",
    }
    site = f"{folder}/50-site.conf"
    rke2.show(10_000_000)
    rke2.kubelet_started(600)  # all files of this test are written after that
    for path in (*copies, site):
        rke2.write(path, b"kind: KubeletConfiguration\n")
    found = read(rke2)
    assert copies <= found.files.keys()
    stale = {entry.path for entry in found.stale}
    assert site in stale
    assert not stale & copies


@pytest.mark.parametrize(
    "text",
    [
        "kubelet-arg:\n- v=2\n- config=/etc/site/kubelet\n- 'config-dir=/etc/site/d/'\n",
        'kubelet-arg: ["--config=/etc/site/kubelet","config-dir=/etc/site/d"] # both\n',
    ],
)
def test_what_its_arguments_name_is_read_by_it_and_may_be_edited_since(rke2: Node, text: str) -> None:
    rke2.show(10_000_000)
    rke2.kubelet_started(600)  # all files of this test are written after that
    rke2.write("/etc/rancher/rke2/config.yaml.d/60-more.yaml", text.encode())
    named = {"/etc/site/kubelet", "/etc/site/d/50-a.conf"}
    for path in named:
        rke2.write(path, b"kind: KubeletConfiguration\n")
    found = read(rke2)
    assert named <= {entry.path for entry in found.stale}


def test_the_configuration_of_other_programs_is_not_read(rke2: Node) -> None:
    rke2.show(10_000_000)
    rke2.kubelet_started(600)
    others = tuple(f"/etc/site/{number}" for number in range(6))
    text = (
        "# config={0}\nkube-apiserver-arg: [encryption-provider-config={1}]\nkubelet-arg+:\n- v=2 # config={2}\n"
        "- image-credential-provider-config={3}\n# - config={4}\n- config=/etc/site/kubelet\nkube-scheduler-arg:\n- config={5}\n"
    )
    rke2.write("/etc/rancher/rke2/config.yaml.d/60-more.yaml", text.format(*others).encode())
    for path in (*others, "/etc/site/kubelet"):
        rke2.write(path, b"kind: KubeletConfiguration\n")
    found = read(rke2)
    assert {"/etc/site/kubelet"} == {path for path in found.files if path.startswith("/etc/site/")}
    assert {"/etc/site/kubelet"} == {each.path for each in found.stale if each.path.startswith("/etc/site/")}


def test_without_a_child_or_with_two_of_them_there_is_no_kubelet(rke2: Node) -> None:
    process(rke2, 204, "kubelet", MAIN, "kubelet")
    two = read(rke2).measurement
    assert (two.process, two.unit and two.unit.kubelet_pid) == (None, "0")
    for pid in (CHILD, 204):
        rke2.at(f"/proc/{pid}/stat").unlink()
    assert read(rke2).measurement.process is None


def test_pulls_of_its_own_runtime_are_those_since_its_last_start(rke2: Node) -> None:
    begin = 'time="2026-11-27T10:00:00Z" level=info msg="starting containerd" revision=x version=v2.1.4-k3s1\n'
    pull = 'time="2026-11-27T10:00:01Z" level=info msg="PullImage \\"{}\\""\n'
    end = 'time="2026-11-27T10:00:02Z" level=info msg="PullImage \\"{}\\" returns image reference \\"sha256:1\\""\n'
    log = "/var/lib/rancher/rke2/agent/containerd/containerd.log"
    assert read(rke2).measurement.pulls is None, "without its log nothing is known"
    rke2.write(log, pull.format("a:1").encode())
    assert read(rke2).measurement.pulls is None, "nor where the log does not begin with its start"
    lines = pull.format("a:1") + begin + pull.format("b:1") + pull.format("c:1") + end.format("b:1")
    rke2.write(log, lines.encode())
    assert read(rke2).measurement.pulls == ("c:1",)


@pytest.mark.parametrize(
    ("before", "since", "pulls"),
    [
        (("other", "PullImage a:1"), ("other", "PullImage b:1", "PullImage c:1", "end b:1"), ("c:1",)),
        (("PullImage a:1",), ("other",), ()),
        ((), ("other", "PullImage b:1"), None),
        (("PullImage a:1",), ("warn",), None),
        (("PullImage a:1",), (), None),
        (("other",), ("strange zone",), None),
        (("other",), ("other", "PullImage zone"), None),
    ],
    ids=[
        "whole",
        "no pull since",
        "begins too late",
        "no information",
        "nothing since",
        "another zone",
        "a pull of another zone",
    ],
)
def test_without_a_line_of_its_start_the_time_of_the_log_shows_whether_it_is_whole(
    rke2: Node, before: tuple[str, ...], since: tuple[str, ...], pulls: tuple[str, ...] | None
) -> None:
    rke2.show(600)  # its unit started then
    now = datetime.now(UTC).astimezone()

    def line(word: str, age: int) -> str:
        at = (now - timedelta(seconds=age)).isoformat(timespec="microseconds").replace("+00:00", "Z")
        name = word.partition(" ")[2]
        text = {
            "PullImage": f'level=info msg="PullImage \\"{name}\\""',
            "end": f'level=info msg="PullImage \\"{name}\\" returns image reference \\"sha256:1\\""',
            "warn": 'level=warning msg="odd"',
        }.get(word.partition(" ")[0], 'level=info msg="StopPodSandbox returns successfully"')
        return f'time="{"2099-01-01T00:00:00+13:45" if name == "zone" else at}" {text}\n'

    text = "".join([*(line(word, 3600) for word in before), *(line(word, 60) for word in since)])
    rke2.write("/var/lib/rancher/rke2/agent/containerd/containerd.log", text.encode())
    assert read(rke2).measurement.pulls == pulls


def test_a_unit_of_the_kubelet_that_exists_is_the_kubelets(rke2: Node) -> None:
    rke2.write("/etc/systemd/system/kubelet.service", b"[Service]\n")
    measured = read(rke2).measurement
    assert measured.unit is not None
    assert measured.unit.name == "kubelet.service"


def test_of_two_units_the_one_that_runs_counts_and_of_two_that_do_not_none_does(node: Node) -> None:
    without_kubelet_unit(node)
    enabled(node, RKE2, running=False)
    unit = read(node).measurement.unit
    assert unit is not None
    assert unit.name == RKE2, "the only one that is enabled"
    enabled(node, "rke2-server.service", running=False)
    unit = read(node).measurement.unit
    assert unit is not None
    assert unit.name == "kubelet.service"


def test_the_arguments_of_k3s_are_those_that_it_logged_itself(node: Node) -> None:
    without_kubelet_unit(node)
    enabled(node, K3S)
    process(node, MAIN, "k3s-agent", 1, "/usr/local/bin/k3s", "agent")
    measured = read(node).measurement
    assert measured.process is not None
    assert measured.process.command_line == ("/usr/local/bin/k3s",), "nothing is made up"
    words = kubelet_words("k3s")[1:]
    node.standin(
        "journal.cat",
        'time="2026-11-27T10:00:00Z" level=info msg="pod says Running kubelet --x=y "\n'
        f'time="2026-11-27T10:00:00Z" level=info msg="Running kubelet {" ".join(words)} "\n',
    )
    measured = read(node).measurement
    assert measured.process is not None
    assert measured.process.command_line == ("kubelet", *words)
