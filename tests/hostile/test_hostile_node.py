"""A hostile node behind a real OpenSSH server: it is named and left out, the others continue, and none of its bytes reach a screen raw.

Three honest nodes of the lab, and one that answers everything with a program of the enemy. The command line reads all four.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rollout.core.text.terminal import CONTROL
from tests.adapters.ssh.sshd import Sshd, require
from tests.sampling import sample
from tests.story.conftest import Site, served

HONEST = "small-[001-002,061]"
ENEMY = "small-062"
MEBIBYTE = 1 << 20

ANSWERS = {
    "nothing at all": ("exit 0", "answer-cut-off"),
    "gigabytes": ("exec cat /dev/zero", "output-flood"),
    "gigabytes of errors": ("exec cat /dev/zero >&2", "output-flood"),
    "never a newline": ("head -c 3000000 /dev/zero | tr '\\0' a", "output-flood"),
    "newlines before its shell begins, then single bytes": (
        "head -c 4194304 /dev/zero | tr '\\0' '\\n'; while :; do printf x; sleep 0.03; done", "output-flood",
    ),
    "very many lines": ("yes 'say x' | head -n 100000", "output-flood"),
    "escape sequences": ("printf 'say \\033]0;owned\\007\\033[2J\\nrefused no-\\033[31m x\\nend snapshot\\n'", "bad-answer"),
    "an escape in a refusal": ("printf 'refused disk-full \\033[2J\\302\\2332J\\342\\200\\256x\\nend snapshot\\n'", "disk-full"),
    "invalid UTF-8": ("printf '\\377\\376\\355\\240\\200\\nend snapshot\\n'", "bad-answer"),
    "half a line": ("printf 'fact machine-id aaaa'", "answer-cut-off"),
    "an end that never comes": ("printf 'fact a b\\n'; kill -9 $$", "no-status"),
    "the end of another verb": ("printf 'end confirm\\n'", "answer-cut-off"),
    "an end, and more": ("printf 'end snapshot\\nfact a b\\n'", "bad-answer"),
    "a digest that lies": (
        f"printf 'file regular 644 0:0 1 {'0' * 64} /etc/x +\\ncontent eA==\\nend snapshot\\n'", "bad-answer",
    ),
    "a file that goes elsewhere": (f"printf 'file regular 644 0:0 1 {'0' * 64} ../../etc/x -\\nend snapshot\\n'", "bad-answer"),
    "sudo's question": ("printf '[rollout %% 00000000] password: ' >&2; cat", "deadline"),
    "errors with escapes": ("printf '\\033[2J\\033]52;c;aGk=\\007boo\\n' >&2; exit 3", "answer-cut-off"),
}  # fmt: skip


pytestmark = pytest.mark.xdist_group("besieged")  # one fleet for all


@dataclass
class Besieged:
    """``enemy`` is the program that the hostile node runs instead of each command."""

    site: Site
    enemy: Path

    def plan(self, limit: str) -> tuple[int, str, str, int]:
        """Exit code, both outputs, and the peak of its memory in bytes."""
        words = self.site.command("plan", "--cluster", "small", "--limit", limit, "--out", "p.json", "-o", "json")
        with (self.site.folder / "out").open("w+b") as out, (self.site.folder / "err").open("w+b") as err:
            process = subprocess.Popen(words, cwd=self.site.folder, stdout=out, stderr=err, stdin=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            texts = [file.read().decode() for file in (out, err) if not file.seek(0)]
        return process.returncode, texts[0], texts[1], usage.ru_maxrss * 1024


@pytest.fixture(scope="module")
def besieged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Besieged]:
    require()
    folder = tmp_path_factory.mktemp("enemy")
    enemy = folder / "answer"
    server = Sshd(tmp_path_factory.mktemp("sshd"), f"ForceCommand {enemy}")
    server.start()
    try:
        with served(tmp_path_factory.mktemp("besieged"), f"{HONEST},{ENEMY}") as site:
            ssh_config = site.lab / "ssh_config"
            theirs = f"Host {ENEMY}\n  HostName 127.0.0.1\n  Port {server.port}\n  IdentityFile {server.user_key}\n"
            theirs += f"  IdentitiesOnly yes\n  UserKnownHostsFile {server.known_hosts}\n  User root\n"
            ssh_config.write_text(theirs + ssh_config.read_text())
            yield Besieged(site, enemy)
    finally:
        server.stop()


@pytest.fixture(scope="module")
def in_peace(besieged: Besieged) -> int:
    """The memory that three honest nodes need."""
    code, _, err, most = besieged.plan(HONEST)
    assert code == 0, err
    return most


@pytest.mark.root  # the enemy's server needs root, as nodes do
@pytest.mark.parametrize("name", sample("answers of a hostile node", [*ANSWERS], 8))
def test_whatever_a_node_answers_it_is_named_and_the_others_are_planned(
    besieged: Besieged, in_peace: int, name: str
) -> None:
    program, reference = ANSWERS[name]
    besieged.enemy.write_text(f"#!/bin/sh\n{program}\n")
    besieged.enemy.chmod(0o755)
    code, out, err, most = besieged.plan(f"{HONEST},{ENEMY}")
    assert code in (0, 4), err
    plan = json.loads(out)
    assert plan["changed"] == 3, "no other node is delayed"
    (left,) = plan["left"]
    assert (left["nodes"], left["standing"], left["reference"]) == (ENEMY, "unreachable", reference)
    for text in (out, err):
        assert CONTROL.search(text) is None
        assert "\\u001b" not in text
    assert most < in_peace + 48 * MEBIBYTE, "its output is not kept"
