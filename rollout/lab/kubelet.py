"""A kubelet's start as a function: version, arguments and files in; journal lines and outcome out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from rollout.kubelet import fields
from rollout.kubelet.configuration.flags import FlagToken, Malformed, Stray, tokens
from rollout.lab import configfile, drop_ins
from rollout.lab.configfile import DecodedFile, FatalError
from rollout.lab.units import Tree

START_UP = 0.3
"""Seconds from start until /healthz answers."""


@dataclass(frozen=True, slots=True)
class ProgramStart:
    """The outcome of one start of a program. ``status`` is ``None`` if it stays up, else its exit status after ``life``
    seconds; until then its unit is ``active``. ``values`` are those of a kubelet's configuration file.
    """

    journal: tuple[str, ...] = ()
    status: int | None = None
    healthz_port: int = 0
    fingerprint: str = ""
    life: float = 0.05
    values: Mapping[str, object] = field(default_factory=dict)


def minor_of(version: str) -> int:
    """``v1.20.15`` or ``1.20.15`` → 20."""
    return int(version.lstrip("v").split(".")[1])


def start(
    version: str, arguments: tuple[str, ...], tree: Tree, variables: Mapping[str, str] | None = None
) -> ProgramStart:
    """Start the kubelet ``version`` with a command line (the program's own name first) on a node's files, with an environment."""
    minor = min(minor_of(version), fields.known_minors().stop - 1)  # a newer one behaves like the newest known
    fingerprint = hashlib.sha256("\0".join(arguments).encode())
    try:
        flags = parse_flags(minor, arguments[1:])
        decoded = DecodedFile()
        if flags.get("config"):
            content = tree.read(flags["config"])
            fingerprint.update(content or b"")
            if content is None:
                path = flags["config"]
                raise FatalError(
                    f"failed to load Kubelet config file {path}, error failed to read kubelet config file"
                    f' "{path}", error: open {path}: no such file or directory'
                )
            decoded = configfile.decode(minor, content, flags["config"])
        values = decoded.values
        if flags.get("config-dir"):
            values, read = drop_ins.merged(minor, tree, flags["config-dir"], values, variables or {})
            fingerprint.update(read)
        _check_together(minor, flags, values)
    except FatalError as error:
        return ProgramStart((_last_words(minor, str(error)),), 255 if minor < 23 else 1, 0, fingerprint.hexdigest())
    journal = (*_lenient(minor, decoded.strict), *_greeting(version, minor))
    return ProgramStart(journal, None, _port(flags, values), fingerprint.hexdigest(), values=values)


def parse_flags(minor: int, arguments: tuple[str, ...]) -> dict[str, str]:
    """pflag's reading of a command line for this version; ``FatalError`` for a refused command line."""
    found: dict[str, str] = {}
    for token in tokens(arguments):
        match token:
            case Stray(at):
                colon = ":" if minor < 23 else ""
                raise FatalError(f"unknown command{colon} {arguments[at]}")
            case Malformed(at):
                raise FatalError(f"{_parsing(minor)}bad flag syntax: {arguments[at]}")
            case FlagToken():
                found[token.name[2:]] = _flag(minor, token)
    return found


def _flag(minor: int, token: FlagToken) -> str:
    flag = fields.flag(token.name)
    if flag is None or not flag.known_in(minor):
        raise FatalError(f"{_parsing(minor)}unknown flag: {token.name}")
    if token.value is None:
        raise FatalError(f"{_parsing(minor)}flag needs an argument: {token.name}")
    _check_flag(minor, token.name[2:], flag.kind, token.value)
    return token.value


def _check_flag(minor: int, name: str, kind: str, value: str) -> None:
    problem = ""
    if kind == "duration":
        problem = configfile.duration_problem(value)
    elif kind == "bool" and value.lower() not in {"true", "false", "1", "0", "t", "f"}:
        problem = f'strconv.ParseBool: parsing "{value}": invalid syntax'
    elif kind in {"int32", "int64"} and not value.lstrip("-+").isdigit():
        problem = f'strconv.ParseInt: parsing "{value}": invalid syntax'
    if problem:
        raise FatalError(_parsing(minor) + f'invalid argument "{value}" for "--{name}" flag: {problem}')


def _check_together(minor: int, flags: Mapping[str, str], values: Mapping[str, object]) -> None:
    parallel = values.get("maxParallelImagePulls")
    if minor < 27 or not isinstance(parallel, int):
        return
    if parallel < 1:
        raise FatalError(f"invalid configuration: maxParallelImagePulls {parallel} must be a positive number")
    serial = flags.get("serialize-image-pulls", str(values.get("serializeImagePulls", "false"))).lower() == "true"
    if parallel > 1 and serial:
        raise FatalError(
            "invalid configuration: maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls "
            "(--serialize-image-pulls) is set to false"
        )


def _port(flags: Mapping[str, str], values: Mapping[str, object]) -> int:
    port = flags.get("healthz-port", values.get("healthzPort"))
    return 10248 if port is None else int(str(port))


def _parsing(minor: int) -> str:
    return "" if minor < 23 else "failed to parse kubelet flag: "


def _last_words(minor: int, message: str) -> str:
    if minor < 23:
        return f"F1120 09:00:00.000000    4242 server.go:156] {message}"
    if minor < 26:
        return f"Error: {message}"
    return f'E1120 09:00:00.000000    4242 run.go:72] "command failed" err="{message}"'


def _lenient(minor: int, strict: tuple[str, ...]) -> tuple[str, ...]:
    if not strict:
        return ()
    said = ", ".join(strict)
    if minor < 21:
        old = said.replace("unknown field ", "v1beta1.KubeletConfiguration.ReadObject: found unknown field: ")
        head = "W1120 09:00:00.000000    4242 codec.go:118] using lenient decoding as strict decoding failed"
        return (f"{head}: strict decoder error: {old}",)
    quoted = said.replace('"', '\\"')
    head = 'I1120 09:00:00.000000    4242 codec.go:102] "Using lenient decoding as strict decoding failed"'
    return (f'{head} err="strict decoding error: {quoted}"',)


def _greeting(version: str, minor: int) -> tuple[str, ...]:
    bare = version.lstrip("v")
    if minor < 21:
        return (f"I1120 09:00:00.000000    4242 server.go:416] Version: v{bare}",)
    return (f'I1120 09:00:00.000000    4242 server.go:440] "Kubelet version" kubeletVersion="v{bare}"',)
