"""What ssh_config says about a host, as OpenSSH itself reads it (``ssh -G``), and fast for many hosts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rollout.adapters.ssh.resolve import Endpoint, Resolver
from rollout.adapters.ssh.ssh_config import SshConfig
from rollout.app.ports import Target
from rollout.errors import InputError
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


def test_the_target_goes_before_the_file(tmp_path: Path) -> None:
    found = endpoint(resolver(tmp_path, "User someone\nPort 2222\n"), "n1", user="root", port=22)
    assert (found.user, found.port, found.key_names) == ("root", 22, ("n1",))


def test_paths_and_their_tokens(tmp_path: Path) -> None:
    found = endpoint(resolver(tmp_path, TEXT.replace("  HostKeyAlias\n", "")), "rack1-n2")
    home = Path.home()
    assert found.identities == (home / ".ssh/rack1", Path("/keys/rack1-n2.example.net-first-2200"), Path("/keys/any"))
    assert found.known_hosts[:2] == (home / ".ssh/known", Path("/etc/known2"))
    assert found.identities_only


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("HostName h.example\n", ("h.example",)),
        ("HostName h.example\nPort 2222\n", ("[h.example]:2222", "h.example")),
        ("HostName h.example\nPort 2222\nHostKeyAlias Alias\n", ("alias",)),
    ],
)
def test_names_in_known_hosts(tmp_path: Path, text: str, names: tuple[str, ...]) -> None:
    assert endpoint(resolver(tmp_path, text), "n1").key_names == names


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("Host a\nMatch exec true\n", 2, "Match exec"),
        ("CanonicalizeHostname yes\n", 1, "CanonicalizeHostname"),
        ("Host a\n  Include other\n", 2, "Include below"),
        ('Host "a\n', 1, "Unparsable"),
        ("Host a\n  NoValue\n", 1, "Unparsable"),
    ],
)
def test_a_file_that_cannot_be_honoured_is_refused_with_its_place(
    tmp_path: Path, text: str, line: int, says: str
) -> None:
    with pytest.raises(InputError, match=says) as caught:
        resolver(tmp_path, text)
    assert caught.value.problems[0].place is not None
    assert caught.value.problems[0].place.line == line


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        SshConfig.read(tmp_path / "missing")


def cost_of_stanzas(folder: Path, count: int) -> int:
    """Calls for so many nodes, each with a stanza of its own."""
    stanzas = "".join(f"Host node-{n}\n  HostName 127.1.{n >> 8}.{n & 255}\n  Port 2222\n" for n in range(count))

    def all_of_them() -> None:
        found = resolver(folder, f"{stanzas}Host *\n  User ops\n  IdentityFile ~/.ssh/id\n")
        assert len({endpoint(found, f"node-{n}").host for n in range(count)}) == count

    return calls(all_of_them)


def test_a_stanza_for_each_of_2000_nodes_costs_seconds_not_minutes(tmp_path: Path) -> None:
    """Ten times as much as for 200; looked up stanza by stanza it would be a hundred times as much."""
    assert cost_of_stanzas(tmp_path, 2000) < 15 * cost_of_stanzas(tmp_path, 200)
