"""What a kubelet makes of all it is started from, step by step as ``NewKubeletCommand`` does it.

Flags, gates and labels of the command line; the file; drop-ins; flags again, over both; gates; validation; what is refused
on the way up. The first step that fails ends it, with everything that step has to say. Source: ``cmd/kubelet/app/server.go``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from rollout.kubelet import fields
from rollout.kubelet.configuration import drop_ins, enabled_gates, gates, node_labels, schema, start_checks
from rollout.kubelet.configuration.config_file import (
    LoadError,
    check_kind,
    decoded,
    document,
    type_meta,
    with_absolute_paths,
)
from rollout.kubelet.configuration.decoding import Mistake, Object
from rollout.kubelet.configuration.default_values import defaults
from rollout.kubelet.configuration.defaulting import fill_file, is_set, without_file
from rollout.kubelet.configuration.findings import Findings, StoppedError
from rollout.kubelet.configuration.flags import FlagError, Flags, over, parse, target
from rollout.kubelet.configuration.outcome import File, Layer, Origin, Outcome, Sources
from rollout.kubelet.configuration.places import place
from rollout.kubelet.configuration.shown import shown
from rollout.kubelet.configuration.started import as_started
from rollout.kubelet.configuration.validation.checked import Checked
from rollout.kubelet.configuration.validation.rules import complaints
from rollout.kubelet.versions import Version

_WRAPPED_SINCE = 24
"""From this minor on errors carry what was being done, and end the process with one line."""

_PANIC_SINCE = 32
"""From this minor on defaults hang on gates, and a gate in the file that cannot be set panics there."""


class UnknownMinorError(ValueError):
    """There is nothing to tell about kubelets of this minor."""


def is_known(minor: int) -> bool:
    """Are types, defaults and gates of this minor all there? Without one of them every answer would be a guess."""
    return minor in fields.known_minors() and bool(defaults(minor)) and bool(gates.known(minor))


def outcome(version: Version, sources: Sources) -> Outcome:
    """Verdict, ignored fields, effective values and messages. ``UnknownMinorError`` for a minor that is not in the data."""
    if not is_known(version.minor):
        raise UnknownMinorError(f"nothing is known of kubelets {version.short}")
    findings = Findings(version.minor)
    try:
        configuration, flags = _configured(sources, findings)
        _check(configuration, flags, sources, findings)
    except StoppedError:
        return Outcome(starts=False, ignored=tuple(findings.ignored), messages=tuple(findings.messages))
    effective = shown(as_started(configuration, flags), version.minor)
    origins = {name: findings.origins.get(name, Origin(Layer.DEFAULT)) for name in effective}
    return Outcome(
        starts=True,
        ignored=tuple(findings.ignored),
        effective=effective,
        origins=origins,
        messages=tuple(findings.messages),
    )


def _configured(sources: Sources, findings: Findings) -> tuple[Object, Flags]:
    flags = _flags(sources, findings)
    configuration = _base(sources.config, flags, findings)
    if sources.drop_ins is not None:
        configuration = _with_drop_ins(configuration, sources, sources.drop_ins, findings)
    configuration = over(configuration, flags, findings.minor)
    for name in flags.values:
        path = target(name)
        if path:
            findings.origins[path[0]] = Origin(Layer.FLAG, flags.given[name])
    _gates(configuration.get("featureGates") or {}, findings)
    return configuration, flags


def _wrapped(findings: Findings, doing: str, said: str) -> str:
    return f"{doing}: {said}" if findings.minor >= _WRAPPED_SINCE else said


def _flags(sources: Sources, findings: Findings) -> Flags:
    """The command line on its own, before any file is looked at."""
    try:
        flags = parse(sources.flags, findings.minor)
    except FlagError as error:
        raise findings.stop(error.reference, _wrapped(findings, "failed to parse kubelet flag", error.text)) from None
    if flags.words:
        colon = "" if findings.minor >= _WRAPPED_SINCE else ":"
        raise findings.stop("stray-word", f"unknown command{colon} {flags.words[0]}")
    for name in ("--help", "--version"):
        if flags.values.get(name) not in {None, False, "False"}:
            raise findings.stop("no-start", f"with {name} the kubelet prints it and ends")
    _gates(flags.values.get("--feature-gates") or {}, findings)
    _validate_flags(flags, findings)
    return flags


def _validate_flags(flags: Flags, findings: Findings) -> None:
    gates = flags.values.get("--feature-gates") or {}
    doing = "failed to validate kubelet flags"
    if "--dynamic-config-dir" in flags.values and not enabled_gates.enabled(
        "DynamicKubeletConfig", gates, findings.minor
    ):
        said = "the DynamicKubeletConfig feature gate must be enabled in order to use the --dynamic-config-dir flag"
        raise findings.stop("gate-needed", _wrapped(findings, doing, said))
    said = node_labels.mistake(flags.values.get("--node-labels") or {}, findings.minor)
    if said:
        raise findings.stop("bad-label", _wrapped(findings, doing, said))


def _gates(written: dict[str, bool], findings: Findings) -> None:
    mistakes = enabled_gates.mistakes(written, findings.minor)
    doing = "failed to set feature gates from initial flags-based config"
    for said in mistakes:
        where = findings.place_of("featureGates")
        findings.fatal(_gate_reference(said), _wrapped(findings, doing, said), where)
    if mistakes:
        raise StoppedError


def _gate_reference(said: str) -> str:
    return "unknown-gate" if said.startswith("unrecognized") else "locked-gate"


def _base(config: File | None, flags: Flags, findings: Findings) -> Object:
    if config is None:
        return over(without_file(findings.minor), flags, findings.minor)
    ahead = f"failed to load Kubelet config file {config.path}, error"
    written = _loaded(config, ahead, findings)
    return _defaulted(written, config, Layer.FILE, findings)


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
    return read.value


def _refuse_mistakes(mistakes: list[Mistake], file: File, ahead: str, findings: Findings) -> None:
    for mistake in mistakes:
        findings.fatal("bad-value", f"{ahead} {mistake.text}", place(file, mistake.path))
    if mistakes:
        raise StoppedError


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
    mistakes = enabled_gates.mistakes(written.get("featureGates") or {}, findings.minor)
    ahead = "panic: failed to merge global and in-flight KubeletConfiguration while setting defaults, error:"
    for said in mistakes:
        findings.fatal(_gate_reference(said), f"{ahead} {said}", findings.place_of("featureGates"))
    if mistakes:
        raise StoppedError


def _with_drop_ins(base: Object, sources: Sources, files: tuple[File, ...], findings: Findings) -> Object:
    minor = findings.minor
    if minor < drop_ins.SINCE:
        said = _wrapped(findings, "failed to parse kubelet flag", "unknown flag: --config-dir")
        raise findings.stop("unknown-flag", said)
    if minor <= drop_ins.ENVIRONMENT_UNTIL and drop_ins.ENVIRONMENT not in sources.environment:
        folder = files[0].path.rpartition("/")[0] if files else "--config-dir"
        said = f"flag {folder} specified but environment variable {drop_ins.ENVIRONMENT} not set, cannot start kubelet"
        raise findings.stop("drop-ins-need-environment", said)
    if minor < drop_ins.PATCH_SINCE:
        return _merged_whole(base, files, findings)
    return _patched(base, files, findings)


def _merged_whole(base: Object, files: tuple[File, ...], findings: Findings) -> Object:
    """1.28: defaults that a drop-in was filled with win as well as what it says."""
    for file in files:
        loading = f"failed to load Kubelet config file {file.path}, error"
        written = _loaded(file, f"failed to load kubelet dropin file, path: {file.path}, error: {loading}", findings)
        drop_in = _defaulted(written, file, Layer.DROP_IN, findings)
        merged = drop_ins.merge_whole(base, drop_in, schema.ROOT, findings.minor)
        for name in merged:
            if name not in written and merged[name] != base.get(name):
                findings.origins.pop(name, None)
        base = merged
    return base


def _patched(base: Object, files: tuple[File, ...], findings: Findings) -> Object:
    patches = [_patch(file, findings) for file in files]
    found = drop_ins.apply_patches(base, patches, findings.minor)
    for mistake in found.mistakes:
        file = _who_wrote(mistake.path[0], files, patches)
        said = f"failed to merge kubelet configs: failed to unmarshal merged JSON into kubelet configuration: {mistake.text}"
        findings.fatal("bad-value", said, place(file, mistake.path) if file else None)
    if found.mistakes:
        raise StoppedError
    for path in found.unknown:
        file = _who_wrote(path[0], files, patches)
        if file:
            findings.dropped_field(file, path)
    for name in [name for name in findings.origins if base.get(name) != found.configuration.get(name)]:
        del findings.origins[name]
    for file, patch in zip(files, patches, strict=True):
        findings.files[file.path] = file
        _say_who(patch, file, found.configuration, findings)
    return found.configuration


def _patch(file: File, findings: Findings) -> Object:
    try:
        return drop_ins.patch_of(file, findings.minor)
    except LoadError as error:
        comma = (
            ", " if error.text == "no apiVersion/kind" or error.text.startswith("unknown apiVersion") else ", error: "
        )
        said = (
            f"failed to merge kubelet configs: failed to load kubelet dropin file, path: {file.path}{comma}{error.text}"
        )
        raise findings.unreadable(file, error, said) from None


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


def _check(configuration: Object, flags: Flags, sources: Sources, findings: Findings) -> None:
    checked = Checked(configuration, findings.minor, sources.cgroup_v1)
    found = complaints(checked)
    for complaint in found:
        said = _wrapped(findings, "failed to validate kubelet configuration, error", complaint.text)
        findings.fatal("invalid-configuration", said, findings.place_of(complaint.field))
    if found:
        raise StoppedError
    refused = start_checks.refusal(checked, flags)
    if refused is not None:
        said = f"failed to run Kubelet: {refused.text}"
        raise findings.stop("cannot-run", said, findings.place_of(refused.field))


@lru_cache(maxsize=4096)
def _remembered(version: Version, key: _Key) -> Outcome:
    return outcome(version, key.sources)


class _Key:
    """``Sources`` as a key: its mapping of the environment has no hash of its own."""

    __slots__ = ("_hash", "_parts", "sources")

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        environment = frozenset(sources.environment.items())
        self._parts = (sources.config, sources.drop_ins, sources.flags, environment, sources.cgroup_v1)
        self._hash = hash(self._parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self._parts == other._parts


def remembered_outcome(version: Version, sources: Sources) -> Outcome:
    """``outcome``, worked out once for each pair: thousands of nodes have few distinct ones. Do not change what it returns."""
    return _remembered(version, _Key(sources))
