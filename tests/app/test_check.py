"""Check: every mistake in every file, and nothing raised."""

from __future__ import annotations

import pytest

from rollout.app.check import check
from rollout.core.model.snapshot import FleetSnapshot
from tests.app.test_load import INVENTORY, PLAYBOOK, TEMPLATES, FakeFiles, FakeSources
from tests.kubelet import nodes


def test_nothing_wrong() -> None:
    checked = check(
        FakeFiles({"inventories/c.yaml": INVENTORY, "playbooks/p.yaml": PLAYBOOK, **TEMPLATES}), FakeSources()
    )
    assert checked.problems == ()
    assert [inventory.cluster for inventory in checked.inventories] == ["c"]
    assert [playbook.name for playbook in checked.playbooks] == ["p"]
    assert len(checked.templates) == 3


def test_all_files_are_checked_whatever_is_wrong_with_one() -> None:
    files = {
        "inventories/a.yaml": "",
        "inventories/b.yaml": INVENTORY.replace("cluster", "clusster"),
        "inventories/c.yaml": INVENTORY,
        "playbooks/p.yaml": PLAYBOOK + "keep: 0\n",
        **TEMPLATES,
        "templates/extra.j2": "{{ nodde }}",
    }
    checked = check(FakeFiles(files), FakeSources())
    assert [str(problem) for problem in checked.problems] == [
        "inventories/a.yaml:1:1: the file is empty [wrong-type]",
        "inventories/b.yaml:1:1: `cluster` is missing [missing-key]",
        "inventories/b.yaml:1:1: unknown key `clusster` (did you mean `cluster`?) [unknown-key]",
        "playbooks/p.yaml:3:7: `keep` must be at least 1, not 0 [out-of-range]",
        "templates/extra.j2:1:4: undefined variable `nodde` (did you mean `node`?) [undefined-variable]",
    ]
    assert [inventory.cluster for inventory in checked.inventories] == ["c"]


def test_an_unusable_file_name_is_a_mistake() -> None:
    checked = check(FakeFiles({"inventories/a b.yaml": INVENTORY}), FakeSources())
    assert [problem.reference for problem in checked.problems] == ["unknown-cluster"]


def test_the_wrong_directory_is_a_mistake() -> None:
    assert [problem.reference for problem in check(FakeFiles({}), FakeSources()).problems] == ["nothing-to-check"]


def test_a_mistake_in_a_template_of_two_playbooks_is_reported_once() -> None:
    wrong = {**TEMPLATES, "templates/kubelet-flags.env.j2": "{{ varable }}\n"}
    playbooks = {"playbooks/p.yaml": PLAYBOOK, "playbooks/q.yaml": PLAYBOOK.replace("p", "q", 1)}
    problems = check(FakeFiles({**playbooks, **wrong}), FakeSources()).problems
    assert [str(problem) for problem in problems if problem.place and "flags" in problem.place.file] == [
        "templates/kubelet-flags.env.j2:1:4: undefined variable `varable` (did you mean `variable`?) [undefined-variable]"
    ]


def test_a_playbook_that_an_inventory_names_must_exist() -> None:
    files = {"inventories/c.yaml": f"{INVENTORY}playbook: q\n", "playbooks/p.yaml": PLAYBOOK, **TEMPLATES}
    checked = check(FakeFiles(files), FakeSources())
    (problem,) = checked.problems
    assert (problem.reference, str(problem.place).partition(":")[0]) == ("playbook-missing", "inventories/c.yaml")
    assert "the inventory names the playbook `q`, but playbooks has no such file" in problem.message
    assert (
        check(FakeFiles({**files, "playbooks/q.yaml": PLAYBOOK.replace("name: p", "name: q")}), FakeSources()).problems
        == ()
    )


GATES = """gates:
  wave:
    - {command: [./bin/page-someone, --wave]}
    - command: [curl, -f]
    - {http: "https://example.net"}
"""


def test_a_program_of_a_wave_gate_that_cannot_be_run_is_a_mistake() -> None:
    """A playbook with another mistake is looked at, too."""
    files = {"inventories/c.yaml": INVENTORY, "playbooks/p.yaml": f"{PLAYBOOK}keep: 0\n{GATES}", **TEMPLATES}

    def why_not_run(program: str) -> str:
        return "no such file" if program.startswith(".") else ""

    problems = check(FakeFiles(files), FakeSources(), why_not_run).problems
    assert [str(problem) for problem in problems] == [
        "playbooks/p.yaml:3:7: `keep` must be at least 1, not 0 [out-of-range]",
        (
            "playbooks/p.yaml:6:18: the command of a wave gate, `./bin/page-someone`, cannot be run on this machine:"
            " no such file [gate-command-missing]"
        ),
    ]


# ``check`` finds what ``plan`` must refuse because of a template or a setting, before any node is read.


TWO_KINDS = """\
cluster: c
apiServer: v1.30.2
playbook: p
nodes: {'n[1-4]': }
groups:
  gpu: {nodes: n4, labels: {gpu: "true"}}
"""
CONFIG, FLAGS, DROP_IN = (
    f"templates/{name}" for name in ("kubelet-config.yaml.j2", "kubelet-flags.env.j2", "kubelet-drop-in.conf.j2")
)
LOOP = "{% for name in fields %}\n{{ name }}: {{ fields[name] | yaml }}\n{% endfor %}\n"
ARGUMENTS = '{{ variable }}={{ arguments | join(" ") }}'
KUBEADM = "kubelets 1.27, 1.28, 1.29 and 1.30 (kubeadm-deb) of c"
PLAIN = "kubelets 1.27, 1.28, 1.29 and 1.30 (plain) of c"
MODELS = "(judged by nodes as kubeadm leaves them; with --snapshot FILE by your nodes' own files)"


def complaints(
    settings: str = "maxPods: 40",
    *,
    inventory: str = TWO_KINDS,
    playbook: str = "",
    fleet: FleetSnapshot | None = None,
    **templates: str,
) -> list[str]:
    """``config``, ``flags`` and ``drop_in`` replace the shipped templates."""
    files = {"inventories/c.yaml": inventory, "playbooks/p.yaml": f"name: p\nsettings: {{{settings}}}\n{playbook}"}
    said = {CONFIG: "config", FLAGS: "flags", DROP_IN: "drop_in"}
    texts = {path: templates.get(said[path], text) for path, text in TEMPLATES.items()}
    problems = check(FakeFiles({**files, **texts}), FakeSources(), fleet=fleet).problems
    return [str(problem) for problem in problems]


def test_the_shipped_files_are_right_for_every_kind() -> None:
    assert complaints("maxPods: 40, --v: 4, serializeImagePulls: false") == []


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        (LOOP + "a: [1\nb: 2\n", f"{CONFIG}:5:1: invalid template output: not readable YAML: expected ',' or ']', but got ':' (line 3, column 2)"),
        (LOOP + "\n# more\na: [1\n\n", f"{CONFIG}:6:1: invalid template output: not readable YAML: expected ',' or ']', but got '<stream end>' (line 6, column 1)"),
        ("# the fields\n{% for name in fields %}\n{{ name }}\n{% endfor %}\n", f"{CONFIG}:1:1: invalid template output: the file's root is not a map"),
        ("{# fields #}\n{% set all = fields %}\nmaxOpenFiles: 3\n", f"{CONFIG}:2:1: the template drops the setting maxPods"),
        ("maxPods: 41 # {{ fields }}\n", f"{CONFIG}:1:1: the template renders maxPods: 41, the setting is 40"),
        (LOOP + "\nmaxpods: 40\n", f"{CONFIG}:5:1: the template renders maxpods: unknown field for kubelet 1.30"),
        (LOOP + "podPidsLimit: many\n", f'{CONFIG}:4:1: podPidsLimit takes a whole number, not "many"'),
    ],
)  # fmt: skip
def test_a_mistake_in_a_template_of_fields_has_its_line(config: str, complaint: str) -> None:
    assert complaints(config=config) == [
        f"{complaint}; this concerns every kind of node of c [template-not-understood]"
    ]


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ("\n{{ variable }}=--node-status-max-images=7\n", f"{FLAGS}:2:1: the template drops --v, which is among `arguments`"),
        ("{{ variable }}=\n{# {{ arguments }} #}\n", f"{FLAGS}:1:1: the template drops --v, which is among `arguments`"),
        (ARGUMENTS + " --v=9\n", f"{FLAGS}:1:1: the template sets --v=9, `arguments` has --v=3"),
        (ARGUMENTS + "\n\nOTHER=1\n", f"{FLAGS}:3:1: the template sets 'OTHER'"),
        (ARGUMENTS + " --config=/x\n", f"{FLAGS}:1:1: the template adds --config: rollout does not manage it"),
        ("{% set more = '--no-such' %}\n" + ARGUMENTS + " {{ more }}=3\n", f"{FLAGS}:1:1: the template adds --no-such: unknown flag for kubelet 1.30"),
    ],
)  # fmt: skip
def test_a_template_of_flags_is_tried_even_if_the_playbook_has_no_flags(flags: str, complaint: str) -> None:
    assert complaints(flags=flags) == [f"{complaint}; this concerns {KUBEADM} [template-not-understood]"]


@pytest.mark.parametrize(
    ("drop_in", "complaint"),
    [
        ("[Service]\nExecStart=\nExecStart={{ exec_start }} --v=9\n", f"{DROP_IN}:2:1: the template would start another command than `exec_start`"),
        ("[Service]\n\nExecStart={{ exec_start }}\n", f"{DROP_IN}:3:1: invalid template output: the unit has 2 ExecStart= commands: kubelet.service (line 2), {nodes.DROP_IN} (line 3)"),
    ],
)  # fmt: skip
def test_a_drop_in_concerns_plain_units(drop_in: str, complaint: str) -> None:
    assert complaints(drop_in=drop_in) == [f"{complaint}; this concerns {PLAIN} [template-not-understood]"]


def test_a_branch_for_some_nodes_is_tried_on_one_of_them() -> None:
    config = LOOP + "# {{ node.name }}\n{% if node.labels['gpu'] is defined %}\nmaxPodz: 1\n{% endif %}\n"
    (said,) = complaints(config=config)
    assert said.startswith(f"{CONFIG}:6:1: the template renders maxPodz: unknown field for kubelet 1.30")
    assert said.endswith("; this concerns every kind of node of c, such as n4 [template-not-understood]")


def test_a_missing_label_is_reported_once() -> None:
    (said,) = complaints(config=LOOP + "x: {{ node.labels['disk'] }}\n")
    assert said.startswith(f"{CONFIG}:4:1: ")
    assert said.endswith("; this concerns every kind of node of c [template-failed]")


@pytest.mark.parametrize(
    ("settings", "column", "complaint"),
    [
        ("evictionHard: {memory.availble: 200Mi}", 12, "failed to run Kubelet: unsupported eviction signal memory.availble"),
        ("evictionSoft: {memory.available: 10%}", 12, "failed to run Kubelet: failed to create kubelet: grace period must be specified for the soft eviction threshold memory.available"),
        ("maxPods: 9, shutdownGracePeriod: 10s, shutdownGracePeriodCriticalPods: 20s", 50, "failed to validate kubelet configuration, error: invalid configuration: shutdownGracePeriodCriticalPods {20s} must be <= shutdownGracePeriod {10s}"),
        ("featureGates: {NoSuchGate: true}", 12, "failed to set feature gates from initial flags-based config: unrecognized feature gate: NoSuchGate"),
    ],
)  # fmt: skip
def test_a_setting_that_stops_the_kubelet_is_reported_with_its_place(
    settings: str, column: int, complaint: str
) -> None:
    (said,) = complaints(settings)
    where = "this concerns every kind of node of c"
    assert said == (
        f"playbooks/p.yaml:2:{column}: the kubelet would not start: {complaint}; {where} {MODELS} [kubelet-would-not-start]"
    )


def test_settings_of_several_levels_are_tried_together() -> None:
    inventory = TWO_KINDS.replace('labels: {gpu: "true"}', "settings: {shutdownGracePeriod: 5s}")
    both = "shutdownGracePeriod: 30s, shutdownGracePeriodCriticalPods: 10s"
    (said,) = complaints(both, inventory=inventory)
    assert said.startswith("playbooks/p.yaml:2:")
    assert "this concerns every kind of node of c, such as n4 (" in said


def test_minors_follow_the_api_server_unless_nodes_declare_theirs() -> None:
    playbook = "seccompDefault: true"
    assert "this concerns kubelets 1.23 and 1.24 of c (" in complaints(playbook, inventory=_server("v1.25.3"))[0]
    assert complaints(playbook, inventory=_server("v1.30.1")) == []
    old = TWO_KINDS.replace('gpu: "true"', "kubeletVersion: v1.24.17, containerRuntime: cri-o, layout: plain")
    assert "this concerns kubelet 1.24 of c (" in complaints(playbook, inventory=old)[0]


def _server(version: str) -> str:
    return TWO_KINDS.replace("v1.30.2", version)


def test_a_setting_that_has_no_home_anywhere() -> None:
    assert complaints("failCgroupV1: true", inventory=_server("v1.31.0")) == []
    (said,) = complaints("failCgroupV1: true")
    assert said == (
        "playbooks/p.yaml:2:12: failCgroupV1 exists from 1.31; a kubelet 1.30 would ignore it with a warning; this concerns"
        " every kind of node of c [setting-unsupported]"
    )


def test_a_playbook_that_no_inventory_names_may_be_for_any_cluster() -> None:
    """So a refusal by some kinds is no mistake, and a refusal by all kinds is one."""
    unnamed = TWO_KINDS.replace("playbook: p\n", "")
    assert complaints("seccompDefault: true", inventory=unnamed.replace("v1.30.2", "v1.25.0")) == []
    assert len(complaints("evictionHard: {memory: 1Gi}", inventory=unnamed)) == 1
    assert len(complaints(inventory=unnamed, config=LOOP + "maxPodz: 3\n")) == 1


def test_control_plane_nodes_are_tried_if_the_playbook_includes_them() -> None:
    label = 'node-role.kubernetes.io/control-plane: "", kubeletVersion: v1.24.1'
    inventory = TWO_KINDS.replace('gpu: "true"', label)
    assert complaints("seccompDefault: true", inventory=inventory) == []
    assert len(complaints("seccompDefault: true", inventory=inventory, playbook="controlPlane: true\n")) == 1


def test_a_snapshot_narrows_to_what_the_nodes_have() -> None:
    """A node with the grace period of a soft threshold in its own file accepts the threshold alone."""
    text = nodes.CONFIG_TEXT + "evictionSoftGracePeriod: {memory.available: 1m}\n"
    read = {"n1": nodes.kubeadm("n1", "1.29.1", "containerd", config=text), "n2": nodes.plain("n2", "1.29.1", "crio")}
    soft = "evictionSoft: {memory.available: 10%}"
    only = {name: read[name] for name in ("n1",)}
    assert complaints(soft, fleet=FleetSnapshot("c", "", "", only)) == []
    (said,) = complaints(soft, fleet=FleetSnapshot("c", "", "", read))
    assert said.endswith("; this concerns 1 node of c: n2 [kubelet-would-not-start]")
