"""The agent's environment is made from nothing: whatever a login, sudo, PAM or systemd puts there reaches none of its programs."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rollout.core.model.report import Outcome, RemoteCommand
from rollout.kubelet.agent import agent_call, conversation
from tests.agent.node import OLD, PATIENCE, PROGRAM, SHELLS, Node
from tests.sampling import dice

pytestmark = pytest.mark.process

POSIX = {"POSIXLY_CORRECT": "1"}
"""GNU programs then take no option after a name."""
KNOWN = {
    **POSIX,
    "SYSTEMD_COLORS": "1",  # systemctl puts escapes into what it shows
    "SYSTEMD_LOG_LEVEL": "debug",
    "SYSTEMD_PAGER": "cat",
    "LANG": "de_DE.UTF-8",
    "LC_ALL": "zh_CN.UTF-8",
    "LC_MESSAGES": "de_DE.UTF-8",
    "LANGUAGE": "de",
    "TZ": "Asia/Kathmandu",
    "GREP_COLORS": "mt=01;31",
    "GREP_OPTIONS": "--color=always",
    "TIME_STYLE": "long-iso",
    "BLOCK_SIZE": "human-readable",
    "QUOTING_STYLE": "c",
    "IFS": "/",
    "CDPATH": "/tmp",
    "ENV": "/nonexistent",
    "BASH_ENV": "/nonexistent",
    "SHELLOPTS": "errexit",
    "TMPDIR": "/nonexistent",
    "SIMPLE_BACKUP_SUFFIX": ".bak",
    "VERSION_CONTROL": "numbered",
    "BASH_FUNC_mv%%": "() { exit 9; }",
    "BASH_FUNC_stat%%": "() { exit 9; }",
    "two": "lines\nPATH=/tmp\nexport S=1",
    "quoted": 'it\'s "so"',
}
"""Each of these has changed what a program of a node prints or does, or was made to."""


def drawn() -> dict[str, str]:
    """Names that nobody thought of."""
    die = dice("environment")
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
    return {
        "".join(die.choices(letters, k=die.randint(1, 12))): "".join(die.choices("a $'\"\\=\n%", k=die.randint(0, 9)))
        for _ in range(60)
    }


def spied(node: Node, tool: str) -> Path:
    """The program writes down its environment before it does its work."""
    path, seen = node.bin / tool, node.root.parent / "seen"
    real = path.rename(path.with_suffix(".real")) if path.exists() else Path(shutil.which(tool) or "")
    path.write_text(f'#!/bin/sh\n/usr/bin/tr "\\0" "\\n" </proc/$$/environ >>{seen}\nexec {real} "$@"\n')
    path.chmod(0o755)
    return seen


@pytest.mark.parametrize("shell", SHELLS)
def test_no_program_sees_anything_but_a_path_and_a_locale(tmp_path: Path, shell: str) -> None:
    node = Node.make(tmp_path, shell)
    for tool in ("mv", "stat", "systemctl", "sync"):
        seen = spied(node, tool)
    node.environment |= {**drawn(), **KNOWN, "ROLLOUT_ROOT": str(node.root)}
    assert node.apply().healthy
    assert node.confirm().outcome is Outcome.DONE
    assert node.trigger("guard") == 0
    assert node.revert().outcome is Outcome.DONE
    allowed = {
        "TZ",
        "INVOCATION_ID",
        "PATH",
        "HOME",
        "LC_ALL",
        "PWD",
        "OLDPWD",
        "SHLVL",
        "_",
        "ROLLOUT_ROOT",
        "STANDIN_NODE",
        "STANDIN_TIMEOUT",
    }
    assert {line.partition("=")[0] for line in seen.read_text().splitlines()} <= allowed
    assert "TZ=Asia/Kathmandu" not in seen.read_text(), "the agent itself sets TZ=UTC for systemctl"
    assert "LC_ALL=C" in seen.read_text().splitlines()
    assert "LC_ALL=zh_CN.UTF-8" not in seen.read_text()


@pytest.mark.parametrize("shell", SHELLS)
def test_the_names_that_the_program_uses_before_it_has_looked_may_be_there(tmp_path: Path, shell: str) -> None:
    node = Node.make(tmp_path, shell)
    names = ("NL", "IFS", "line", "name", "all", "form", "size", "can", "sum", "exe")
    node.environment |= dict.fromkeys(names, "x") | {"SHELLOPTS": "allexport"}
    assert node.apply().healthy
    assert node.trigger("guard") == 0
    assert node.files() == OLD


def drop_ins(node: Node) -> dict[str, bytes]:
    """Those of an armed node's guard, by their paths; the paths in them are as the node sees them."""
    found = [
        path
        for folder in ("run/systemd/system", "etc/systemd/system")
        for path in node.at(folder).rglob("~*-rollout.conf")
    ]
    return {
        str(path.relative_to(node.root)): re.sub(
            rb"(watch \S+) \d+", rb"\1 SECOND", path.read_bytes().replace(bytes(node.root), b"")
        )
        for path in found
    }


def test_all_shells_write_the_same_drop_ins(tmp_path: Path) -> None:
    """Also a bash that the program itself takes out of its POSIX mode: it unsets the variable that is exported here.
    The folders' names have the same length, because the drop-ins' size is fixed.
    """
    cases: list[tuple[str, dict[str, str]]] = [*((shell, {}) for shell in SHELLS), ("bash", POSIX)]
    written = []
    for number, (shell, exported) in enumerate(cases):
        node = Node.make(tmp_path / str(number), shell)
        node.environment |= exported
        assert node.apply().healthy
        written.append(drop_ins(node))
    assert len(written[0]) == 4
    assert all(b"\nCapabilityBoundingSet=~\n" in text for path, text in written[0].items() if ".service.d/" in path)
    for case, texts in zip(cases, written, strict=True):
        assert texts == written[0], case


def tildes(program: str) -> list[str]:
    """The lines where a shell may expand a tilde: outside quotes, where a word begins, or after ``=`` or ``:``."""
    code = re.sub(r"(?m)(^|\s)#\s.*$", "", program)
    bare = re.sub(r"""'[^']*'|"(\\.|[^"\\])*"|\\.""", lambda quoted: "Q" + "\n" * quoted[0].count("\n"), code)
    return [line for line in bare.splitlines() if re.search(r"(^|[\s=:;(])~", line)]


def test_no_shell_expands_a_tilde_of_the_program() -> None:
    assert tildes(PROGRAM) == []
    quoted = "'CapabilityBoundingSet=~' "
    assert quoted in PROGRAM
    assert len(tildes(PROGRAM.replace(quoted, quoted.replace("'", "")))) == 1


UNSUPPORTED = ("mksh", "ksh93", "yash", "posh", "zsh")


@pytest.mark.parametrize("shell", UNSUPPORTED)
def test_another_shell_is_named(tmp_path: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"NOT TESTED: {shell} is missing")
    node = Node.make(tmp_path, shell)
    report = node.apply()
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "shell-not-supported")
    assert f"/{shell}" in report.message


def test_a_variable_that_such_a_shell_sets_makes_none(node: Node) -> None:
    node.environment |= {"KSH_VERSION": "Version AJM 93u+", "ZSH_VERSION": "5.9"}
    assert node.apply().healthy


def test_a_sha256sum_that_may_not_run_is_no_torn_program(node: Node) -> None:
    """As with NOEXEC of sudo: no program may start another one."""
    tool = node.bin / "sha256sum"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o644)
    path = f"{node.bin}"
    for name in ("dd", "cat", "readlink"):
        (node.bin / name).symlink_to(shutil.which(name) or "")
    command = agent_call.status(PROGRAM, sudo=False, deadline=60)
    report = _alone(node, command, path)
    assert report.startswith("refused program-failed sha256sum: ")


def _alone(node: Node, command: RemoteCommand, path: str) -> str:
    """The last line of an answer where PATH has only this folder."""
    done = subprocess.run(
        [str(node.bin / "sh"), "-c", command.line.replace("sh -c", f"{node.bin}/sh -c", 1)],
        input=command.stdin, capture_output=True, env={**node.env(), "PATH": path}, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert conversation.greeted(done.stdout, PROGRAM) is not None
    return done.stdout.decode().splitlines()[-1]
