"""A credential in a node's file, through a whole run: it is in the plan and the journal, which are private, and nowhere else.

Other secrets are tested where they are used: sudo's password in ``tests/adapters/ssh/test_sudo.py``, bearer tokens and
kubeconfigs in ``tests/adapters/kubernetes``, the journal's password in ``tests/adapters/journal``.
"""

from __future__ import annotations

import base64
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controllers import finished
from tests.processes import every_process
from tests.story.conftest import Site, served

NODES = "small-[001-002]"
SECRET = b"CANARY-5d1e77-registry-password"
LINE = f"REGISTRY_PASSWORD={SECRET.decode()}\n"


def _forms(secret: bytes) -> tuple[bytes, ...]:
    """The secret, and the base64 forms of its middle at every offset."""
    middles = (base64.b64encode(bytes(before) + secret)[4 * (before > 0) + 4 : -8] for before in range(3))
    return secret, *middles


FORMS = _forms(SECRET)


def holds(content: bytes) -> bool:
    return any(form in content for form in FORMS)


def test_the_forms_of_a_secret_are_found_wherever_base64_begins() -> None:
    for before in range(7):
        assert holds(base64.b64encode(b"x" * before + SECRET + b"yyy"))
    assert not holds(base64.b64encode(b"x" * 100))


@pytest.mark.process
def test_a_credential_in_a_file_is_only_in_the_plan_and_the_journal(tmp_path: Path) -> None:
    with served(tmp_path, NODES) as site, every_process() as processes:
        said = "".join(_whole_way(site))
        kept = [
            path for path in tmp_path.rglob("*") if path.is_file() and "lab" not in path.relative_to(tmp_path).parts
        ]
        with_it = {path for path in kept if holds(path.read_bytes())}
    assert not holds(said.encode())
    assert "<redacted>" in said, "the line was shown, without the secret"
    assert any(b"rollout.cli\0apply\0" in line for line in processes), "the check saw its process"
    assert not any(holds(line) for line in processes)
    names = {str(path.relative_to(tmp_path)) for path in with_it}
    assert {"p.json", "s.json"} <= names
    assert names <= {"p.json", "s.json", ".rollout/journal.db", ".rollout/journal.db-wal"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in with_it} == {0o600}
    assert stat.S_IMODE((tmp_path / ".rollout").stat().st_mode) == 0o700


def _whole_way(site: Site) -> Iterator[str]:
    """All output of the command line, from plan to rollback."""
    for name in ("small-001", "small-002"):
        file = site.node(name) / "etc/default/kubelet"
        file.write_text(file.read_text() + LINE if file.exists() else LINE)
    limit = ("--cluster", "small", "--limit", NODES)
    calls: tuple[tuple[str, ...], ...] = (
        ("plan", *limit, "--out", "p.json", "--save-snapshot", "s.json"),
        ("plan", *limit, "--out", "p.json", "-o", "json"),
        ("apply", "p.json", "--yes", "-o", "json"),
        ("status",),
        ("status", "-o", "json"),
        ("report", "--html", "r.html"),
        ("report", "-o", "json"),
        ("verify", *limit),
        ("rollback", *limit, "--emergency", "--yes"),
    )
    for words in calls:
        done = finished(
            ["env", *site.command(*words)], site.folder, 600
        )  # a new process: its own command line is checked
        assert done.code == 0, f"{words}: {done.out}{done.err}"
        yield done.out + done.err
