"""Flags put into the environment file or drop-in that is their home, others removed from theirs, proven by expanding
the command line again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache

from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Node
from rollout.core.model.plan import FileChange
from rollout.core.model.playbook import Shadowed, Templates
from rollout.core.model.settings import Setting, Value
from rollout.kubelet import fields, homes, values
from rollout.kubelet.changes import splice
from rollout.kubelet.changes.templated_config import Rendered, rendered
from rollout.kubelet.fields import Flag
from rollout.kubelet.homes import InFlag
from rollout.kubelet.intents import DEADLINE, DEADLINE_FLAG
from rollout.kubelet.node import arguments, env_file, layout, rancher, unit_file
from rollout.kubelet.node.fitness import others
from rollout.kubelet.node.layout import DROP_IN, UNIT, VARIABLE, ArgumentsHome, EnvHome, Layout, LayoutError
from rollout.kubelet.node.sources import FitNode
from rollout.kubelet.node.unit_file import Piece
from rollout.kubelet.values import reason
from rollout.kubelet.versions import Version

# Flags that a playbook's template adds to the arguments it is given. It can neither drop nor change one.


def template_flags(
    now: Layout, flags: tuple[InFlag, ...], templates: Templates, version: Version, node: Node
) -> tuple[InFlag, ...]:
    """What the template adds to the variable for flags, without the node's own arguments and ours."""
    merged = arguments.merge(now.variable_value, [flag.argument for flag in flags])
    own = [merged[word.start : word.end] for word in arguments.split(merged)]
    variables: dict[str, Value] = {"variable": now.variable, "arguments": [_escaped(word) for word in own]}
    environment_file = rendered(templates.flags_env, templates.flags_env_name, variables, node)
    try:
        environment = env_file.values(environment_file.text)
        words = tuple(word.text for word in arguments.split(environment.pop(now.variable, "")))
    except ValueError as error:
        raise environment_file.refused(f"invalid template output: {error}", words=("variable",)) from None
    own_words = tuple(word.text for word in arguments.split(merged))
    stray = [*environment, *(word for word in words if not word.startswith("-") and word not in own_words)]
    if now.variable not in env_file.values(environment_file.text):
        raise environment_file.refused(f"the template does not set {now.variable}", words=("variable",))
    if stray:
        raise environment_file.refused(f"the template sets {stray[0]!r}", words=(stray[0],))
    _check_kept(environment_file, own_words, words)
    given = {(flag.name, flag.value) for flag in arguments.given(own_words)}
    rest = [flag for flag in arguments.given(words) if (flag.name, flag.value) not in given]
    return tuple(_template_flag(environment_file, flag, version) for flag in rest)


def _check_kept(rendered_file: Rendered, own: tuple[str, ...], words: tuple[str, ...]) -> None:
    """Check that every flag in ``arguments`` is present with its value."""
    for flag in arguments.given(own):
        given = arguments.last(words, flag.name)
        ordered = arguments.last(own, flag.name)
        if given is None:
            raise rendered_file.refused(
                f"the template drops {flag.name}, which is among `arguments`",
                words=("arguments", "variable"),
                about=(flag.name,),
            )
        if ordered is not None and given.value != ordered.value:
            message = f"the template sets {flag.name}={given.value}, `arguments` has {flag.name}={ordered.value}"
            raise rendered_file.refused(message, words=(flag.name,), about=(flag.name,))


def _template_flag(rendered_file: Rendered, flag: arguments.Given, version: Version) -> InFlag:
    known = fields.flag(flag.name)
    if known is None or not known.known_in(version.minor) or flag.name in homes.NOT_OURS:
        ours = flag.name not in homes.NOT_OURS
        why = f"unknown flag for kubelet {version.short}" if ours else "rollout does not manage it"
        message = f"the template adds {flag.name}: {why}"
        raise rendered_file.refused(message, words=(flag.name,))
    return InFlag(flag.name, flag.value, known.kind)


def _escaped(word: str) -> str:
    """A word as a bare value in an environment file: a backslash takes the next character there."""
    return word.replace("\\", "\\\\").replace('"', '\\"').replace("'", "\\'")


# The new texts of the files with a kubelet's flags: ours merged in, others removed, every other word unchanged.


def flag_texts(fit: FitNode, ours: tuple[str, ...], taken: Collection[str], templates: Templates) -> Mapping[str, str]:
    """Path → text of each changed file, so that ``ours`` (``--flag=value``) are set and ``taken`` are not."""
    now = fit.layout
    if isinstance(now.flags_home, ArgumentsHome):
        return _kubelet_args(now.flags_home, now, ours, taken, fit.version)
    texts = _environments(now, ours if isinstance(now.flags_home, EnvHome) else (), taken)
    command = unit_file.inlined(now.start.command, repeated(now, ours, taken))
    command = unit_file.without(command, taken)
    if not isinstance(now.flags_home, EnvHome):
        command = unit_file.merge(command, ours)
    if command != now.start.command:
        variables: dict[str, Value] = {"exec_start": command, "unit": UNIT}
        drop_in = rendered(templates.drop_in, templates.drop_in_name, variables, fit.node)
        _check_command(drop_in, command, now.start.specifiers)
        texts[DROP_IN] = drop_in.text
    return texts


def _kubelet_args(
    home: ArgumentsHome, now: Layout, ours: tuple[str, ...], taken: Collection[str], version: Version
) -> Mapping[str, str]:
    """Our file with ``kubelet-arg``. Flags of others are in their files or are k3s's own: rollout edits neither."""
    title = home.embedding.title
    if taken:
        where = "; ".join(f"{name}: {now.origin(name)}" for name in sorted(taken))
        raise LayoutError(
            "flag-shadows-field", f"rollout removes no argument of {title} ({where}): remove it there by hand"
        )
    if home.refused:
        raise LayoutError("flag-shadowed", f"{home.path} would not decide: {home.embedding.unit}: {home.refused}")
    if version.minor < rancher.APPENDING_SINCE:
        since = f"1.{rancher.APPENDING_SINCE}"
        raise LayoutError("setting-unsupported", f"{title} reads {home.embedding.folder} from {since} on")
    try:
        return {home.path: rancher.with_flags(home.texts.get(home.path), ours)}
    except ValueError as error:
        raise LayoutError("layout-not-understood", str(error)) from None


def _check_command(rendered_file: Rendered, command: str, specifiers: unit_file.Specifiers) -> None:
    """A drop-in starts the kubelet with ``exec_start`` and with nothing else, whatever else it contains."""
    try:
        texts = {UNIT: "[Service]\nExecStart=/of-the-unit\n", DROP_IN: rendered_file.text}
        started = unit_file.start(texts, specifiers).command
        same = unit_file.exec_words(started, specifiers) == unit_file.exec_words(command, specifiers)
    except ValueError as error:
        raise rendered_file.refused(f"invalid template output: {error}", words=("ExecStart",)) from None
    if not same:
        raise rendered_file.refused("the template would start another command than `exec_start`", words=("ExecStart",))


KUBEADM_VARIABLE = "KUBELET_KUBEADM_ARGS"
"""Never left empty: ``kubeadm upgrade`` 1.35.0 then fails with ``no flags found in file`` (kubeadm #3279). It gets the
``--config`` that the command line has already, which changes nothing.
"""


def file_of(now: Layout, piece: Piece) -> str:
    """The file that changes when this word is changed on the command line."""
    home = now.flags_home
    if isinstance(home, EnvHome) and piece.variable == home.variable:
        return home.path
    return piece.file if piece.variable and piece.file in now.environments else DROP_IN


def repeated(now: Layout, ours: tuple[str, ...], taken: Collection[str]) -> Mapping[str, str]:
    """Variables of ``Environment=`` with a flag that changes, and their values: our drop-in has their words instead.

    The unit's files of others keep their bytes. A variable without such a flag stays a variable, so that later edits of
    it have an effect.
    """
    in_command = () if isinstance(now.flags_home, EnvHome) else ours
    names = {flag.name for flag in arguments.given(in_command)} | set(taken)
    pieces = [now.pieces[1 + flag.start] for flag in arguments.given(now.asked) if flag.name in names]
    variables = {piece.variable for piece in pieces if piece.variable and file_of(now, piece) == DROP_IN}
    return {variable: now.variables[variable] for variable in sorted(variables)}


def _environments(now: Layout, ours: tuple[str, ...], taken: Collection[str]) -> dict[str, str]:
    """Each environment file with the variables that change."""
    pieces = [now.pieces[1 + flag.start] for flag in arguments.given(now.asked) if flag.name in taken]
    where = {piece.variable: path for piece in pieces if (path := file_of(now, piece)) != DROP_IN}
    if ours:
        where[now.variable] = now.flags_home.path
    texts: dict[str, str] = {}
    for variable, path in where.items():
        try:
            value = arguments.without(now.variables.get(variable, ""), taken)
            value = arguments.merge(value, ours) if variable == now.variable else value
            if variable == KUBEADM_VARIABLE and not arguments.split(value):
                value = _filler(now)
            texts[path] = env_file.assign(texts.get(path, now.environments.get(path, "")), variable, value)
        except ValueError as error:
            raise LayoutError("layout-not-understood", f"{path}: {error}") from None
    return texts


def _filler(now: Layout) -> str:
    if not now.config_path:
        message = f"moving the last flag of {KUBEADM_VARIABLE} would leave it empty, and kubeadm 1.35.0 cannot upgrade such a node (kubeadm #3279)"
        raise LayoutError("flag-shadows-field", message)
    return arguments.quote(f"--config={now.config_path}")


def _kept(now: Layout, text: str, path: str) -> list[str]:
    """The reason for the flag that keeps the variable of kubeadm from being empty, if this change adds it to this file."""
    if path not in now.environments or not now.config_path:
        return []
    old, new = (env_file.values(each).get(KUBEADM_VARIABLE, "") for each in (now.environments[path], text))
    if old == new or new != _filler(now):
        return []
    why = "kubeadm 1.35.0 cannot upgrade a node where it is empty (kubeadm #3279)"
    return [f"{KUBEADM_VARIABLE} repeats {new}, which changes nothing: {why}"]


@dataclass(frozen=True, slots=True)
class FlagChange:
    """The layout afterwards, the flags that must then be in force, and the files that produce it."""

    then: Layout
    flags: tuple[InFlag, ...]
    files: tuple[FileChange, ...]
    notes: tuple[str, ...] = ()


_ADDED_UP = frozenset({"gates", "labels", "pairs", "thresholds"})
"""Kinds of flags that are maps: those of one name are merged, and the last value of a key counts
(staging/src/k8s.io/component-base/cli/flag, ``MapStringString``, ``LangleSeparatedMapStringString``, ``ConfigurationMap``).
"""


def holds(words: tuple[str, ...], flag: InFlag) -> bool:
    """Is exactly this value of the flag in force on this command line?"""
    given = [each.value for each in arguments.given(words) if each.name == flag.name]
    if not given:
        return False
    if flag.kind in _ADDED_UP and len(given) > 1:
        return _added_up(given) == _added_up([flag.text])
    return values.same_flag(flag.kind, given[-1], flag.text)


def _added_up(texts: Sequence[str]) -> Mapping[str, str]:
    """Key → sign and value, of the entries of all these values."""
    found: dict[str, str] = {}
    for entry in (part.strip() for text in texts for part in text.split(",")):
        key = entry.partition("=")[0].partition("<")[0]
        if entry:
            found[key] = entry[len(key) :]
    return found


def pending(now: Layout, flags: tuple[InFlag, ...]) -> tuple[str, ...]:
    """Flags that the running kubelet does not have."""
    return tuple(flag.argument for flag in flags if not holds(now.running[1:], flag))


def flag_change(
    fit: FitNode,
    flags: tuple[InFlag, ...],
    taken: Mapping[str, str],
    settings: Mapping[str, Setting],
    templates: Templates,
) -> FlagChange:
    """What must be written so that all ``flags`` and the template's flags are in force, and none of ``taken`` is left.

    ``taken``: flag → the field that is written instead of it. An environment file, which needs no daemon-reload, is tried before our drop-in.
    """
    try:
        return _flag_change(fit, flags, taken, settings, templates)
    except LayoutError as error:
        if error.reference != "flag-shadowed" or not isinstance(fit.layout.flags_home, EnvHome):
            raise
        if fit.layout.variable == VARIABLE:
            raise
    return _flag_change(replace(fit, layout=fit.layout.over_drop_in), flags, taken, settings, templates)


def _flag_change(
    fit: FitNode,
    flags: tuple[InFlag, ...],
    taken: Mapping[str, str],
    settings: Mapping[str, Setting],
    templates: Templates,
) -> FlagChange:
    now = fit.layout
    if flags and isinstance(now.flags_home, EnvHome):
        flags = (*flags, *template_flags(now, flags, templates, fit.version, fit.node))
    missing = tuple(flag for flag in flags if not holds(now.asked, flag))
    if not missing and not taken:
        return FlagChange(now, flags, ())
    ours = tuple(flag.argument for flag in missing)
    texts = flag_texts(fit, ours, taken, templates)
    # What systemd will run with ``texts``: our flags in force, removed flags gone, everything else unchanged.
    paths = ", ".join(texts)
    try:
        then = layout.rewritten(now, texts)
    except ValueError as error:
        raise LayoutError("template-not-understood", f"{paths} as rendered: {error}") from None
    if DROP_IN in texts and then.start.file != DROP_IN:
        decides = f"{then.start.file} sets ExecStart=, and systemd reads it after {DROP_IN}"
        if ours:
            raise LayoutError("flag-shadowed", f"{ours[0]} would not be in force: {decides}")
        raise LayoutError("flag-shadows-field", f"{next(iter(taken))} would still be set: {decides}")
    for name in flags:
        if not holds(then.asked, name):
            where = then.origin(name.name) or "nowhere"
            raise LayoutError("flag-shadowed", f"{name.argument} would not be in force: {name.name} is set by {where}")
    changed = frozenset(name.name for name in flags) | frozenset(taken)
    if then.config_path == now.config_path:
        changed |= {"--config"}
    if others(then.asked, changed) != others(now.asked, changed) or then.pieces[0].text != now.pieces[0].text:
        raise LayoutError("template-not-understood", f"{paths} as rendered would change more than rollout's flags")
    left = next((name for name in taken if then.flag(name) is not None), "")
    if left:
        raise LayoutError("flag-shadows-field", f"{left} would still be set by {then.origin(left)}")
    reasons = {
        path: tuple(
            [
                reason(flag, now.flag(flag) or "", f"removed, {field} is written instead", settings.get(field))
                for flag, field in taken.items()
                if path in _files(now, flag)
            ]
            + [_reason(now, flag, settings, templates) for flag in missing if path == now.flags_home.path]
            + _kept(now, texts[path], path)
        )
        for path in texts
    }
    files = tuple(_file(fit, path, text, reasons[path]) for path, text in texts.items())
    copied = [(DROP_IN, variable) for variable in repeated(now, ours, taken)] + _copied(now, texts)
    notes = tuple(
        f"{path} repeats the words of ${variable}: later edits of it in {now.start.set_by[variable]} have no effect"
        for path, variable in copied
    )
    return FlagChange(then, flags, files, notes)


def _copied(now: Layout, texts: Mapping[str, str]) -> list[tuple[str, str]]:
    """The environment file that takes a variable over from ``Environment=`` and repeats its words, with the variable."""
    home = now.flags_home
    if not isinstance(home, EnvHome) or home.path not in texts or home.variable not in now.start.set_by:
        return []
    by_file = any(home.variable in env_file.values(text) for text in now.environments.values())
    return [] if by_file or not now.variable_value.strip() else [(home.path, home.variable)]


def _file(fit: FitNode, path: str, text: str, reasons: tuple[str, ...]) -> FileChange:
    state = fit.snapshot.files.get(path)
    before = None if state is not None and state.kind == "absent" else layout.text_of(state, path).encode()
    return FileChange(path, before, text.encode(), reasons)


def _files(now: Layout, name: str) -> tuple[str, ...]:
    """The files that change when this flag is removed."""
    return tuple(file_of(now, now.pieces[1 + flag.start]) for flag in arguments.given(now.asked) if flag.name == name)


def _reason(now: Layout, flag: InFlag, settings: Mapping[str, Setting], templates: Templates) -> str:
    setting = settings.get(flag.name)
    if setting is None and flag.name == DEADLINE_FLAG:
        setting = settings.get(DEADLINE)
    old = now.flag(flag.name) or "not set"
    known = fields.flag(flag.name)
    if setting is None and known is not None and isinstance(now.flags_home, ArgumentsHome):
        setting = settings.get(known.field)
    if setting is None and flag.name == "--config":
        return f"--config: {old} → {flag.text} (so that the kubelet reads it)"
    if setting is None:
        return f"{flag.name}: {old} → {flag.text} (template {templates.flags_env_name})"
    return reason(flag.name, old, flag.text, setting)


def must_hold(then: Layout, flags: tuple[InFlag, ...]) -> tuple[str, ...]:
    """The exact words that the command line must contain afterwards: ``--config`` and our flags, as they will be
    written.
    """
    names = dict.fromkeys(["--config", *(flag.name for flag in flags)])
    given = [arguments.last(then.asked, name) for name in names]
    return tuple(word for flag in given if flag is not None for word in then.asked[flag.start : flag.end])


# A flag overrides a field with another value: the node is refused, or the flag is removed and the field is written.
#
# Removing a flag must leave everything else unchanged: its values that are not ours go into the field too.
# ``kubeletConfigFlagPrecedence`` parses the arguments again on top of the file (cmd/kubelet/app/server.go); feature
# gates are merged key by key, and flags win.


@cache
def _flags_of(name: str) -> tuple[tuple[Flag, tuple[str, ...]], ...]:
    """Flags that set this field or a part of it, with the path inside the field."""
    entry = fields.field(name)
    whole = dict.fromkeys(entry.flags, ()) if entry else {}
    parts = {
        flag: tuple(known.field.split(".")[1:])
        for flag in fields.every_name()
        if (known := fields.flag(flag)) is not None and known.field.split(".")[0] == name
    }
    texts = {**whole, **parts}
    return tuple((known, path) for flag, path in texts.items() if (known := fields.flag(flag)) is not None)


@dataclass(frozen=True, slots=True)
class ShadowingFlag:
    """A flag as given, and whether it sets the field as a whole or one value inside it."""

    flag: str
    value: str
    whole: bool


def shadows(name: str, value: Value, words: tuple[str, ...]) -> tuple[ShadowingFlag, ...]:
    """Every ``--flag=value`` in ``words`` that would override this field with another value."""
    shadowing: list[ShadowingFlag] = []
    for flag, path in _flags_of(name):
        given = arguments.last(words, flag.name)
        touched, part = _part(value, path)
        if given is not None and touched and not _agrees(flag, given.value, part):
            shadowing.append(ShadowingFlag(flag.name, given.value, whole=not path))
    return tuple(shadowing)


def _part(value: Value, path: tuple[str, ...]) -> tuple[bool, Value]:
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return False, None
        value = value[key]
    return True, value


def _agrees(flag: Flag, given: str, value: Value) -> bool:
    if isinstance(value, dict):
        return flag.name == "--feature-gates" and _gates_agree(given, value)
    if isinstance(value, list):
        return given.split(",") == value
    kind = "bool" if isinstance(value, bool) else flag.kind
    return values.same_flag(kind, given, values.flag_text(value))


def _gates_agree(given: str, gates: dict[str, Value]) -> bool:
    pairs = dict(pair.strip().partition("=")[::2] for pair in given.split(",") if pair.strip())
    return all(
        values.same_flag("bool", pairs[gate], values.flag_text(on)) for gate, on in gates.items() if gate in pairs
    )


@dataclass(frozen=True, slots=True)
class Moved:
    """Flags to remove, each with the field that is written instead; ``fields`` are all that must be written."""

    flags: Mapping[str, str]
    fields: Mapping[str, Value]


def moved(fit: FitNode, needed: Mapping[str, Value], shadowed: Shadowed, where: str) -> Moved:
    """The flags that override ``needed`` fields in ``where``, if the playbook lets them be moved; else ``LayoutError``."""
    flags: dict[str, str] = {}
    fields = dict(needed)
    for name, value in needed.items():
        for shadow in shadows(name, value, fit.layout.asked):
            if shadowed is Shadowed.REFUSE:
                origin = fit.layout.origin(shadow.flag)
                message = f"{shadow.flag}={shadow.value} ({origin}) overrides {name} in {where}"
                raise LayoutError("flag-shadows-field", message)
            flags[shadow.flag] = name
            was = fit.outcome.effective.get(name)
            if shadow.whole and isinstance(was, dict) and isinstance(value, dict):
                fields[name] = splice.merged(was, value, values.same, (name,))
    return Moved(flags, fields)
