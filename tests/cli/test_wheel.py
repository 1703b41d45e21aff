"""The wheel is complete, and the program that it installs works without a checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Sequence
from email.message import Message
from email.parser import BytesParser
from pathlib import Path

import pytest

from rollout import __version__
from tests.hostile.parts import differences
from tests.places import ROOT
from tests.release.__main__ import PARTS, flaws_of_wheel

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("wheel")]  # one worker builds it

SOURCES = ("pyproject.toml", "README.md", "LICENSE", f"requirements/{PARTS}")
FOLDERS = ("rollout", "docs/schemas", "examples", "inventories", "playbooks")
SHIPPED = (
    "rollout/py.typed",
    "rollout/agent/main.sh",
    "rollout/agent/parts",
    "rollout/adapters/journal/migrations/env.py",
    "rollout/adapters/journal/migrations/versions/0001_as_it_began.py",
    "rollout/lab/standins/sudo",
    "rollout/templates/kubelet-flags.env.j2",
    "rollout/kubelet/kubelet_fields.json",
    "rollout/kubelet/explained/words.json",
    "rollout/features/serve/client/static/page.js",
)
"""One file of each kind that the program reads and that is not a Python module."""

INSTALLED = """\
from importlib.resources import files
import rollout
from rollout.adapters.agent_program import agent_program
from rollout.kubelet import fields

print(rollout.__file__)
print(len(agent_program()), len(fields.known_minors()))
"""


def copied(folder: Path) -> Path:
    """A copy of the sources, because a build writes into the folder that it builds in."""
    for name in SOURCES:
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def built(source: Path, into: Path) -> Path:
    """The wheel, built offline by the backend of this environment."""
    called([sys.executable, "-m", "pip", "wheel", *OFFLINE, "--no-build-isolation", "--wheel-dir", into, source], into)
    (wheel,) = into.glob("*.whl")
    return wheel


OFFLINE = ("--quiet", "--disable-pip-version-check", "--no-index", "--no-deps")


def called(words: Sequence[str | Path], folder: Path) -> str:
    """The output of a command that must succeed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_"))}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def files_below(folder: Path) -> set[str]:
    """Every file of the package, as a wheel names it."""
    return {str(path.relative_to(folder)) for path in (folder / "rollout").rglob("*") if path.is_file()}


def missing(wheel: Path, wanted: set[str]) -> set[str]:
    """Files that the wheel should contain and does not."""
    with zipfile.ZipFile(wheel) as archive:
        return wanted - set(archive.namelist())


def described(wheel: Path) -> Message:
    """The metadata of the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return BytesParser().parsebytes(archive.read(f"kubelet_rollout-{__version__}.dist-info/METADATA"))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, source: Path) -> Path:
    return built(source, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """The ``bin`` folder of an environment with the wheel.

    The libraries are those of this environment, found after it.
    """
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, symlinks=True)
    python = home / "bin/python"
    called([sys.executable, "-m", "pip", "--python", python, "install", *OFFLINE, wheel], home)
    (packages,) = home.glob("lib/python*/site-packages")
    # A folder that a .pth file names is searched; the .pth files in it, one of which leads to the checkout, are not read.
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home / "bin"


def test_the_wheel_has_every_file_of_the_package(source: Path, wheel: Path) -> None:
    assert files_below(source) >= set(SHIPPED)
    assert missing(wheel, files_below(source)) == set()


def test_a_missing_file_is_found(wheel: Path) -> None:
    assert missing(wheel, {"rollout/agent/main.sh", "rollout/agent/other.sh"}) == {"rollout/agent/other.sh"}


def test_the_wheel_names_its_author_and_licence(wheel: Path) -> None:
    found = described(wheel)
    assert (found["Name"], found["Version"], found["Author"]) == ("kubelet-rollout", __version__, "The rollout authors")
    assert (found["License-Expression"], found["License-File"]) == ("Apache-2.0", "LICENSE")
    assert [line for line in found.get_all("Classifier", ()) if line.startswith("License")] == []
    assert missing(wheel, {f"kubelet_rollout-{__version__}.dist-info/licenses/LICENSE"}) == set()


def test_the_wheel_holds_the_list_of_parts_and_few_dependencies(source: Path, wheel: Path) -> None:
    assert list(flaws_of_wheel(wheel, (source / "requirements" / PARTS).read_bytes())) == []
    assert list(flaws_of_wheel(wheel, b"{}")) != []


def test_the_list_of_parts_is_that_of_the_lock_file() -> None:
    parts, lock = ((ROOT / "requirements" / name).read_text() for name in (PARTS, "run.txt"))
    assert differences(parts, lock) == []


def test_the_installed_program_works_outside_the_checkout(tmp_path: Path, installed: Path) -> None:
    assert called([installed / "rollout", "--version"], tmp_path) == f"rollout, version {__version__}\n"
    assert "apply" in called([installed / "rollout", "--help"], tmp_path)


def test_the_installed_program_finds_its_agent_and_tables(tmp_path: Path, installed: Path) -> None:
    module, sizes = called([installed / "python", "-c", INSTALLED], tmp_path).splitlines()
    assert Path(module).is_relative_to(installed.parent)
    assert all(int(size) > 0 for size in sizes.split())
