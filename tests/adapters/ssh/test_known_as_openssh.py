"""Random known_hosts, compared with a real ``ssh`` that connects to a real server.

ssh runs twice: strict checking shows whether the key is known, and ``accept-new`` whether it is new.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from random import Random

import pytest

from rollout.adapters.ssh.known_hosts import HostKeyVerdict, KnownHosts
from tests.adapters.ssh.sshd import Sshd, make_key, public
from tests.sampling import sample

pytestmark = pytest.mark.process

CASES, SHARE = 400, 20
CHUNK = 10
HOST = "localhost"  # ssh must find it by this name


@pytest.fixture(scope="session")
def keys(shared_sshd: Sshd, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("keys")
    made = {kind: public(make_key(folder / kind, kind)) for kind in ("ed25519", "ecdsa", "rsa")}
    shown = public(shared_sshd.host_key)
    return {
        "the one it shows": shown,
        "another": made["ed25519"],
        "another kind": made["ecdsa"],
        "a third kind": made["rsa"],
        "cut off": shown[:-8],
        "garbled": shown.replace("AAAA", "AA*A"),
        "under a wrong kind": shown.replace("ssh-ed25519", "ssh-rsa", 1),
        "of no kind": f"ssh-none {shown.split()[1]}",
    }


def drawn(random: Random, port: int, keys: dict[str, str]) -> str:
    """A random file. Half of its lines are about our host, under one of its two names or a pattern of them."""
    here, bare = f"[{HOST}]:{port}", HOST
    names = (
        *(here, bare) * 4,
        *(
            here.upper(),
            f"[*host]:{port}",
            "*host",
            "*",
            f"[{HOST}]:*",
            f"{bare},10.0.0.1",
            f"x,{here}",
        ),
        *(f"*,!{here}", f"!{bare},*", f"[{HOST}]:1", "n1", "10.0.0.1", "l?calhost", f"other,[other]:{port}"),
    )
    likely = ("the one it shows", "another", "another kind")
    lines = []
    for _ in range(random.randint(0, 5)):
        key = keys[random.choice((*likely, *likely, *keys))]
        marker = random.choice(("",) * 8 + ("@revoked ", "@cert-authority ", "@revoked @revoked ", "@other "))
        mark, end = random.choice((" ", " ", "\t", "  ")), random.choice(("", "", " a comment", "\r", " # what"))
        lines.append(f"{random.choice(('', '', ' '))}{marker}{random.choice(names)}{mark}{key}{end}")
        if random.random() < 0.15:
            lines.append(random.choice(("# a comment", "", here, f"{here} ssh-ed25519", "|1|x|y ssh-ed25519 AAAA")))
    return "\n".join(lines) + random.choice(("\n", ""))


def ssh(server: Sshd, file: Path, checking: str) -> bool:
    """Whether ssh proceeds to the login."""
    options = (f"UserKnownHostsFile={file}", "GlobalKnownHostsFile=none", f"StrictHostKeyChecking={checking}")
    words = (f"HostName={HOST}", "AddressFamily=inet", f"IdentityFile={server.user_key}")
    more = ("IdentitiesOnly=yes", "BatchMode=yes", "UpdateHostKeys=no", "HashKnownHosts=no")
    given = [word for option in (*options, *words, *more) for word in ("-o", option)]
    command = ["ssh", "-F", "none", *given, "-p", str(server.port), "n1", "true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0 or "ost key verification failed" in done.stderr, done.stderr
    return done.returncode == 0


def theirs(server: Sshd, file: Path) -> HostKeyVerdict:
    if ssh(server, file, "yes"):
        return HostKeyVerdict.KNOWN
    copy = file.with_name("copy")
    shutil.copy(file, copy)
    return HostKeyVerdict.UNKNOWN if ssh(server, copy, "accept-new") else HostKeyVerdict.CHANGED


@pytest.mark.parametrize("first", sample("known_hosts", range(0, CASES, CHUNK), SHARE // CHUNK))
def test_verdicts_are_those_of_ssh(shared_sshd: Sshd, keys: dict[str, str], tmp_path: Path, first: int) -> None:
    """Two differences are intended.

    A key that is revoked under the bare name is revoked here. ssh does not distinguish revoked from changed.
    """
    names = (f"[{HOST}]:{shared_sshd.port}", HOST)
    shown = keys["the one it shows"].split()[1]
    for seed in range(first, first + CHUNK):
        text = drawn(Random(f"known_hosts/{seed}"), shared_sshd.port, keys)  # noqa: S311 - reproducible on purpose
        file = tmp_path / str(seed)
        file.write_text(text, encoding="utf-8")
        if seed % 3 == 0:
            subprocess.run(["ssh-keygen", "-q", "-H", "-f", file], check=False, capture_output=True)
        known = KnownHosts((file.read_text(encoding="utf-8"),))
        our, their = known.verdict(names, shown), theirs(shared_sshd, file)
        if our is HostKeyVerdict.REVOKED and known.verdict(names[:1], shown) is not HostKeyVerdict.REVOKED:
            continue
        assert (HostKeyVerdict.CHANGED if our is HostKeyVerdict.REVOKED else our) is their, (
            f"seed {seed}: {file.read_text()}"
        )
