"""URLs as Go parses them: the scheme, or Go's error."""

from __future__ import annotations

import pytest

from rollout.kubelet.configuration.go_urls import UrlError, scheme_of


@pytest.mark.parametrize(
    ("text", "scheme"),
    [
        ("dns://localhost:4317", "dns"),
        ("UNIX:///run/a.sock", "unix"),
        ("unix:/run/a.sock", "unix"),
        ("/run/a.sock", ""),
        ("a/b:c", ""),
        ("http://u:p@[::1]:80/a%20b?c%zz", "http"),
        ("dns://[fe80::1%25en0]:1", "dns"),
        ("dns://a:", "dns"),
        ("", ""),
        ("///a:b", ""),
        ("1a:b/", None),
    ],
)
def test_the_scheme(text: str, scheme: str | None) -> None:
    if scheme is None:
        with pytest.raises(UrlError):
            scheme_of(text)
    else:
        assert scheme_of(text) == scheme


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("dn%2s://localhost:4317", "first path segment in URL cannot contain colon"),
        (":a", "missing protocol scheme"),
        ("dns://a\tb", "net/url: invalid control character in URL"),
        ("dns://a:port", 'invalid port ":port" after host'),
        ("dns://[::1", "missing ']' in host"),
        ("dns://[::1]x", 'invalid port "x" after host'),
        ("dns://a b", 'invalid character " " in host name'),
        ("dns://a%2", 'invalid URL escape "%2"'),
        ("dns://a%20b%2", 'invalid URL escape "%20"'),
        ("dns://a b%2", 'invalid character " " in host name'),
        ("dns://a%2\u00e9", 'invalid URL escape "%2\\xc3"'),
        ("dns://a#%", 'invalid URL escape "%"'),
        ("dns://a/%zz", 'invalid URL escape "%zz"'),
        ("dns://u ser@a", "net/url: invalid userinfo"),
        ("dns://u%x@a", 'invalid URL escape "%x"'),
        ("a%zz", 'invalid URL escape "%zz"'),
    ],
)
def test_what_go_cannot_parse(text: str, error: str) -> None:
    with pytest.raises(UrlError, match=r"^parse ") as raised:
        scheme_of(text)
    assert str(raised.value).endswith(error)
