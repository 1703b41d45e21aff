"""The sshd of cheap nodes gives no session on this machine."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from benchmarks.loopback import address, loopback_sshd

pytestmark = [pytest.mark.root, pytest.mark.xdist_group("loopback")]


def test_a_user_who_is_added_meanwhile_does_not_give_a_session_on_this_machine(tmp_path: Path) -> None:
    shell = tmp_path / "shell"
    shell.write_text("#!/bin/sh\necho a node\n")
    shell.chmod(0o755)
    with loopback_sshd(tmp_path, str(shell)) as config:
        passwd = Path("/etc/passwd")
        Path(shutil.copy2(passwd, "/etc/passwd.rollout-test")).rename(passwd)  # as useradd does, with the same bytes
        words = ["ssh", "-F", str(config), address(0), "echo this machine"]
        assert subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout == "a node\n"
