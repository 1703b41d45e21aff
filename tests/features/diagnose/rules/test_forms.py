"""One set of facts has the same findings in every form: kubelet × runtime × wrapper × language × order of lines.

`python -m tests.features.diagnose.rules.forms` counts the forms. The files of ``recorded/journalctl-252`` are the same facts
as a real journalctl printed them: the export form through systemd-journal-remote, then each ``-o``, with ``LC_ALL`` of glibc.
"""

from __future__ import annotations

import gzip
from dataclasses import replace
from functools import cache

import pytest

from rollout.features.diagnose.rules.finding import Confidence
from tests.features.diagnose.rules.forms import (
    ID,
    KUBELETS,
    RUNTIMES,
    WRAPPERS,
    Form,
    Kubelet,
    every_form,
    printed,
)
from tests.features.diagnose.rules.logs import NODE, RECORDED, diagnosis
from tests.places import ROOT
from tests.sampling import sample

Told = tuple[tuple[object, ...], ...]
REAL = sorted((RECORDED / "journalctl-252").glob("*.gz"))


@cache
def told(form: Form) -> Told:
    return shown(printed(form))


def shown(content: str | bytes) -> Told:
    found = diagnosis(content)
    assert [reading.unread.lines for reading in found.readings] == [0]
    return tuple(
        (each.id, each.confidence, each.nodes, each.since, each.cause, each.proposal, each.fetch_next, each.timeline)
        for each in sorted(found.findings, key=lambda each: each.id)
    )


def plain(kubelet: Kubelet, runtime: str) -> Form:
    return Form(kubelet, next(each for each in RUNTIMES if each.name == runtime), "journalctl -o short-iso")


@pytest.mark.parametrize("form", sample("forms", every_form(), 400), ids=lambda form: form.name)
def test_the_findings_are_the_same_in_every_form(form: Form) -> None:
    assert told(form) == told(replace(form, wrapper="journalctl -o short-iso", newest_first=False))


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_each_wrapper_and_its_reverse(wrapper: str) -> None:
    """So that no wrapper is left out of a sample."""
    kubelet = KUBELETS[WRAPPERS_IN_ORDER.index(wrapper) % len(KUBELETS)]
    form = replace(plain(kubelet, "containerd"), wrapper=wrapper)
    assert told(form) == told(replace(form, newest_first=True)) == told(plain(kubelet, "containerd"))


WRAPPERS_IN_ORDER = list(WRAPPERS)


@pytest.mark.parametrize("kubelet", KUBELETS, ids=lambda kubelet: kubelet.name)
def test_each_kubelet_shows_all_four(kubelet: Kubelet) -> None:
    """Else equal findings would prove nothing; and no version words a fact so that it is told otherwise."""
    found = told(plain(kubelet, "containerd"))
    assert [each[:4] for each in found] == [
        ("kubelet-crash-loop", Confidence.CERTAIN, (NODE,), "2026-11-20T09:10:00Z"),
        ("pleg-unhealthy", Confidence.CERTAIN, (NODE,), "2026-11-20T09:06:40Z"),
        ("pull-progress-deadline", Confidence.CERTAIN, (NODE,), "2026-11-20T09:04:20Z"),
        ("slow-termination", Confidence.CERTAIN, (NODE,), "2026-11-20T09:00:10Z"),
    ]
    newest = told(plain(next(each for each in KUBELETS if each.name == "1.36"), "containerd"))
    named = [
        str(each[4]).replace(ID[:12], "cart") for each in found
    ]  # up to 1.20 a kubelet logs the container's id only
    assert named == [each[4] for each in newest]


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_what_a_real_journalctl_prints(path: object) -> None:
    name = str(path).rpartition("/")[2].removesuffix(".gz")
    content = gzip.decompress((RECORDED / "journalctl-252" / f"{name}.gz").read_bytes())
    assert shown(content) == told(plain(next(each for each in KUBELETS if each.name == "1.28"), "containerd"))


def test_the_recorded_forms_are_there() -> None:
    assert len(REAL) == 30


def test_the_page_has_the_count() -> None:
    text = (ROOT / "docs" / "diagnose.md").read_text()
    assert f"{len(every_form()):,} forms" in text
    assert f"{len(WRAPPERS)} wrappers" in text
    assert f"{len(KUBELETS)} kubelets from 1.18 to 1.36, {len(RUNTIMES)} runtimes" in text
