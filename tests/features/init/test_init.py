"""``rollout init``: a folder that ``check`` accepts, from each source; every guess is printed; nothing is overwritten."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from rollout.adapters.kubernetes import cluster, credentials
from rollout.adapters.ssh.resolve import Resolver
from rollout.app.load_playbook import shipped_templates
from rollout.app.ports import Target
from rollout.cli.main import run
from rollout.core.reading.found_nodes import FoundNode, FoundNodes
from rollout.features.init.asking import RefreshedTexts, refreshed_texts
from rollout.features.init.rules.guesses import Guessed
from rollout.features.init.words.ssh_config import ssh_config_text
from tests.adapters.test_inventory_scripts import BIN, WITH_ANSIBLE

SCRIPT = """\
#!/bin/sh
cat <<'HOSTS'
{"_meta": {"hostvars": {"h1": {"ansible_host": "10.0.0.1", "rack": "r1", "vault_password": "hunter2"},
                        "h2": {"rack": "r2", "ansible_user": "sre"}}},
 "all": {"children": ["gpu", "zone_a"]}, "gpu": {"hosts": ["h2"]}, "zone_a": {"hosts": ["h1", "h2"]}}
HOSTS
"""


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "edge"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def written(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_nodeset_becomes_a_project_of_the_folders_name(empty: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", "--nodes", "node-[001-060]"]) == 0
    told = capsys.readouterr().out
    assert "rack and zone: not known" in told
    assert "guessed apiServer: v1." in told
    assert "(60 nodes)" in told
    assert written(empty) == [
        ".gitignore",
        "inventories/edge.yaml",
        "playbooks/parallel-pulls.yaml",
        "rollout.toml",
    ]
    assert '"node-[001-060]": {}' in (empty / "inventories/edge.yaml").read_text()
    assert run(["check"]) == 0
    assert "ok: edge (60 nodes), 1 playbook" in capsys.readouterr().out


def test_names_of_a_file_may_be_nodesets_and_their_mistakes_have_places(
    empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = empty.parent / "names"
    names.write_text("n1\nn[2-3  # broken\n")
    assert run(["init", "--names", str(names)]) == 2
    assert "names:2:1" in capsys.readouterr().err
    assert written(empty) == []
    names.write_text("# ours\nn1\n\nn[2-3]  # two more\n")
    assert run(["init", "--names", str(names), "--cluster", "c", "--api-server", "v1.33.2"]) == 0
    assert (empty / "inventories/c.yaml").read_text().splitlines()[1:] == [
        'apiServer: "v1.33.2"',
        "nodes:",
        '  "n[1-3]": {}',
    ]
    assert run(["check"]) == 0


@pytest.mark.process
def test_an_ansible_inventory_gives_ssh_racks_zones_and_groups_and_nothing_else(
    empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = empty.parent / "hosts"
    script.write_text(SCRIPT)
    script.chmod(0o700)
    assert run(["init", "--ansible", str(script)]) == 0
    told = capsys.readouterr().out
    assert "guessed rack: host variable `rack`" in told
    assert "guessed zone: groups that begin with `zone`: zone_a" in told
    text = (empty / "inventories/edge.yaml").read_text()
    assert '"h1": {address: "10.0.0.1"}' in text
    assert '"h2": {user: "sre"}' in text
    assert 'racks:\n  "r1": "h1"\n  "r2": "h2"\nzones:\n  "zone_a": "r[1-2]"\n' in text
    assert "dropped 1 variable without a use here: vault_password" in told
    assert '"gpu": {nodes: "h2"}' in text
    assert "hunter2" not in text
    assert run(["check"]) == 0


def test_templates_are_copied_when_asked_for(empty: Path) -> None:
    assert run(["init", "--nodes", "n1", "--templates"]) == 0
    for name, text in shipped_templates().items():
        assert (empty / "templates" / name).read_text() == text
    assert run(["check"]) == 0


@pytest.mark.parametrize("there", ["inventories", "playbooks/mine.yaml", "templates"])
def test_a_folder_that_has_one_of_the_files_is_left_as_it_is(
    empty: Path, capsys: pytest.CaptureFixture[str], there: str
) -> None:
    path = empty / there
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine\n")
    assert run(["init", "--nodes", "n1"]) == 2
    assert f"{there.partition('/')[0]} is already here" in capsys.readouterr().err
    assert written(empty) == [there]
    assert path.read_text() == "mine\n"


def test_a_link_that_points_nowhere_is_not_written_through(empty: Path) -> None:
    (empty / "rollout.toml").symlink_to(empty.parent / "elsewhere")
    assert run(["init", "--nodes", "n1"]) == 2
    assert not (empty.parent / "elsewhere").exists()


@pytest.mark.parametrize(
    ("words", "reference"),
    [
        ([], "which-nodes"),
        (["--nodes", "n1", "--names", "x"], "which-nodes"),
        (["--kubeconfig", "k", "--lab"], "which-nodes"),
        (["--nodes", "n1", "--cluster", "a/b"], "bad-cluster-name"),
        (["--nodes", "a b"], "bad-nodeset"),
        (["--nodes", "Node_1"], "bad-node-name"),
        (["--nodes", "n1", "--refresh", "--lab"], "only-nodes-refreshed"),
        (["--nodes", "n1", "--refresh"], "no-cluster"),
        (["--nodes", "n1", "--api-server", "1.x"], "bad-version"),
        (["--names", "missing"], "file-missing"),
        (["--kubeconfig", "missing"], "no-kubeconfig"),
        (["--ansible", "missing"], "script-missing"),
    ],
)
def test_what_cannot_become_a_project_is_refused_with_a_reference(
    empty: Path, capsys: pytest.CaptureFixture[str], words: list[str], reference: str
) -> None:
    assert run(["init", *words]) == 2
    assert f"[{reference}]" in capsys.readouterr().err
    assert written(empty) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--names", "fleet.csv"], "nothing was written: duplicate address `192.0.2.1` of `n2`, already that of `n1`"),
        (["--nodes", "n1", "--api-server", "v1.99"], "nothing was written: `apiServer`: no kubelet that rollout knows"),
        (["--names", "fleet.csv", "--cluster", "c", "--refresh", "--yes"], "nothing was written: duplicate address"),
    ],
)
def test_no_place_is_told_in_a_draft_that_nobody_sees(
    empty: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    if "--refresh" in words:
        assert run(["init", "--nodes", "n3", "--cluster", "c"]) == 0
    before = {path: path.read_bytes() for path in empty.rglob("*.yaml")}
    (empty / "fleet.csv").write_text("name,ip\nn1,192.0.2.1\nn2,192.0.2.1\nn3,\n")
    assert run(["init", *words]) == 2
    err = capsys.readouterr().err
    assert f"error: {said}" in err
    assert ".yaml" not in err
    assert {path: path.read_bytes() for path in empty.rglob("*.yaml")} == before


PLUGIN = """\
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: %s, interactiveMode: Never}}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""


@pytest.mark.process
def test_a_plugin_that_hangs_is_named_and_ended_by_init_and_by_doctor(
    empty: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time is less than that of the request that needs it: else it would go on after the command."""
    assert cluster.REVIEW_SECONDS > credentials.PLUGIN_SECONDS < cluster.LIST_SECONDS
    monkeypatch.setattr(credentials, "PLUGIN_SECONDS", 1.0)
    pids = empty.parent / "pids"
    hangs = empty.parent / "hangs"
    hangs.write_text(f"#!/bin/sh\necho $$ >>{pids}\nexec sleep 3600\n")
    hangs.chmod(0o700)
    config = empty.parent / "kubeconfig"
    config.write_text(PLUGIN % hangs)
    assert run(["init", "--kubeconfig", str(config)]) == 4
    assert "the plugin hangs did not end in 1 s" in capsys.readouterr().err
    assert written(empty) == []
    assert run(["init", "--nodes", "n1", "--api-server", "v1.33.2"]) == 0
    inventory = empty / "inventories/edge.yaml"
    inventory.write_text(inventory.read_text().replace("{}", "{address: 127.0.0.1, port: 1}"))
    capsys.readouterr()
    assert run(["doctor", "--kubeconfig", str(config)]) == 4
    assert "the plugin hangs did not end in 1 s" in capsys.readouterr().out
    for pid in pids.read_text().split():
        assert not Path("/proc", pid).exists(), "it goes on"


def test_a_second_cluster_is_added_and_touches_no_file_of_the_first(
    empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["init", "--nodes", "n[1-3]", "--cluster", "one", "--api-server", "v1.33.2"]) == 0
    before = {name: (empty / name).read_text() for name in written(empty)}
    assert run(["init", "--nodes", "m[1-3]", "--cluster", "one"]) == 2
    assert "inventories/one.yaml are already here" in capsys.readouterr().err
    assert run(["init", "--nodes", "m[1-3]", "--cluster", "two", "--lab"]) == 2
    assert "rollout.toml is already here (use `rollout lab up --cluster NAME`)" in capsys.readouterr().err
    assert run(["init", "--nodes", "m[1-3]", "--cluster", "two", "--api-server", "v1.33.2"]) == 0
    told = capsys.readouterr().out
    assert "written: inventories/two.yaml (3 nodes)" in told
    assert "next: `rollout doctor --cluster two`" in told
    assert {name: (empty / name).read_text() for name in before} == before
    assert sorted({*written(empty)} - {*before}) == ["inventories/two.yaml"]
    assert run(["check"]) == 0


SITE = """\
#!/bin/sh
echo '{"_meta": {"hostvars": {}}, "all": {"vars": {"ansible_ssh_common_args": "-J gate-%s"}, "hosts": ["%s", "shared"]}}'
"""


@pytest.mark.process
def test_the_ssh_config_of_a_second_cluster_is_used_without_another_line(
    empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        script = empty.parent / f"{name}.sh"
        script.write_text(SITE % (name, name))
        script.chmod(0o700)
        init = ["init", "--ansible", str(script), "--cluster", name, "--api-server", "v1.33.2"]
        assert run(init) == 0, capsys.readouterr().err
        (empty / "inventories/._one.ssh_config").write_text(
            "Host shared\n"
        )  # as macOS leaves them: not read by `ssh_config`
    told = capsys.readouterr().out
    assert "._one" not in told
    assert "`ssh_config` in rollout.toml names it, with those of the other clusters" in told
    assert "inventories/one.ssh_config also has 1 host of it, such as shared: inventories/one.ssh_config wins" in told
    resolver = Resolver.reading(empty / "inventories/*.ssh_config")
    ways = [resolver.resolve(Target(name, name)).via for name in ("one", "two", "shared")]
    assert [str(way) for way in ways] == ["gate-one", "gate-two", "gate-one"]
    assert run(["check"]) == 0
    toml = empty / "rollout.toml"
    toml.write_text(toml.read_text().replace("*", "one"))
    (empty / "inventories/two.yaml").unlink()
    (empty / "inventories/two.ssh_config").unlink()
    assert run(init) == 0
    assert 'write `ssh_config = "inventories/*.ssh_config"` in rollout.toml' in capsys.readouterr().out


def test_what_git_must_not_keep_is_ignored_or_told(empty: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (empty / ".gitignore").write_text("*.plan.json\n")
    assert run(["init", "--nodes", "n1", "--api-server", "v1.33.2"]) == 0
    assert "add to .gitignore: .rollout/ *.snapshot.json" in capsys.readouterr().out
    assert (empty / ".gitignore").read_text() == "*.plan.json\n"


def test_nodes_that_came_and_went_are_shown_before_they_are_written(
    empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["init", "--nodes", "n[1-3]", "--api-server", "v1.33.2"]) == 0
    inventory = empty / "inventories/edge.yaml"
    mine = f"# Mine.\n{inventory.read_text()}settings: {{maxPods: 60}}  # and this\n"
    inventory.write_text(mine)
    capsys.readouterr()
    assert run(["init", "--refresh", "--nodes", "n[2-4]"]) == 10
    told = capsys.readouterr().out
    assert "came: 1 node: n4\nwent: 1 node: n1\n" in told
    assert '-  "n[1-3]": {}\n+  "n[2-4]": {}\n' in told
    assert "nothing was written; `--yes` writes it" in told
    assert inventory.read_text() == mine
    assert run(["init", "--refresh", "--nodes", "n[2-4]", "--yes"]) == 0
    assert inventory.read_text() == mine.replace("n[1-3]", "n[2-4]")
    assert run(["check"]) == 0
    capsys.readouterr()
    assert run(["init", "--refresh", "--nodes", "n[2-4]"]) == 0
    assert capsys.readouterr().out == "no change: inventories/edge.yaml has the nodes of the source\n"


def test_an_ssh_config_that_a_person_changed_is_left(empty: Path) -> None:
    source = Guessed(FoundNodes("hosts", (FoundNode("n1"), FoundNode("n2"))), (), ways={"n1": (("ProxyJump", "a"),)})
    more = replace(source, ways={**source.ways, "n2": (("ProxyJump", "b"),)})
    assert run(["init", "--nodes", "n[1-2]", "--api-server", "v1.33.2"]) == 0
    inventory = (empty / "inventories/edge.yaml").read_text()
    made, new = ssh_config_text(source), ssh_config_text(more)
    path = "inventories/edge.ssh_config"
    assert refreshed_texts("edge", more, inventory, made).texts == {path: (made, new)}
    assert refreshed_texts("edge", more, inventory, None).texts == {path: (None, new)}
    for mine in (f"{made}\nHost a\n    User me\n", made.replace("ProxyJump a", "ProxyJump c"), "Host *\n    User me\n"):
        kept = refreshed_texts("edge", more, inventory, mine)
        assert (kept.texts, kept.left) == ({}, {path: (mine, new)})
    assert refreshed_texts("edge", source, inventory, made) == RefreshedTexts({}, (), {})


@pytest.mark.process
def test_the_lines_of_an_ssh_config_that_the_source_would_change_are_printed(
    empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = empty.parent / "hosts"
    script.write_text(SCRIPT.replace('"rack": "r1"', '"rack": "r1", "ansible_ssh_common_args": "-J jump"'))
    script.chmod(0o700)
    source = ["--ansible", str(script)]
    assert run(["init", *source, "--api-server", "v1.33.2"]) == 0
    ssh_config = empty / "inventories/edge.ssh_config"
    mine = f"{ssh_config.read_text()}\nHost jump\n    User me\n"
    ssh_config.write_text(mine)
    capsys.readouterr()
    assert run(["init", "--refresh", *source, "--yes"]) == 0
    told = capsys.readouterr().out
    assert "left as it is: inventories/edge.ssh_config, which a person has changed; the source would change:" in told
    assert "-Host jump\n-    User me\n" in told
    assert ssh_config.read_text() == mine


def test_an_inventory_that_asks_its_source_itself_has_nothing_to_refresh(
    empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["init", "--nodes", "n1", "--api-server", "v1.33.2"]) == 0
    (empty / "inventories/edge.yaml").write_text(
        "cluster: edge\napiServer: v1.33.2\nnodesFrom: {ansible: {path: hosts}}\n"
    )
    assert run(["init", "--refresh", "--nodes", "n1"]) == 2
    assert "[not-refreshed]" in capsys.readouterr().err


BEHIND_A_BASTION = """\
[kube_node]
n[1:2]
[bastion]
jump ansible_host=192.0.2.9 ansible_user=ops
[k8s_cluster:children]
kube_node
[k8s_cluster:vars]
ansible_host="{{ inventory_hostname }}.{{ domain }}"
domain=example.net
ansible_ssh_common_args="-o ProxyCommand='ssh -W %h:%p {{ hostvars['jump'].ansible_user }}@{{ hostvars['jump'].ansible_host }}'"
"""


@WITH_ANSIBLE
@pytest.mark.process
def test_templates_of_a_real_inventory_are_filled_by_ansible(
    empty: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{BIN}:{os.environ['PATH']}")
    hosts = empty.parent / "hosts.ini"
    hosts.write_text(BEHIND_A_BASTION)
    assert run(["init", "--ansible", str(hosts), "--api-server", "v1.33.2"]) == 0, capsys.readouterr().err
    assert '"n[1-2]": {address: "{name}.example.net"}' in (empty / "inventories/edge.yaml").read_text()
    fragment = empty / "inventories/edge.ssh_config"
    assert fragment.read_text().endswith("\nHost n1.example.net n2.example.net\n    ProxyJump ops@192.0.2.9\n")
    endpoint = Resolver.reading(fragment).resolve(Target("n1", "n1.example.net"))
    assert str(endpoint.via) == "192.0.2.9"
    assert f"Include {fragment}" in capsys.readouterr().out
    assert 'ssh_config = "inventories/*.ssh_config"' in (empty / "rollout.toml").read_text()
    hosts.write_text(BEHIND_A_BASTION.replace("domain=example.net\n", ""))
    assert run(["init", "--refresh", "--ansible", str(hosts)]) == 2
    assert "`ansible_host` of `n1` is a template, and Ansible has no value for it" in capsys.readouterr().err
