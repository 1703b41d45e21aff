"""The folders of the tests mirror the packages, so that a test is found where the code is."""

from __future__ import annotations

from pathlib import Path

from tests.places import ROOT

OF_THE_WHOLE = frozenset(
    {
        "story",
        "real",
        "chaos",
        "power",
        "mutants",
        "hostile",
        "docs",
        "bed",
        "tables",
        "house",
        "incidents",
        "benchmarks",
        "examples",
        "first_hour",
        "release",
    }
)
"""Folders of no single package: tests of the whole product, test machines, programs that make or count its tables."""

OF_RECORDINGS = frozenset(
    {
        "recorded",
        "real_kubelet",
        "newer_kubelets",
        "real_runtimes",
        "corners",
        "cri",
        "standins",
        "time",
        "cases",
        "labelled",
        "targets",
        "transcripts",
    }
)
"""Folders of data, and of foreign programs, in the folders of the tests that use them."""

WITHOUT_TESTS_OF_THEIR_OWN = frozenset(
    {"adapters/journal/migrations", "lab/standins", "templates", "features/serve/client/static"}
)


def folders(top: Path) -> set[str]:
    """Folders relative to ``top``, without caches."""
    found = (path.relative_to(top) for path in top.rglob("*") if path.is_dir())
    return {str(path) for path in found if not any(part.startswith(("__", ".")) for part in path.parts)}


def strangers(tests: set[str], packages: set[str]) -> set[str]:
    """Folders of tests that mirror no package and are of neither kind above."""
    return {
        folder
        for folder in tests
        if folder not in packages
        and folder.partition("/")[0] not in OF_THE_WHOLE
        and not OF_RECORDINGS.intersection(folder.split("/"))
    }


def test_each_folder_of_tests_is_a_package_or_of_the_whole() -> None:
    assert strangers(folders(ROOT / "tests"), folders(ROOT / "rollout")) == set()


def test_each_package_with_rooms_has_tests_in_the_same_rooms() -> None:
    rooms = {room for room in folders(ROOT / "rollout") if room.count("/") <= 1} - WITHOUT_TESTS_OF_THEIR_OWN
    assert rooms - folders(ROOT / "tests") == set()


def test_a_folder_without_a_package_is_found() -> None:
    assert strangers(
        {"core", "core/run", "core/runs", "story/x", "kubelet/recorded"}, {"core", "core/run", "kubelet"}
    ) == {"core/runs"}
