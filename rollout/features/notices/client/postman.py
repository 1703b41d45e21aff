"""Notices through apprise: chats, mail, pagers, HTTP. Its addresses contain secrets and are in no message, log or argument."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from apprise import Apprise, NotifyBase

from rollout.adapters.endpoints import LOOPBACK
from rollout.errors import RemoteError, UsageError


class ApprisePostman:
    """``UsageError``: apprise does not know an address, or would send its secret to a peer without a proven identity.

    The message has the number of the address only.
    """

    def __init__(self, urls: Sequence[str]) -> None:
        logger = logging.getLogger("apprise")
        logger.propagate = False
        logger.addHandler(logging.NullHandler())
        self._apprise = Apprise()
        for number, url in enumerate(urls, 1):
            plugin = Apprise.instantiate(url)
            if not isinstance(plugin, NotifyBase):
                raise UsageError("notice-address", f"apprise does not know address number {number}")
            if why := _unproven(plugin, url.partition(":")[0].lower()):
                hint = "use the form with TLS, such as jsons:// and mailtos://, without verify=no"
                raise UsageError("notice-address", f"address number {number} {why}", hint=hint)
            self._apprise.add(plugin)

    def send(self, title: str, body: str) -> None:
        if not self._apprise.notify(body=body, title=title):
            raise RemoteError("notice-undelivered", "at least one of its addresses did not accept it")


def _unproven(plugin: NotifyBase, scheme: str) -> str:
    """Why the receiver of an address's secrets is not known; ``""``: TLS shows it, or it is this machine, or a bare mail."""
    if not plugin.verify_certificate:
        return "turns the check of the server's certificate off"
    plain = (plugin.protocol,) if isinstance(plugin.protocol, str) else plugin.protocol or ()
    bare = scheme == "mailto" and not plugin.password
    if scheme in plain and plugin.host and plugin.host not in LOOPBACK and not bare:
        return "has no TLS: its secrets would be sent in clear"
    return ""
