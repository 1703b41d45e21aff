"""Errors that klog prints over several lines: their first line is read, and the keys behind the last one."""

from __future__ import annotations

import pytest

from rollout.features.diagnose.rules.finding import Confidence
from tests.features.diagnose.rules.logs import diagnosis, found, journal, klog, lines

IMAGE = "docker.io/library/nginx:1"
ASKED = f'failed to pull and unpack image "{IMAGE}": failed to resolve reference "{IMAGE}": unexpected status from HEAD request to https://registry-1.docker.io/v2/library/nginx/manifests/1'
LIMIT = f"{ASKED}: 429 Too Many Requests"
ANSWER = (
    "toomanyrequests: You have reached your unauthenticated pull rate limit. https://www.docker.com/increase-rate-limit"
)
NAMED = f'image="{IMAGE}"'


def of_lines(*errors: str, message: str = "Failed to pull image", keys: str = NAMED) -> list[str]:
    return [klog(0, f'"{message}" err=<', "E"), *(f"\t{each}" for each in errors), f" > {keys}"]


@pytest.mark.parametrize("in_journal", [False, True])
def test_the_first_line_is_the_error(in_journal: bool) -> None:
    text = of_lines(LIMIT, ANSWER)
    (finding,) = found(lines(*(journal(line, 0) for line in text) if in_journal else text)).values()
    assert (finding.id, finding.confidence) == ("image-pull-backoff", Confidence.CERTAIN)
    assert finding.cause == f"the pull of {IMAGE} failed: the registry limits the rate of pulls."


def test_an_answer_of_the_registry_is_no_error_of_the_runtime() -> None:
    """What stands behind the first line may be a text of others."""
    (finding,) = found(
        lines(*of_lines(f"{ASKED}: 418 I'm a teapot", "write /var/lib/containerd/a: no space left on device"))
    ).values()
    assert finding.confidence is Confidence.UNKNOWN
    assert "disk" not in finding.cause


def test_an_error_without_its_lines_or_its_end_shows_no_more_than_it_has() -> None:
    opened = klog(0, '"Failed to pull image" err=<', "E")
    other = klog(1, '"Observed pod startup duration" pod="shop/web"')
    assert found(lines(opened, other)) == found(lines(opened))
    cut = found(lines(opened, f"\t{LIMIT}", f"\t{ANSWER}"))
    assert all("429" not in each.cause for each in cut.values())
    many = [f"\t{number}" for number in range(500)]
    assert found(lines(opened, *many, " > image=x")) == found(lines(opened, *many))


def test_lines_of_a_container_that_may_be_its_authors_are_not_joined() -> None:
    forged = "container &Container{Name:app,Image:a/b:1,Args:[],} start failed in pod web_shop(0f): ErrImagePull: write /a: no space left on device"
    text = of_lines(
        forged,
        "x],} start failed in pod web_shop(0f): CrashLoopBackOff",
        message="Unhandled Error",
        keys='logger="UnhandledError"',
    )
    assert not found(lines(*text))


def test_each_line_is_counted_once() -> None:
    (reading,) = diagnosis(
        lines(*of_lines(LIMIT, ANSWER), klog(1, '"Kubelet version" kubeletVersion="v1.33.1"'))
    ).readings
    assert reading.read + reading.unread.lines == 5
