"""Patterns of ``preloadedImagesVerificationAllowlist``: an image name without tag and digest, or a prefix and ``/*``.

Sources: ``getAllowlistImagePattern`` (``pkg/kubelet/images/pullmanager/image_pull_policies.go``, 1.33.13 to 1.36.3);
``regexp.go``, ``reference.go`` and ``normalize.go`` of github.com/distribution/reference, the same in these minors.
"""

from __future__ import annotations

import re

_AS_WRITTEN_SINCE = 36
"""Until 1.35 a name must be the full one, with its registry: ``docker.io/library/a``, not ``a``."""

_PART = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_PART}(?:\.{_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_COMPONENT = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_PATH = f"{_COMPONENT}(?:/{_COMPONENT})*"
_TAG = "[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = "[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_REFERENCE = re.compile(f"((?:{_DOMAIN}/)?{_PATH})(?::({_TAG}))?(?:@({_DIGEST}))?")
_NAME = re.compile(f"(?:({_DOMAIN})/)?({_PATH})")
_IDENTIFIER = re.compile("[a-f0-9]{64}")
_MOST_IN_PATH = 255
_SIZES = {"sha256": 64, "sha384": 96, "sha512": 128}
"""Algorithms that opencontainers/go-digest knows, and the hexadecimal digits of each."""

_REGISTRY, _OFFICIAL = "docker.io", "library/"


def mistake(pattern: str, minor: int) -> str:
    """The kubelet's error about a pattern, or ``""``."""
    if pattern != pattern.strip():
        return f"leading/trailing spaces are not allowed: {pattern}"
    plain = pattern[:-1] if pattern.endswith("/*") else pattern
    if not plain:
        return f"the supplied pattern is too short: {pattern}"
    if "*" in plain:
        return f"not a valid wildcard pattern, only patterns ending with '/*' are allowed: {pattern}"
    if plain != pattern:
        return "at least registry hostname is required" if plain == "/" else ""
    normalized = minor < _AS_WRITTEN_SINCE
    error = (_no_docker_name(pattern) if normalized else "") or _no_reference(_named(pattern, normalized=normalized))
    if error:
        return f"failed to parse as an image name: {error}"
    match = _REFERENCE.fullmatch(_named(pattern, normalized=normalized))
    if match is None or match[1] != pattern:
        return f"neither tag nor digest is accepted in an image reference: {pattern}"
    return ""


def _named(image: str, *, normalized: bool) -> str:
    return "/".join(_split(image)) if normalized else image


def _no_docker_name(image: str) -> str:
    """What ``ParseNormalizedNamed`` refuses before it reads a reference."""
    if _IDENTIFIER.fullmatch(image):
        return f"invalid repository name ({image}), cannot specify 64-byte hexadecimal strings"
    remote = _split(image)[1].partition(":")[0]
    lower = remote.lower() == remote
    return "" if lower else f"invalid reference format: repository name ({remote}) must be lowercase"


def _split(image: str) -> tuple[str, str]:
    """``splitDockerDomain``."""
    first, separated, rest = image.partition("/")
    if not separated:
        return _REGISTRY, _OFFICIAL + image
    if first == "index.docker.io":
        first = _REGISTRY
    elif first != "localhost" and not set(".:") & set(first) and first.lower() == first:
        first, rest = _REGISTRY, image
    return first, _OFFICIAL + rest if first == _REGISTRY and "/" not in rest else rest


def _no_reference(text: str) -> str:
    """``Parse``."""
    match = _REFERENCE.fullmatch(text)
    if match is None and _REFERENCE.fullmatch(text.lower()):
        return "repository name must be lowercase"
    name = _NAME.fullmatch(match[1]) if match else None
    if match is None or name is None:
        return "invalid reference format"
    if len(name[2]) > _MOST_IN_PATH:
        return f"repository name must not be more than {_MOST_IN_PATH} characters"
    return _no_digest(match[3]) if match[3] else ""


def _no_digest(digest: str) -> str:
    algorithm, _, digits = digest.partition(":")
    if algorithm not in _SIZES:
        return "unsupported digest algorithm"
    if len(digits) != _SIZES[algorithm]:
        return "invalid checksum digest length"
    return "" if digits.lower() == digits else "invalid checksum digest format"
