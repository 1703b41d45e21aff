"""The settings of a host in ssh_config, as OpenSSH itself reads them (``ssh -G``), and fast for many hosts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rollout.adapters.ssh.resolve import Endpoint, Resolver
from rollout.adapters.ssh.ssh_config import SshConfig
from rollout.app.ports import Target
from rollout.errors import InputError, RemoteError
from tests.cost import calls

TEXT = """
Include {folder}/extra/*.conf
Port 2200
# Host commented out
Host rack1-n1 rack1-n2
  HostName %h.example.net
  User first
  IdentityFile ~/.ssh/rack1
Host rack1-* !rack1-n2
  User second
  Port 2201
Match originalhost rack1-n2
  User third
  IdentityFile /keys/%h-%r-%p
Host *
  User last
  IdentityFile /keys/any
  IdentitiesOnly yes
  UserKnownHostsFile ~/.ssh/known /etc/known2
  HostKeyAlias
"""


def resolver(folder: Path, text: str = TEXT) -> Resolver:
    (folder / "config").write_text(text.replace("{folder}", str(folder)), encoding="utf-8")
    return Resolver(SshConfig.read(folder / "config"))


def endpoint(found: Resolver, address: str, *, user: str | None = None, port: int | None = None) -> Endpoint:
    return found.resolve(Target(name="any", address=address, user=user, port=port))


def openssh(folder: Path, address: str) -> dict[str, str]:
    done = subprocess.run(["ssh", "-G", "-F", folder / "config", address], capture_output=True, text=True, check=True)
    pairs = [line.partition(" ") for line in done.stdout.splitlines()]
    return {key: value for key, _, value in reversed(pairs)}


@pytest.mark.process
@pytest.mark.parametrize("address", ["rack1-n1", "rack1-n2", "rack1-n3", "rack2-n1", "included", "10.0.0.1"])
def test_host_user_and_port_are_those_of_openssh(tmp_path: Path, address: str) -> None:
    (tmp_path / "extra").mkdir()
    (tmp_path / "extra/a.conf").write_text("Host included\n  HostName 10.9.9.9\n  Port 99\n", encoding="utf-8")
    found = endpoint(resolver(tmp_path, TEXT.replace("  HostKeyAlias\n", "")), address)
    theirs = openssh(tmp_path, address)
    assert (found.host, found.user, str(found.port)) == (theirs["hostname"], theirs["user"], theirs["port"])


def test_the_target_overrides_the_file(tmp_path: Path) -> None:
    found = endpoint(resolver(tmp_path, "User someone\nPort 2222\n"), "n1", user="root", port=22)
    assert (found.user, found.port, found.key_names) == ("root", 22, ("n1",))


def test_paths_and_their_tokens(tmp_path: Path) -> None:
    found = endpoint(resolver(tmp_path, TEXT.replace("  HostKeyAlias\n", "")), "rack1-n2")
    home = Path.home()
    assert found.identities == (home / ".ssh/rack1", Path("/keys/rack1-n2.example.net-first-2200"), Path("/keys/any"))
    assert found.known_hosts[:2] == (home / ".ssh/known", Path("/etc/known2"))
    assert found.identities_only


def test_only_names_of_the_users_files_may_begin_with_a_tilde(tmp_path: Path) -> None:
    """OpenSSH opens `~/k` of everybody's files below the current folder."""
    found = endpoint(resolver(tmp_path, "UserKnownHostsFile ~/k\nGlobalKnownHostsFile ~/k\n"), "n1")
    assert found.known_hosts == (Path.home() / "k", Path("~/k"))


@pytest.mark.parametrize("keyword", ["IdentityFile", "CertificateFile", "UserKnownHostsFile"])
def test_a_file_of_a_user_that_does_not_exist_is_refused(tmp_path: Path, keyword: str) -> None:
    with pytest.raises(RemoteError, match=r"~nobody-at-all/k in ssh_config: there is no such user"):
        endpoint(resolver(tmp_path, f"{keyword} ~nobody-at-all/k\n"), "n1")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("HostName h.example\n", ("h.example",)),
        ("HostName 0X7f.1\n", ("127.0.0.1",)),
        ("HostName 0xAg\n", ("0xag",)),
        ("HostName h.example\nPort 2222\n", ("[h.example]:2222", "h.example")),
        ("HostName h.example\nPort 2222\nHostKeyAlias Alias\n", ("alias",)),
    ],
)
def test_names_in_known_hosts(tmp_path: Path, text: str, names: tuple[str, ...]) -> None:
    assert endpoint(resolver(tmp_path, text), "n1").key_names == names


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("Host a\nMatch exec true\n", 2, "Match exec is not supported"),
        ('Match host a exec "test -e /vpn"\n', 1, "Match exec is not supported"),
        ("Match localnetwork 10.0.0.0/8\n", 1, "Match localnetwork is not supported"),
        ("Match !localnetwork=10.0.0.0/8\n", 1, "Match localnetwork is not supported"),
        ("Match tagged vpn\n", 1, "Match tagged is not supported"),
        ("Match version OpenSSH_10*\n", 1, "Match version is not supported"),
        ("Match command x\n", 1, "Match command is not supported"),
        ("Match sessiontype shell\n", 1, "Match sessiontype is not supported"),
        ("Match !final\n", 1, "Match !final is not supported"),
        ("Match user 'a'\n", 1, "more than one way"),
        ("Match host a=b\n", 1, "more than one way"),
        ('Match host a"b c"\n', 1, "more than one way"),
        ("Match host = a\n", 1, "more than one way"),
        ("Match host a\\ b\n", 1, "more than one way"),
        ("\nMatch usr root\n", 2, "Match: unknown condition usr"),
        ("CanonicalizeHostname yes\n", 1, "CanonicalizeHostname"),
        ("CanonicalizePermittedCNAMEs *.a:*.b\n", 1, "CanonicalizePermittedCNAMEs"),
        ("Host a\n IgnoreUnknown x\n", 2, "move it to the top"),
        ("Include ${HOME}/x\n", 1, "a token or a variable"),
        ("Include a\\\\*\n", 1, "a backslash or a class"),
        ("Include [[:alpha:]].conf\n", 1, "a backslash or a class"),
        ("ProxyJump $USER@b\n", 1, r"ProxyJump with \$ is not supported"),
        ("ProxyJump a,DOMAIN\\user@b\n", 1, r"ProxyJump with \\ is not supported"),
        ('Host "a\n', 1, "Host: a quote is not closed"),
        ("Host a\n  NoValue\n", 2, "NoValue: the line has no value"),
        ("HostNmae n1\n", 1, "HostNmae: is not a keyword"),
        ("IgnoreUnknown x*\nHost a\n xa 1\n yb 1\n", 4, "yb: is not a keyword"),
        ("Port many\n", 1, "Port: is not a port: many"),
        ("ConnectTimeout 5 minutes\n", 1, "ConnectTimeout: has more than one value"),
        ("ConnectTimeout 5x\n", 1, "is not a time: 5x"),
        ("IdentitiesOnly perhaps\n", 1, "is not one of yes, true, no, false: perhaps"),
        ("ProxyJump user@\n", 1, "ProxyJump user@ is not"),
        ("User a\0b\n", 1, "NUL"),
    ],
)
def test_an_invalid_or_unsupported_file_is_refused_with_the_place(
    tmp_path: Path, text: str, line: int, says: str
) -> None:
    with pytest.raises(InputError, match=says) as caught:
        resolver(tmp_path, text)
    assert caught.value.problems[0].place is not None
    assert caught.value.problems[0].place.line == line
    assert len(caught.value.problems) == 1


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a ``.ssh``."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home" / ".ssh").mkdir(parents=True)
    return tmp_path / "home"


def included(folder: Path, text: str, mode: int = 0o600) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "more").write_text(text, encoding="utf-8")
    (folder / "more").chmod(mode)


def test_a_relative_include_is_relative_to_the_ssh_folder_of_our_home(tmp_path: Path, home: Path) -> None:
    included(home / ".ssh", "Host n1\n Include deeper/more\n")
    included(home / ".ssh" / "deeper", "Port 23\n")
    included(tmp_path, "Port 24\n")
    found = resolver(tmp_path, "Include more\n")
    assert (endpoint(found, "n1").port, endpoint(found, "n2").port) == (23, 22)


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_an_included_file_that_others_can_write_is_refused(tmp_path: Path, home: Path, mode: int) -> None:
    included(home / ".ssh", "Port 23\n", mode)
    with pytest.raises(InputError, match="must belong to you or to root") as caught:
        resolver(tmp_path, "Include more\n")
    assert caught.value.problems[0].reference == "ssh-config-not-private"


def test_our_own_file_too_must_be_private_and_a_team_may_share_a_given_one(home: Path) -> None:
    own = home / ".ssh" / "config"
    own.write_text("Port 23\n", encoding="utf-8")
    own.chmod(0o660)
    assert endpoint(Resolver.reading(own), "n1").port == 23
    with pytest.raises(InputError, match="must belong to you"):
        Resolver.reading(None)


def test_a_given_file_that_everybody_can_write_is_refused(home: Path) -> None:
    """It decides which host gets the sudo password, and which key a host must have."""
    given = home / "given"
    given.write_text("Port 23\n", encoding="utf-8")
    given.chmod(0o606)
    with pytest.raises(InputError, match="is writable by everybody") as caught:
        Resolver.reading(given)
    assert caught.value.problems[0].reference == "file-not-yours"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90.0), ("1m30s", 90.0), ("2H", 7200.0), ("0", None), ("none", None), ("none\nConnectTimeout 3", 3.0)],
)
def test_how_long_to_wait_for_a_connection(tmp_path: Path, text: str, seconds: float | None) -> None:
    assert endpoint(resolver(tmp_path, f"ConnectTimeout {text}\n"), "n1").connect_timeout == seconds


def test_a_comment_at_the_end_is_no_part_of_a_value(tmp_path: Path) -> None:
    assert endpoint(resolver(tmp_path, "HostName 10.0.0.1 # by hand\n"), "n1").host == "10.0.0.1"


def test_comments_may_be_in_any_encoding(tmp_path: Path) -> None:
    (tmp_path / "config").write_bytes("# für alle\nPort 23\n".encode("latin-1"))
    assert endpoint(Resolver(SshConfig.read(tmp_path / "config")), "n1").port == 23


def test_conditions_see_the_user_that_the_inventory_gives(tmp_path: Path) -> None:
    found = resolver(tmp_path, "Match user sre\n Port 23\nHost *\n User ops\n")
    assert (endpoint(found, "n1", user="sre").port, endpoint(found, "n1").port) == (23, 22)


def test_a_host_name_with_another_token_is_refused_for_its_hosts(tmp_path: Path) -> None:
    found = resolver(tmp_path, "Host n1\n HostName %n.example.net\n")
    with pytest.raises(RemoteError, match="no token except %h") as caught:
        endpoint(found, "n1")
    assert caught.value.reference == "ssh-config-invalid"
    assert endpoint(found, "n2").host == "n2"


@pytest.mark.parametrize("option", ["RevokedHostKeys /keys", "RefuseConnection why"])
def test_settings_with_which_ssh_refuses_a_host_are_refused(tmp_path: Path, option: str) -> None:
    with pytest.raises(RemoteError) as caught:
        endpoint(resolver(tmp_path, f"{option}\n"), "n1")
    assert caught.value.reference == "ssh-option-not-supported"


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        SshConfig.read(tmp_path / "missing")


def test_all_files_that_a_star_matches_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file matches it"):
        SshConfig.read(tmp_path / "*.ssh_config")
    (tmp_path / "b.ssh_config").write_text("User late\nPort 2202\n")
    (tmp_path / "a.ssh_config").write_text("Host n1\n  User early\n")
    (tmp_path / "c.other").write_text("Port 2203\n")
    read = SshConfig.read(tmp_path / "*.ssh_config")
    assert [read.lookup(name)["user"] for name in ("n1", "n2")] == [("early",), ("late",)]
    assert read.lookup("n1")["port"] == ("2202",)
    (tmp_path / "b.ssh_config").write_text("Pirt 2202\n")
    with pytest.raises(InputError, match="Pirt"):
        SshConfig.read(tmp_path / "*.ssh_config")


def test_a_star_takes_no_file_whose_name_begins_with_a_dot(tmp_path: Path) -> None:
    """Like for OpenSSH's own glob: a lock of Emacs and a file that macOS makes refuse no command."""
    (tmp_path / ".#a.ssh_config").symlink_to("me@host.1")
    (tmp_path / "._a.ssh_config").write_bytes(b"\0\5\26\7")
    with pytest.raises(InputError, match="no file matches it"):
        SshConfig.read(tmp_path / "*.ssh_config")
    (tmp_path / "a.ssh_config").write_text("User sre\n")
    assert SshConfig.read(tmp_path / "*.ssh_config").lookup("n1")["user"] == ("sre",)


def cost_of_stanzas(folder: Path, count: int) -> int:
    """The number of calls for so many nodes, each with its own stanza."""
    stanzas = "".join(f"Host node-{n}\n  HostName 127.1.{n >> 8}.{n & 255}\n  Port 2222\n" for n in range(count))

    def all_of_them() -> None:
        found = resolver(folder, f"{stanzas}Host *\n  User ops\n  IdentityFile ~/.ssh/id\n")
        assert len({endpoint(found, f"node-{n}").host for n in range(count)}) == count

    return calls(all_of_them)


def test_a_stanza_for_each_of_2000_nodes_costs_seconds_not_minutes(tmp_path: Path) -> None:
    """Ten times the cost of 200 nodes. A search through all stanzas would cost a hundred times as much.

    The small one is first: what is remembered of names would make a later one of the same names cheaper.
    """
    of_200 = cost_of_stanzas(tmp_path, 200)
    assert cost_of_stanzas(tmp_path, 2000) < 15 * of_200
