"""The lab from outside: real SSH by OpenSSH and paramiko, separate nodes, nothing left behind."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rollout.errors import StateError, UsageError
from rollout.lab import control, launch
from tests.adapters.ssh.sshd import lasting
from tests.controllers import until
from tests.lab.labs import Lab, connect, labels, spec

pytestmark = pytest.mark.process


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Lab]:
    """Two nodes; their process is started as a user starts it, and bears the lab's name."""
    made = Lab(tmp_path / "small", spec(2))
    launch.up(made.spec, made.directory)
    yield made
    if made.directory.exists():
        launch.down(made.directory)


def test_every_node_answers_under_its_own_name(lab: Lab) -> None:
    for number, node in enumerate(lab.spec.nodes):
        answer = lab.ssh(node.name, "hostname; kubelet --version; systemctl is-active kubelet; exit 3")
        version = labels(number)["kubeletVersion"]
        assert answer.stdout.decode() == f"{node.name}\nKubernetes {version}\nactive\n"
        assert (answer.returncode, answer.stderr) == (3, b"")


def test_the_inventorys_address_leads_to_the_node_too(lab: Lab) -> None:
    assert lab.ssh("10.0.0.3", "hostname").stdout == b"lab-03\n"


def test_runtimes_by_label(lab: Lab) -> None:
    line = "for p in docker containerd cri-dockerd; do command -v $p >/dev/null && $p --version | cut -d' ' -f1; done; true"
    assert lab.ssh("lab-01", line).stdout.decode().split() == ["Docker", "containerd"]
    assert lab.ssh("lab-04", line).stdout.decode().split() == ["Docker", "containerd", "cri-dockerd"]
    assert lab.ssh("lab-05", line).stdout.decode().split() == ["containerd"]


def test_paramiko_many_commands_on_one_connection(lab: Lab) -> None:
    with connect(lab, "lab-02") as client:
        for number in range(20):
            _, stdout, _ = client.exec_command(f"echo {number}")
            assert stdout.read() == f"{number}\n".encode()
            assert stdout.channel.recv_exit_status() == 0


def test_input_and_output_of_megabytes(lab: Lab) -> None:
    data = os.urandom(3_000_000)
    answer = lab.ssh("lab-03", "cat; echo done >&2", data)
    assert answer.stdout == data
    assert answer.stderr == b"done\n"


def test_a_reader_that_stops_does_not_stop_the_others(lab: Lab) -> None:
    with connect(lab, "lab-02") as client:
        _, stdout, _ = client.exec_command("head -c 8000000 /dev/zero")
        until(stdout.channel.recv_ready, 60, "the buffers are full, because no one reads")
        assert lab.ssh("lab-03", "echo here").stdout == b"here\n"
        assert len(stdout.read()) == 8_000_000


def test_a_hundred_sessions_at_once(lab: Lab) -> None:
    all_there = threading.Barrier(32, timeout=300)

    def one(number: int) -> bytes:
        with connect(lab, lab.spec.nodes[number % 8].name) as client:
            stdin, stdout, _ = client.exec_command("cat; systemctl show -p MainPID --value kubelet; hostname")
            all_there.wait()
            stdin.channel.shutdown_write()
            return stdout.read()

    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(one, range(96)))
    assert [answer.split()[1].decode() for answer in answers] == [lab.spec.nodes[n % 8].name for n in range(96)]


def test_a_command_outlives_its_connection(lab: Lab, tmp_path: Path) -> None:
    begun, flag = tmp_path / "begun", tmp_path / "outlived"
    with lasting(tmp_path) as until_we_have_gone:
        with connect(lab, "lab-02") as client:
            line = f"trap '' HUP PIPE; touch {begun}; {until_we_have_gone}; systemctl is-active kubelet >{flag}"
            client.exec_command(line)
            until(begun.exists, 60, "it runs")
        until(
            lambda: not control.ask(lab.directory, {"op": "status"})["connections"],
            60,
            "the node has seen the disconnect",
        )
    until(lambda: flag.exists() and flag.read_text(encoding="utf-8") == "active\n", 60, "it has continued")


def test_a_killed_stand_in_does_not_confuse_the_next(lab: Lab) -> None:
    line = "for i in 1 2 3 4 5 6 7 8; do timeout -s KILL 0.00$i systemctl show kubelet >/dev/null; done; systemctl is-active kubelet"
    assert lab.ssh("lab-03", line).stdout.splitlines()[-1] == b"active"


def test_two_nodes_do_not_see_each_others_files(lab: Lab) -> None:
    lab.ssh(
        "lab-04",
        "echo mine >>$ROLLOUT_ROOT/etc/default/kubelet; echo x >$ROLLOUT_ROOT/tmp/x; touch $ROLLOUT_ROOT/var/lib/kubelet/y",
    )
    other = lab.root("lab-05")
    assert "mine" not in (other / "etc/default/kubelet").read_text(encoding="utf-8")
    assert not (other / "tmp/x").exists()
    ids = {(lab.root(node.name) / path).read_text() for node in lab.spec.nodes for path in ("etc/machine-id", BOOT_ID)}
    assert len(ids) == 16
    assert lab.ssh("lab-04", 'printf %s "$PATH"').stdout.startswith(str(lab.directory).encode())
    (lab.root("lab-04") / "etc/default/kubelet").write_text("KUBELET_EXTRA_ARGS=\n", encoding="utf-8")


BOOT_ID = "proc/sys/kernel/random/boot_id"


def test_only_the_labs_key_and_only_the_right_host_key(lab: Lab, tmp_path: Path) -> None:
    stranger = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(stranger)], check=True)
    answer = lab.ssh("lab-01", "true", b"", "-o", f"IdentityFile={stranger}", "-o", "IdentityAgent=none")
    assert answer.returncode == 0  # the lab's own key is offered as well
    config = (
        (lab.directory / "ssh_config")
        .read_text(encoding="utf-8")
        .replace(f'"{lab.directory}/id_ed25519"', str(stranger))
    )
    (tmp_path / "config").write_text(config, encoding="utf-8")
    denied = subprocess.run(["ssh", "-F", str(tmp_path / "config"), "lab-01", "true"], capture_output=True, check=False)
    assert b"Permission denied (publickey)" in denied.stderr
    known = (lab.directory / "known_hosts").read_text(encoding="utf-8").splitlines()
    assert len({line.split()[2] for line in known}) == 8


def test_it_is_private_and_on_loopback_only(lab: Lab) -> None:
    assert stat.S_IMODE(lab.directory.stat().st_mode) == 0o700
    for name in ("id_ed25519", control.NAME):
        assert stat.S_IMODE((lab.directory / name).stat().st_mode) == 0o600
    assert all(node.address.startswith("127.64.") for node in lab.spec.nodes)


def test_it_ends_and_leaves_nothing(small: Lab, tmp_path: Path) -> None:
    pid = json.loads((small.directory / "lab.json").read_text(encoding="utf-8"))["pid"]
    begun = tmp_path / "begun"
    connect(small, "lab-01").exec_command(f"trap '' HUP PIPE TERM; touch {begun}; sleep 300; sleep 300")
    until(begun.exists, 60, "it runs")
    launch.down(small.directory)
    assert not small.directory.exists()
    assert not Path(f"/proc/{pid}/cmdline").exists() or not Path(f"/proc/{pid}/cmdline").read_bytes()
    assert not processes(str(small.directory))


def test_it_ends_by_itself_when_its_directory_is_removed(small: Lab) -> None:
    port = json.loads((small.directory / "lab.json").read_text(encoding="utf-8"))["port"]
    shutil.rmtree(small.directory)
    until(lambda: not processes(str(small.directory)), 60, "all of its processes have ended")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((small.spec.nodes[0].address, port), 2)


def processes(word: str) -> list[str]:
    """Processes with the word in their environment or their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if word.encode() in (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes():
                    found.append(entry.name)
            except OSError:
                continue
    return found


def test_a_path_that_a_shell_would_split_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        launch.up(spec(1), tmp_path / "my lab")
    assert not (tmp_path / "my lab").exists()


def test_a_foreign_directory_is_never_touched(tmp_path: Path, small: Lab) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").touch()
    with pytest.raises(UsageError):
        launch.up(spec(1), tmp_path / "mine")
    with pytest.raises(StateError):
        launch.down(tmp_path / "mine")
    with pytest.raises(StateError, match="runs in"):
        launch.up(spec(1), small.directory)
    assert (tmp_path / "mine/file").exists()


def test_a_command_line_too_long_is_declined(lab: Lab) -> None:
    with connect(lab, "lab-02") as client:
        _, stdout, stderr = client.exec_command(f"true {'x' * 200_000}")
        assert stdout.channel.recv_exit_status() == 255
        assert b"cannot start" in stderr.read()
