"""The slow line of the bench: whatever passes it is late by its delay, and its devices are gone afterwards."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.far_line import FAR_DEVICE, NEAR_ADDRESS, NEAR_DEVICE, far_line

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(not Path("/dev/net/tun").exists(), reason="NOT TESTED: this machine has no TUN devices"),
]
ONE_WAY = 0.1
CONNECT = f"""\
import socket, sys, time
began = time.monotonic()
socket.create_connection(({NEAR_ADDRESS!r}, int(sys.argv[1])), 30)
print(time.monotonic() - began)
"""


def test_a_connection_takes_a_round_trip_and_nothing_is_left() -> None:
    with far_line((), "", ONE_WAY) as there, socket.create_server((NEAR_ADDRESS, 0)) as server:
        words = (*there, sys.executable, "-c", CONNECT, str(server.getsockname()[1]))
        took = float(subprocess.run(words, stdout=subprocess.PIPE, check=True, timeout=60).stdout)
    assert took >= 2 * ONE_WAY
    assert not any(Path("/sys/class/net", device).exists() for device in (NEAR_DEVICE, FAR_DEVICE))
