"""Every YAML example on a page is read by the code that reads such files. The wording of a fence defines its kind:

* ``yaml inventory=NAME``, ``yaml playbook=NAME``: a whole file;
* ``yaml part-of-inventory``, ``yaml part-of-playbook``: some keys of one;
* ``yaml kubernetes``: an object for ``kubectl``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from ruamel.yaml import YAML

from rollout.adapters.kubernetes.cluster import NEEDED, NEEDED_TO_COUNT_PULLS, Right
from rollout.adapters.kubernetes.config_maps import NEEDED as NEEDED_TO_WRITE
from rollout.app.load import load_cluster
from rollout.app.load_playbook import load_policy
from rollout.features.drain.client import NEEDED as NEEDED_TO_DRAIN
from rollout.features.sequence.written import load_sequence
from rollout.kubelet.kubeadm import NAMESPACE
from tests.app.test_load import TEMPLATES, FakeFiles
from tests.docs.pages import PAGES, blocks
from tests.docs.test_inventory_examples import SOURCES

BEGINNINGS = {
    "inventory": {"cluster: part": r"^cluster:", "apiServer: v1.34.2": r"^apiServer:", "nodes: {n1: }": r"^nodes"},
    "playbook": {"name: part": r"^name:", "settings: {maxPods: 60}": r"^settings:"},
}


def whole(kind: str, text: str) -> str:
    """A part, completed with the keys that every such file needs."""
    wanted = [line for line, there in BEGINNINGS[kind].items() if not re.search(there, text, re.MULTILINE)]
    return "".join(f"{line}\n" for line in wanted) + text


def examples() -> Iterator[tuple[str, str, str]]:
    """Page, wording of the fence, text."""
    return (
        (page.name, block.info.removeprefix("yaml").strip(), block.text)
        for page in PAGES
        for block in blocks(page.read_text())
        if block.info.startswith("yaml")
    )


@pytest.mark.parametrize(("page", "what", "text"), [*examples()], ids=lambda found: found[:20])
def test_examples_are_read(page: str, what: str, text: str) -> None:
    kind, _, name = what.removeprefix("part-of-").partition("=")
    part = whole(kind, text) if what.startswith("part-of-") else text
    if kind == "inventory":
        assert load_cluster(FakeFiles({f"inventories/{name or 'part'}.yaml": part}), SOURCES, name or "part").nodes
    elif kind == "playbook":
        files = FakeFiles({f"playbooks/{name or 'part'}.yaml": part, **TEMPLATES})
        assert load_policy(files, name or "part").settings
    elif kind == "sequence":
        assert load_sequence(part, "sequence.yaml").name == name
    else:
        assert what == "kubernetes", f"{page}: what is {what!r}?"


def test_the_roles_on_the_page_are_the_rights_that_are_checked() -> None:
    """The rights for gates, those for draining, that for counting pulls, and those for writing a ConfigMap."""
    written: tuple[Right, ...] = tuple((verb, "", "configmaps", NAMESPACE) for verb in NEEDED_TO_WRITE)
    texts = [text for page, what, text in examples() if what == "kubernetes"]
    for text, needed in zip(texts, (NEEDED, NEEDED_TO_DRAIN, NEEDED_TO_COUNT_PULLS, written), strict=True):
        role = YAML(typ="safe", pure=True).load(text)
        granted = {
            (verb, group, resource)
            for rule in role["rules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }
        assert granted == {(verb, group, resource) for verb, group, resource, _namespace in needed}
