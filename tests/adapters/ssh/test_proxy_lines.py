"""``ProxyCommand`` as words: what runs, what becomes a ``ProxyJump``, and what is refused. Nothing is started here."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollout.adapters.ssh.proxy_lines import ProxyCommands, jump_of, proxy_words
from rollout.adapters.ssh.resolve import Resolver
from rollout.adapters.ssh.ssh_config import SshConfig
from rollout.app.ports import Target
from rollout.core.reading.user_file import read_user_settings
from rollout.errors import InputError, RemoteError

AWS = "aws ssm start-session --target %h --document-name AWS-StartSSHSession --parameters"
TOKENS = {"%%": "%", "%h": "i-0abc", "%n": "n1", "%p": "22", "%r": "sre"}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/usr/bin/nc %h %p", ("/usr/bin/nc", "%h", "%p")),
        (f"sh -c \"{AWS} 'portNumber=%p'\"", (*AWS.split(), "portNumber=%p")),
        ("/bin/sh -c 'sh -c \"nc %h\"'", ("nc", "%h")),
        ('"/opt/T port/tsh" proxy ssh --cluster=c %r@%h:%p', ("/opt/T port/tsh", "proxy", "ssh", "--cluster=c", "%r@%h:%p")),
        ("'/usr/bin/python3' '-S' '/g/gcloud.py' x %p", ("/usr/bin/python3", "-S", "/g/gcloud.py", "x", "%p")),
        ("boundary connect -exec nc -- {{boundary.ip}} {{boundary.port}}", ("boundary", "connect", "-exec", "nc", "--", "{{boundary.ip}}", "{{boundary.port}}")),
        ("x \\\"a\\ b\\\" 'c\\d' \"e\\f\\$\"", ("x", '"a b"', "c\\d", "e\\f$")),
        ("x ''", ("x", "")),
    ],
)  # fmt: skip
def test_words_are_those_of_a_shell(line: str, words: tuple[str, ...]) -> None:
    assert proxy_words(line) == words


@pytest.mark.parametrize(
    "line",
    [
        "", "nc %h %p 2>/dev/null", "nc %h | tee log", "nc %h; id", "nc $(id)", "nc `id`", "nc $HOST", 'nc "$HOST"', "nc ~/x", "nc *", "nc [a]",
        "nc # x", "nc 'a", "nc \\", "A=b nc %h", "exec nc %h", "nc {a,b}", "nc {1..9}", "%h nc", "nc (a)", "nc a\nid", "sh -c 'nc %h; id'", "nc & id",
    ],
)  # fmt: skip
def test_what_needs_a_shell_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"shell|quote|backslash|begin with a program"):
        proxy_words(line)


@pytest.mark.parametrize(
    ("line", "jump"),
    [
        ("ssh -W %h:%p b", "b"),
        ("/usr/bin/ssh -q -W [%h]:%p -l u -p 2222 b", "u@b:2222"),
        ("ssh -qW %h:%p b", None),
        ("ssh b -W%h:%p -q", "b"),
        ("ssh -W %h:%p u@b -l v", "u@b"),
        ("ssh -l v -W %h:%p u@b", "v@b"),
        ("ssh -p 1 -p 2 -W %h:%p fd00::5", "[fd00::5]:1"),
        ("ssh -W %h:%p %r@b-%h", "%r@b-%h"),
        ("ssh -W %h:22 b", None),
        ("ssh -W %h:%p b true", None),
        ("ssh -W %h:%p -i key b", None),
        ("ssh -W %h:%p -o ProxyCommand=x b", None),
        ("ssh -W %h:%p -F x b", None),
        ("ssh -W %h:%p a,b", None),
        ("ssh -W %h:%p ssh://b", None),
        ("ssh -W %h:%p b:22", None),
        ("ssh -W %h:%p -- -b", None),
        ("ssh -W %h:%p -l -x b", None),
        ("ssh -W %h:%p @b", None),
        ("ssh -W %h:%p", None),
        ("ssh -p x -W %h:%p b", None),
        ("./ssh -W %h:%p b", None),
        ("nc b", None),
    ],
)
def test_ssh_w_is_a_proxy_jump_only_in_the_forms_that_mean_the_same(line: str, jump: str | None) -> None:
    assert jump_of(proxy_words(line)) == jump


def allowing(*lines: str) -> ProxyCommands:
    return ProxyCommands.of(read_user_settings(f"proxyCommands = {list(lines)!r}\n", "config.toml"))


def test_the_users_program_runs_whatever_path_finds_and_only_with_the_same_words() -> None:
    allowed = allowing(f"/usr/local/bin/{AWS} portNumber=%p")
    found = allowed.program(f"sh -c \"{AWS} 'portNumber=%p'\"", TOKENS)
    assert found == ("/usr/local/bin/aws", *AWS.replace("%h", "i-0abc").split()[1:], "portNumber=22")
    for other in (
        f"{AWS} portNumber=%p --region x",
        f"/tmp/{AWS} portNumber=%p",
        "aws",
        f"/usr/local/bin/{AWS} portNumber=22",
    ):
        with pytest.raises(RemoteError, match="does not allow") as caught:
            allowed.program(other, TOKENS)
        assert caught.value.reference == "proxy-command-not-allowed"


@pytest.mark.parametrize("bad", ["-oProxyCommand=id", "a b", "a;b", "a$b", "a/b", "", "é", "a%b", "+a", "@a", "a\n"])
@pytest.mark.parametrize("token", ["%h", "%n", "%p", "%r"])
def test_a_word_that_a_program_could_take_for_something_else_is_refused(token: str, bad: str) -> None:
    with pytest.raises(RemoteError) as caught:
        allowing("/bin/x --to=%h %n %p %r").program("/bin/x --to=%h %n %p %r", {**TOKENS, token: bad})
    assert caught.value.reference == "proxy-command-unsafe-word"


def test_a_percent_sign_is_written_twice() -> None:
    assert allowing("/bin/x %%h").program("/bin/x %%h", TOKENS) == ("/bin/x", "%h")


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("proxyCommands = ['nc %h %p']", "proxy-command-not-supported"),
        ("proxyCommands = ['/bin/nc %h; id']", "proxy-command-not-supported"),
        ("proxyCommands = ['/bin/nc %d']", "proxy-command-not-supported"),
        ("proxyCommands = ['/bin/nc %']", "proxy-command-not-supported"),
        ("proxyCommands = '/bin/nc %h'", "wrong-type"),
        ("proxyCommands = [1]", "wrong-type"),
        ("proxyCommand = []", "unknown-key"),
        ("proxyCommands = [", "not-toml"),
        (f"proxyCommands = ['/bin/{'x' * 5000}']", "bad-value"),
    ],
)
def test_mistakes_in_the_users_file_have_their_place(text: str, reference: str) -> None:
    with pytest.raises(InputError) as caught:
        ProxyCommands.of(read_user_settings(f"# mine\n{text}\n", "config.toml"))
    (problem,) = caught.value.problems
    assert problem.reference == reference
    assert problem.place is not None
    assert problem.place.line in (2, 3)


@pytest.mark.parametrize(("mode", "refused"), [(0o600, False), (0o644, False), (0o664, True), (0o602, True)])
def test_the_users_file_must_be_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, refused: bool
) -> None:
    file = tmp_path / ".config" / "rollout" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("proxyCommands = ['/bin/nc %h %p']\n")
    file.chmod(mode)
    monkeypatch.setenv("HOME", str(tmp_path))
    if not refused:
        assert ProxyCommands.read().allowed == {("/bin/nc", "%h", "%p")}
        return
    with pytest.raises(InputError) as caught:
        ProxyCommands.read()
    assert caught.value.problems[0].reference == "user-file-not-private"
    assert "chmod go-w" in caught.value.problems[0].hint


def test_a_line_for_each_node_of_a_large_fleet_is_found() -> None:
    lines = [f"/usr/bin/gcloud compute start-iap-tunnel node-{number} %p" for number in range(10_000)]
    allowed = allowing(*lines)
    for number in range(0, 10_000, 10):
        assert allowed.program(lines[number], TOKENS)[3] == f"node-{number}"


def test_without_the_users_file_there_is_no_error(tmp_path: Path) -> None:
    (tmp_path / ".config").write_text("")
    for home in (tmp_path, tmp_path / "nowhere", Path("/dev/null")):
        assert ProxyCommands.read(home / ".config" / "rollout" / "config.toml") == ProxyCommands()


def test_a_users_file_that_cannot_be_read_is_an_error_only_where_a_line_needs_it(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    (tmp_path / "config").write_text(CONFIG)
    found = Resolver(SshConfig.read(tmp_path / "config"), programs=ProxyCommands.read(tmp_path / "config.toml"))
    assert found.resolve(Target("x", "x")).program == ()
    assert found.resolve(Target("jumped", "jumped")).via is not None
    with pytest.raises(RemoteError, match="Is a directory") as caught:
        found.resolve(Target("run", "run"))
    assert caught.value.reference == "file-unreadable"


CONFIG = """
Host jumped
  ProxyCommand ssh -q -W %h:%p -l u b
Host run
  ProxyCommand nc %h %p
Host first
  ProxyJump b
  ProxyCommand nc %h %p
Host behind
  ProxyJump run
Host chained
  ProxyJump b,run
Host loop
  ProxyCommand ssh -W %h:%p loop
"""


def test_of_both_the_first_counts_and_a_bastion_may_have_a_program(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(CONFIG)
    found = Resolver(SshConfig.read(tmp_path / "config"), programs=allowing("/bin/nc %h %p"))

    def way(name: str) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
        endpoint = found.resolve(Target(name, name))
        return (
            endpoint.program,
            f"{endpoint.via.user}@{endpoint.via}" if endpoint.via else "",
            endpoint.via.program if endpoint.via else (),
        )

    mine = found.resolve(Target("x", "x")).user
    assert way("jumped") == ((), "u@b", ())
    assert way("run") == (("/bin/nc", "run", "22"), "", ())
    assert way("first") == ((), f"{mine}@b", ())
    assert way("behind") == ((), f"{mine}@run", ("/bin/nc", "run", "22"))
    assert way("chained") == ((), f"{mine}@run", ())
    with pytest.raises(RemoteError, match="loop"):
        way("loop")
