"""Programs that print an inventory, as in practice: slow, verbose, broken, incomplete."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from rollout.adapters.node_sources import InventoryScripts
from rollout.app.load import load_cluster
from rollout.core.model.live import LiveNode
from rollout.core.reading.ansible_inventory import read_hosts
from rollout.errors import InputError
from tests.app.test_ansible_inventories import HOSTS
from tests.app.test_load import FakeFiles
from tests.controllers import until
from tests.sampling import sample

pytestmark = pytest.mark.process


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "hosts"


def write(path: Path, body: str, mode: int = 0o755) -> str:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(mode)
    return str(path)


def complaint(path: str, patience: float = 300.0, most_bytes: int = 1 << 20) -> str:
    with pytest.raises(InputError) as caught:
        InventoryScripts(patience, most_bytes).ansible(path)
    assert caught.value.exit_code == 2
    return str(caught.value).replace(str(Path(path).parent) + "/", "")


def test_a_program_is_called_with_list(script: Path) -> None:
    path = write(script, """[ "$*" = --list ] && cat && printf '{"all": {}}'""")
    assert InventoryScripts().ansible(path) == '{"all": {}}', "and its standard input is empty"


def test_it_inherits_no_descriptor_and_no_shell_reads_its_name(tmp_path: Path) -> None:
    with (tmp_path / "secret").open("w") as secret:
        os.set_inheritable(secret.fileno(), True)  # noqa: FBT003 - its signature
        path = write(tmp_path / "$(touch oops);x", f"[ ! -e /proc/self/fd/{secret.fileno()} ] && echo '{{}}'")
        assert InventoryScripts().ansible(path) == "{}\n"
    assert sorted(found.name for found in tmp_path.iterdir()) == ["$(touch oops);x", "secret"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("exit 3", "hosts: it failed (exit status 3), without a message [script-failed]"),
        ("echo one >&2; echo 'no \033[31mtoken' >&2; echo '{}'; exit 1", "hosts: it failed (exit status 1): no token [script-failed]"),
        ("kill -9 $$", "hosts: it failed (signal 9), without a message [script-failed]"),
        (r"printf '{\377}'", "hosts: its output is not UTF-8 at byte 1 [not-json]"),
        ("while :; do echo 0123456789; done", "hosts: it printed more than 1048576 bytes [script-output-too-long]"),
    ],
)  # fmt: skip
def test_failures_are_named(script: Path, body: str, said: str) -> None:
    assert complaint(write(script, body)) == said


def test_endless_standard_error_is_not_output_and_uses_no_memory(script: Path) -> None:
    path = write(script, "head -c 50000000 /dev/zero | tr '\\0' x >&2; echo '{}'")
    assert InventoryScripts(most_bytes=10).ansible(path) == "{}\n"


def test_a_program_has_no_more_than_four_gibibytes_of_memory(script: Path) -> None:
    path = write(script, f"exec {sys.executable} -c 'bytearray(5 << 30)'")
    assert complaint(path) == "hosts: it failed (exit status 1): MemoryError [script-failed]"


@pytest.mark.parametrize("what", ["pipe", "/dev/zero", "/dev/null"])
def test_what_is_no_file_is_given_to_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "hosts"
    os.mkfifo(path) if what == "pipe" else path.symlink_to(what)
    assert complaint(str(path)) == "hosts: it is not a regular file or a folder [file-unreadable]"


@pytest.mark.parametrize(
    "body",
    [
        "echo '{\"all\":'; exec sleep 86400",  # prints half a document and hangs
        "sleep 86400 & echo '{}'",  # ends, and leaves a child that holds its output open
        "exec >&- 2>&-; sleep 86400",  # prints nothing more, and does not end
    ],
)
def test_a_hanging_program_is_killed_with_its_children(script: Path, body: str) -> None:
    began = time.monotonic()
    InventoryScripts().ansible(write(script, f"echo $$ > {script}.pid; echo '{{}}'"))
    plenty = 0.5 + 10 * (time.monotonic() - began)
    path = write(script, f"echo $$ > {script}.pid\n{body}")
    assert complaint(path, patience=plenty).endswith("[script-hangs]")
    group = int(Path(f"{script}.pid").read_text())
    until(lambda: not _living(group), 60, "none of its processes is left")


def _living(group: int) -> list[list[str]]:
    found = map(_stat, Path("/proc").glob("[0-9]*"))
    return [stat for stat in found if stat[2:3] == [str(group)] and stat[0] != "Z"]


def _stat(process: Path) -> list[str]:
    """State, parent, process group …; empty for a process that has ended."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def test_a_missing_or_invalid_program_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert complaint(str(tmp_path / "none")) == "none: there is no such file [script-missing]"
    plain = write(tmp_path / "hosts", "echo", 0o644)
    assert complaint(
        plain
    ) == f"hosts: it is a script, but it is not executable (chmod +x {plain}) [script-not-executable]".replace(
        str(tmp_path) + "/", ""
    )
    ini = tmp_path / "hosts.ini"
    ini.write_text("n1\n")
    assert complaint(str(ini)) == (
        "hosts.ini: it is not a program, and ansible-inventory is not installed to read it"
        " (install Ansible: `pipx install ansible-core`, or `apt install ansible-core`; or make it a program that prints JSON for --list) [no-ansible]"
    )
    alien = tmp_path / "alien"
    alien.write_text("#!/no/such/interpreter\n")
    alien.chmod(0o755)
    assert complaint(str(alien)) == (
        "alien: it could not be started: No such file or directory"
        " (check that its first line names an installed program) [script-not-started]"
    )


class Sources(InventoryScripts):
    """The real scripts, without an API server."""

    def live(self, kubeconfig: str, context: str) -> tuple[LiveNode, ...]:
        raise NotImplementedError


def test_a_cluster_with_nodes_from_a_program(script: Path) -> None:
    path = write(script, f"cat <<'END'\n{json.dumps(HOSTS)}\nEND")
    text = f"cluster: c\napiServer: v1.34.1\nnodesFrom: {{ansible: {{path: {path}, group: kube_node, rack: rack}}}}\n"
    inventory = load_cluster(FakeFiles({"inventories/c.yaml": text}), Sources(), "c")
    assert [node.address for node in inventory.nodes.values()] == ["10.0.0.1", "10.0.0.2", "10.0.0.10"]


INI = """\
[kube_node]
n[1:2] ansible_port=2222
n3 ansible_host=10.0.0.3

[gpu]
n3

[rack_a]
n[1:2]
[rack_b]
n3

[kube_node:vars]
ansible_user=sre
"""


BIN = str(Path(sys.executable).parent)  # also found in a virtual environment that is not activated


WITH_ANSIBLE = pytest.mark.skipif(
    shutil.which("ansible-inventory", path=f"{BIN}:{os.environ['PATH']}") is None,
    reason="NOT TESTED with Ansible: ansible-inventory is not installed",
)


@WITH_ANSIBLE
def test_files_for_ansible_are_read_by_ansible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{BIN}:{os.environ['PATH']}")
    (tmp_path / "hosts.ini").write_text(INI)
    source = f"{{path: {tmp_path}/hosts.ini, group: kube_node, rackGroups: rack_}}"
    text = f"cluster: c\napiServer: v1.34.1\nnodesFrom: {{ansible: {source}}}\n"
    inventory = load_cluster(FakeFiles({"inventories/c.yaml": text}), Sources(), "c")
    found = [
        (node.name, node.address, node.user, node.port, node.rack, node.groups) for node in inventory.nodes.values()
    ]
    assert found == [
        ("n1", "n1", "sre", 2222, "rack_a", ("kube_node",)),
        ("n2", "n2", "sre", 2222, "rack_a", ("kube_node",)),
        ("n3", "10.0.0.3", "sre", None, "rack_b", ("gpu", "kube_node")),
    ]


@WITH_ANSIBLE
def test_an_inventory_that_ansible_reads_in_part_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything after the bad line would be lost, for example a group of control-plane nodes."""
    monkeypatch.setenv("PATH", f"{BIN}:{os.environ['PATH']}")
    folder = tmp_path / "inventory"
    folder.mkdir()
    (folder / "good.ini").write_text("[kube_node]\nn1\n")
    InventoryScripts().ansible(str(folder))
    (folder / "hosts.ini").write_text("[kube_node]\nn2 oops\n[control-plane]\nc1\n")
    said = complaint(str(folder))
    assert "hosts.ini" in said
    assert "Expected key=value host variable assignment, got: oops" in said


VARIABLES = ("ansible_user", "ansible_port", "ansible_host", "rack")


def drawn(random: Random) -> dict[str, object]:
    """Groups in groups, each host in some of them; variables and priorities; with or without `all` and `ungrouped`."""
    names = [f"{kind}{number}" for kind in "aBz" for number in range(1, 5)]
    hosts = [f"n{number}" for number in range(1, 21)]
    random.shuffle(names)
    ends = [name for name in ("all", "ungrouped") if random.random() < 0.7]
    document: dict[str, object] = {}
    for at, name in enumerate([*names, *ends]):
        variables: dict[str, object] = {key: f"of {name}" for key in VARIABLES if random.random() < 0.3}
        if random.random() < 0.2:
            variables["ansible_group_priority"] = random.choice((0, 2, "10", -1))
        group: dict[str, object] = {"hosts": random.choices(hosts, k=random.randint(0, 3)), "vars": variables}
        if name in names and random.random() < 0.5:
            group["children"] = random.choices(names[at + 1 :], k=min(2, len(names) - at - 1))
        document[name] = group["hosts"] if random.random() < 0.1 else group
    own = {host: {key: f"of {host}" for key in VARIABLES if random.random() < 0.3} for host in hosts[::4]}
    return {"_meta": {"hostvars": own}, **document}


@WITH_ANSIBLE
@pytest.mark.parametrize("seed", sample("ansible_inventories", range(60), 3))
def test_variables_of_a_program_are_those_of_ansible(script: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setenv("PATH", f"{BIN}:{os.environ['PATH']}")
    document = drawn(Random(f"ansible/{seed}"))  # noqa: S311 - reproducible on purpose
    path = write(script, f"cat <<'END'\n{json.dumps(document)}\nEND")
    done = subprocess.run(["ansible-inventory", "-i", path, "--list"], capture_output=True, text=True, check=True)
    theirs = json.loads(done.stdout)["_meta"]["hostvars"]
    ours = read_hosts(InventoryScripts().ansible(path), path)
    for host in ours.groups_of:
        found = {key: value for key in VARIABLES if (value := ours.value(host, key)) is not None}
        assert found == {key: theirs[host][key] for key in VARIABLES if key in theirs.get(host, {})}, (host, document)
