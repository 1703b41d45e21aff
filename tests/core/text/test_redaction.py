"""Secrets in lines of other programs, and lines that look alike and hold none."""

from __future__ import annotations

import pytest

from rollout.core.text.redaction import without_secrets


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("GET https://ann:hunter2@reg.example/v2/", "GET https://<redacted>@reg.example/v2/"),
        ("Authorization: Basic YW5uOmh1bnRlcjI=", "Authorization: <redacted>"),
        ('{"Authorization":"Bearer eyJhbGciOi"}', '{"Authorization":"<redacted>"}'),
        ("got bearer eyJhbGciOiJIUzI1NiJ9.e30 for pull", "got bearer <redacted> for pull"),
        ("--password=hunter2 --user=ann", "--password=<redacted> --user=ann"),
        ('identitytoken="eyJ", account=ann', 'identitytoken="<redacted>", account=ann'),
        ("Get https://s3.example/blob?X-Amz-Signature=0f1e&Expires=9: EOF", "Get https://s3.example/blob?<redacted> EOF"),
    ],
)  # fmt: skip
def test_a_secret_is_replaced(line: str, shown: str) -> None:
    assert without_secrets(line) == shown


@pytest.mark.parametrize(
    "line",
    [
        'Failed to pull image "reg.example:5000/team/app:1": unauthorized: authentication required',
        "ImageID:docker-pullable://registry.kaku.com/kakuonline/agent@sha256:6d61df",
        "Pulling image without credentials",
        'Killing container "docker://2e2354889588" with 5 second grace period',
    ],
)
def test_what_is_no_secret_stays(line: str) -> None:
    assert without_secrets(line) == line
