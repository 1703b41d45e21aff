"""A kubelet's command line, as pflag reads it, and the fields that its flags set: one mistake is fatal, and no flag is
then used.

Words that are no flags are fatal in a later step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from rollout.core.model.frozen import dataclass
from rollout.kubelet import fields
from rollout.kubelet.configuration import schema
from rollout.kubelet.configuration.flag_values import GLOBAL_SWITCHES, setter
from rollout.kubelet.configuration.go_values import GoValueError, duration, quoted
from rollout.kubelet.configuration.schema import FieldType, Form

# Splits a command line into flags as pflag does. The one place that knows pflag's grammar.
#
# ``--flag=value`` and ``--flag value``; a switch takes no following word; ``_`` in a long name is ``-``
# (component-base's WordSepNormalizeFunc); a value may follow a short name (``-v=2``, ``-v2``, ``-v 2``);
# short names of switches may be combined (``-hv2``); ``--`` ends the flags; ``-test.…`` is skipped, as in
# Go's own tests. Each word is read once. Source: ``parseArgs``, ``parseLongArg`` and ``parseSingleShortArg``
# of pflag 1.0.5 to 1.0.9 (1.20 to 1.36), which agree.
#
# Whether a flag takes a word depends on the kubelet. pflag ends at a flag that it does not know. A caller that
# reads on (flags of another minor, or of cri-dockerd and dockerd) gets a guess by the form of the next word: a flag,
# or a value.


_LONG = {"v": "--v", "h": "--help"}
"""The kubelet's short names."""


@dataclass(frozen=True, slots=True)
class FlagToken:
    """One flag: words ``start`` to ``end`` (exclusive). ``value`` ``None``: it needs one, but no word is left.

    ``name`` is the long one, with dashes; that of an unknown letter is ``-x``. ``shorts`` is the rest of a word of
    short names that pflag reads: ``v2`` of ``-v2`` (``""``: it was given by its long name).
    """

    name: str
    value: str | None
    start: int
    end: int
    shorts: str = ""


@dataclass(frozen=True, slots=True)
class Stray:
    """A word that is no flag."""

    at: int


@dataclass(frozen=True, slots=True)
class Malformed:
    """A word that cannot be a flag: ``---x``, ``--=x``."""

    at: int


def tokens(words: Sequence[str], hungry: Collection[str] = ()) -> Iterator[FlagToken | Stray | Malformed]:
    """The whole command line without the program, from left to right. ``hungry``: switches that take a word as well."""
    at = 0
    while at < len(words):
        word = words[at]
        if word == "--":
            yield from map(Stray, range(at + 1, len(words)))
            return
        if len(word) < 2 or word[0] != "-":
            yield Stray(at)
            at += 1
        elif word[1] == "-":
            token = _long(words, at, hungry)
            yield token
            at = token.end if isinstance(token, FlagToken) else at + 1
        else:
            end = at + 1
            for short in _shorts(words, at):
                yield short
                end = short.end
            at = end


def takes_word(flag: fields.Flag) -> bool:
    """Whether a flag that is given without ``=`` takes the following word as its value."""
    return flag.kind != "bool" and flag.name != "--version"


def _long(words: Sequence[str], at: int, hungry: Collection[str]) -> FlagToken | Malformed:
    written, equals, value = words[at][2:].partition("=")
    if not written or written[0] == "-":
        return Malformed(at)
    name = f"--{written.replace('_', '-')}"
    if equals:
        return FlagToken(name, value, at, at + 1)
    flag = fields.flag(name)
    alone = flag is not None and not takes_word(flag) and name not in hungry
    return FlagToken(name, "true", at, at + 1) if alone else FlagToken(name, *_following(words, at, flag is not None))


def _shorts(words: Sequence[str], at: int) -> Iterator[FlagToken]:
    shorts = words[at][1:]
    while shorts and not shorts.startswith("test."):
        name = _LONG.get(shorts[0], f"-{shorts[0]}")
        flag = fields.flag(name)
        rest = shorts[1:]
        if len(rest) > 1 and rest[0] == "=":
            yield FlagToken(name, rest[1:], at, at + 1, shorts)
            return
        if flag is not None and not takes_word(flag):
            yield FlagToken(name, "true", at, at + 1, shorts)
            shorts = rest
        elif rest:
            yield FlagToken(name, rest, at, at + 1, shorts)
            return
        else:
            yield FlagToken(name, *_following(words, at, flag is not None), shorts)
            return


def _following(words: Sequence[str], at: int, known: bool) -> tuple[str | None, int, int]:  # noqa: FBT001 (of a flag)
    """The value of a flag that was given without ``=``, and the span of its words."""
    following = words[at + 1] if at + 1 < len(words) else None
    if following is None or (not known and following.startswith("-")):
        return None, at, at + 1
    return following, at, at + 2


_SHORT = {"--v": "-v", "--help": "-h"}


class FlagError(ValueError):
    """The kubelet does not start; the text is pflag's. ``flag``: the one that this kubelet does not know."""

    def __init__(self, reference: str, text: str, flag: str = "") -> None:
        super().__init__(text)
        self.flag = flag
        self.reference = reference
        self.text = text


@dataclass(slots=True)
class Flags:
    """Parsed flags: ``values`` by name, ``given`` the words of the last of each name, ``words`` that are no flags."""

    values: dict[str, Any] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)

    @property
    def gates(self) -> Mapping[str, bool]:
        """What ``--feature-gates`` sets."""
        return self.values.get("--feature-gates") or {}

    def text(self, name: str) -> str:
        """A text flag's value; ``""`` when it is not given."""
        value = self.values.get(name, "")
        return value if isinstance(value, str) else ""


def parse(words: Sequence[str], minor: int) -> Flags:
    """The whole command line without the program, or ``FlagError``."""
    flags = Flags()
    for token in tokens(words):
        match token:
            case Stray(at):
                flags.words.append(words[at])
            case Malformed(at):
                raise FlagError("bad-flag", f"bad flag syntax: {words[at]}")
            case FlagToken():
                _take(flags, token, words[token.start], minor)
    return flags


def parse_again(words: Sequence[str], minor: int) -> Flags:
    """The same words as a kubelet with a file or a folder of drop-ins parses them over these, or ``FlagError``.

    For this it makes a second set of flags in which those of klog and cAdvisor do nothing (``newFakeFlagSet`` and
    ``kubeletConfigFlagPrecedence`` in ``cmd/kubelet/app/server.go``, the same from 1.20.2 to 1.36.3). A switch among
    them has lost its nature there: without ``=`` it takes the next word, whatever that is. ``--help`` is not in it.
    """
    flags = Flags()
    for token in tokens(words, GLOBAL_SWITCHES):
        if isinstance(token, FlagToken) and token.name == "--help":
            raise FlagError("no-start", "pflag: help requested")
        if isinstance(token, FlagToken) and not (token.name in GLOBAL_SWITCHES and token.value is not None):
            _take(flags, token, words[token.start], minor)
    return flags


def _take(flags: Flags, token: FlagToken, word: str, minor: int) -> None:
    flag = fields.flag(token.name)
    flag = flag if flag is not None and flag.known_in(minor) else None
    if flag is None:
        raise _unknown(token, word)
    if token.value is None:
        needs = f"{_letter(token)} in -{token.shorts}" if token.shorts else word
        raise FlagError("bad-flag", f"flag needs an argument: {needs}")
    whole = f"{word}={token.value}" if not token.shorts and "=" not in word else word
    name = f"{_SHORT[flag.name]}, {flag.name}" if flag.name in _SHORT else flag.name
    try:
        flags.values[flag.name] = setter(flag.name, flag.kind, minor)(token.value, flags.values.get(flag.name))
    except GoValueError as error:
        raise FlagError(
            "bad-flag-value", f'invalid argument {quoted(token.value)} for "{name}" flag: {error}'
        ) from None
    flags.given[flag.name] = whole


def _unknown(token: FlagToken, word: str) -> FlagError:
    if token.shorts:
        return FlagError("unknown-flag", f"unknown shorthand flag: {_letter(token)} in -{token.shorts}")
    known = fields.flag(token.name)
    reference = "removed-flag" if known is not None and known.removed is not None else "unknown-flag"
    written = word.partition("=")[0]
    return FlagError(reference, f"unknown flag: {written}", written)


def _letter(token: FlagToken) -> str:
    """Go's ``%q`` of the first byte."""
    return f"'{chr(token.shorts.encode('utf-8', 'surrogateescape')[0])}'"


# Which field a flag sets, and flags applied to a configuration: ``kubeletConfigFlagPrecedence``.


_UNNAMED: Mapping[str, tuple[str, ...]] = {
    "--experimental-kernel-memcg-notification": ("kernelMemcgNotification",),
    "--experimental-logging-sanitization": ("logging", "sanitization"),
    "--log-flush-frequency": ("logging", "flushFrequency"),
    "--log-json-info-buffer-size": ("logging", "options", "json", "infoBufferSize"),
    "--log-json-split-stream": ("logging", "options", "json", "splitStream"),
    "--log-text-info-buffer-size": ("logging", "options", "text", "infoBufferSize"),
    "--log-text-split-stream": ("logging", "options", "text", "splitStream"),
    "--v": ("logging", "verbosity"),
    "--vmodule": ("logging", "vmodule"),
}
"""Flags without a field in the table of flags: they had none in 1.20, or have one in 1.20 alone."""


def field_path(name: str, minor: int) -> tuple[str, ...]:
    """The path of the field that a flag sets; ``()`` for a flag without a field."""
    flag = fields.flag(name)
    named = tuple(flag.field.split(".")) if flag is not None and flag.field else ()
    path = _UNNAMED.get(name, named)
    return path if path and _kind(path, minor) else ()


def reset_by_flags(configuration: Mapping[str, Any], minor: int) -> tuple[dict[str, Any], tuple[tuple[str, ...], ...]]:
    """The configuration after the kubelet has registered its flags over it, and the paths that this has changed.

    Most flags have the field's own value as their default. These have a constant one, which overwrites the field: from
    1.23 on no file can set them. Sources: ``BindLoggingFlags`` (component-base ``logs/config.go``, 1.23 and 1.24),
    ``addFlags`` (``logs/api/v1/options.go``, 1.25 to 1.36), called by ``kubeletConfigFlagPrecedence``.
    """
    full = dict(configuration)
    changed = []
    for path, until, value in _CONSTANT_DEFAULTS:
        kind = _kind(path, minor)
        before = value_at(full, path)
        if kind is not None and (until is None or minor <= until) and before not in {None, value}:
            _put(full, path, value)
            changed.append(path)
    return full, tuple(changed)


_CONSTANT_DEFAULTS: tuple[tuple[tuple[str, ...], int | None, Any], ...] = (
    (("logging", "flushFrequency"), 24, 5 * 10**9),
    (("logging", "options", "json", "splitStream"), None, False),
    (("logging", "options", "text", "splitStream"), None, False),
)
"""The path, the last minor (``None``: the newest one that is known too), and the default of its flag."""


def value_at(values: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """The value at this path; ``None``: there is none."""
    value: Any = values
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def with_flags(configuration: Mapping[str, Any], flags: Flags, minor: int) -> dict[str, Any]:
    """The configuration with the flags applied; feature gates are merged key by key."""
    full = dict(configuration)
    for name, value in flags.values.items():
        path = field_path(name, minor)
        kind = _kind(path, minor) if path else None
        if kind is not None and value is not None:
            _put(full, path, _as_field(name, value, kind, full))
    return full


def _as_field(name: str, value: Any, kind: FieldType, full: Mapping[str, Any]) -> Any:
    if name == "--feature-gates":
        return {**(full.get("featureGates") or {}), **value}
    if name == "--vmodule":
        pairs = (part.partition("=") for part in value.split(",") if part)
        before = (full.get("logging") or {}).get("vmodule") or []
        return [*before, *({"filePattern": pattern, "verbosity": int(level)} for pattern, _, level in pairs)]
    return duration(value) if kind.form is Form.NANOSECONDS else value


def _kind(path: tuple[str, ...], minor: int) -> FieldType | None:
    """The type of the field at ``path`` in this minor; ``None`` where it has no such field."""
    kind: FieldType | None = FieldType(Form.OBJECT, schema.ROOT)
    for part in path:
        kind = schema.fields_of(kind.type_name, minor).get(part) if kind and kind.type_name else None
    return kind


def _put(fields_of: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    if len(path) == 1:
        fields_of[path[0]] = value
        return
    inner = dict(fields_of.get(path[0]) or {})
    _put(inner, path[1:], value)
    fields_of[path[0]] = inner
