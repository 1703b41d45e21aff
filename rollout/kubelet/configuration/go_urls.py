"""What Go's ``url.Parse`` finds wrong in a URL, with its texts, and the scheme of one that it accepts.

Source: ``net/url/url.go`` of Go 1.15 to 1.24: ``parse``, ``parseAuthority``, ``parseHost``, ``unescape``.
"""

from __future__ import annotations

import re

from rollout.kubelet.configuration.go_values import quoted

_SCHEME = re.compile(r"([a-zA-Z][-+.a-zA-Z0-9]*):", re.ASCII)
_PORT = re.compile(r"(?::[0-9]*)?", re.ASCII)
_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})", re.ASCII)
_NOT_IN_HOST = re.compile(
    r"[^-a-zA-Z0-9_.~!$&'()*+,;=:\[\]<>\"%\x80-\U0010ffff]|%(?![0-9a-fA-F]{2})|%(?!25)[0-7][0-9a-fA-F]", re.ASCII
)
"""The first letter of what is refused; a host may have escapes of bytes from 0x80 on."""
_USER = re.compile(r"[-a-zA-Z0-9._:~!$&'()*+,;=%@]*", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class UrlError(ValueError):
    """Go cannot parse it; the text is Go's."""


def scheme_of(text: str) -> str:
    """The scheme in small letters, ``""`` without one, or ``UrlError``."""
    url, _, fragment = text.partition("#")
    for part, message in ((url, _mistake(url)), (text, _bad_escape(fragment))):
        if message:
            raise UrlError(f"parse {quoted(part)}: {message}")
    match = _SCHEME.match(url)
    return match[1].lower() if match else ""


def _mistake(url: str) -> str:
    if _CONTROL.search(url):
        return "net/url: invalid control character in URL"
    if url.startswith(":"):
        return "missing protocol scheme"
    match = _SCHEME.match(url)
    rest = (url[match.end() :] if match else url).partition("?")[0]
    if not rest.startswith("/"):
        colon = not match and ":" in rest.partition("/")[0]
        return "first path segment in URL cannot contain colon" if colon else "" if match else _bad_escape(rest)
    path = rest
    if rest.startswith("//") and (match or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        message = _bad_authority(authority)
        if message:
            return message
        path = slash + path
    return _bad_escape(path)


def _bad_authority(authority: str) -> str:
    user, at, host = authority.rpartition("@")
    message = _bad_host(host)
    if message or not at:
        return message
    if not _USER.fullmatch(user):
        return "net/url: invalid userinfo"
    name, _, password = user.partition(":")
    return _bad_escape(name) or _bad_escape(password)


def _bad_host(host: str) -> str:
    name, port = host, ""
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            return "missing ']' in host"
        port = host[end + 1 :]
    elif ":" in host:
        port = host[host.rindex(":") :]
    if not _PORT.fullmatch(port):
        return f"invalid port {quoted(port)} after host"
    bad = _NOT_IN_HOST.search(name)
    if bad and bad[0].startswith("%"):
        return _escape_error(name[bad.start() :])
    return f"invalid character {quoted(bad[0])} in host name" if bad else ""


def _bad_escape(text: str) -> str:
    match = _ESCAPE.search(text)
    return _escape_error(text[match.start() :]) if match else ""


def _escape_error(text: str) -> str:
    """Go shows the three bytes from the percent sign on."""
    return f"invalid URL escape {quoted(text.encode()[:3].decode('utf-8', 'surrogateescape'))}"
