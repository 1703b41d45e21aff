"""``python -m tests.house``: prints the structure of the code, and how many modules two values pass."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import click

import rollout
from rollout.adapters.files import FolderFiles
from rollout.adapters.journal import SqlJournal
from rollout.app.load_playbook import load_policy
from rollout.app.plan import build_plan
from rollout.core.plans import plan_codec
from rollout.core.reading.precedence import settings_of
from tests.app.agents import CONFIG, answer, well
from tests.app.site import Site
from tests.house import modules as texts
from tests.house.ways import modules_on_the_way
from tests.kubelet.nodes import fleet, inventory, kubeadm

ROOT = Path(rollout.__file__).parent
MARKER = "4711"
PLAYBOOK = f"name: p\nsettings:\n  maxPods: {MARKER}\n"


def main() -> None:
    found = texts.modules(ROOT)
    alone = texts.with_one_importer(found)
    lengths = texts.function_lengths(found)
    twice = texts.classes_named_alike(found)
    with TemporaryDirectory() as folder:
        setting, heard = way_of_a_setting(Path(folder)), way_of_an_answer(Path(folder))
    rows = (
        ("modules", len(found)),
        ("modules with one importer", len(alone)),
        (f"of those, under {texts.SMALL} lines", sum(module.lines < texts.SMALL for module in alone)),
        ("lines of the longest module", max(module.lines for module in found)),
        ("lines of a function in the median", lengths[len(lengths) // 2]),
        ("public class names that several classes have", len(twice)),
        ("modules that a setting visits from playbook to bytes", len(setting)),
        ("modules that an answer visits from the connection to the journal", len(heard)),
    )
    for what, number in rows:
        click.echo(f"{number:6}  {what}")
    click.echo("\n  ".join(("\nA setting's way:", *setting)))
    click.echo("\n  ".join(("\nAn answer's way:", *heard)))


def way_of_a_setting(folder: Path) -> tuple[str, ...]:
    """The modules that a setting passes from a playbook's file to the plan's bytes, on one node."""
    for name, text in (("playbooks/p.yaml", PLAYBOOK), ("inventories/rno.yaml", "")):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "templates").symlink_to(ROOT.parent / "templates")
    known = inventory(1)
    (name,) = known.nodes

    def work() -> bytes:
        policy = load_policy(FolderFiles(folder), "p")
        settings = settings_of(known, policy, {})
        return plan_codec.encode(build_plan(known, policy, fleet(known, {name: kubeadm(name)}), settings, (name,), ""))

    assert MARKER in str(work())
    return modules_on_the_way(work, MARKER, ROOT)


def way_of_an_answer(folder: Path) -> tuple[str, ...]:
    """The modules that an answer passes from the connection to the journal, for a node that refuses its change."""
    site = Site(SqlJournal(folder))
    site.nodes.says["n1", "apply"] = answer("apply", *well(), f"refused not-as-planned {CONFIG}.{MARKER}")
    visited = modules_on_the_way(site.apply, MARKER, ROOT)
    assert any(MARKER in event for event in site.journal.events("r1"))
    return visited


if __name__ == "__main__":
    main()
