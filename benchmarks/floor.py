"""The safe floor: the least that a guarded change of one node costs, by one script over one connection and one sudo.

``python -m benchmarks.floor SSH_CONFIG true|false NODE…``: the value of ``serializeImagePulls`` to write. The script does the same
copies, syncs, receipt, boot unit, transient units, trial of the guard, reload, restart, wait and health check as a transaction, but has no
fencing, journal or protocol.
Prints JSON: ``wall`` seconds, ``cpu`` seconds of this process, ``failed`` nodes. Exits with 1 if a node failed.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import paramiko

TOGETHER = 200
HANDSHAKES = 48
SCRIPT = (Path(__file__).parent / "floor.sh").read_text(encoding="utf-8")


def main() -> None:
    config = paramiko.SSHConfig.from_path(sys.argv[1])
    value, names = sys.argv[2], sys.argv[3:]
    key = paramiko.Ed25519Key.from_private_key_file(config.lookup(names[0])["identityfile"][0])
    gate = threading.Semaphore(HANDSHAKES)

    def change(name: str) -> str:
        """What failed, or nothing."""
        place = config.lookup(name)
        with paramiko.Transport((place["hostname"], int(place.get("port", 22)))) as transport:
            with gate:
                transport.start_client(timeout=60)
                transport.auth_publickey(place["user"], key)
            channel = transport.open_session()
            channel.set_combine_stderr(True)
            channel.exec_command("sh -s" if place["user"] == "root" else "sudo -n sh -s")
            channel.sendall(f"VALUE={value}\n{SCRIPT}".encode())
            channel.shutdown_write()
            said = channel.makefile("rb").read()
            status = channel.recv_exit_status()
        return (
            ""
            if status == 0 and said.endswith(b"ok\n")
            else f"{name}: exit {status}: {said[-200:].decode(errors='replace')}"
        )

    began, before = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(TOGETHER) as pool:
        failed = [wrong for wrong in pool.map(change, names) if wrong]
    figures = {"wall": time.perf_counter() - began, "cpu": time.process_time() - before, "failed": failed}
    sys.stdout.write(json.dumps(figures) + "\n")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
