"""The table of known defects: its rows can be read, and a project's own rows only add warnings."""

from __future__ import annotations

import pytest

from rollout.errors import InputError
from rollout.features.explain.words.topics import row_lines
from rollout.kubelet import fields
from rollout.kubelet.configuration import feature_gates
from rollout.kubelet.defects.rows import Defect, Stops, known, of_project
from rollout.kubelet.defects.words import row_line

ROW = """
[our-mirror-hangs]
component = "containerd"
versions = [["1.7.0", "1.7.28"]]
effect = "pulls through the mirror of zone b hang"
source = "ticket 4711"
"""
COMPONENTS = {"kubelet", "containerd", "CRI-O", "cri-dockerd", "nvidia-container-toolkit"}


def row(name: str) -> Defect:
    return next(each for each in known() if each.id == name)


@pytest.mark.parametrize("each", known(), ids=lambda each: each.id)
def test_each_row_names_what_exists_and_its_source(each: Defect) -> None:
    assert each.component in COMPONENTS
    assert any(tag in each.source for tag in ("issue", "source", "release notes", "pull request"))
    assert each.seen, "the day on which the source was read"
    for first, fixed in each.versions:
        assert not fixed or first < fixed
    for condition in each.when:
        kind, _, name = condition.path.rpartition(":")
        if kind == "gate":
            assert any(name in feature_gates.known_gates(minor) for minor in fields.known_minors())
        elif not kind:
            assert name == "minor" or fields.field(name.split(".")[0]) or fields.flag(name)
    assert list(row_lines(each))
    assert each.id in row_line(each)


def test_a_version_is_in_a_span_from_its_first_to_before_its_fixed_patch() -> None:
    sidecars = row("kubelet-sidecar-never-restarts")
    assert [sidecars.has(version) for version in ((1, 34, 9), (1, 35, 0), (1, 35, 3), (1, 35, 4))] == [
        False,
        True,
        True,
        False,
    ]
    assert [sidecars.in_minor(1, minor) for minor in (34, 35, 36)] == [False, True, False]
    assert sidecars.span == "1.35.0 to before 1.35.4"
    assert row("containerd-zero-deadline").span == "2.1.0 and later, not fixed"
    assert row("cri-dockerd-two-minutes").span == "before 0.2.6"
    assert row("nvidia-devices-lost-at-reload").span == "every version"


def test_the_words_of_a_row() -> None:
    assert list(row_lines(row("kubelet-parallel-pulls-above-31"))) == [
        "kubelet-parallel-pulls-above-31  a known defect of kubelet 1.35.0 to before 1.37.0",
        "  effect: the kubelet panics when it syncs a pod: maxParallelImagePulls is above 31 while KubeletEnsureSecretPulledImages is on",
        "  applies: with maxParallelImagePulls above 31 and gate:KubeletEnsureSecretPulledImages is true",
        "  stops: kubelet; a change that triggers it is refused unless the playbook contains `accept: [kubelet-parallel-pulls-above-31]`",
        "  remedy: 31 or less; fixed in 1.37.0-alpha.1, no backport is known",
        "  source: kubernetes#138935, PR 138937 (issue, source), read 2026-11-25",
    ]
    assert row("kubelet-sidecar-never-restarts").trigger == "at a restart of the kubelet, for pods with a sidecar"


def test_a_project_adds_rows_of_its_own() -> None:
    (ours,) = of_project(ROW)
    assert (ours.id, ours.own, ours.stops) == ("our-mirror-hangs", True, None)
    (stopping,) = of_project(ROW + 'stops = "pulls"')
    assert stopping.stops is Stops.PULLS


def test_a_project_replaces_no_row() -> None:
    assert said(ROW.replace("our-mirror-hangs", "containerd-zero-deadline")) == [
        "containerd-zero-deadline is a row of rollout: choose another name"
    ]


def said(text: str) -> list[str]:
    with pytest.raises(InputError) as error:
        of_project(text)
    assert {problem.reference for problem in error.value.problems} <= {"bad-defect", "not-toml"}
    return [problem.message for problem in error.value.problems]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('fix = "1.7.29"', "our-mirror-hangs: unknown key fix; known are component, versions,"),
        ('stop = "pulls"', "our-mirror-hangs: unknown key stop; did you mean `stops`?"),
        ('stops = "everything"', "our-mirror-hangs: stops is one of kubelet, pulls"),
        ('at = "noon"', "our-mirror-hangs: at is one of kubelet-restart, runtime-restart, daemon-reload"),
        (
            "signs = { image-pull-backoff = 5 }",
            'our-mirror-hangs: signs is a table of texts of at most 300 characters, such as { pull-progress-deadline = "unpacking" }',
        ),
        ('seen = "yesterday"', "our-mirror-hangs: seen is a day, such as 2026-11-25"),
        ('remedy = ""', "our-mirror-hangs: remedy is a text of at most 300 characters"),
        ("when = { maxPods = 3 }", "our-mirror-hangs: when is a table of tables"),
        ("when = { maxPods = { over = 3 } }", "our-mirror-hangs: when: unknown test 'over'"),
        ("= 3", "it is not TOML"),
    ],
)
def test_every_mistake_of_a_projects_row_is_named(more: str, message: str) -> None:
    (found,) = said(f"{ROW}{more}\n")
    assert found.startswith(message)


def test_rows_without_what_is_needed() -> None:
    assert said('[Row]\ncomponent = "kubelet"\nversions = "1.35"\n') == [
        "Row: the name of a row is words in small letters with dashes between them",
        "Row: effect is missing",
        "Row: source is missing",
        'Row: versions is a list of pairs such as ["1.35.0", "1.35.4"] or ["1.36.0", "open"]',
    ]
    assert said("a-row = 3") == ["a-row: a row is a table"]
    assert said(ROW.replace('"1.7.28"', "3"))[0].startswith("our-mirror-hangs: versions is a list")
