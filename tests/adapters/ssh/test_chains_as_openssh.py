"""Random chains of ``ProxyJump``: each ``ssh`` that ssh itself starts on the way has the address, port, user and key of ours.

ssh starts itself again for each bastion, by the name that it was started with. That name is a script here, which notes
its arguments and what ``ssh -G`` makes of them, and becomes ssh as long as there is one more bastion.
"""

from __future__ import annotations

import os
import pwd
import subprocess
from pathlib import Path
from random import Random

import pytest

from rollout.adapters.ssh.resolve import Endpoint, Resolver
from rollout.adapters.ssh.ssh_config import SshConfig
from rollout.app.ports import Target
from rollout.errors import RemoteError
from tests.sampling import sample

pytestmark = pytest.mark.process

CASES, SHARE, CHUNK = 400, 20, 10
NOTES = """\
#!/bin/bash
found=$(ssh -G "$@") || exit 1
printf '%s\\0' "$found" >> "$NOTES"
case "$found" in *$'\\nproxyjump '*) exec -a "$0" ssh "$@" < /dev/null;; esac
"""
HOSTS = ("n1", "n1", "n3", "N1", "b1", "10.0.0.1", "fd00::1", "n1.example.net")
BASTIONS = ("b1", "b2", "n2", "b3.", "B4", "b-%r", "b-%h", "[fd00::2]", "[10.0.0.2]")


def chain(random: Random) -> str:
    """Of different bastions: ssh refuses one that is twice in a row, and rollout goes through it twice."""
    users = ("", "", "", "root@", "%r@", "a.b-c@")
    ports = ("", "", "", ":22", ":022", ":2200")
    names = random.sample(BASTIONS, random.choice((1, 1, 2, 3)))
    return ",".join(f"{random.choice(users)}{name}{random.choice(ports)}" for name in names)


def drawn(random: Random) -> str:
    """A way to nodes, and stanzas for nodes and bastions. Some bastions are themselves behind a gate."""
    lines = ["Host n* fd00::1 10.*", f"ProxyJump {chain(random)}"]
    for _ in range(random.randint(0, 5)):
        names = random.choice(("n*", "b*", "b1", "*", "n1", "fd00::*", "10.*", "!b1 *", "B4", "gate"))
        condition = random.choice(("Host {}", "Match originalhost {}", "Match host {}"))
        lines.append(condition.format(names if condition[0] == "H" else names.replace(" ", ",")))
        some = (
            f"ProxyJump {random.choice(('gate', 'root@gate:2222', 'none') if names in ('b1', 'B4', 'b*') else ('none',))}",
            f"HostName {random.choice(('%h.x', '10.0.0.9', 'fd00:0::9', 'N5'))}",
            f"User {random.choice(('ops', 'root', 'o.x'))}",
            f"Port {random.choice((22, 2222))}",
            f"HostKeyAlias {random.choice(('Alias', 'b1'))}",
            "StrictHostKeyChecking accept-new",
            "UserKnownHostsFile /k/%h-%n-%p-%r-%k",
        )
        lines += random.sample(some, random.randint(1, 4))
    if random.random() < 0.5:
        lines = [*lines[2:], *lines[:2]]
    return "\n".join(lines) + "\n"


def ours(target: Target, path: Path) -> list[dict[str, str]] | None:
    """The target and then each bastion; ``None``: refused, as a loop, which ssh follows for ever, or as an address in ``%h``."""
    hops: list[dict[str, str]] = []
    try:
        at: Endpoint | None = Resolver(SshConfig.read(path)).resolve(target)
    except RemoteError:
        return None
    while at is not None:
        strict = "accept-new" if at.accept_new else "ask"
        files = " ".join(map(str, at.known_hosts[:-2]))
        found = (at.host, str(at.port), at.user, at.key_names[0], strict, files)
        hops.append(dict(zip(KEYS, found, strict=True)))
        at = at.via
    return hops


KEYS = ("hostname", "port", "user", "known as", "stricthostkeychecking", "userknownhostsfile")


def theirs(target: Target, path: Path, folder: Path) -> list[dict[str, str]]:
    script, notes = folder / "ssh-with-notes", folder / "notes"
    script.write_text(NOTES, encoding="utf-8")
    script.chmod(0o755)
    given = [*(("-l", target.user) if target.user else ()), *(("-p", str(target.port)) if target.port else ())]
    subprocess.run(
        [script, "-F", path, *given, target.address],
        env={**os.environ, "NOTES": str(notes)}, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    hops = []
    home = pwd.getpwuid(os.getuid()).pw_dir
    for note in notes.read_text(encoding="utf-8").split("\0")[:-1]:
        found = dict(line.split(" ", 1) for line in note.splitlines() if " " in line)
        found["userknownhostsfile"] = found["userknownhostsfile"].replace(home + "/", os.environ["HOME"] + "/")
        host, port = found["hostname"], found["port"]
        found["known as"] = found.get("hostkeyalias", host if port == "22" else f"[{host}]:{port}").lower()
        hops.append({key: found[key] for key in KEYS})
    return hops


@pytest.mark.parametrize("first", sample("ssh_chains", range(0, CASES, CHUNK), SHARE // CHUNK))
def test_each_hop_is_that_of_ssh(tmp_path: Path, first: int) -> None:
    for seed in range(first, first + CHUNK):
        random, folder = Random(f"chain/{seed}"), tmp_path / str(seed)  # noqa: S311 - reproducible on purpose
        folder.mkdir()
        path = folder / "config"
        path.write_text(drawn(random), encoding="utf-8")
        user, port = random.choice((None, None, "root")), random.choice((None, None, 2222))
        target = Target("n", random.choice(HOSTS), user, port)
        our = ours(target, path)
        if our is not None:
            assert our == theirs(target, path, folder), f"seed {seed}, {target}: {path.read_text(encoding='utf-8')}"
