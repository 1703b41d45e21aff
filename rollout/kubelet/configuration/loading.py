"""The files of a start: the file of ``--config`` with its defaults, and the drop-ins over it."""

from __future__ import annotations

from typing import Any

from rollout.kubelet.configuration import drop_ins, feature_gates, schema
from rollout.kubelet.configuration.command_line import gate_reference, wrapped
from rollout.kubelet.configuration.config_file import (
    LoadError,
    check_kind,
    decoded,
    document,
    type_meta,
    with_absolute_paths,
)
from rollout.kubelet.configuration.decoding import Mistake, Object
from rollout.kubelet.configuration.defaulting import fill_file, is_set, without_file
from rollout.kubelet.configuration.findings import Findings, KubeletStoppedError, place
from rollout.kubelet.configuration.flags import Flags, with_flags
from rollout.kubelet.configuration.outcome import File, Layer, Origin, Sources

_PANIC_SINCE = 32
"""From this minor on defaults depend on gates; a gate in the file that cannot be set makes the kubelet panic there."""


def base(config: File | None, flags: Flags, findings: Findings) -> Object:
    """The base for drop-ins and flags; without a file it already contains the flags."""
    if config is None:
        return with_flags(without_file(findings.minor), flags, findings.minor)
    written = _loaded(config, _loading(config, findings.minor), findings)
    return _defaulted(written, config, Layer.FILE, findings)


def _loading(file: File, minor: int) -> str:
    """The prefix of every error of the main file."""
    said = f"failed to load Kubelet config file {file.path}, error"
    if minor >= 28:
        return f"failed to load kubelet config file, path: {file.path}, error: {said}"
    return f"failed to load kubelet config file, error: {said}" if minor >= 26 else said


def _loaded(file: File, ahead: str, findings: Findings) -> Object:
    """A whole configuration file: strictly, then leniently."""
    try:
        found = document(file)
        check_kind(type_meta(found.value))
    except LoadError as error:
        raise findings.unreadable(file, error, f"{ahead} {error.text}") from None
    read = decoded(found.value, findings.minor)
    _refuse_mistakes(read.mistakes, file, f"{ahead} failed to decode:", findings)
    for duplicate in found.duplicates:
        findings.duplicate_key(file, duplicate.path, duplicate.line)
    for path in read.unknown:
        findings.unknown_field(file, path)
    findings.second_document(file, found.rest)
    return read.value


def _refuse_mistakes(mistakes: list[Mistake], file: File, ahead: str, findings: Findings) -> None:
    for mistake in mistakes:
        findings.fatal(
            "bad-value", f"{ahead} {mistake.text}", place(file, mistake.path), str(next(iter(mistake.path), ""))
        )
    if mistakes:
        raise KubeletStoppedError


def _defaulted(written: Object, file: File, layer: Layer, findings: Findings) -> Object:
    types = schema.fields_of(schema.ROOT, findings.minor)
    findings.files[file.path] = file
    said = {name: Origin(layer, file.path) for name in written if is_set(written, name, types[name])}
    findings.origins.update(said)
    _panic_over_gates(written, findings)
    return fill_file(with_absolute_paths(written, file), findings.minor)


def _panic_over_gates(written: Object, findings: Findings) -> None:
    if findings.minor < _PANIC_SINCE:
        return
    if not feature_gates.certain(findings.minor):
        return
    mistakes = feature_gates.mistakes(written.get("featureGates") or {}, findings.minor)
    ahead = "panic: failed to merge global and in-flight KubeletConfiguration while setting defaults, error:"
    for said in mistakes:
        findings.fatal(gate_reference(said), f"{ahead} {said}", findings.place_of("featureGates"), "featureGates")
    if mistakes:
        raise KubeletStoppedError


def with_drop_ins(base: Object, sources: Sources, files: tuple[File, ...], findings: Findings) -> Object:
    """The base with ``files`` merged into it, in the way of this minor."""
    minor = findings.minor
    if minor < drop_ins.SINCE:
        said = wrapped(findings, "failed to parse kubelet flag", "unknown flag: --config-dir")
        raise findings.stop("unknown-flag", said)
    if minor <= drop_ins.ENVIRONMENT_UNTIL and drop_ins.ENVIRONMENT not in sources.environment:
        folder = files[0].path.rpartition("/")[0] if files else "--config-dir"
        said = f"flag {folder} specified but environment variable {drop_ins.ENVIRONMENT} not set, cannot start kubelet"
        raise findings.stop("drop-ins-need-environment", said)
    if minor < drop_ins.PATCH_SINCE:
        # 1.28: the defaults that fill a drop-in win, just like its written values.
        for file in files:
            loading = f"failed to load Kubelet config file {file.path}, error"
            written = _loaded(
                file, f"failed to load kubelet dropin file, path: {file.path}, error: {loading}", findings
            )
            drop_in = _defaulted(written, file, Layer.DROP_IN, findings)
            merged = drop_ins.merge_whole(base, drop_in, schema.ROOT, findings.minor)
            for name in merged:
                if name not in written and merged[name] != base.get(name):
                    findings.origins.pop(name, None)
            base = merged
        return base
    patches = [_patch(file, findings) for file in files]
    found = drop_ins.apply_patches(base, patches, findings.minor)
    for mistake in found.mistakes:
        author = _who_wrote(mistake.path[0], files, patches)
        said = f"failed to merge kubelet configs: failed to unmarshal merged JSON into kubelet configuration: {mistake.text}"
        findings.fatal("bad-value", said, place(author, mistake.path) if author else None)
    if found.mistakes:
        raise KubeletStoppedError
    for path in found.unknown:
        author = _who_wrote(path[0], files, patches)
        if author:
            findings.dropped_field(author, path)
    for name in [name for name in findings.origins if base.get(name) != found.configuration.get(name)]:
        del findings.origins[name]
    for file, patch in zip(files, patches, strict=True):
        findings.files[file.path] = file
        _say_who(patch, file, found.configuration, findings)
    return found.configuration


def _patch(file: File, findings: Findings) -> Object:
    try:
        patch = drop_ins.patch_of(file, findings.minor)
    except LoadError as error:
        comma = (
            ", " if error.text == "no apiVersion/kind" or error.text.startswith("unknown apiVersion") else ", error: "
        )
        said = (
            f"failed to merge kubelet configs: failed to load kubelet dropin file, path: {file.path}{comma}{error.text}"
        )
        raise findings.unreadable(file, error, said) from None
    findings.second_document(file, document(file).rest)
    return patch


def _who_wrote(name: Any, files: tuple[File, ...], patches: list[Object]) -> File | None:
    """The last drop-in that has this top-level field."""
    return next((file for file, patch in zip(files[::-1], patches[::-1], strict=True) if name in patch), None)


def _say_who(patch: Object, file: File, merged: Object, findings: Findings) -> None:
    for name, typed in drop_ins.typed_names(patch, findings.minor).items():
        if name != typed:
            findings.wrong_case(file, name, typed)
        elif patch[name] is None and findings.minor >= drop_ins.VERSIONED_SINCE:
            findings.origins.pop(typed, None)
        if patch[name] is not None and typed in merged:
            findings.origins[typed] = Origin(Layer.DROP_IN, file.path)
