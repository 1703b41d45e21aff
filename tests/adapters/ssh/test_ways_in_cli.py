"""The login options: valid and invalid values, and errors that are reported before any node is contacted."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from rollout.cli.check import check
from rollout.cli.options import given_password
from rollout.errors import UsageError
from tests.documents import only


def private(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "password"
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


@pytest.mark.parametrize("text", ["a word", "a word\n", "a word\r\n", " ü\u00a0$(x) "])
def test_a_password_from_a_private_file(tmp_path: Path, text: str) -> None:
    found = given_password(private(tmp_path, text), ask=False)
    assert found is not None
    assert found.reveal() == text.rstrip("\r\n")


def test_a_password_from_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o644)
    writer = threading.Thread(target=pipe.write_text, args=("a word\n",))
    writer.start()
    found = given_password(pipe, ask=False)
    writer.join(60)
    assert found is not None
    assert found.reveal() == "a word"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_password_file_that_others_may_read_or_write_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(UsageError, match="chmod 600") as caught:
        given_password(private(tmp_path, "a word", mode), ask=False)
    assert caught.value.reference == "password-not-private"


@pytest.mark.parametrize("text", ["", "\n", "two\nlines", "x" * 5000, "nul\0"])
def test_invalid_passwords(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        given_password(private(tmp_path, text), ask=False)
    assert caught.value.reference == "password-unusable"
    assert "lines" not in str(caught.value)


def test_a_missing_password_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        given_password(tmp_path / "missing", ask=False)
    assert caught.value.reference == "password-unreadable"


def test_both_password_options_at_once_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not both"):
        given_password(private(tmp_path, "a word"), ask=True)


@pytest.mark.process
def test_no_password_prompt_without_a_terminal() -> None:
    script = "from rollout.cli.options import given_password; given_password(None, ask=True)"
    done = subprocess.run([sys.executable, "-c", script], input=b"a word\n", capture_output=True, check=False)
    assert b"no-terminal" in done.stderr


@pytest.mark.process
def test_a_typed_password_is_not_echoed() -> None:
    script = (
        "from rollout.cli.options import given_password\n"
        "found = given_password(None, ask=True)\n"
        "print(len(found.reveal()), found, flush=True)\n"
    )
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as process:
        os.close(theirs)
        shown = b""
        while b"password: " not in shown:
            shown += os.read(ours, 1024)
        os.write(ours, b"hunter2\n")
        while b"Secret" not in shown:
            shown += os.read(ours, 1024)
        process.wait(60)
    os.close(ours)
    assert b"7 Secret(" in shown
    assert b"hunter2" not in shown


@pytest.mark.parametrize(
    ("text", "reference", "says"),
    [
        ("Host n*\n ProxyCommand /bin/touch {made}\n", "proxy-command-not-allowed", "n[1-3]: ~/.config/rollout/config.toml does not allow this ProxyCommand"),
        ("Host n*\n ProxyCommand nc %h %p 2>{made}\n", "proxy-command-not-supported", "n[1-3]: ProxyCommand must be a program with plain arguments: it needs a shell (>)"),
        ("Host n2\n GSSAPIAuthentication yes\n", "gssapi-not-supported", "n2: Kerberos"),
        ("Host n*\n PKCS11Provider /lib/x.so\n", "ssh-option-not-supported", "n[1-3]: PKCS11Provider"),
        ("Host n*\n ProxyJump b\nHost b\n ProxyCommand x\n", "proxy-command-not-allowed", "n[1-3]: ~/.config"),
        ("Host *\n ProxyJump b\n", "bastion-loop", "n[1-3]: ProxyJump is a loop: b -> b; set `ProxyJump none` for the last host"),
        ("Host *\n ProxyJump %h-b\n", "bastion-loop", "n1: ProxyJump never ends: n1 -> n1-b -> n1-b-b"),
        ("Match exec \"touch {made}\"\n User x\n", "ssh-config-not-supported", "Match exec is not supported"),
    ],
)  # fmt: skip
def test_check_lists_unsupported_ways_to_reach_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reference: str, says: str
) -> None:
    (tmp_path / "inventories").mkdir()
    (tmp_path / "inventories" / "c.yaml").write_text("cluster: c\napiServer: v1.23.17\nnodes: {'n[1-3]': }\n")
    (tmp_path / "config").write_text(text.format(made=tmp_path / "made"))
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(check, ["--ssh-config", "config", "-o", "json"])
    problems = only(result.stdout)["problems"]
    assert result.exit_code == 2
    assert {problem["reference"] for problem in problems} == {reference}
    assert any(says in problem["message"] for problem in problems)
    assert not (tmp_path / "made").exists()
