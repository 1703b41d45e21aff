"""A container runtime's start as a function: command line and files in; journal lines and outcome out.

It exits with the same errors as the real one. These are a file that cannot be parsed, a value of a wrong type, and an
unknown flag or directive of dockerd. A real containerd with an invalid value for its CRI plugin continues without the plugin; here it
just continues.
"""

from __future__ import annotations

import fnmatch
import json
import posixpath
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from rollout.kubelet.configuration.go_values import GoValueError, duration
from rollout.lab.kubelet import ProgramStart
from rollout.lab.units import Tree

_STRINGS = frozenset(
    ("image_pull_progress_timeout", "config_path", "sandbox_image", "pull_progress_timeout", "root", "signature_policy")
)
_NUMBERS = frozenset(
    ("max_concurrent_downloads", "max-concurrent-downloads", "max-download-attempts", "max-concurrent-uploads")
)
_DIRECTIVES = frozenset(
    (
        *(
            "exec-opts",
            "log-driver",
            "log-opts",
            "log-level",
            "storage-driver",
            "storage-opts",
            "data-root",
            "live-restore",
        ),
        *("registry-mirrors", "insecure-registries", "debug", "hosts", "bridge", "iptables", "dns", "features", "mtu"),
        *("cgroup-parent", "default-ulimits", "experimental", "group", "labels", "metrics-addr", "bip", "proxies"),
        *("max-concurrent-downloads", "max-concurrent-uploads", "max-download-attempts", "userland-proxy", "init"),
    )
)
_CRI_DOCKERD = frozenset(
    (
        *("container-runtime-endpoint", "network-plugin", "pod-infra-container-image", "image-pull-progress-deadline"),
        *("cni-bin-dir", "cni-conf-dir", "cri-dockerd-root-directory", "docker-endpoint", "log-level", "hairpin-mode"),
        *("ipv6-dual-stack", "pod-cidr", "runtime-cgroups", "streaming-bind-addr", "network-plugin-mtu"),
    )
)


class RuntimeExitError(Exception):
    """The runtime logs this and exits."""


def start(unit: str, version: str, arguments: tuple[str, ...], tree: Tree) -> ProgramStart:
    """Start a runtime of this ``version`` (``""``: any) with a command line on a node's files."""
    try:
        _READERS[unit](version, arguments, tree)
    except RuntimeExitError as error:
        return ProgramStart((f'time="2026-11-20T09:00:00Z" level=fatal msg="{error}"',), 1)
    return ProgramStart()


def reload(unit: str, arguments: tuple[str, ...], tree: Tree) -> tuple[str, ...] | None:
    """Its log lines after a SIGHUP; ``None``: it does not handle the signal and dies."""
    if unit == "crio.service":
        return ('time="2026-11-20T09:00:00Z" level=info msg="Reloading configuration"',)
    if unit != "docker.service":
        return None
    try:
        _docker("", arguments, tree)
    except RuntimeExitError as error:
        return (f'time="2026-11-20T09:00:00Z" level=error msg="{error}"',)
    return ('time="2026-11-20T09:00:00Z" level=info msg="Reloaded configuration: {}"',)


def _containerd(version: str, arguments: tuple[str, ...], tree: Tree) -> None:
    path = _option(arguments, "--config", "-c") or "/etc/containerd/config.toml"
    if tree.read(path) is None:
        if _option(arguments, "--config", "-c"):
            raise RuntimeExitError(f"failed to load TOML: {path}: no such file or directory")
        return
    waiting, seen = [path], set()
    while waiting:
        path = waiting.pop(0)
        if path not in seen:
            seen.add(path)
            document = _toml(tree, path)
            given, most = document.get("version", 1), 2 if version.startswith("1.") else 3
            if not isinstance(given, int) or not 1 <= given <= most:
                raise RuntimeExitError(
                    f"expected containerd config version equal to or less than `{most}`, got `{given}`"
                )
            waiting += _imports(tree, path, document)


def _imports(tree: Tree, path: str, document: Mapping[str, object]) -> Iterator[str]:
    imports = document.get("imports", [])
    for pattern in imports if isinstance(imports, list) else ():
        whole = posixpath.join(posixpath.dirname(path), str(pattern))
        folder, _, name = whole.rpartition("/")
        if "*" not in name:
            yield whole
            continue
        yield from (f"{folder}/{entry}" for entry in tree.names(folder) if fnmatch.fnmatchcase(entry, name))


def _crio(_version: str, arguments: tuple[str, ...], tree: Tree) -> None:
    main = _option(arguments, "--config", "-c") or "/etc/crio/crio.conf"
    folder = _option(arguments, "--config-dir", "-d") or "/etc/crio/crio.conf.d"
    for path in (main, *(f"{folder}/{name}" for name in tree.names(folder))):
        if tree.read(path) is None:
            continue
        timeout = _value(_toml(tree, path), "pull_progress_timeout")
        problem = _duration_problem(str(timeout)) if timeout is not None else ""
        if problem:
            raise RuntimeExitError(f"validating root config: {path}: {problem}")


def _docker(_version: str, arguments: tuple[str, ...], tree: Tree) -> None:
    path = _option(arguments, "--config-file") or "/etc/docker/daemon.json"
    content, head = tree.read(path), f"unable to configure the Docker daemon with file {path}: "
    if content is None:
        return
    try:
        document = json.loads(content)
    except ValueError as error:
        raise RuntimeExitError(f"{head}{error}") from None
    if not isinstance(document, dict):
        raise RuntimeExitError(f"{head}json: cannot unmarshal into Go value of type map[string]interface {{}}")
    unknown = [name for name in document if name not in _DIRECTIVES]
    if unknown:
        raise RuntimeExitError(
            f"{head}the following directives don't match any configuration option: {', '.join(unknown)}"
        )
    twice = [name for name in document if _option(arguments, f"--{name}")]
    if twice:
        raise RuntimeExitError(
            f"{head}the following directives are specified both as a flag and in the configuration file: {twice[0]}"
        )
    _check_types(document, head)


def _cri_dockerd(_version: str, arguments: tuple[str, ...], _tree: Tree) -> None:
    for word, following in zip(arguments[1:], (*arguments[2:], ""), strict=True):
        name, equals, value = word.partition("=")
        if not word.startswith("--"):
            continue
        if name[2:] not in _CRI_DOCKERD:
            raise RuntimeExitError(f"unknown flag: {name}")
        if name == "--image-pull-progress-deadline":
            problem = _duration_problem(value if equals else following)
            if problem:
                raise RuntimeExitError(f'invalid argument "{value}" for "{name}" flag: {problem}')


def _duration_problem(text: str) -> str:
    """The error of Go's ``time.ParseDuration``; ``""``: it is a duration."""
    try:
        duration(text)
    except GoValueError as error:
        return str(error)
    return ""


def _toml(tree: Tree, path: str) -> dict[str, object]:
    content = tree.read(path)
    if content is None:
        raise RuntimeExitError(f"failed to load TOML: {path}: no such file or directory")
    document, problem = _parsed(content)
    if problem:
        raise RuntimeExitError(f"failed to load TOML: {path}: {problem}")
    return document


@lru_cache(maxsize=128)
def _parsed(content: bytes) -> tuple[dict[str, object], str]:
    """The document, or its error. Cached: thousands of nodes have the same few files."""
    try:
        document = tomllib.loads(content.decode())
        _check_types(document, "")
    except (ValueError, RuntimeExitError) as error:
        return {}, str(error)
    return document, ""


def _check_types(document: Mapping[str, object], head: str) -> None:
    for name, value in document.items():
        if isinstance(value, dict):
            _check_types(value, head)
        elif (name in _STRINGS and not isinstance(value, str)) or (name in _NUMBERS and type(value) is not int):
            raise RuntimeExitError(f"{head}incompatible types: {name} is a {type(value).__name__}")


def _value(document: Mapping[str, object], key: str) -> object:
    """The key's value in any table."""
    for name, value in document.items():
        inner = _value(value, key) if isinstance(value, dict) else value if name == key else None
        if inner is not None:
            return inner
    return None


def _option(arguments: tuple[str, ...], *names: str) -> str:
    value_text = ""
    for word, following in zip(arguments, (*arguments[1:], ""), strict=True):
        name, equals, value = word.partition("=")
        if name in names:
            value_text = value if equals else following
    return value_text


_READERS: Mapping[str, Callable[[str, tuple[str, ...], Tree], None]] = {
    "containerd.service": _containerd,
    "crio.service": _crio,
    "docker.service": _docker,
    "cri-docker.service": _cri_dockerd,
}
