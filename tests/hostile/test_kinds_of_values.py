"""Every document that rollout reads, with each kind of JSON value in the place of each of its keys: a value or an error of ours.

The documents are the normal input of the readers of ``targets``. Those that read documents beside them are here: every function that reads a document is found in the source, in the lab and commands too.
"""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml

from rollout.adapters import node_sources
from rollout.adapters.journal import reads
from rollout.adapters.journal.heads import FOLDER, Heads
from rollout.app import wave_gates
from rollout.core.run.journal_codec import decode_events
from rollout.core.run.machine import opening
from rollout.core.run.state_codec import decode_state, encode_state
from rollout.core.text import json_text
from rollout.features.budget import command
from rollout.features.sequence.written import load_sequence
from rollout.kubelet import node_baseline
from rollout.lab import launch, serve
from rollout.lab import spec as lab_spec
from tests.hostile.parsers import PACKAGE
from tests.hostile.property import Target, judge
from tests.hostile.targets import TARGETS
from tests.hostile.test_parsers import SIGNED, called_by_seeds, called_by_seeds_of
from tests.orders import make_order
from tests.sampling import sample

KINDS = (
    "null", "[]", "{}", '""', "0", "-1", "true", "1e999", "-0.5", json.dumps("x" * 3_000), "[[]]", '[{}, null, "a"]',
    '{"a": []}', '"5"', "99999999999999999999999",
)  # fmt: skip
"""As JSON texts, all of which are YAML too."""
_HERE = "\u241f"
"""Stands for the value in a document that is written with everything else."""
MOST = 10
"""Of one document, places and kinds of its first level, and as many of the deeper ones; drawn. At night all of them."""

Path_ = tuple[str | int, ...]


def documents(seed: bytes) -> Iterator[tuple[bytes, object, bytes]]:
    """What is ahead of a document in this input, the document, and what is behind: the whole input, or one of its lines."""
    try:
        yield b"", json.loads(seed), b"\n"
        return
    except ValueError:
        pass
    found = False
    at = 0
    for line in seed.splitlines(keepends=True):
        begins = line.find(b"{")
        if begins >= 0:
            try:
                document = json.loads(line[begins:])
            except ValueError:
                pass
            else:
                found = True
                yield seed[: at + begins], document, b"\n" + seed[at + len(line) :]
        at += len(line)
    if not found:
        try:
            document = yaml.safe_load(seed)
        except (yaml.YAMLError, ValueError):
            return
        if isinstance(document, dict | list):
            yield b"", document, b"\n"


def places(document: object, here: Path_ = ()) -> Iterator[Path_]:
    """Every place for a value, itself first."""
    yield here
    if isinstance(document, dict):
        for key, value in document.items():
            yield from places(value, (*here, key))
    elif isinstance(document, list):
        for number, value in enumerate(document):
            yield from places(value, (*here, number))


def with_other(document: object, at: Path_) -> str:
    """The document as a text with ``_HERE`` in quotes at this place."""

    def changed(value: object, rest: Path_) -> object:
        if not rest:
            return _HERE
        if isinstance(value, dict):
            return {key: changed(inner, rest[1:]) if key == rest[0] else inner for key, inner in value.items()}
        assert isinstance(value, list)
        return [changed(inner, rest[1:]) if number == rest[0] else inner for number, inner in enumerate(value)]

    return json.dumps(changed(document, at), default=str)


def variants(target: Target) -> Iterator[tuple[str, bytes]]:
    for number, seed in enumerate(target.seeds()):
        for ahead, document, behind in documents(seed):
            every = list(places(document))
            near = [(at, kind) for at in every if len(at) <= 1 for kind in KINDS]
            deeper = [(at, kind) for at in every if len(at) > 1 for kind in KINDS]
            name = f"kinds {target.name} {number}"
            for at, kind in (*sample(f"{name} near", near, MOST), *sample(f"{name} deeper", deeper, MOST)):
                text = with_other(document, at).replace(json.dumps(_HERE), kind)
                yield f"{number} {at} {kind[:20]}", ahead + text.encode() + behind


def _in_a_file(name: str, read: Callable[[Path], object]) -> Callable[[bytes], tuple[str, ...]]:
    def reading(data: bytes) -> tuple[str, ...]:
        with TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
            read(Path(folder))
        return ()

    return reading


def _of_text(read: Callable[[str], object]) -> Callable[[bytes], tuple[str, ...]]:
    def reading(data: bytes) -> tuple[str, ...]:
        read(data.decode("utf-8", "replace"))
        return ()

    return reading


def _manifest(folder: Path) -> None:
    before = Path.cwd()
    os.chdir(folder)
    try:
        command._pod("pod.yaml")  # noqa: SLF001
    finally:
        os.chdir(before)


_LAB = lab_spec.LabSpec(
    "c", (lab_spec.NodeSpec("n1", "10.0.0.1", "127.64.0.1", {"kubeletVersion": "v1.34.1"}),), 10.0, {"a": ("n1",)}
)
_API = {"kubeconfig": "k", "context": "rno", "server": "https://rno:6443", "authority": "9c1e"}
_KEPT = {"taken": "2026-11-20T09:00:00Z", "api": _API, "nodes": [{**node_sources._EMPTY, "name": "n1"}]}  # noqa: SLF001
_SEQUENCE = {"name": "s", "budget": 3, "stages": [{"name": "a", "clusters": {"c": "c.plan.json"}, "soak": "30m"}]}
_SUMMARY = {"confirmed": {"count": 3, "nodes": "n[1-3]"}}
_REGIONS = [{"region": "eu", "workers": ["eu-1"], "calls": 3, "nodes": 40, "round_trip_seconds": 0.02}]
_BASELINE = {
    "v": node_baseline.VERSION, "lease": "2026-11-20T09:00:00Z", "at": 3, "ended": ["9c1e"], "pods": {"9c1e": ["app 77ab 0"]},
}  # fmt: skip
_STATE, _ = opening(make_order({"a": 2}), 1, 1.0)
_STATE_TEXT = json.loads(encode_state(_STATE))
_POD = {
    "metadata": {"name": "web", "namespace": "shop", "labels": {"a": "b"}},
    "spec": {"template": {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "app", "image": "a/b:1"}]}}},
}


def _seed(document: object) -> Callable[[], tuple[bytes, ...]]:
    return lambda: (json.dumps(document).encode(),)


BESIDE = {
    target.name: target
    for target in (
        Target("sequence", _of_text(lambda text: load_sequence(text, "s.yaml")), _seed(_SEQUENCE)),
        Target("pod-manifest", _in_a_file("pod.yaml", _manifest), _seed(_POD)),
        Target("lab", _in_a_file(serve.SPEC, launch.specification), _seed(json_text.encode(_LAB))),
        Target("lab-process", _in_a_file(serve.READY, launch._pid), _seed({"pid": 12})),  # noqa: SLF001
        Target("kept-nodes", _in_a_file("n.json", lambda at: node_sources._read(at / "n.json")), _seed(_KEPT)),  # noqa: SLF001
        Target("head", _in_a_file(f"{FOLDER}/r1", lambda at: Heads(at).kept("r1")), _seed([3, "0" * 64])),
        Target(
            "kept-state", _of_text(lambda text: decode_state(text, _STATE.order)), _seed(_STATE_TEXT), (ValueError,)
        ),
        Target("summary", _of_text(lambda text: reads._counts("r1", text, "{}")), _seed(_SUMMARY)),  # noqa: SLF001
        Target("summary-reverted", _of_text(lambda text: reads._counts("r1", "{}", text)), _seed({"r2": "n1"})),  # noqa: SLF001
        Target("lease-regions", _of_text(reads._regions), _seed(_REGIONS)),  # noqa: SLF001
        Target(
            "cluster-gates", _of_text(node_baseline.read_baseline), _seed(_BASELINE), (node_baseline.BaselineError,)
        ),
        Target("wave-gates", _of_text(wave_gates._baseline), _seed({"a": 1.5})),  # noqa: SLF001
        Target(
            "journal-events", _of_text(lambda text: list(decode_events([text, text]))), TARGETS["journal-event"].seeds
        ),
    )
}
ALL = {name: target for name, target in {**TARGETS, **BESIDE}.items() if name != SIGNED}


@pytest.mark.parametrize("name", ALL)
def test_each_kind_of_value_gives_a_value_or_an_error_of_ours(name: str) -> None:
    broken: dict[str, str] = {}
    for case, data in variants(ALL[name]):
        try:
            judge(ALL[name], data)
        except Exception as error:  # noqa: BLE001 - one case of each kind is shown
            broken.setdefault(f"{type(error).__name__}: {str(error)[:200]}", case)
    assert broken == {}


def test_the_documents_beside_are_read_without_a_change(tmp_path: Path) -> None:
    """Else each kind of value in them would prove nothing."""
    (tmp_path / serve.SPEC).write_text(json.dumps(json_text.encode(_LAB)))
    (tmp_path / serve.READY).write_text('{"pid": 12}')
    (tmp_path / "n.json").write_text(json.dumps(_KEPT))
    kept = node_sources._read(tmp_path / "n.json")  # noqa: SLF001
    assert (launch.specification(tmp_path), launch._pid(tmp_path)) == (_LAB, 12)  # noqa: SLF001
    lab_spec.save(_LAB, tmp_path / serve.SPEC)
    assert launch.specification(tmp_path) == _LAB
    assert kept
    assert [node.name for node in kept.nodes] == ["n1"]
    assert [each.region for each in reads._regions(json.dumps(_REGIONS))] == ["eu"]  # noqa: SLF001
    assert node_baseline.read_baseline(json.dumps(_BASELINE)).pods


_READ = {"loads", "load", "safe_load", "raw_decode", "read_yaml", "JsonStream", "compose", "_compose"}
_PARSE = {"json_text"}
NOT_DOCUMENTS_OF_OTHERS = {
    "features/diagnose/asking/remedy_verification.py:_shown": "a value of a plan that was decoded",
    "core/plans/wanted_fields.py:": "what the kubelet's configuration was rendered to",
    "core/plans/plan_codec.py:wanted_in": "a line of a plan that was decoded before its run began",
    "core/text/wanted_settings.py:as_setting": "a value of a plan that was decoded before its run began",
    "core/plans/plan_codec.py:selection_in": "two lines of a plan that was decoded before its run began",
    "core/plans/plan_codec.py:reasons_in": "a line of a plan that was decoded before its run began",
    "core/reading/project_file.py:": "TOML; tests/core/reading/test_project_file.py",
    "kubelet/changes/templated_config.py:": "a text that was rendered",
    "kubelet/explained/": "tables of this package",
    "kubelet/node/managers.py:_table": "a table of this package",
    "kubelet/runtimes/": "TOML of a runtime; tests/kubelet/runtimes",
    "lab/": "what the lab and its clients write to each other, and files of nodes; the lab says what is wrong with them",
    "simulator/": "what the simulator itself wrote",
}
"""Beginning of a file → why its functions that read a document need no seed here."""


def readers() -> Iterator[tuple[str, str, int]]:
    """Every function that turns a text into a document: its file, its name and its first line."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and any(map(_reads_a_document, ast.walk(node))):
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                yield str(path), node.name, first


def _reads_a_document(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name)):
            return name in _READ or (module in _PARSE and name == "parse")
        case ast.Call(func=ast.Name(id=name)):
            return name in _READ
    return False


def test_every_function_that_reads_a_document_has_a_seed() -> None:
    seen = called_by_seeds() | called_by_seeds_of(BESIDE.values())
    found = list(readers())
    unmet = [f"{Path(file).relative_to(PACKAGE)}:{name}" for file, name, line in found if (file, line) not in seen]
    assert [each for each in unmet if not each.startswith(tuple(NOT_DOCUMENTS_OF_OTHERS))] == []
    assert [each for each in NOT_DOCUMENTS_OF_OTHERS if not any(file.startswith(each) for file in unmet)] == []
    assert len(found) > 30
