"""The plan as a file: canonical JSON with a version and the SHA-256 over everything else in it.

Files name their contents by digest, ``""`` for an absent file. The contents are held once, under ``blobs``.

Canonical means: keys sorted, one way of spacing, so the same plan is the same bytes and any edit is detected. The
digest is computed over the text without the digest itself.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from rollout.core.model.conditions import Condition, known, of_kind
from rollout.core.model.gates import Gate
from rollout.core.model.plan import FileChange, Plan, WantedSetting
from rollout.core.plans import gate_codec
from rollout.core.text import json_text
from rollout.core.text.json_text import Json
from rollout.core.text.nodesets import is_name
from rollout.core.text.terminal import printable
from rollout.errors import InputError, Problem

json_text.has_form(Gate, gate_codec.FORM)


def _write_conditions(conditions: tuple[Condition, ...]) -> Json:
    return {kind.key: [json_text.encode(each) for each in of_kind(conditions, kind)] for kind in known().kinds}


def _read_conditions(data: Json, _where: str) -> tuple[Condition, ...]:
    """``data``: see ``_decoded``. The place of what is wrong is that of a key of the plan."""
    return tuple(
        each
        for kind in known().kinds
        for each in json_text.converter(tuple[kind, ...]).decode(data[kind.key], kind.key)  # type: ignore[valid-type]
    )


json_text.has_form(tuple[Condition, ...], json_text.Converter(_write_conditions, _read_conditions))

VERSION = 12
BEFORE = (9, 10, 11)
"""Earlier versions, which are read in journals only: 9 did not record a ConfigMap, 10 not what was wanted, 11 no texts for new nodes."""

_CONDITIONS = "conditions"

MOST_BYTES = 256 * 1024 * 1024

_CONTENTS = json_text.converter(Mapping[str, bytes])


def sealed(plan: Plan) -> tuple[str, bytes]:
    """The plan's digest and the bytes of its file, which both take long with very many nodes."""
    return _sealed(_body(plan))


def encode(plan: Plan) -> bytes:
    """The bytes of the plan file."""
    return sealed(plan)[1]


def digest(plan: Plan) -> str:
    """The plan's SHA-256, hex: apply asks to confirm it and the journal records it."""
    return sealed(plan)[0]


def digest_in(data: bytes) -> str:
    """The digest in the bytes of a plan file of any version; ``""``: none."""
    try:
        found = _load(data, "").get("digest")
    except InputError:
        return ""
    return found if isinstance(found, str) else ""


def selection_in(data: bytes) -> tuple[str, str]:
    """The playbook and the limit in the bytes of a plan file, without reading all of it; ``""``: none, or not recorded."""
    found = {key.decode(): json_text.parse(value) for key, value in _SELECTION.findall(data)}
    return found.get("playbook", ""), found.get("limit", "")


def wanted_in(data: bytes) -> tuple[WantedSetting, ...]:
    """What the plan in a journal wants, without reading all of it; ``()``: its version did not record it."""
    match = _WANTED.search(data)
    return json_text.converter(tuple[WantedSetting, ...]).decode(json_text.parse(match[1]), "wanted") if match else ()


def reasons_in(data: bytes) -> tuple[str, ...]:
    """The reasons of all changes in the bytes of a plan file, each once, largest group first, without reading all of it.

    Also of a plan of another version; ``()``: it records them in another form.
    """
    match = _GROUPS.search(data)
    try:
        groups = json_text.parse(match[1]) if match else []
        files = [file for group in groups for file in group["change"]["files"]]
        reasons = [reason for file in files for reason in file["reasons"]]
    except (ValueError, KeyError, TypeError):
        return ()
    return tuple(dict.fromkeys(reason for reason in reasons if isinstance(reason, str)))


_GROUPS = re.compile(rb'^"groups": (.*?),?$', re.MULTILINE)
_WANTED = re.compile(rb'^"wanted": (.*?),?$', re.MULTILINE)
_SELECTION = re.compile(rb'^"(playbook|limit)": ("(?:[^"\\\n]|\\.)*"),?$', re.MULTILINE)
"""A canonical plan has one line for each top-level key."""


def file_name(plan: Plan, digest: str) -> str:
    """``CLUSTER-DIGEST12.plan.json``."""
    return f"{plan.cluster}-{digest[:12]}.plan.json"


def decode_journaled(data: bytes, run: str) -> Plan:
    """The plan that a run was started with, also one of an earlier version: such a run may be resumed and verified."""
    return _decoded(data, run, (VERSION, *BEFORE))


def decode(data: bytes, file: str) -> Plan:
    """The plan in a file, or ``InputError``: not a plan, of another version, or edited since it was written.

    A plan of another version is refused: its digest, which people sign, is that of its own form.
    """
    return _decoded(data, file, (VERSION,))


def _decoded(data: bytes, file: str, versions: tuple[int, ...]) -> Plan:
    document = _load(data, file)
    version = document.get("version")
    if type(version) is not int or version not in versions:
        raise _error(
            "plan-version",
            f"{file} is a plan of version {printable(str(version), 40)}; this rollout reads {VERSION}",
            hint="plan again: `rollout plan`",
        )
    stated = document.pop("digest", None)
    if _sealed(document) != (stated, data):
        raise _error(
            "plan-edited", f"{file} was changed after it was written", hint="plan again; a plan is never edited"
        )
    document.pop("version")
    if version in BEFORE:
        _complete(document)
    try:
        _gather_conditions(document)
        contents: Mapping[str, bytes] = _CONTENTS.decode(document.pop("blobs", None), "blobs")
        plan = _with_files(json_text.decode(Plan, document), lambda each: _filled(each, contents))
    except json_text.ShapeError as error:
        raise _error("plan-unreadable", f"{file}: {error}") from None
    _check_whole(plan, contents, file)
    return plan


def _complete(document: dict[str, Any]) -> None:
    """What an earlier version did not record is not known; version 9 wrote no ConfigMap."""
    document.setdefault("config_map", None)
    for key in ("wanted", *(kind.key for kind in known().kinds)):
        document.setdefault(key, [])


def _gather_conditions(document: dict[str, Any]) -> None:
    """The conditions of each kind have a key of the plan, as other fields do."""
    lacking = min((kind.key for kind in known().kinds if kind.key not in document), default="")
    if lacking or _CONDITIONS in document:
        raise json_text.ShapeError(f"the root: {lacking or _CONDITIONS!r} is {'missing' if lacking else 'unknown'}")
    document[_CONDITIONS] = {kind.key: document.pop(kind.key) for kind in known().kinds}


def _body(plan: Plan) -> dict[str, Any]:
    body: dict[str, Any] = json_text.encode(_with_files(plan, _by_digest))
    conditions = body.pop(_CONDITIONS)
    return {"version": VERSION, **body, **conditions, "blobs": _CONTENTS.encode(_contents(plan))}


def _contents(plan: Plan) -> Mapping[str, bytes]:
    """Hex SHA-256 → content."""
    files = [file for group in plan.groups for file in group.change.files]
    before = {file.digest_before: file.before for file in files if file.before is not None}
    return before | {file.digest_after: file.after for file in files}


def _with_files(plan: Plan, each: Callable[[FileChange], FileChange]) -> Plan:
    changes = (replace(group.change, files=tuple(map(each, group.change.files))) for group in plan.groups)
    groups = tuple(replace(group, change=change) for group, change in zip(plan.groups, changes, strict=True))
    return replace(plan, groups=groups)


def _by_digest(file: FileChange) -> FileChange:
    return replace(file, before=file.digest_before.encode(), after=file.digest_after.encode())


def _filled(file: FileChange, contents: Mapping[str, bytes]) -> FileChange:
    """The reverse of ``_by_digest``."""

    def content(name: bytes | None) -> bytes:
        content = contents.get((name or b"").decode("utf-8", "replace"))
        if content is None:
            raise json_text.ShapeError(f"{printable(file.path)} has a content that is not in blobs")
        return content

    return replace(file, before=None if file.before == b"" else content(file.before), after=content(file.after))


def _sealed(body: dict[str, Any]) -> tuple[str, bytes]:
    lines = {key: json.dumps(value, sort_keys=True, ensure_ascii=False) for key, value in body.items()}
    computed = hashlib.sha256(_canonical(lines)).hexdigest()
    return computed, _canonical({**lines, "digest": json.dumps(computed)})


def _canonical(lines: Mapping[str, str]) -> bytes:
    """One line per top-level key: compact, but people can still read the file."""
    text = ",\n".join(f"{json.dumps(key)}: {lines[key]}" for key in sorted(lines))
    return ("{\n" + text + "\n}\n").encode("utf-8", "surrogatepass")


_WRITTEN = "a plan is a file that `rollout plan` writes"


def _load(data: bytes, file: str) -> dict[str, Any]:
    if len(data) > MOST_BYTES:
        raise _error("plan-unreadable", f"{file} is larger than {MOST_BYTES >> 20} MiB")
    try:
        document = json_text.parse(data)
    except ValueError:
        raise _error("plan-unreadable", f"{file} is not JSON", hint=_WRITTEN) from None
    if not isinstance(document, dict):
        raise _error("plan-unreadable", f"{file} is not a plan", hint=_WRITTEN)
    return document


def _check_whole(plan: Plan, contents: Mapping[str, bytes], file: str) -> None:
    """A plan that another program sealed must still be consistent."""
    names = {group.name for group in plan.groups}
    placed = [(name, at) for at, wave in enumerate(plan.waves) for name in wave.nodes]
    whole = (
        all(is_name(name) for name in plan.nodes)
        and all(is_name(left.name) for left in plan.left)
        and contents == _contents(plan)
        and all(node.name == name and node.group in names for name, node in plan.nodes.items())
        and sorted(placed) == sorted((name, node.wave) for name, node in plan.nodes.items())
    )
    if not whole:
        raise _error("plan-unreadable", f"{file} is inconsistent: nodes, groups, waves and contents disagree")


def _error(reference: str, message: str, *, hint: str = "") -> InputError:
    return InputError((Problem(reference, message, hint=hint),))
