"""What a built wheel and sdist must contain.

python -m tests.release FOLDER    exit code 1 and each flaw
"""

from __future__ import annotations

import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from email.parser import BytesParser
from pathlib import Path

PARTS = "kubelet-rollout.cdx.json"
TEMPLATE = "templates/kubelet-flags.env.j2"
MOST_DEPENDENCIES = 15
SHIPPED = (
    "rollout/agent/main.sh",
    "rollout/templates/kubelet-flags.env.j2",
    "rollout/schemas/playbook.json",
    "rollout/examples/github-actions.yml",
    "rollout/examples/inventories/iad.yaml",
)


def flaws_of_wheel(wheel: Path, parts: bytes) -> Iterator[str]:
    """``parts``: the list of parts (PEP 770) that the wheel must hold."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (info,) = {name.partition("/")[0] for name in names if ".dist-info/" in name}
        yield from (f"{wheel.name} has no {name}" for name in SHIPPED if name not in names)
        sbom = f"{info}/sboms/{PARTS}"
        if sbom not in names or archive.read(sbom) != parts:
            yield f"{wheel.name} does not hold the list of parts at {sbom}"
        metadata = BytesParser().parsebytes(archive.read(f"{info}/METADATA"))
    direct = [entry for entry in metadata.get_all("Requires-Dist", ()) if "extra ==" not in entry]
    if not 0 < len(direct) <= MOST_DEPENDENCIES:
        yield f"{len(direct)} direct dependencies in the plain install, at most {MOST_DEPENDENCIES}"
    extras = set(metadata.get_all("Provides-Extra", ()))
    yield from (f"there is no extra {extra}" for extra in ("page", "postgresql") if extra not in extras)


def flaws_of_sdist(sdist: Path) -> Iterator[str]:
    with tarfile.open(sdist) as archive:
        names = {re.sub(r"^[^/]+/", "", name) for name in archive.getnames()}
    wanted = ("pyproject.toml", "LICENSE", "README.md", f"requirements/{PARTS}", "rollout/agent/main.sh", TEMPLATE)
    yield from (f"{sdist.name} has no {name}" for name in wanted if name not in names)


def main(folder: Path) -> int:
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    parts = (Path(__file__).resolve().parents[2] / "requirements" / PARTS).read_bytes()
    found = [*flaws_of_wheel(wheel, parts), *flaws_of_sdist(sdist)]
    print("\n".join(found) or f"complete: {wheel.name}, {sdist.name}")  # noqa: T201
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
