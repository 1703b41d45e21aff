"""Patterns of an allowlist: names of images, and prefixes."""

from __future__ import annotations

import pytest

from rollout.kubelet.configuration.image_patterns import mistake

NO_NAME = "failed to parse as an image name: "
NO_FORMAT = NO_NAME + "invalid reference format"
CAPITALS = NO_NAME + "repository name must be lowercase"
DIGITS = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("pattern", "error"),
    [
        ("a", ""),
        ("A/b", ""),
        ("localhost/a", ""),
        ("[::1]:5000/a", ""),
        ("reg.io/a__b", ""),
        ("reg.io/a--b", ""),
        ("reg.io/*", ""),
        ("reg.io/A/*", ""),
        (DIGITS, ""),
        ("A", CAPITALS),
        ("reg.io/A", CAPITALS),
        ("reg.io/a___b", NO_FORMAT),
        ("reg.io/a..b", NO_FORMAT),
        ("reg.io/a/", NO_FORMAT),
        ("reg.io/-a", NO_FORMAT),
        ("reg-.io/a", NO_FORMAT),
        ("reg.io:/a", NO_FORMAT),
        ("http://reg.io/a", NO_FORMAT),
        ("\N{LATIN SMALL LETTER A WITH DIAERESIS}.io/a", NO_FORMAT),
        ("reg.io/" + "a" * 256, NO_NAME + "repository name must not be more than 255 characters"),
        ("reg.io/a:1", "neither tag nor digest is accepted in an image reference: reg.io/a:1"),
        (f"a@sha256:{DIGITS}", f"neither tag nor digest is accepted in an image reference: a@sha256:{DIGITS}"),
        (f"a@sha256:{DIGITS[:40]}", NO_NAME + "invalid checksum digest length"),
        (f"a@sha256:{DIGITS.upper()}", NO_NAME + "invalid checksum digest format"),
        (f"a@md5:{DIGITS}", NO_NAME + "unsupported digest algorithm"),
        ("", "the supplied pattern is too short: "),
        (" a", "leading/trailing spaces are not allowed:  a"),
        ("a*", "not a valid wildcard pattern, only patterns ending with '/*' are allowed: a*"),
    ],
)
def test_since_1_36_a_name_is_taken_as_it_is_written(pattern: str, error: str) -> None:
    assert mistake(pattern, 36) == error


@pytest.mark.parametrize(
    ("pattern", "error"),
    [
        ("docker.io/library/a", ""),
        ("docker.io/a/b", ""),
        ("localhost/a", ""),
        ("reg.io:5000/a", ""),
        ("a", "neither tag nor digest is accepted in an image reference: a"),
        ("docker.io/a", "neither tag nor digest is accepted in an image reference: docker.io/a"),
        ("a/b", "neither tag nor digest is accepted in an image reference: a/b"),
        ("index.docker.io/a/b", "neither tag nor digest is accepted in an image reference: index.docker.io/a/b"),
        ("reg.io/A", NO_NAME + "invalid reference format: repository name (A) must be lowercase"),
        (DIGITS, NO_NAME + f"invalid repository name ({DIGITS}), cannot specify 64-byte hexadecimal strings"),
    ],
)
def test_until_1_35_it_must_be_the_full_name(pattern: str, error: str) -> None:
    assert mistake(pattern, 35) == error
