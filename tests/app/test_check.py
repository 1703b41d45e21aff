"""Check: every mistake in every file, and nothing raised."""

from __future__ import annotations

from rollout.app.check import check
from tests.app.test_load import INVENTORY, PLAYBOOK, TEMPLATES, FakeFiles, FakeSources


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
