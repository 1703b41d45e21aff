"""One real sshd on this machine that answers on all addresses of 127.16.0.0/12; each address is a node.

Only root can start it: it has an ``/etc`` of its own, in a namespace of mounts. The login is root's, with a key of its own
and a plain login shell: the files that this machine's root has for its shell would be run in every session.

The folder is mounted, not the file ``passwd``: a program that adds a user renames a new one over it, which takes a mount on the file
away. The next session would then be root's on this machine, and not on a node.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PORT = 2322
_BEGIN = 'mount --bind "$0/etc" /etc && exec /usr/sbin/sshd -D -r -f "$0/sshd_config"'


def address(number: int) -> str:
    """Of node ``number``, from 0."""
    return f"127.{16 + number // 62500}.{number // 250 % 250}.{number % 250 + 1}"


def port(place: str, sockets: int) -> int:
    """Where a client of this address connects, if the sshd listens on so many sockets."""
    return PORT + int(place.rpartition(".")[2]) % sockets


@contextmanager
def loopback_sshd(folder: Path, shell: str = "/bin/sh", sockets: int = 1) -> Iterator[Path]:
    """Until the end; yields the ssh_config of clients. ``folder/user`` is their key, ``shell`` the login shell.

    ``sockets``: 1, 2, 5 or 10. The queue of one holds 128 connections: a client that opens more at once to its nodes waits for this sshd
    as it would not for so many machines.
    """
    ports = range(PORT, PORT + sockets)
    if _answers():
        raise SystemExit(f"another program listens on port {PORT}")
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    shutil.copy(folder / "user.pub", folder / "keys")
    (folder / "sshd_config").write_text(
        "".join(f"Port {each}\n" for each in ports)
        + f"ListenAddress 0.0.0.0\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/keys\nStrictModes no\n"
        f"PermitRootLogin yes\nUsePAM no\nMaxStartups 5000\nUseDNS no\nPidFile none\n"
        "Subsystem sftp internal-sftp\n"
    )
    subprocess.run(["cp", "-a", "/etc", folder / "etc"], check=True)
    (folder / "etc/passwd").write_text(_passwd(shell))
    key = " ".join((folder / "host.pub").read_text().split()[:2])
    (folder / "known").write_text("".join(f"[127.*]:{each} {key}\n" for each in ports))
    config = folder / "config"
    config.write_text(
        "".join(f"Host 127.*{digit}\n  Port {PORT + digit % sockets}\n" for digit in range(10 * (sockets > 1)))
        + f"Host *\n  User root\n  Port {PORT}\n  IdentityFile {folder}/user\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {folder}/known\n  GlobalKnownHostsFile none\n"
    )
    Path("/run/sshd").mkdir(exist_ok=True)
    words = ("unshare", "--mount", "--propagation", "private", "sh", "-c", _BEGIN, str(folder))
    server = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    try:
        _until_it_listens(server)
        yield config
    finally:
        server.terminate()
        server.wait()


def _passwd(shell: str) -> str:
    """This machine's, with this login shell for root."""
    lines = Path("/etc/passwd").read_text().splitlines()
    return "".join(
        f"{line.rpartition(':')[0]}:{shell}\n" if line.startswith("root:") else f"{line}\n" for line in lines
    )


def _until_it_listens(server: subprocess.Popen[bytes]) -> None:
    end, pause = time.monotonic() + 60, threading.Event()
    while not _answers():
        if server.poll() is not None or time.monotonic() > end:
            raise SystemExit("sshd does not listen")
        pause.wait(0.05)


def _answers() -> bool:
    with suppress(OSError), socket.create_connection((address(0), PORT), 1):
        return True
    return False
