"""A slow line between a controller and the nodes of a bed: each packet arrives after a delay.

The controller runs in a network namespace, and its only way out is a TUN device. A thread passes the packets on to a TUN device of this
machine, and back. The kernel's netem would do it, but many kernels are built without it.
"""

from __future__ import annotations

import fcntl
import os
import select
import struct
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread

from tests.bed.shell import run

FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
NAMESPACE = "rollout-far"
NEAR_DEVICE, FAR_DEVICE = "rollout-near", "rollout-far"
NEAR_ADDRESS, FAR_ADDRESS = "10.78.0.1", "10.78.0.2"
"""Of this machine and of the controller."""
_TUNSETIFF, _TUN_WITHOUT_INFO = 0x400454CA, 0x1001
LARGEST = 65536


@contextmanager
def far_line(nodes: Iterable[str], gateway: str, delay: float) -> Iterator[tuple[str, ...]]:
    """The words before a command that put it at the other end of the line.

    ``nodes``: the network namespaces from which it is reached through ``gateway``. ``delay``: seconds in each direction.
    """
    with ExitStack() as undo:
        before = FORWARDING.read_text()
        undo.callback(FORWARDING.write_text, before)
        FORWARDING.write_text("1")
        near, far = _tun(NEAR_DEVICE), _tun(FAR_DEVICE)
        for end in (near, far):
            undo.callback(os.close, end)  # the kernel removes it then
        run("ip", "netns", "add", NAMESPACE)
        undo.callback(run, "ip", "netns", "del", NAMESPACE)
        run("ip", "link", "set", FAR_DEVICE, "netns", NAMESPACE)
        run("ip", "addr", "add", NEAR_ADDRESS, "peer", FAR_ADDRESS, "dev", NEAR_DEVICE)
        run("ip", "-n", NAMESPACE, "addr", "add", FAR_ADDRESS, "peer", NEAR_ADDRESS, "dev", FAR_DEVICE)
        run("ip", "link", "set", NEAR_DEVICE, "up")
        for device in (FAR_DEVICE, "lo"):
            run("ip", "-n", NAMESPACE, "link", "set", device, "up")
        run("ip", "-n", NAMESPACE, "route", "add", "default", "via", NEAR_ADDRESS)
        for node in nodes:
            run("ip", "-n", node, "route", "replace", FAR_ADDRESS, "via", gateway)
        ending, writer = os.pipe()
        line = Thread(target=_carry, args=(near, far, ending, delay), daemon=True)
        undo.callback(os.close, ending)
        undo.callback(line.join)
        undo.callback(os.close, writer)
        line.start()
        yield ("ip", "netns", "exec", NAMESPACE)


def _tun(name: str) -> int:
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH", name.encode(), _TUN_WITHOUT_INFO))
    return device


def _carry(near: int, far: int, ending: int, delay: float) -> None:
    """Pass packets from each device to the other, until ``ending`` is closed."""
    under_way: deque[tuple[float, int, bytes]] = deque()
    while True:
        wait = max(0.0, under_way[0][0] - time.monotonic()) if under_way else None
        ready, _, _ = select.select([near, far, ending], [], [], wait)
        if ending in ready:
            return
        now = time.monotonic()
        for device, other in ((near, far), (far, near)):
            if device in ready:
                under_way.append((now + delay, other, os.read(device, LARGEST)))
        while under_way and under_way[0][0] <= now:
            _, to, packet = under_way.popleft()
            os.write(to, packet)
