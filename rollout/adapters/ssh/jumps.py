"""The value of ``ProxyJump``: bastions, the nearest first."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rollout.adapters.ssh.troubles import printable
from rollout.app.ports import Target
from rollout.errors import RemoteError

MOST = 8
_HOP = re.compile(
    r"(?:ssh://)?(?:(?P<user>[^@\s/]+)@)?(?:\[(?P<literal>[0-9A-Fa-f:.%]+)\]|(?P<host>[^@\s/:\[\]-][^@\s/:\[\]]*))"
    r"(?::(?P<port>[0-9]{1,5}))?/?"
)


def hops(text: str) -> Iterator[Target]:
    """``user@host:port,…`` or ``ssh://…``. Raises ``RemoteError`` for anything else."""
    words = text.strip('"').split(",")
    if len(words) > MOST:
        raise RemoteError("ssh-config-invalid", f"ProxyJump has more than {MOST} hosts: {printable(text, 80)}")
    for word in words:
        found = _HOP.fullmatch(word.strip())
        port = int(found["port"]) if found and found["port"] else None
        if found is None or (port is not None and not 1 <= port <= 65535):
            raise RemoteError(
                "ssh-config-invalid",
                f"ProxyJump {printable(text, 80)} is not [user@]host[:port], or several with commas",
            )
        address = found["literal"] or found["host"]
        yield Target(name=address, address=address, user=found["user"], port=port)
